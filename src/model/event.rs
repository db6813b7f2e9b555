//! The envelope in which the outside sees a session's records (spec 9).

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::{
    id::{QueryId, Seq, SessionName, Turn},
    time::Timestamp,
};

/// How much an event matters.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Severity {
    /// The ordinary course of things.
    Info,
    /// Somebody may want to look.
    Warning,
    /// Something ended otherwise than it should.
    Error,
}

/// Which part of the system speaks.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Source {
    /// The session.
    Session,
    /// The supervisor.
    Supervisor,
    /// A model gateway.
    Gateway,
    /// Whoever holds the control channel.
    Control,
}

/// One event: one journal record, seen from outside.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Event {
    /// Its place in the session's log.
    pub seq: Seq,
    /// Whose log.
    pub session: SessionName,
    /// Which query it belongs to, if any.
    pub query: Option<QueryId>,
    /// Which turn of that query, from 0, if any.
    pub turn: Option<Turn>,
    /// When it was recorded.
    pub at: Timestamp,
    /// Its type, such as `turn.started`.
    #[serde(rename = "type")]
    pub kind: String,
    /// Who speaks.
    pub source: Source,
    /// How much it matters.
    pub severity: Severity,
    /// What it says.
    pub payload: Value,
}
