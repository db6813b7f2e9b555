//! The interface of OpenAI's chat completions, so that existing clients can talk with Oracle unchanged.
//!
//! A model is a profile; a request is a question to a session (`place` says to which). What clients see are
//! OpenAI's objects and nothing that they do not expect: what Oracle knows beyond stands in headers and in
//! one more object, `oracle`. docs/openai.md says what is supported.
//!
//! **Invariant:** a stream never takes back what it said. The text of a turn is told when the turn can no longer
//! be tried again (spec 8), because these clients have no way to show that it was.
//!
//! **Invariant:** a request without a conversation leaves nothing behind.

mod brief;
mod chats;
mod completions;
mod content;
mod ending;
mod models;
mod past;
mod place;
mod progress;
mod request;
mod schemas;
mod shapes;
mod stream;
mod wishes;

use utoipa_axum::{router::OpenApiRouter, routes};

use super::Host;

pub(super) use brief::sweep;
pub(super) use chats::Chats;

pub(super) fn routes() -> OpenApiRouter<Host> {
    OpenApiRouter::new()
        .routes(routes!(models::list))
        .routes(routes!(models::show))
        .routes(routes!(completions::create))
}
