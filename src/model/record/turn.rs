//! Turns: the call, the reply, and the signal in it.

use std::sync::Arc;

use serde::{Deserialize, Serialize};

use super::facts;
use crate::model::{
    id::Attempt,
    message::Message,
    reply::StopReason,
    signal::{Rejection, Signal},
    usage::Usage,
};

/// What kind of turn it is; fixed when it starts (spec 8).
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum TurnMode {
    /// Tools are offered.
    #[default]
    Normal,
    /// The last that the budget allows; no tools.
    Last,
    /// The fallback forced a response; no tools, and it ends the query.
    Final,
    /// The model is asked for the signal that its last reply lacked; no tools, and nothing of it is shown.
    Signal,
}

/// `turn.started`: the model is about to be called.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Started {
    /// Which try; 1 here, more in [`TurnRestarted`].
    pub attempt: Attempt,
    /// What kind of turn it is.
    pub mode: TurnMode,
    /// The model asked, as `provider/model`.
    pub model: String,
    /// What the runtime says to the model before this turn, in order.
    #[serde(default)]
    pub guidance: Vec<String>,
    /// About how many tokens are sent, before calibration: prompt, conversation, tool list. An attempt that is
    /// cut off counts with it. None in old records.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub token_estimate: Option<u64>,
    /// The model gave no signal when it was last asked for one, several queries in a row: it is not asked
    /// for the signal of this turn.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub unsignalled: bool,
}

/// Why a turn's call is made anew.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "cause", rename_all = "snake_case")]
pub enum TurnRestartCause {
    /// The call failed in a way that may pass.
    Fault {
        /// The fault's code.
        code: String,
    },
    /// The session was restarted while it waited.
    Recovery,
}

/// `turn.restarted`: a new attempt; what the old one showed is void.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct TurnRestarted {
    /// The new try.
    pub attempt: Attempt,
    /// The model asked, as `provider/model`.
    pub model: String,
    /// Why.
    #[serde(flatten)]
    pub cause: TurnRestartCause,
}

/// Whether a reply carries a signal.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum SignalPresence {
    /// A valid one; `signal.emitted` follows.
    Valid,
    /// A block that should have been one; `signal.rejected` follows.
    Rejected,
    /// None.
    Absent,
}

/// `turn.replied`: the reply is whole; the turn counts.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Replied {
    /// Which try.
    pub attempt: Attempt,
    /// The reply as received, signals included. Shared with the transcript.
    pub message: Arc<Message>,
    /// What people see of it.
    pub text: Arc<str>,
    /// Whether it has a signal.
    pub signal: SignalPresence,
    /// Why the model stopped.
    pub stop: StopReason,
    /// What it used.
    pub usage: Usage,
    /// The provider did not say what it used, so that is an estimate.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub estimated: bool,
    /// Which model answered.
    pub model: String,
}

facts! {
    /// `turn.*`
    TurnFact in Turn {
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
    SignalFact in Signal {
        /// The reply's signal, with its raw XML (SC-009).
        Emitted(Arc<Signal>) = "signal.emitted",
        /// The block that should have been one.
        Rejected(Rejection) = "signal.rejected",
    }
}
