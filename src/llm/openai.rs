//! The dialect of OpenAI's chat completions, as OpenAI and very many others speak it.
//!
//! No two servers speak it alike; `docs/models.md` tells what is done about what they do.

mod calls;
mod decode;
mod manners;
mod request;
mod thoughts;

pub(super) use decode::Decoder;
pub(super) use manners::Manners;
pub(super) use request::body;
