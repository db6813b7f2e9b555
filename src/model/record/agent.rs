//! How the runtime steers an agent: loops, fallback, capabilities, delegation, escalation.

use serde::{Deserialize, Serialize};

use super::facts;
use crate::model::{
    id::SessionName,
    outcome::Outcome,
    signal::{DelegationRecommended, NeedCapability, SignalType},
    usage::{NanoUsd, Usage},
};

/// What went round in circles.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum LoopKind {
    /// The same `need_turn` reason.
    Reason,
    /// The same missing capability.
    Capability,
    /// The same delegation scope.
    Delegation,
    /// The same calls with the same results.
    Tool,
}

/// `loop.detected`: the query ends by force.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct LoopDetected {
    /// What repeats.
    pub kind: LoopKind,
    /// The reason, capability, scope or tools that repeat.
    pub detail: String,
}

/// What called the fallback (spec 7).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum FallbackCause {
    /// Three turns without a signal.
    Silence,
    /// A signal with confidence below the threshold.
    LowConfidence,
    /// A `stuck` signal.
    Stuck,
    /// The first tool loop of the query.
    ToolLoop,
}

/// What the fallback says to do.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum FallbackAction {
    /// Nothing.
    Continue,
    /// The next turn is final.
    ForceResponse,
    /// The hint goes to the model.
    RetryWithHint,
    /// The user is told.
    Escalate,
}

/// `fallback.triggered`
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct FallbackTriggered {
    /// What called it.
    pub cause: FallbackCause,
    /// Why this action.
    pub reason: String,
    /// How long the model had been silent.
    pub turns_without_signal: u32,
    /// The type of the query's last signal, if any.
    pub last_signal_type: Option<SignalType>,
    /// Its confidence.
    pub last_signal_confidence: Option<f64>,
    /// What to do.
    pub action: FallbackAction,
    /// How sure, 0..=1.
    pub confidence: f64,
    /// Words for the model.
    pub hint: Option<String>,
    /// Whether it was done; false where the query ends anyway or calls forbid it (spec 8).
    pub applied: bool,
}

/// `capability.requested`
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct CapabilityRequested {
    /// What the model asked for.
    #[serde(flatten)]
    pub wish: NeedCapability,
}

/// `delegation.started`
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ChildStart {
    /// The child.
    pub child: SessionName,
    /// Its query.
    pub scope: String,
    /// Its token budget, if any.
    pub max_tokens: Option<u64>,
    /// Its cost budget, if any. Records of before there was one have none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_cost: Option<NanoUsd>,
}

/// How a query is to end that first waits for the end of its sub-agent (spec 8).
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "ending", rename_all = "snake_case")]
pub enum Ending {
    /// Somebody took it back.
    Cancelled,
    /// An operator said so: with what there is.
    Finished,
    /// It could not be carried out.
    Failed {
        /// Stable code, as in the outcome that follows.
        code: String,
        /// What happened, for people.
        detail: String,
    },
}

/// `delegation.cancelled`: the sub-agent is taken back. The query ends when its end is known.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ChildCancel {
    /// The child.
    pub child: SessionName,
    /// How the query that waits for it is to end.
    #[serde(flatten)]
    pub ending: Ending,
}

/// `delegation.finished`
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ChildEnd {
    /// The child.
    pub child: SessionName,
    /// How its query ended.
    #[serde(flatten)]
    pub outcome: Outcome,
    /// Its answer: data, never instructions.
    pub answer: String,
    /// What it used; counts in the parent.
    pub usage: Usage,
}

/// `escalation.raised`: for the user, never part of the answer or the history.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct EscalationRaised {
    /// What the user is told.
    pub notice: String,
}

facts! {
    /// The runtime's steering.
    AgentFact in Agent {
        /// See [`LoopDetected`].
        LoopDetected(LoopDetected) = "loop.detected",
        /// See [`FallbackTriggered`].
        FallbackTriggered(FallbackTriggered) = "fallback.triggered",
        /// See [`CapabilityRequested`].
        CapabilityRequested(CapabilityRequested) = "capability.requested",
        /// The model would hand a part to a sub-agent.
        DelegationRecommended(DelegationRecommended) = "delegation.recommended",
        /// See [`ChildStart`].
        DelegationStarted(ChildStart) = "delegation.started",
        /// See [`ChildCancel`].
        DelegationCancelled(ChildCancel) = "delegation.cancelled",
        /// See [`ChildEnd`].
        DelegationFinished(ChildEnd) = "delegation.finished",
        /// See [`EscalationRaised`].
        EscalationRaised(EscalationRaised) = "escalation.raised",
    }
}
