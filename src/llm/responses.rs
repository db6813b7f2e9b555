//! The dialect of OpenAI's Responses API and servers that copy it.
//!
//! A reply is a list of items. Reasoning items go back as they came and in their places, because
//! the calls after them depend on them. The server stores nothing (`store: false`), so a reasoning
//! item has to carry its encrypted content, and no item is referred to by its id.
//! <https://platform.openai.com/docs/api-reference/responses>

use super::{Dialect, dialect::Protocol, openai::CHAT};
use crate::model::{
    Capabilities,
    Parameter::{ReasoningEffort, Temperature, TopP, Verbosity},
};

mod decode;
mod request;

/// `POST {base}/responses`.
pub(super) const RESPONSES: Protocol = Protocol {
    endpoint: |connection| connection.url(&["responses"]),
    capabilities: |host| Capabilities {
        parameters: &[Temperature, TopP, ReasoningEffort, Verbosity],
        ..host.capabilities()
    },
    other: Some(Dialect::OpenAi),
    body: request::body,
    decoder: |draft| Box::new(decode::ResponsesDecoder::new(draft)),
    ..CHAT
};
