//! The dialect of OpenAI's chat completions and compatible servers. docs/models.md lists the
//! deviations that the decoder accepts.

use super::{Dialect, dialect::Protocol};

mod calls;
mod decode;
mod quirks;
mod request;
mod thoughts;

pub(super) use calls::received;
pub(super) use quirks::Host;
pub(super) use request::{Tags, conversation, format, head};

/// `POST {base}/chat/completions`.
pub(super) const CHAT: Protocol = Protocol {
    endpoint: |connection| connection.url(&["chat", "completions"]),
    listing: |connection| connection.url(&["models"]),
    headers: &[],
    key: ("authorization", "Bearer "),
    has_formats: true,
    capabilities: Host::capabilities,
    other: Some(Dialect::Responses),
    body: request::body,
    decoder: |draft| Box::new(decode::OpenAiDecoder::new(draft)),
};
