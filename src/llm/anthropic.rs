//! The dialect of Anthropic's Messages API and compatible servers.

use crate::model::{Capabilities, Parameter};

mod blocks;
mod decode;
mod request;

pub(super) use decode::AnthropicDecoder;
pub(super) use request::{Places, body};

pub(super) const CAPABILITIES: Capabilities = Capabilities {
    parameters: &[Parameter::Temperature, Parameter::TopP],
    max_temperature: 1,
    images: true,
    ..Capabilities::NONE
};

/// Value of the header `anthropic-version`.
pub(super) const VERSION: &str = "2023-06-01";
