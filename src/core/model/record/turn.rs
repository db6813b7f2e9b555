//! Turns: call, reply and signal.

use std::sync::Arc;

use serde::{Deserialize, Serialize};

use super::facts;
use crate::model::{
    fault::FaultCode,
    id::Attempt,
    message::Message,
    options::Cut,
    reply::StopReason,
    signal::{Rejection, Signal},
    usage::Usage,
};

/// The mode of a turn.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum TurnMode {
    /// Tools are offered.
    #[default]
    Normal,
    /// The last turn that the budget allows; no tools.
    Last,
    /// Forced by the fallback; no tools, and it ends the query.
    Final,
    /// Asks for the signal of the last reply; no tools, and the reply is not shown.
    Signal,
}

/// `turn.started`
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Started {
    /// The first attempt; later ones are in [`TurnRestarted`].
    pub attempt: Attempt,
    /// The mode.
    pub mode: TurnMode,
    /// The model, as `provider/model`.
    pub model: String,
    /// Guidance before this turn, in order.
    #[serde(default)]
    pub guidance: Vec<String>,
    /// Estimated tokens sent, before calibration; charged if the call is cut off.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub token_estimate: Option<u64>,
    /// The model is not asked for a signal, because it repeatedly gave none.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub unsignalled: bool,
}

/// The cause of another attempt.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "cause", rename_all = "snake_case")]
pub enum TurnRestartCause {
    /// A transient fault.
    Fault {
        /// The fault's code.
        code: FaultCode,
    },
    /// A restart of the session.
    Recovery,
}

/// `turn.restarted`: a new attempt; partial output of the previous one is void.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct TurnRestarted {
    /// The attempt.
    pub attempt: Attempt,
    /// The model, as `provider/model`.
    pub model: String,
    /// The cause.
    #[serde(flatten)]
    pub cause: TurnRestartCause,
}

/// Whether a reply has a signal.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum SignalPresence {
    /// A valid one; `signal.emitted` follows.
    Valid,
    /// An invalid one; `signal.rejected` follows.
    Rejected,
    /// None.
    Absent,
}

/// `turn.replied`: the reply is complete, and the turn counts.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Replied {
    /// The attempt.
    pub attempt: Attempt,
    /// The reply as received, shared with the transcript.
    pub message: Arc<Message>,
    /// Its visible text.
    pub text: Arc<str>,
    /// Whether it has a signal.
    pub signal: SignalPresence,
    /// Why the model stopped.
    pub stop: StopReason,
    /// Its usage.
    pub usage: Usage,
    /// Whether the usage is an estimate.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub estimated: bool,
    /// Why the provider's cache did not have all that the call before had sent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cache_miss: Option<CacheMiss>,
    /// Why the visible text was cut, if it was.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cut: Option<Cut>,
    /// How many of its calls are of `report_status`: signals, and no work.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub reports: usize,
    /// The model that replied.
    pub model: String,
}

fn is_zero(count: &usize) -> bool {
    *count == 0
}

words! {
    /// Why a call did not read from the provider's cache what the call before it had sent.
    pub enum MissCause {
        /// Another model answered the call before.
        ModelChanged = "model_changed",
        /// The session got a new head.
        NewHead = "new_head",
        /// Messages were replaced by a summary, or removed.
        Compaction = "compaction",
        /// Earlier reasoning was removed after a refusal.
        PrefixBroken = "prefix_broken",
        /// Messages of a failed query were removed.
        QueryFailed = "query_failed",
        /// Only one of the two calls allowed the use of tools, and some providers cache that, too.
        ToolChoice = "tool_choice",
        /// Five minutes or more after the reply before, which is longer than some providers keep a prefix.
        Idle = "idle",
        /// Nothing in the log: a reason of the provider.
        Provider = "provider",
    }
}

/// Why a call read less from the provider's cache than it could. `missed_tokens` of its usage says how
/// much.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct CacheMiss {
    /// The most likely cause.
    pub cause: MissCause,
    /// From the reply before to this call, in milliseconds.
    pub idle_ms: u64,
}

facts! {
    /// `turn.*`
    TurnFact {
        /// See [`Started`].
        Started(Started) = "turn.started",
        /// See [`TurnRestarted`].
        Restarted(TurnRestarted) = "turn.restarted",
        /// See [`Replied`].
        Replied(Replied) = "turn.replied",
    }
}

facts! {
    /// `signal.*`
    SignalFact {
        /// The reply's signal.
        Emitted(Arc<Signal>) = "signal.emitted",
        /// The rejected block.
        Rejected(Rejection) = "signal.rejected",
    }
}
