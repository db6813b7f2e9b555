//! The interface of OpenAI's chat completions, so that existing clients can talk with Oracle unchanged.
//!
//! A model is a profile. A request is answered by a session in memory that is gone with it, unless it names a
//! session or needs a durable one (`completions`). Clients see OpenAI's objects; what Oracle knows beyond is in
//! headers and in one more object, `oracle`. docs/openai.md says what is supported.
//!
//! **Invariant:** a stream never takes back what it said. The text of a turn is sent when the turn cannot be
//! retried any more, because these clients have no way to show that it was.

mod completions;
mod models;
mod request;
mod shapes;
mod stream;

use utoipa_axum::{router::OpenApiRouter, routes};

use super::Host;

pub(super) fn routes() -> OpenApiRouter<Host> {
    OpenApiRouter::new()
        .routes(routes!(models::list))
        .routes(routes!(models::show))
}

pub(super) fn messages() -> OpenApiRouter<Host> {
    OpenApiRouter::new().routes(routes!(completions::create))
}
