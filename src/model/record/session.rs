//! The life of a session, and what the supervisor did about it.

use serde::{Deserialize, Serialize};

use super::{Noted, facts};
use crate::model::{
    command::Import,
    id::{ProfileName, QueryId, Seq, SessionKey, SessionName, Turn},
};

/// Where a child session comes from.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Parent {
    /// The parent, in the same tenant.
    pub session: SessionName,
    /// The parent's query that delegated.
    pub query: QueryId,
    /// How deep the child is; 1 for a child of a session that people opened.
    pub depth: u32,
}

/// `session.opened`: the first record of every log.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Opened {
    /// Tenant and name.
    pub key: SessionKey,
    /// The profile it lives by.
    pub profile: ProfileName,
    /// Set for children.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub parent: Option<Parent>,
}

/// `session.forked`: what stands before it was copied from another session, and this one is its own from
/// here on. Queries that had not ended there follow as `query.finished`, cancelled.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Forked {
    /// Tenant and name of this session.
    pub key: SessionKey,
    /// The session that it was copied from, in the same tenant.
    pub parent: SessionName,
    /// The last record that was copied.
    pub seq: Seq,
    /// Up to the end of this query,
    pub query: QueryId,
    /// or of this turn of it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub turn: Option<Turn>,
}

/// `session.quarantined`: it is left alone until an operator releases it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Quarantined {
    /// What is wrong.
    pub reason: String,
}

facts! {
    /// `session.*`
    SessionFact in Session {
        /// See [`Opened`].
        Opened(Opened) = "session.opened",
        /// What was said elsewhere before; see [`Import`].
        Imported(Import) = "session.imported",
        /// See [`Quarantined`].
        Quarantined(Quarantined) = "session.quarantined",
        /// An operator let it go on as it stands.
        Released(Noted) = "session.released",
        /// See [`Forked`].
        Forked(Forked) = "session.forked",
        /// It takes no messages any more.
        Closed(Noted) = "session.closed",
        /// It left memory; whatever runs goes on where it stands.
        Passivated(Noted) = "session.passivated",
        /// It came back from there.
        Revived(Noted) = "session.revived",
    }
}

/// Why a session was restarted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum RestartCause {
    /// It panicked or returned an error.
    Crash,
    /// It made no progress for the stall limit.
    Stall,
    /// The process ended while a query was running.
    ProcessDeath,
}

/// `supervisor.restarted`
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Restarted {
    /// Why.
    pub cause: RestartCause,
    /// How many restarts of this cause's kind the query has seen, this one included.
    pub count: u32,
    /// What was seen, for people.
    pub detail: String,
}

facts! {
    /// `supervisor.*`
    SupervisorFact in Supervisor {
        /// See [`Restarted`].
        Restarted(Restarted) = "supervisor.restarted",
    }
}
