//! Where a running query stands; what a step needs lives in it.

use std::sync::Arc;

use crate::model::{
    Attempt, CallId, NanoUsd, SessionName, Timestamp, ToolCall, ToolResult,
    record::{Compacting, Doubted, Ending},
};

/// Where a query stands.
#[derive(Debug, Clone, PartialEq)]
pub enum Step {
    /// Waits for classification and prompt.
    Preparing,
    /// Waits for a model's word on what it is.
    Doubting {
        /// What it was taken for.
        what: Arc<Doubted>,
    },
    /// Between turns. Lasts while the session is paused; after a crash between two records it is where
    /// the query is found, and gone on with.
    Ready,
    /// Waits for the model.
    Calling {
        /// The try.
        attempt: Attempt,
        /// How many tries this model has had in this turn, apart from those that a restart cut off.
        tries: u32,
    },
    /// Waits before the model is asked again.
    BackingOff {
        /// The try that failed.
        attempt: Attempt,
        /// How many tries this model has had in this turn, apart from those that a restart cut off.
        tries: u32,
        /// When it is over.
        until: Timestamp,
        /// The code of the fault that it waits for to pass.
        code: Arc<str>,
    },
    /// Waits for a summary of earlier messages, before the next turn.
    Compacting {
        /// What was asked for.
        what: Arc<Compacting>,
        /// How many tries this model has had at it, apart from those that a restart cut off.
        tries: u32,
        /// Before it is asked for again; none while it is asked for.
        pause: Option<Pause>,
    },
    /// The reply is there; waits for the results of its calls, if it has any.
    Tools {
        /// In the order asked.
        slots: Vec<ToolSlot>,
    },
    /// Waits for a sub-agent.
    Delegating {
        /// The child.
        child: SessionName,
        /// Its query.
        scope: Arc<str>,
        /// Its token budget.
        max_tokens: Option<u64>,
        /// Its cost budget.
        max_cost: Option<NanoUsd>,
    },
    /// It is to end, and waits for the end of the sub-agent that was taken back: what that used
    /// counts (spec 8).
    Ending {
        /// The child.
        child: SessionName,
        /// How it is to end.
        ending: Ending,
    },
}

/// A wait after a fault.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Pause {
    /// When it is over.
    pub until: Timestamp,
    /// The code of the fault that it waits for to pass.
    pub code: Arc<str>,
}

/// A call and how far it is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ToolSlot {
    /// What was asked.
    pub call: Arc<ToolCall>,
    /// How far it is.
    pub state: CallState,
}

/// How far a call is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum CallState {
    /// For room, or for the end of a pause.
    Waiting,
    /// For a person.
    AwaitingApproval,
    /// It runs.
    Running,
    /// It has a result.
    Done(Arc<ToolResult>),
}

impl ToolSlot {
    /// The result, if there is one.
    #[must_use]
    pub fn result(&self) -> Option<&Arc<ToolResult>> {
        match &self.state {
            CallState::Done(result) => Some(result),
            CallState::Waiting | CallState::AwaitingApproval | CallState::Running => None,
        }
    }
}

impl Step {
    /// What a person should be told it waits for.
    #[must_use]
    pub fn name(&self) -> &'static str {
        match self {
            Self::Preparing => "preparing",
            Self::Doubting { .. } => "doubting",
            Self::Ready => "ready",
            Self::Calling { .. } => "calling",
            Self::BackingOff { .. } => "backing_off",
            Self::Compacting { .. } => "compacting",
            Self::Tools { .. } if self.awaits_person() => "approval",
            Self::Tools { .. } => "tools",
            Self::Delegating { .. } => "delegating",
            Self::Ending { .. } => "ending",
        }
    }

    /// Whether nothing runs and a person's word is waited for. Calls may also wait for the end of a pause.
    fn awaits_person(&self) -> bool {
        let asked = |slot: &ToolSlot| slot.state == CallState::AwaitingApproval;
        self.slots().iter().any(asked) && !self.runs_calls()
    }

    /// Whether a call runs.
    pub(super) fn runs_calls(&self) -> bool {
        let runs = |slot: &ToolSlot| slot.state == CallState::Running;
        self.slots().iter().any(runs)
    }

    /// The sub-agent that it waits for.
    #[must_use]
    pub const fn child(&self) -> Option<&SessionName> {
        match self {
            Self::Delegating { child, .. } | Self::Ending { child, .. } => Some(child),
            _ => None,
        }
    }

    /// The calls of the turn, where it is at that.
    pub(super) fn slots(&self) -> &[ToolSlot] {
        match self {
            Self::Tools { slots } => slots,
            _ => &[],
        }
    }

    /// The slot of a call.
    pub(super) fn slot(&self, call: &CallId) -> Option<&ToolSlot> {
        self.slots().iter().find(|slot| slot.call.id == *call)
    }

    /// The same, to change it.
    pub(super) fn slot_mut(&mut self, call: &CallId) -> Option<&mut ToolSlot> {
        match self {
            Self::Tools { slots } => slots.iter_mut().find(|slot| slot.call.id == *call),
            _ => None,
        }
    }
}
