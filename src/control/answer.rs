//! What a verb is answered with, the same over every transport.

use std::sync::Arc;

use serde::{Deserialize, Serialize};

use super::subject::Subject;
use crate::{
    actor::{Approval, Listed, SessionView},
    model::{Event, QueryId, Seq, SessionName, TenantId},
};

/// What a verb is answered with. What it has changed is durable by then.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "answer", rename_all = "snake_case")]
pub enum Answer {
    /// To `list`.
    Sessions {
        /// In the order of their names.
        sessions: Vec<Listed>,
        /// Ask for those after this one for more; none if there is no more.
        next: Option<SessionName>,
    },
    /// To `tenants`.
    Tenants {
        /// In the order of their names.
        tenants: Vec<TenantId>,
        /// Ask for those after this one for more; none if there is no more.
        next: Option<TenantId>,
    },
    /// To `inspect`.
    Session {
        /// How it stands.
        session: Box<SessionView>,
    },
    /// To `tail`.
    Events {
        /// In order.
        events: Vec<Event>,
    },
    /// To `approvals`.
    Approvals {
        /// The one that has waited longest first.
        approvals: Vec<Approval>,
        /// Whether these are not all: more wait than were asked for, or sessions could not be read, or not in time.
        #[serde(default)]
        incomplete: bool,
        /// How many are known to wait besides these.
        #[serde(default)]
        more: usize,
    },
    /// It is done.
    Done {},
    /// To `continue` and `steer`.
    Query {
        /// The one that goes on.
        query: QueryId,
    },
    /// To `fork`.
    Forked {
        /// The new session.
        session: Subject,
    },
    /// To `reload`.
    Reloaded {
        /// The keys that have other values from now on.
        changed: Vec<String>,
        /// The keys whose new values count after the next start.
        waiting: Vec<String>,
    },
    /// To `delete`.
    Deleted {
        /// How many records it had.
        records: Seq,
        /// How many sessions of sub-agents went with it.
        sub_agents: usize,
        /// Those of which not all sub-agents could be found: some may be kept.
        unsure: Vec<SessionName>,
    },
}

/// What somebody who watches gets to see.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "seen", rename_all = "snake_case")]
pub enum Seen {
    /// Something was recorded.
    Event {
        /// In a session of this tenant.
        tenant: TenantId,
        /// What.
        event: Arc<Event>,
    },
    /// Events of a session are missing here: `tail` tells them.
    Gap {
        /// Of which.
        session: Subject,
        /// The first one missing.
        from: Seq,
    },
    /// Events of any session may be missing here.
    Lost {},
    /// Nothing more will come.
    End {
        /// Why.
        why: String,
    },
}
