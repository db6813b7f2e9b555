//! A model's whole reply, once its stream has ended well.

use serde::{Deserialize, Serialize};

use super::{message::Part, usage::Usage};

/// Why the model stopped.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum StopReason {
    /// It had said what it wanted to.
    EndTurn,
    /// It waits for the results of its calls.
    ToolCalls,
    /// The output limit cut it: it has no signal and its calls are not run (spec 8).
    MaxTokens,
    /// The model would not.
    Refusal,
    /// The provider's filter stepped in.
    ContentFilter,
}

/// A reply: its parts as received, and what it used.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Reply {
    /// Text, calls and opaque parts in the order received.
    pub parts: Vec<Part>,
    /// Why it ended.
    pub stop: StopReason,
    /// What it used.
    pub usage: Usage,
    /// Which model answered, as `provider/model`.
    pub model: String,
}
