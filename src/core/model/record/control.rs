//! Commands of users and operators. Those about the whole system are in the log `system`.

use serde::{Deserialize, Serialize};

use super::{ApprovalVerdict, facts};
use crate::model::{
    access::By,
    command::Author,
    id::{CallId, QueryId, Seq, SessionKey, SessionName, Turn},
    limits::Limits,
};

/// A command without data.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Act {
    /// The principal.
    pub by: By,
}

impl From<By> for Act {
    fn from(by: By) -> Self {
        Self { by }
    }
}

/// `control.steered`: text for the running query's next call.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Steered {
    /// The text.
    pub text: String,
    /// The author in the conversation.
    pub author: Author,
    /// The principal.
    pub by: By,
    /// Identifies retries of one message.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub idempotency_key: Option<String>,
}

/// `control.budget_set`
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct BudgetSet {
    /// The new limits of the running query.
    pub limits: Limits,
    /// The principal.
    pub by: By,
}

/// `control.continued`: a new query continues a forced one.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Continued {
    /// The forced query.
    pub continues: QueryId,
    /// Limits of both together.
    pub limits: Limits,
    /// The principal.
    pub by: By,
}

/// `control.approval_answered`: `approval.answered` follows.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ApprovalGiven {
    /// The call.
    pub call: CallId,
    /// The answer.
    pub verdict: ApprovalVerdict,
    /// The principal.
    pub by: By,
}

/// `control.tool_attached`: the session has another tool.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ToolAttached {
    /// Its name.
    pub tool: String,
    /// Its description for the model.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub about: String,
    /// The principal.
    pub by: By,
}

/// `control.forked`: in the new session's log, after `session.forked`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ForkMade {
    /// The copied session.
    pub from: SessionName,
    /// The last copied record.
    pub seq: Seq,
    /// The last copied query.
    pub query: QueryId,
    /// Its last copied turn, if not all are copied.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub turn: Option<Turn>,
    /// The principal.
    pub by: By,
}

/// `control.deleted`: a session and its sub-agents were deleted. In the log `system`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Deleted {
    /// The session.
    pub session: SessionKey,
    /// The number of its records.
    pub records: Seq,
    /// The number of sub-agents' sessions.
    pub sub_agents: usize,
    /// The principal.
    pub by: By,
}

/// `control.reloaded`: without values, which may be secret. In the log `system`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Reloaded {
    /// Keys whose values changed.
    pub changed: Vec<String>,
    /// Keys whose new values need a restart.
    pub waiting: Vec<String>,
    /// The principal.
    pub by: By,
}

/// `control.tool_approved`: a tool that its server had changed is no longer withheld. In the log
/// `system`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ToolApproved {
    /// Its name.
    pub tool: String,
    /// The hash of its declaration.
    pub sha256: String,
    /// The principal.
    pub by: By,
}

/// An empty payload.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Noted {}

facts! {
    /// `control.*`
    ControlFact {
        /// The query was paused: no model call or tool starts.
        Paused(Act) = "control.paused",
        /// The query was resumed.
        Resumed(Act) = "control.resumed",
        /// The query was cancelled.
        Cancelled(Act) = "control.cancelled",
        /// The query was ended with the text so far.
        Finished(Act) = "control.finished",
        /// See [`Steered`].
        Steered(Steered) = "control.steered",
        /// Steering text that came too late becomes the next query, whose acceptance follows.
        SteeredLate(Act) = "control.steered_late",
        /// See [`BudgetSet`].
        BudgetSet(BudgetSet) = "control.budget_set",
        /// See [`Continued`].
        Continued(Continued) = "control.continued",
        /// See [`ApprovalGiven`].
        ApprovalAnswered(ApprovalGiven) = "control.approval_answered",
        /// A quarantined session was released; `session.released` follows.
        Released(Act) = "control.released",
        /// An operator restarted the session.
        Restarted(Act) = "control.restarted",
        /// See [`ToolAttached`].
        ToolAttached(ToolAttached) = "control.tool_attached",
        /// See [`ForkMade`].
        Forked(ForkMade) = "control.forked",
        /// The session was closed; `session.closed` follows.
        Closed(Act) = "control.closed",
        /// See [`Deleted`].
        Deleted(Deleted) = "control.deleted",
        /// The system drains.
        Drained(Act) = "control.drained",
        /// The system shuts down.
        ShutDown(Act) = "control.shut_down",
        /// See [`Reloaded`].
        Reloaded(Reloaded) = "control.reloaded",
        /// See [`ToolApproved`].
        ToolApproved(ToolApproved) = "control.tool_approved",
    }
}
