//! The dialect of Anthropic's Messages API and compatible servers.

use reqwest::{Url, header::HeaderName};

use super::{
    decode::{Context, Decode},
    dialect::{Outgoing, Protocol},
    http::Connection,
    openai::Host,
};
use crate::model::{Capabilities, Parameter};

mod blocks;
mod decode;
mod request;

pub(super) use request::Places;

/// `POST {base}/v1/messages`.
pub(super) struct Messages;

impl Protocol for Messages {
    fn endpoint(&self, connection: &Connection) -> Url {
        connection.versioned_url("v1", "messages")
    }

    fn listing(&self, connection: &Connection) -> Url {
        let mut url = connection.versioned_url("v1", "models");
        url.query_pairs_mut().append_pair("limit", "1000");
        url
    }

    fn headers(&self) -> &'static [(&'static str, &'static str)] {
        &[("anthropic-version", "2023-06-01")]
    }

    fn key(&self, key: &str) -> (HeaderName, String) {
        (HeaderName::from_static("x-api-key"), key.to_owned())
    }

    fn has_formats(&self) -> bool {
        false
    }

    fn capabilities(&self, _: Host) -> Capabilities {
        Capabilities {
            parameters: &[Parameter::Temperature, Parameter::TopP],
            max_temperature: 1,
            images: true,
            ..Capabilities::NONE
        }
    }

    fn body(&self, call: &Outgoing<'_>) -> serde_json::Result<Vec<u8>> {
        request::body(call)
    }

    fn decoder(&self, context: Context) -> Box<dyn Decode> {
        Box::new(decode::AnthropicDecoder::new(context))
    }
}
