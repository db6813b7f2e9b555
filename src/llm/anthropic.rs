//! The dialect of Anthropic's Messages API and compatible servers.

mod blocks;
mod decode;
mod request;

pub(super) use decode::AnthropicDecoder;
pub(super) use request::body;

/// Value of the header `anthropic-version`.
pub(super) const VERSION: &str = "2023-06-01";
