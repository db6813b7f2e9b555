//! The steps of a running query, each with the data that it needs.

use std::{sync::Arc, time::Duration};

use crate::model::{
    Attempt, CallId, FaultCode, SessionName, Timestamp, ToolCall, ToolResult,
    record::{CapabilityRequested, ChildEnd, ChildStart, Compacting, Ending},
};

/// Step of a query.
#[derive(Debug, Clone, Default, PartialEq)]
pub enum Step {
    /// Waits for classification and prompt.
    #[default]
    Preparing,
    /// Between turns: while the session is paused, or after a crash between two records.
    Ready,
    /// Waits for the model, or for the next try.
    Calling {
        /// Attempt in flight, or the one that failed.
        attempt: Attempt,
        /// Tries of this model in this turn, without those that a restart cut off.
        tries: u32,
        /// Back-off before the next try, if any.
        pause: Option<Pause>,
    },
    /// Waits for a summary of earlier messages.
    Compacting {
        /// The request.
        what: Arc<Compacting>,
        /// Tries of all models at the summary, without those that a restart cut off.
        tries: u32,
        /// Back-off before the next try, if any.
        pause: Option<Pause>,
    },
    /// Waits for the results of the reply's calls, if it has any.
    Tools {
        /// The calls, in order.
        slots: Vec<ToolSlot>,
    },
    /// Waits until an operator grants a tool.
    AwaitingGrant(Arc<CapabilityRequested>),
    /// Waits for sub-agents.
    Delegating {
        /// Those that have started, in order.
        children: Vec<ChildSlot>,
    },
    /// Ends once the cancelled sub-agents have ended, because their usage counts.
    Ending {
        /// All that had started, in order.
        children: Vec<ChildSlot>,
        /// How the query ends.
        ending: Ending,
    },
}

/// A back-off.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Pause {
    /// End of the back-off.
    pub until: Timestamp,
    /// Its length. It lasts no longer if the clock is set back.
    pub length: Duration,
    /// Code of the fault.
    pub code: FaultCode,
}

/// A sub-agent and its state.
#[derive(Debug, Clone, PartialEq)]
pub struct ChildSlot {
    /// What it was started with.
    pub start: Arc<ChildStart>,
    /// Completed turns that were reported.
    pub turns: u32,
    /// Its end; `None` while it runs.
    pub end: Option<Arc<ChildEnd>>,
}

/// A tool call and its state.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ToolSlot {
    /// Call.
    pub call: Arc<ToolCall>,
    /// State of the call.
    pub state: CallState,
}

/// State of a tool call.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum CallState {
    /// Waits for a free slot, or for the end of a pause.
    Waiting,
    /// Waits for approval.
    AwaitingApproval,
    /// Waits for a result of the caller's own tool.
    AwaitingClient,
    /// In flight.
    Running,
    /// Complete.
    Done(Arc<ToolResult>),
}

impl ToolSlot {
    /// Returns the result, if the call is complete.
    pub fn result(&self) -> Option<&Arc<ToolResult>> {
        match &self.state {
            CallState::Done(result) => Some(result),
            _ => None,
        }
    }
}

impl Step {
    /// The pause between two tries of a call.
    pub(super) const fn pause(&self) -> Option<&Pause> {
        match self {
            Self::Calling { pause, .. } | Self::Compacting { pause, .. } => pause.as_ref(),
            _ => None,
        }
    }

    /// Whether a call is in this state.
    pub(super) fn has(&self, state: &CallState) -> bool {
        self.slots().iter().any(|slot| slot.state == *state)
    }

    /// The sub-agents of the step.
    pub fn children(&self) -> &[ChildSlot] {
        match self {
            Self::Delegating { children } | Self::Ending { children, .. } => children,
            _ => &[],
        }
    }

    /// The sub-agents that the step waits for.
    pub fn running_children(&self) -> impl Iterator<Item = &Arc<ChildStart>> {
        let running = self.children().iter().filter(|child| child.end.is_none());
        running.map(|child| &child.start)
    }

    /// A sub-agent that the step waits for.
    pub(super) fn child_mut(&mut self, name: &SessionName) -> Option<&mut ChildSlot> {
        let (Self::Delegating { children } | Self::Ending { children, .. }) = self else {
            return None;
        };
        let mut running = children.iter_mut().filter(|child| child.end.is_none());
        running.find(|child| child.start.child == *name)
    }

    pub(super) fn slots(&self) -> &[ToolSlot] {
        match self {
            Self::Tools { slots } => slots,
            _ => &[],
        }
    }

    pub(super) fn slot(&self, call: &CallId) -> Option<&ToolSlot> {
        self.slots().iter().find(|slot| slot.call.id == *call)
    }
}
