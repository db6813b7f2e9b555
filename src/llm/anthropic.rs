//! The dialect of Anthropic's messages, as Anthropic and those who imitate it speak it.

mod blocks;
mod decode;
mod request;

pub(super) use decode::Decoder;
pub(super) use request::body;

/// The version of the API that is spoken here.
pub(super) const VERSION: &str = "2023-06-01";
