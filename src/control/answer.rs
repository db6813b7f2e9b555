//! Answers to verbs, independent of the transport.

use std::sync::Arc;

use serde::{Deserialize, Serialize};

use super::subject::Subject;
use crate::{
    actor::{
        Changes, SessionPage, SessionRecord, SessionView, TenantPage, ToolServer, WaitingCalls,
    },
    model::{Event, QueryId, Seq, SessionKey, SessionName, TenantId},
};

/// The answer to a verb, sent after its changes are durable.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(tag = "answer", rename_all = "snake_case")]
pub enum Answer {
    /// The answer to `list`.
    Sessions(SessionPage),
    /// The answer to `tenants`.
    Tenants(TenantPage),
    /// The answer to `inspect`.
    Session {
        /// The session's state.
        session: Box<SessionView>,
    },
    /// The answer to `tail`.
    Events {
        /// The events, in order.
        events: Vec<Event>,
    },
    /// The answer to `approvals`.
    Approvals(WaitingCalls),
    /// The answer to verbs that return nothing.
    Done {},
    /// The answer to `continue` and `steer`.
    Query {
        /// The running query.
        query: QueryId,
    },
    /// The answer to `fork`.
    Forked {
        /// The new session.
        session: Subject,
    },
    /// The answer to `tool_servers`.
    ToolServers {
        /// The servers, in order of configuration.
        servers: Vec<ToolServer>,
    },
    /// The answer to `reload`.
    Reloaded(Changes),
    /// The answer to `delete`.
    Deleted {
        /// Number of records that the session had.
        records: Seq,
        /// Number of deleted sub-agent sessions.
        sub_agents: usize,
    },
}

/// An accepted message, which is durable.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct Accepted {
    /// The session.
    pub session: SessionName,
    /// The query that answers the message.
    pub query: QueryId,
    /// The number of the `query.accepted` event; later events follow it. Null if the message is a
    /// duplicate whose event cannot be looked up right now.
    pub seq: Option<Seq>,
}

/// An item of a [`Follow`](super::Follow).
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub enum Update {
    /// A record that matches the filter.
    Record(Arc<SessionRecord>),
    /// Records of a session are missing here.
    Gap {
        /// The session.
        session: SessionKey,
        /// The number of the first missing record.
        from: Seq,
    },
    /// Records of any session may be missing here.
    Lost,
    /// The subscription has ended.
    End {
        /// The reason, as a text for people.
        why: String,
    },
}

impl From<Update> for WireUpdate {
    fn from(update: Update) -> Self {
        match update {
            Update::Record(record) => Self::Event {
                tenant: record.session.tenant.clone(),
                event: Arc::new(record.event()),
            },
            Update::Gap { session, from } => {
                let session = session.into();
                Self::Gap { session, from }
            }
            Update::Lost => Self::Lost {},
            Update::End { why } => Self::End { why },
        }
    }
}

/// An [`Update`] on the wire.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "seen", rename_all = "snake_case")]
pub enum WireUpdate {
    /// A record that matches the filter.
    Event {
        /// The tenant that the session belongs to.
        tenant: TenantId,
        /// The record as an event.
        event: Arc<Event>,
    },
    /// Events of a session are missing here; `tail` returns them.
    Gap {
        /// The session.
        session: Subject,
        /// The number of the first missing event.
        from: Seq,
    },
    /// Events of any session may be missing here.
    Lost {},
    /// The subscription has ended.
    End {
        /// The reason, as a text for people.
        why: String,
    },
}
