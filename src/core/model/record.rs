//! Journal records.
//!
//! A [`Record`] is a [`Fact`] with its time, query and turn. Facts come in families, one file each;
//! the `facts!` table of a family names each fact in JSON, which is also its event's type. Records
//! carry a version ([`codec`]).

use serde::{Deserialize, Serialize, Serializer};

use super::{
    id::{QueryId, Turn},
    time::Timestamp,
    usage::Usage,
};

mod agent;
mod budget;
pub mod codec;
mod control;
mod llm;
mod query;
mod session;
mod tool;
mod turn;

pub use agent::{
    AddedTool, AgentFact, CapabilityRequested, ChildCancel, ChildEnd, ChildProgress, ChildStart,
    Ending, EscalationRaised, FallbackAction, FallbackCause, FallbackTriggered, LoopDetected,
    LoopKind, ToolsAdded,
};
pub use budget::{
    AmountBudget, BudgetFact, Compacted, CompactedPart, Compacting, CompactionFailed,
    IterationExceeded, IterationWarning, MessageRange,
};
pub use control::{
    Act, ApprovalGiven, BudgetSet, Continued, ControlFact, Deleted, ForkMade, Noted, Reloaded,
    Steered, ToolApproved, ToolAttached,
};
pub use llm::{
    Admitted, CircuitClosed, CircuitOpened, Failed, FailedOver, LlmFact, ModelUsage, PrefixBroken,
    RateLimitCleared, RateLimited, Retried, WaitReason, Waiting,
};
pub use query::{
    Accepted, AnswerRejected, Classified, InboxPosition, PromptSummary, QueryFact, QueryFinished,
};
pub use session::{
    Forked, HeadComposed, HeadReason, Opened, Parent, Quarantined, RestartCause, Restarted,
    SessionFact, SupervisorFact,
};
pub use tool::{
    ApprovalAnswered, ApprovalFact, ApprovalRequested, ApprovalVerdict, CallStarted, HandedOver,
    Refused as ToolRefused, RefusedWhy, Requested as ToolRequested, Returned, ToolFact,
    ToolFinished,
};
pub use turn::{
    CacheMiss, MissCause, Replied, SignalFact, SignalPresence, Started as TurnStarted, TurnFact,
    TurnMode, TurnRestartCause, TurnRestarted,
};

/// A fact with its time, query and turn.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Record {
    /// The time of the decision.
    pub at: Timestamp,
    /// Its query.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub query: Option<QueryId>,
    /// Its turn.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub turn: Option<Turn>,
    /// The row of the decision table that led to it (docs/protocol.md).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub row: Option<u8>,
    /// The fact.
    #[serde(flatten)]
    pub fact: Fact,
}

impl Record {
    #[doc(hidden)]
    pub fn new(
        at: Timestamp,
        query: Option<QueryId>,
        turn: Option<Turn>,
        fact: impl Into<Fact>,
    ) -> Self {
        let fact = fact.into();
        Self {
            at,
            query,
            turn,
            row: None,
            fact,
        }
    }

    /// The question, if the record begins a query.
    pub const fn accepted(&self) -> Option<&Accepted> {
        match &self.fact {
            Fact::Query(QueryFact::Accepted(accepted)) => Some(accepted),
            _ => None,
        }
    }

    /// The reply of a model, if the record has one.
    pub const fn replied(&self) -> Option<&Replied> {
        match &self.fact {
            Fact::Turn(TurnFact::Replied(replied)) => Some(replied),
            _ => None,
        }
    }

    /// The tool call, if a model asks for one in this record.
    pub const fn tool_requested(&self) -> Option<&ToolRequested> {
        match &self.fact {
            Fact::Tool(ToolFact::Requested(requested)) => Some(requested),
            _ => None,
        }
    }

    /// The outcome and the answer, if the record ends a query.
    pub const fn finished(&self) -> Option<&QueryFinished> {
        match &self.fact {
            Fact::Query(QueryFact::Finished(finished)) => Some(finished),
            _ => None,
        }
    }

    /// Text for the search over conversations: questions, additions and answers.
    pub fn text(&self) -> Option<&str> {
        self.utterance().map(|(_, text)| text)
    }

    /// Usage of the model call in this record; sub-agents record theirs in their own sessions.
    pub fn usage(&self) -> Usage {
        match &self.fact {
            Fact::Turn(TurnFact::Replied(replied)) => replied.usage,
            Fact::Budget(BudgetFact::ContextCompacted(compacted)) => compacted.usage,
            Fact::Budget(BudgetFact::ContextCompactionFailed(failed)) => failed.usage,
            Fact::Llm(LlmFact::Retried(retried)) => retried.usage,
            Fact::Llm(LlmFact::FailedOver(failed)) => failed.usage,
            Fact::Llm(LlmFact::Failed(failed)) => failed.usage,
            Fact::Llm(LlmFact::Used(used)) => used.usage,
            _ => Usage::default(),
        }
    }

    /// The text of [`Self::text`], with its kind.
    pub fn utterance(&self) -> Option<(Utterance, &str)> {
        let (kind, text) = match &self.fact {
            Fact::Query(QueryFact::Accepted(accepted)) => (Utterance::Question, &accepted.text),
            Fact::Query(QueryFact::Finished(finished)) => (Utterance::Answer, &finished.answer),
            Fact::Control(ControlFact::Steered(steered)) => (Utterance::Addition, &steered.text),
            _ => return None,
        };
        (!text.is_empty()).then_some((kind, text))
    }
}

/// The kind of a text in a conversation.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Utterance {
    /// Began a query.
    Question,
    /// Was added to a running query.
    Addition,
    /// Ended a query.
    Answer,
}

/// Declares the families of facts.
macro_rules! families {
    ($( $(#[$doc:meta])* $family:ident($fact:ident), )+) => {
        /// A fact, by family.
        #[derive(Debug, Clone, PartialEq, Serialize)]
        #[serde(untagged)]
        #[non_exhaustive]
        pub enum Fact {
            $( $(#[$doc])* $family($fact), )+
        }

        impl Fact {
            /// All names on the wire, by family.
            pub const KINDS: &[&[&str]] = &[$($fact::KINDS),+];

            /// The name on the wire.
            pub const fn kind(&self) -> &'static str {
                match self {
                    $( Self::$family(fact) => fact.kind(), )+
                }
            }

            fn serialize_payload<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                match self {
                    $( Self::$family(fact) => fact.serialize_payload(serializer), )+
                }
            }

            /// `None` if the name is unknown.
            fn read(kind: &str, payload: &str) -> Option<serde_json::Result<Self>> {
                None$( .or_else(|| Some($fact::read(kind, payload)?.map(Self::$family))) )+
            }
        }

        $(
            impl From<$fact> for Fact {
                fn from(fact: $fact) -> Self {
                    Self::$family(fact)
                }
            }
        )+
    };
}

families! {
    /// `session.*`
    Session(SessionFact),
    /// `query.*`
    Query(QueryFact),
    /// `turn.*`
    Turn(TurnFact),
    /// `signal.*`
    Signal(SignalFact),
    /// `tool.*`
    Tool(ToolFact),
    /// `approval.*`
    Approval(ApprovalFact),
    /// `budget.*`
    Budget(BudgetFact),
    /// `loop.*`, `fallback.*`, `capability.*`, `delegation.*`, `escalation.*`
    Agent(AgentFact),
    /// `llm.*`
    Llm(LlmFact),
    /// `supervisor.*`
    Supervisor(SupervisorFact),
    /// `control.*`
    Control(ControlFact),
}

/// Declares a family of facts: variant, name on the wire, payload.
macro_rules! facts {
    (
        $(#[$doc:meta])*
        $family:ident {
            $( $(#[$vdoc:meta])* $variant:ident($payload:ty) = $kind:literal, )+
        }
    ) => {
        $(#[$doc])*
        #[derive(Debug, Clone, PartialEq, serde::Serialize, serde::Deserialize)]
        #[serde(tag = "type", content = "payload")]
        #[non_exhaustive]
        pub enum $family {
            $( $(#[$vdoc])* #[serde(rename = $kind)] $variant($payload), )+
        }

        impl $family {
            /// All names of this family.
            pub const KINDS: &[&str] = &[$($kind),+];

            /// The name on the wire.
            pub const fn kind(&self) -> &'static str {
                match self {
                    $( Self::$variant(_) => $kind, )+
                }
            }

            pub(super) fn serialize_payload<S: serde::Serializer>(
                &self,
                serializer: S,
            ) -> Result<S::Ok, S::Error> {
                match self {
                    $( Self::$variant(payload) => payload.serialize(serializer), )+
                }
            }

            /// `None` if the name is of another family.
            pub(super) fn read(kind: &str, payload: &str) -> Option<serde_json::Result<Self>> {
                Some(match kind {
                    $( $kind => serde_json::from_str(payload).map(Self::$variant), )+
                    _ => return None,
                })
            }
        }
    };
}
use facts;
