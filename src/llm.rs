//! The port to models: a [`Backend`] turns a [`Request`] into a stream of [`Delta`]s.
//!
//! Here are the port, the models that need no network, and those behind an API ([`Remote`]). What a
//! model sees is in the request and nowhere else. No session logic, no retries: a backend makes one try and says how it went.
//!
//! **Invariant:** a stream that ended well ends with exactly one [`Delta::Done`]; anything else is a
//! failed attempt, whatever text it had shown (spec 12).

use std::sync::Arc;

use futures_util::stream::BoxStream;

use crate::model::{Fault, Message, Reply, ToolSpec, Usage};

mod anthropic;
mod decode;
mod estimate;
mod fault;
mod http;
mod kept;
mod lenient;
mod limits;
pub mod offline;
mod openai;
mod pieces;
mod provider;
mod reading;
mod remote;
pub mod script;
pub mod scripted;
mod secrets;
mod sse;
pub(crate) mod surrogates;
mod wire;

pub use estimate::{estimate_tokens, estimate_usage};
pub use limits::{Allowance, RateLimits};
pub use provider::{Dialect, ModelSettings, ProviderSettings, Streaming};

pub use http::SetupError;
pub use offline::{OFFLINE, Offline};
pub use remote::Remote;
pub use scripted::Scripted;
#[cfg(any(feature = "cli", feature = "server"))]
pub(crate) use {fault::cause, http::plain_client};

/// Whether the model may ask for tools in this turn.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ToolChoice {
    /// As it likes.
    Auto,
    /// Not at all; the list stays, so that provider caches of the prefix hold.
    None,
}

/// One model call: all that the model sees. Cheap to clone.
#[derive(Debug, Clone)]
pub struct Request {
    /// The model's name, without its provider.
    pub model: Arc<str>,
    /// The composed prompt.
    pub system: Arc<str>,
    /// The conversation so far, guidance included; never ends with the assistant.
    pub messages: Arc<Vec<Arc<Message>>>,
    /// The tools of this session.
    pub tools: Arc<[ToolSpec]>,
    /// Whether they may be asked for.
    pub tool_choice: ToolChoice,
}

/// A piece of a reply as it arrives.
#[derive(Debug, Clone, PartialEq)]
pub enum Delta {
    /// More text, as received, signals included.
    Text(String),
    /// More reasoning, kept apart from the answer.
    Reasoning(String),
    /// Something came that brings the reply on and is nothing to show, such as a piece of a tool call.
    Progress,
    /// Something came that says nothing, such as a keep-alive comment: the connection lives. No progress.
    Alive,
    /// What the call has used so far, as the provider counts: sums, of which the last one counts, and only
    /// where no [`Delta::Done`] follows.
    Used(Usage),
    /// What the provider says of its limits; at any place, before a fault too.
    Limits(RateLimits),
    /// The end: the whole reply.
    Done(Reply),
}

/// A reply as it arrives. Dropping it ends the call.
pub type DeltaStream = BoxStream<'static, Result<Delta, Fault>>;

/// A model, or a server of models.
pub trait Backend: Send + Sync + 'static {
    /// The provider's name, as in `provider/model`.
    fn provider(&self) -> &str;

    /// Makes one try. Returns at once; all waiting happens in the stream.
    fn call(&self, request: Request) -> DeltaStream;
}
