//! Steering of the agent: loops, fallback, capabilities, delegation, escalation.

use std::sync::Arc;

use serde::{Deserialize, Serialize};

use super::facts;
use crate::model::{
    fault::FaultCode,
    id::{ProfileName, SessionName},
    outcome::Outcome,
    signal::{DelegationRecommended, NeedCapability, SignalType},
    time::Timestamp,
    usage::{NanoUsd, Usage},
};

/// The kind of a loop.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum LoopKind {
    /// A `need_turn` reason that repeats.
    Reason,
    /// A missing capability that repeats.
    Capability,
    /// A delegation scope that repeats.
    Delegation,
    /// Tool calls that repeat with equal results.
    Tool,
}

/// `loop.detected`: the query ends by force.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct LoopDetected {
    /// What repeats.
    pub kind: LoopKind,
    /// The repeated reason, capability, scope or tools.
    pub detail: String,
}

/// The cause of a fallback.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum FallbackCause {
    /// Turns without a signal.
    Silence,
    /// A signal with confidence below the threshold.
    LowConfidence,
    /// A `stuck` signal.
    Stuck,
    /// The first tool loop of the query.
    ToolLoop,
}

words! {
    /// The fallback's action.
    pub enum FallbackAction {
        /// Nothing.
        Continue = "continue",
        /// The next turn is final.
        ForceResponse = "force_response",
        /// The hint goes to the model.
        RetryWithHint = "retry_with_hint",
        /// The user is notified.
        Escalate = "escalate",
    }
}

/// `fallback.triggered`
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct FallbackTriggered {
    /// The cause.
    pub cause: FallbackCause,
    /// The reason.
    pub reason: String,
    /// Turns in a row without a signal.
    pub turns_without_signal: u32,
    /// Type of the query's last signal.
    pub last_signal_type: Option<SignalType>,
    /// Its confidence.
    pub last_signal_confidence: Option<f64>,
    /// The action.
    pub action: FallbackAction,
    /// Confidence, from 0 to 1.
    pub confidence: f64,
    /// Hint for the model.
    pub hint: Option<String>,
    /// Whether it was applied; false where the query ends anyway or calls forbid it.
    pub applied: bool,
}

/// `capability.requested`
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct CapabilityRequested {
    /// The wish.
    #[serde(flatten)]
    pub wish: NeedCapability,
    /// Tools that an operator can grant and that would serve it.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub grantable: Vec<String>,
    /// When the wait for one of the grantable tools ends; `None` if the query does not wait.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub until: Option<Timestamp>,
    /// Guidance for the turn after the wait.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub guidance: Vec<String>,
}

/// A tool that joined a session's list.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct AddedTool {
    /// Its name.
    pub tool: String,
    /// Its description for the model.
    pub about: String,
}

/// `capability.added`: tools that were found joined the end of the session's list.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ToolsAdded {
    /// The tools, in order.
    pub tools: Vec<AddedTool>,
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
    /// Its cost budget, if any.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_cost: Option<NanoUsd>,
    /// Its profile; `None` for the parent's.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub profile: Option<ProfileName>,
    /// The most tools that it may have, by name; `None`, in older records, for all that only read.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tools: Option<Arc<[String]>>,
}

/// `delegation.progressed`: a turn of a sub-agent is complete.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ChildProgress {
    /// The child.
    pub child: SessionName,
    /// Its completed turns.
    pub turns: u32,
    /// Tokens that it has used, with those of its own sub-agents that have ended.
    pub tokens: u64,
    /// The type of the turn's signal.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub signal: Option<SignalType>,
    /// The signal's reason, which is data.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
}

/// How a query ends after its sub-agent.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "ending", rename_all = "snake_case")]
pub enum Ending {
    /// Cancelled.
    Cancelled,
    /// Finished by an operator, with what there is.
    Finished,
    /// Failed.
    Failed {
        /// Stable code, as in the outcome that follows.
        code: FaultCode,
        /// Text for people.
        detail: String,
    },
}

/// `delegation.cancelled`: the query ends after the sub-agent.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ChildCancel {
    /// The child.
    pub child: SessionName,
    /// How the query ends.
    #[serde(flatten)]
    pub ending: Ending,
}

/// `delegation.finished`
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ChildEnd {
    /// The child.
    pub child: SessionName,
    /// The outcome of its query.
    #[serde(flatten)]
    pub outcome: Outcome,
    /// Its answer, which is data.
    pub answer: String,
    /// Its usage, which counts in the parent.
    pub usage: Usage,
}

/// `escalation.raised`: for the user only.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct EscalationRaised {
    /// The notice.
    pub notice: String,
}

facts! {
    /// The runtime's steering.
    AgentFact {
        /// See [`LoopDetected`].
        LoopDetected(LoopDetected) = "loop.detected",
        /// See [`FallbackTriggered`].
        FallbackTriggered(FallbackTriggered) = "fallback.triggered",
        /// See [`CapabilityRequested`].
        CapabilityRequested(CapabilityRequested) = "capability.requested",
        /// See [`ToolsAdded`].
        ToolsAdded(ToolsAdded) = "capability.added",
        /// The model would delegate.
        DelegationRecommended(DelegationRecommended) = "delegation.recommended",
        /// See [`ChildStart`].
        DelegationStarted(ChildStart) = "delegation.started",
        /// See [`ChildProgress`].
        DelegationProgressed(ChildProgress) = "delegation.progressed",
        /// See [`ChildCancel`].
        DelegationCancelled(ChildCancel) = "delegation.cancelled",
        /// See [`ChildEnd`].
        DelegationFinished(ChildEnd) = "delegation.finished",
        /// See [`EscalationRaised`].
        EscalationRaised(EscalationRaised) = "escalation.raised",
    }
}
