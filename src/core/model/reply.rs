//! A model's complete reply.

use serde::{Deserialize, Serialize};

use super::{message::Part, usage::Usage};

/// The reason why the model stopped.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum StopReason {
    /// The reply is complete.
    EndTurn,
    /// The model waits for tool results.
    ToolCalls,
    /// The output limit cut the reply: it has no signal, and its calls are not run.
    MaxTokens,
    /// The provider paused between calls of its own tools: sent back as it is, the reply goes on.
    Paused,
    /// The model refused.
    Refusal,
    /// The provider's content filter cut the reply.
    ContentFilter,
}

/// A reply and its usage.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Reply {
    /// Parts, in the order received.
    pub parts: Vec<Part>,
    /// Why it stopped.
    pub stop: StopReason,
    /// Its usage.
    pub usage: Usage,
    /// The model, as `provider/model`.
    pub model: String,
}
