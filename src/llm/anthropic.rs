//! The dialect of Anthropic's Messages API and compatible servers.

use super::dialect::Protocol;
use crate::model::{Capabilities, Parameter};

mod decode;
mod request;

pub(super) use request::Places;

/// `POST {base}/v1/messages`.
pub(super) const MESSAGES: Protocol = Protocol {
    endpoint: |connection| connection.versioned_url("v1", "messages"),
    listing: |connection| {
        let mut url = connection.versioned_url("v1", "models");
        url.query_pairs_mut().append_pair("limit", "1000");
        url
    },
    headers: &[("anthropic-version", "2023-06-01")],
    key: ("x-api-key", ""),
    has_formats: false,
    capabilities: |_| Capabilities {
        parameters: &[Parameter::Temperature, Parameter::TopP],
        max_temperature: 1,
        images: true,
        choice_is_cached: true,
        ..Capabilities::NONE
    },
    other: None,
    body: request::body,
    decoder: |draft| Box::new(decode::AnthropicDecoder::new(draft)),
};
