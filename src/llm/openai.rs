//! The dialect of OpenAI's chat completions and compatible servers. docs/models.md lists the
//! deviations that the decoder accepts.

use reqwest::Url;

use super::{
    Dialect,
    decode::{Context, Decode},
    dialect::{Outgoing, Protocol},
    http::Connection,
};
use crate::model::Capabilities;

mod calls;
mod decode;
mod quirks;
mod request;
mod thoughts;

pub(super) use calls::received;
pub(super) use quirks::Host;

/// `POST {base}/chat/completions`.
pub(super) struct Chat;

impl Protocol for Chat {
    fn endpoint(&self, connection: &Connection) -> Url {
        connection.url(&["chat", "completions"])
    }

    fn capabilities(&self, host: Host) -> Capabilities {
        host.capabilities()
    }

    fn other(&self) -> Option<Dialect> {
        Some(Dialect::Responses)
    }

    fn body(&self, call: &Outgoing<'_>) -> serde_json::Result<Vec<u8>> {
        request::body(call)
    }

    fn decoder(&self, context: Context) -> Box<dyn Decode> {
        Box::new(decode::OpenAiDecoder::new(context))
    }
}
