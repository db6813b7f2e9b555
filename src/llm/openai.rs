//! The dialect of OpenAI's chat completions and compatible servers. docs/models.md lists the
//! deviations that the decoder accepts.

mod calls;
mod decode;
mod manners;
mod request;
mod thoughts;

pub(super) use decode::Decoder;
pub(super) use manners::Manners;
pub(super) use request::body;
