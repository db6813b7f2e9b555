//! What people did, and who: to a session, or to the whole system (then in the log of `system`).

use serde::{Deserialize, Serialize};

use super::{ApprovalVerdict, facts};
use crate::model::{
    access::By,
    command::Author,
    id::{CallId, QueryId, Seq, SessionKey, SessionName, Turn},
    limits::Limits,
};

/// Nothing to add but who did it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Act {
    /// Who.
    pub by: By,
}

impl From<By> for Act {
    fn from(by: By) -> Self {
        Self { by }
    }
}

/// `control.steered`: words that go into the running query before its next call.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Steered {
    /// The words.
    pub text: String,
    /// As whose they enter the conversation.
    pub author: Author,
    /// Who sent them.
    pub by: By,
    /// Makes a repeated submission one message.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub idempotency_key: Option<String>,
}

/// `control.budget_set`
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct BudgetSet {
    /// The new limits of the running query.
    pub limits: Limits,
    /// Who set them.
    pub by: By,
}

/// `control.continued`: a new query goes on where a forced one stopped.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Continued {
    /// The forced one.
    pub continues: QueryId,
    /// What both together may use.
    pub limits: Limits,
    /// Who wanted it.
    pub by: By,
}

/// `control.approval_answered`: `approval.answered` follows.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ApprovalGiven {
    /// Which call.
    pub call: CallId,
    /// Yes or no.
    pub verdict: ApprovalVerdict,
    /// Who said so.
    pub by: By,
}

/// `control.tool_attached`: from the next call on the session has one more tool.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ToolAttached {
    /// Its name.
    pub tool: String,
    /// What the model is told of it.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub about: String,
    /// Who attached it.
    pub by: By,
}

/// `control.forked`: in the log of the new session, behind `session.forked`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ForkMade {
    /// The session that it was copied from.
    pub from: SessionName,
    /// The last record that was copied.
    pub seq: Seq,
    /// Up to the end of this query,
    pub query: QueryId,
    /// or of this turn of it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub turn: Option<Turn>,
    /// Who wanted it.
    pub by: By,
}

/// `control.deleted`: a session is gone, with its sub-agents'. In the log of `system`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Deleted {
    /// Which.
    pub session: SessionKey,
    /// How many records it had.
    pub records: Seq,
    /// How many sessions of sub-agents went with it.
    pub sub_agents: usize,
    /// Who wanted it.
    pub by: By,
}

/// `control.reloaded`: the configuration was read anew. In the log of `system`; never with a value, which may be
/// a secret.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Reloaded {
    /// The keys that have other values from now on.
    pub changed: Vec<String>,
    /// The keys whose new values count after the next start.
    pub waiting: Vec<String>,
    /// Who wanted it.
    pub by: By,
}

/// Nothing to add.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Noted {}

facts! {
    /// `control.*`
    ControlFact in Control {
        /// No new call or tool starts.
        Paused(Act) = "control.paused",
        /// It goes on.
        Resumed(Act) = "control.resumed",
        /// The query was taken back.
        Cancelled(Act) = "control.cancelled",
        /// The query is to end with what there is.
        Finished(Act) = "control.finished",
        /// See [`Steered`].
        Steered(Steered) = "control.steered",
        /// Words came when no call was left that they could go into: they are the next query, whose acceptance
        /// follows.
        SteeredLate(Act) = "control.steered_late",
        /// See [`BudgetSet`].
        BudgetSet(BudgetSet) = "control.budget_set",
        /// See [`Continued`].
        Continued(Continued) = "control.continued",
        /// See [`ApprovalGiven`].
        ApprovalAnswered(ApprovalGiven) = "control.approval_answered",
        /// A session that was set aside goes on; `session.released` follows.
        Released(Act) = "control.released",
        /// The session was stopped and brought back from its records. Nobody's fault.
        Restarted(Act) = "control.restarted",
        /// See [`ToolAttached`].
        ToolAttached(ToolAttached) = "control.tool_attached",
        /// See [`ForkMade`].
        Forked(ForkMade) = "control.forked",
        /// No more messages; `session.closed` follows.
        Closed(Act) = "control.closed",
        /// See [`Deleted`].
        Deleted(Deleted) = "control.deleted",
        /// The system takes nothing new.
        Drained(Act) = "control.drained",
        /// The system is to end.
        ShutDown(Act) = "control.shut_down",
        /// See [`Reloaded`].
        Reloaded(Reloaded) = "control.reloaded",
    }
}
