//! The port to models: a [`Backend`] turns a [`Request`] into a stream of [`Delta`]s.
//!
//! The
//! request holds everything that a model sees. A backend makes one attempt and reports its outcome;
//! it has no session logic and no retries.
//!
//! **Invariant:** a successful stream ends with exactly one [`Delta::Done`]; any other end is a
//! failed attempt, whatever text it delivered.

use std::{sync::Arc, time::Duration};

use futures_util::stream::BoxStream;

use crate::model::{AnswerOptions, Capabilities, Fault, Message, Reply, ToolSpec, Usage};

/// Whether the model may call tools in this turn.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ToolChoice {
    /// The model decides.
    Auto,
    /// No calls; the request keeps the tools, so that the provider's prefix cache holds.
    None,
    /// The model calls a tool.
    Required,
    /// The model calls the tool of this name.
    Named(Arc<str>),
}

/// One model call: everything that the model sees. Cheap to clone.
#[derive(Debug, Clone)]
pub struct Request {
    /// The model's name, without its provider.
    pub model: Arc<str>,
    /// The composed prompt.
    pub system: Arc<str>,
    /// The conversation so far, including guidance; never ends with the assistant.
    pub messages: Arc<Vec<Arc<Message>>>,
    /// The session's tools.
    pub tools: Arc<[ToolSpec]>,
    /// Whether the model may call tools.
    pub tool_choice: ToolChoice,
    /// What the caller asks of the answer: format, limit of the text, parameters of the model.
    pub options: Option<Arc<AnswerOptions>>,
    /// The first model of the chain, as `provider/model`, if it has failed and this one stands in.
    pub instead_of: Option<Arc<str>>,
}

/// A piece of a reply as it arrives.
#[derive(Debug, Clone, PartialEq)]
pub enum Delta {
    /// Further text, as received, including signals.
    Text(String),
    /// Further reasoning, separate from the answer.
    Reasoning(String),
    /// Progress without visible content: a piece of a tool call's arguments, or nothing.
    Progress(String),
    /// A sign that the connection lives, such as a keep-alive comment, without progress.
    Alive,
    /// Usage so far, by the provider's count. Each one replaces the previous, and none counts if
    /// [`Delta::Done`] follows.
    Used(Usage),
    /// Rate limits that the provider announces; at any position, even before a fault.
    Limits(RateLimits),
    /// The end, with the whole reply.
    Done(Reply),
}

/// Rate limits that a provider announces in the headers of a response. `None` means not announced.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct RateLimits {
    /// Limit on calls.
    pub requests: Allowance,
    /// Limit on tokens, sent and received together or the tighter of the two.
    pub tokens: Allowance,
}

/// A limit, the rest of it, and its reset.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Allowance {
    /// Amount per minute, where the provider counts by minutes.
    pub limit: Option<u64>,
    /// Amount left.
    pub remaining: Option<u64>,
    /// Time until the full amount is available.
    pub reset: Option<Duration>,
}

/// A reply as it arrives. Dropping it cancels the call.
pub type DeltaStream = BoxStream<'static, Result<Delta, Fault>>;

/// A model, or a server of models.
pub trait Backend: Send + Sync + 'static {
    /// Returns the provider's name, as in `provider/model`.
    fn provider(&self) -> &str;

    /// Returns what a model takes besides text and tools: nothing, unless the backend says more.
    /// A client's request for anything else is refused.
    fn capabilities(&self, _model: &str) -> Capabilities {
        Capabilities::NONE
    }

    /// Whether the server is on this machine or network, which may have to load a model and then
    /// reads a long prompt slowly. Its first token has another deadline.
    fn is_local(&self) -> bool {
        false
    }

    /// Makes one attempt. Returns at once; all waiting happens in the stream.
    fn call(&self, request: Request) -> DeltaStream;
}
