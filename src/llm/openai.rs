//! The dialect of OpenAI's chat completions and compatible servers. docs/models.md lists the
//! deviations that the decoder accepts.

mod calls;
mod decode;
mod quirks;
mod request;
mod thoughts;

pub(super) use decode::OpenAiDecoder;
pub(super) use quirks::Host;
pub(super) use request::body;
