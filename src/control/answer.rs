//! Answers to verbs, the same over every transport.

use std::sync::Arc;

use serde::{Deserialize, Serialize};

use super::subject::Subject;
use crate::{
    actor::{Approval, Listed, SessionView},
    model::{Event, QueryId, Seq, SessionName, TenantId},
};

/// The answer to a verb. Its changes are durable by then.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "server", derive(utoipa::ToSchema))]
#[serde(tag = "answer", rename_all = "snake_case")]
pub enum Answer {
    /// To `list`.
    Sessions {
        /// By name.
        sessions: Vec<Listed>,
        /// The `after` of the next page, if there is one.
        next: Option<SessionName>,
    },
    /// To `tenants`.
    Tenants {
        /// By name.
        tenants: Vec<TenantId>,
        /// The `after` of the next page, if there is one.
        next: Option<TenantId>,
    },
    /// To `inspect`.
    Session {
        /// Its state.
        session: Box<SessionView>,
    },
    /// To `tail`.
    Events {
        /// In order.
        events: Vec<Event>,
    },
    /// To `approvals`.
    Approvals {
        /// The longest wait first.
        approvals: Vec<Approval>,
        /// Whether some are missing: too many, unreadable, or not read in time.
        #[serde(default)]
        incomplete: bool,
        /// How many more are known to wait.
        #[serde(default)]
        more: usize,
    },
    /// Done.
    Done {},
    /// To `continue` and `steer`.
    Query {
        /// The query that goes on.
        query: QueryId,
    },
    /// To `fork`.
    Forked {
        /// The new session.
        session: Subject,
    },
    /// To `reload`.
    Reloaded {
        /// Keys with other values from now on.
        changed: Vec<String>,
        /// Keys whose new values count after the next start.
        waiting: Vec<String>,
    },
    /// To `delete`.
    Deleted {
        /// How many records it had.
        records: Seq,
        /// How many sessions of sub-agents went with it.
        sub_agents: usize,
    },
}

/// A message that is durable.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "server", derive(utoipa::ToSchema))]
pub struct Accepted {
    /// The session.
    pub session: SessionName,
    /// The query that answers it.
    pub query: QueryId,
    /// Where that query's acceptance stands in the session's log: what comes of it follows. Null where it was
    /// accepted before, and that cannot be looked up right now.
    pub seq: Option<Seq>,
}

/// An item of a watch.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "seen", rename_all = "snake_case")]
pub enum Seen {
    /// A record.
    Event {
        /// Its tenant.
        tenant: TenantId,
        /// The record.
        event: Arc<Event>,
    },
    /// Events of a session are missing here; `tail` has them.
    Gap {
        /// The session.
        session: Subject,
        /// The first one missing.
        from: Seq,
    },
    /// Events of any session may be missing here.
    Lost {},
    /// The end.
    End {
        /// Why.
        why: String,
    },
}
