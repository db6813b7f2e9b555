//! The life of a session.

use std::sync::Arc;

use serde::{Deserialize, Serialize};

use super::{Noted, facts};
use crate::model::{
    classification::QueryType,
    command::Import,
    id::{ProfileName, QueryId, Seq, SessionKey, SessionName, Turn},
};

/// The origin of a child session.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Parent {
    /// The parent.
    pub session: SessionName,
    /// The parent's query.
    pub query: QueryId,
    /// The depth, 1 for a child of a session that people opened.
    pub depth: u32,
    /// The most tools that the child may have, by name; `None`, in older records, for all that only
    /// read.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tools: Option<Arc<[String]>>,
}

impl Parent {
    /// Whether both name the same query of the same session.
    pub fn is(&self, other: &Self) -> bool {
        (&self.session, self.query, self.depth) == (&other.session, other.query, other.depth)
    }
}

/// `session.opened`: the first record of every log.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Opened {
    /// Tenant and name.
    pub key: SessionKey,
    /// Its profile.
    pub profile: ProfileName,
    /// The project folder of the system that opened it, if it has one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub project: Option<Arc<str>>,
    /// Set for children.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub parent: Option<Parent>,
}

/// `session.forked`: the records before it are another session's. Open queries follow as
/// `query.finished`, cancelled.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Forked {
    /// The new session.
    pub key: SessionKey,
    /// The copied session, in the same tenant.
    pub parent: SessionName,
    /// The last copied record.
    pub seq: Seq,
    /// Up to the end of this query,
    pub query: QueryId,
    /// or of this turn of it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub turn: Option<Turn>,
}

words! {
    /// Why a session has a new head.
    pub enum HeadReason {
        /// It had none.
        First = "first",
        /// Its tools, or those of the caller, are others.
        Tools = "tools",
        /// The prompt is another one: its files, or the values of its profile, have changed.
        Prompt = "prompt",
        /// The instructions of the profile or of the application are others.
        Instructions = "instructions",
    }
}

/// `session.head_composed`: what each request of the session begins with, from here on.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct HeadComposed {
    /// Why it is new.
    pub reason: HeadReason,
    /// The type of query whose segment the prompt has.
    pub query_type: QueryType,
    /// SHA-256 of the composed prompt, in hex.
    pub prompt: String,
    /// SHA-256 of the instructions that follow it, in hex, if there are any.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub instructions: Option<String>,
    /// SHA-256 of the tools in their order, in hex.
    pub tools: String,
}

/// `session.quarantined`: until an operator releases it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Quarantined {
    /// The reason.
    pub reason: String,
}

facts! {
    /// `session.*`
    SessionFact {
        /// See [`Opened`].
        Opened(Opened) = "session.opened",
        /// Instructions and earlier messages from elsewhere.
        Imported(Import) = "session.imported",
        /// See [`HeadComposed`].
        HeadComposed(HeadComposed) = "session.head_composed",
        /// See [`Quarantined`].
        Quarantined(Quarantined) = "session.quarantined",
        /// An operator released it.
        Released(Noted) = "session.released",
        /// See [`Forked`].
        Forked(Forked) = "session.forked",
        /// It takes no more messages.
        Closed(Noted) = "session.closed",
        /// It was passivated.
        Passivated(Noted) = "session.passivated",
        /// It was recovered after that.
        Revived(Noted) = "session.revived",
    }
}

words! {
    /// The cause of a restart.
    pub enum RestartCause {
        /// A panic or an error.
        Crash = "crash",
        /// No progress for the stall limit.
        Stall = "stall",
        /// The process ended.
        ProcessDeath = "process_death",
    }
}

/// `supervisor.restarted`
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Restarted {
    /// The cause.
    pub cause: RestartCause,
    /// Restarts of this cause in the query, this one included.
    pub count: u32,
    /// Text for people.
    pub detail: String,
}

facts! {
    /// `supervisor.*`
    SupervisorFact {
        /// See [`Restarted`].
        Restarted(Restarted) = "supervisor.restarted",
    }
}
