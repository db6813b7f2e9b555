//! OpenAI's chat completions, so that existing clients work unchanged.
//!
//! A model is a profile. A session in memory answers a request and ends with it, unless the request
//! names a session or needs a durable one (`completions`). Responses are OpenAI's objects; anything
//! beyond them is in headers and in one more object, `oracle`. docs/openai.md lists the supported
//! features.
//!
//! **Invariant:** a stream never retracts text. A turn's text is sent once the turn can no longer
//! be retried, because these clients cannot show a retraction.

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

#[cfg(any(test, feature = "testkit"))]
pub(super) fn accepts(body: &[u8]) -> bool {
    request::ParsedChat::read(body).is_ok()
}

pub(super) fn messages() -> OpenApiRouter<Host> {
    OpenApiRouter::new().routes(routes!(completions::create))
}
