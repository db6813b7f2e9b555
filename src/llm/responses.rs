//! The dialect of OpenAI's Responses API and servers that copy it.
//!
//! A reply is a list of items. Reasoning items go back as they came and in their places, because
//! the calls after them depend on them. The server stores nothing (`store: false`), so a reasoning
//! item has to carry its encrypted content, and no item is referred to by its id.
//! <https://platform.openai.com/docs/api-reference/responses>

use reqwest::Url;

use super::{
    Dialect,
    decode::{Context, Decode},
    dialect::{Outgoing, Protocol},
    http::Connection,
    openai::Host,
};
use crate::model::{
    Capabilities,
    Parameter::{ReasoningEffort, Temperature, TopP, Verbosity},
};

mod decode;
mod items;
mod request;

/// `POST {base}/responses`.
pub(super) struct Responses;

impl Protocol for Responses {
    fn endpoint(&self, connection: &Connection) -> Url {
        connection.url(&["responses"])
    }

    fn capabilities(&self, host: Host) -> Capabilities {
        Capabilities {
            parameters: &[Temperature, TopP, ReasoningEffort, Verbosity],
            ..host.capabilities()
        }
    }

    fn other(&self) -> Option<Dialect> {
        Some(Dialect::OpenAi)
    }

    fn body(&self, call: &Outgoing<'_>) -> serde_json::Result<Vec<u8>> {
        request::body(call)
    }

    fn decoder(&self, context: Context) -> Box<dyn Decode> {
        Box::new(decode::ResponsesDecoder::new(context))
    }
}
