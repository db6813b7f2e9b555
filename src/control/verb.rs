//! The verbs of the control channel, defined once for every transport.
//!
//! A verb is a JSON object whose `verb` is its name. An unknown field is refused by name, so that a
//! misspelt one is never ignored. docs/protocol.md, "Sessions and control", lists the verbs.

use std::collections::HashMap;

use serde::{Deserialize, Deserializer, Serialize, de::Error as _};
use serde_json::value::RawValue;
#[cfg(feature = "server")]
use utoipa::ToSchema;

use super::{Code, Refused, subject::Subject};
use crate::{
    actor::StateFilter,
    model::{
        ApprovalToken, CallId, PartialLimits, QueryId, Seq, SessionName, Severity, TenantId,
        Timestamp, Turn, command::Author, json,
    },
};

const fn page() -> u32 {
    100
}

fn positive<'de, D: Deserializer<'de>>(number: D) -> Result<u32, D::Error> {
    match u32::deserialize(number)? {
        0 => Err(D::Error::custom("must be at least 1")),
        number => Ok(number),
    }
}

const fn operator() -> Author {
    Author::Operator
}

/// A command to sessions or to the system. A session is written `NAME`, or `TENANT/NAME` for
/// another tenant's.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "server", derive(ToSchema))]
#[serde(tag = "verb", rename_all = "snake_case", deny_unknown_fields)]
pub enum Verb {
    /// Lists sessions by name.
    List {
        /// The tenant; the caller's if omitted.
        tenant: Option<TenantId>,
        /// Only sessions in this state; `running` and `waiting` are several.
        state: Option<StateFilter>,
        /// Only sessions whose names have this prefix.
        prefix: Option<String>,
        /// Only sessions with a record since this time.
        updated_since: Option<Timestamp>,
        /// Only sessions after this name.
        after: Option<SessionName>,
        /// Page size, up to 1,000.
        #[serde(default = "page", deserialize_with = "positive")]
        #[cfg_attr(feature = "server", schema(minimum = 1))]
        limit: u32,
    },
    /// Lists the tenants that have sessions, by name.
    Tenants {
        /// Only tenants after this one.
        after: Option<TenantId>,
        /// Page size, up to 1,000.
        #[serde(default = "page", deserialize_with = "positive")]
        #[cfg_attr(feature = "server", schema(minimum = 1))]
        limit: u32,
    },
    /// Returns a session's state.
    Inspect {
        /// The session.
        session: Subject,
    },
    /// Returns events from a session's log.
    Tail {
        /// The session.
        session: Subject,
        /// Only events after this number; the last ones if omitted.
        after: Option<Seq>,
        /// Page size, up to 512.
        #[serde(default = "page", deserialize_with = "positive")]
        #[cfg_attr(feature = "server", schema(minimum = 1))]
        limit: u32,
    },
    /// Pauses a session: no new model call and no new tool call starts.
    Pause {
        /// The session.
        session: Subject,
    },
    /// Resumes a paused session.
    Resume {
        /// The session.
        session: Subject,
    },
    /// Cancels a query.
    Interrupt {
        /// The session.
        session: Subject,
        /// The query; the running one if omitted.
        query: Option<QueryId>,
    },
    /// Ends the running query with the results it has.
    FinishNow {
        /// The session.
        session: Subject,
    },
    /// Adds a message to the running query, before its next model call; if no query runs, begins
    /// one with it.
    Steer {
        /// The session.
        session: Subject,
        /// The message; not blank.
        #[cfg_attr(feature = "server", schema(min_length = 1, max_length = 1_048_576))]
        text: String,
        /// The author under which it enters the conversation.
        #[serde(default = "operator")]
        author: Author,
    },
    /// Replaces budgets of the running query.
    SetBudget {
        /// The session.
        session: Subject,
        /// The new budgets; an omitted limit stays as it is.
        #[serde(deserialize_with = "super::limits::object")]
        limits: PartialLimits,
    },
    /// Continues a query that was forced to end.
    Continue {
        /// The session.
        session: Subject,
        /// Budgets for both parts together; an omitted limit is the profile's.
        #[serde(deserialize_with = "super::limits::object")]
        limits: PartialLimits,
    },
    /// Stops a session and recovers it from its records.
    Restart {
        /// The session.
        session: Subject,
    },
    /// Releases a quarantined session.
    Release {
        /// The session.
        session: Subject,
    },
    /// Copies a session up to a turn into a new session of the same tenant.
    Fork {
        /// The session to copy.
        session: Subject,
        /// The new session's name.
        into: SessionName,
        /// The last query to copy; 0 copies none.
        query: QueryId,
        /// The last turn of that query to copy, from 0; all if omitted.
        turn: Option<Turn>,
    },
    /// Closes a session: cancels its running and pending queries and accepts no more messages.
    Close {
        /// The session.
        session: Subject,
    },
    /// Deletes a session and its sub-agents' sessions permanently.
    Delete {
        /// The session.
        session: Subject,
        /// Also while a query is running.
        #[serde(default)]
        anyway: bool,
    },
    /// Lists the tool calls that wait for approval, the oldest first.
    Approvals {
        /// The tenant; the caller's if omitted.
        tenant: Option<TenantId>,
        /// Page size, up to 1,000.
        #[serde(default = "page", deserialize_with = "positive")]
        #[cfg_attr(feature = "server", schema(minimum = 1))]
        limit: u32,
    },
    /// Approves a tool call.
    Approve {
        /// The session.
        session: Subject,
        /// The call.
        call: CallId,
        /// Its token, from `approvals` or the event `approval.requested`.
        token: ApprovalToken,
    },
    /// Denies a tool call.
    Deny {
        /// The session.
        session: Subject,
        /// The call.
        call: CallId,
        /// Its token, from `approvals` or the event `approval.requested`.
        token: ApprovalToken,
        /// Why, for the model.
        #[cfg_attr(feature = "server", schema(max_length = 500))]
        reason: Option<String>,
    },
    /// Attaches one of the configured tools to a session.
    AttachTool {
        /// The session.
        session: Subject,
        /// The tool's name.
        tool: String,
    },
    /// Lists the servers of tools, with the tools that are withheld because they have changed.
    ToolServers {},
    /// Approves the changed declaration of a withheld tool.
    ApproveTool {
        /// The tool's name.
        tool: String,
        /// The hash of the declaration.
        sha256: String,
    },
    /// Accepts no new messages in any session; running queries continue.
    Drain {},
    /// Shuts the system down gracefully.
    ShutDown {},
    /// Reloads the configuration and applies the changes that need no restart.
    Reload {},
}

/// Selects the records of a subscription.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "server", derive(utoipa::IntoParams))]
#[serde(default, deny_unknown_fields)]
#[cfg_attr(feature = "server", into_params(parameter_in = Query))]
pub struct Watching {
    /// Only this session, `NAME` or `TENANT/NAME`; all if omitted.
    #[cfg_attr(feature = "server", param(inline))]
    pub session: Option<Subject>,
    /// Only this tenant's sessions; all if omitted.
    #[cfg_attr(feature = "server", param(inline))]
    pub tenant: Option<TenantId>,
    /// First replays the session's records after this number; requires `session`.
    #[cfg_attr(feature = "server", param(inline))]
    pub after: Option<Seq>,
    /// Only types with one of these prefixes, separated by commas.
    #[serde(skip_serializing_if = "Vec::is_empty", with = "commas")]
    #[cfg_attr(feature = "server", param(style = Form, explode = false))]
    pub types: Vec<String>,
    /// Minimum severity of the events.
    #[cfg_attr(feature = "server", param(inline))]
    pub severity: Option<Severity>,
}

pub(crate) mod commas {
    use serde::{Deserialize as _, Deserializer, Serializer};

    pub(crate) fn serialize<S: Serializer>(list: &[String], to: S) -> Result<S::Ok, S::Error> {
        to.serialize_str(&list.join(","))
    }

    pub(crate) fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<Vec<String>, D::Error> {
        let text = String::deserialize(from)?;
        let parts = text.split(',').filter(|part| !part.is_empty());
        Ok(parts.map(str::to_owned).collect())
    }
}

impl Verb {
    /// Parses a verb.
    ///
    /// # Errors
    /// [`Code::InvalidValue`], with a text that describes the problem.
    pub fn from_json(text: &[u8]) -> Result<Self, Refused> {
        Self::read(text).map_err(|why| {
            let message = format!("invalid control request: {why}");
            Refused::new(Code::InvalidValue, message)
        })
    }

    pub(crate) fn read(text: &[u8]) -> Result<Self, String> {
        json::check(text).map_err(|error| error.to_string())?;
        // serde would also accept a list of values and the verb's number, which may change.
        let fields: HashMap<String, &RawValue> =
            serde_json::from_slice(text).map_err(|error| error.to_string())?;
        match fields.get("verb") {
            Some(verb) if !verb.get().starts_with('"') => Err("`verb` must be a string".into()),
            _ => serde_json::from_slice(text).map_err(|error| error.to_string()),
        }
    }

    /// The session that the verb acts on, if it acts on one.
    pub const fn session(&self) -> Option<&Subject> {
        match self {
            Self::Inspect { session }
            | Self::Tail { session, .. }
            | Self::Pause { session }
            | Self::Resume { session }
            | Self::Interrupt { session, .. }
            | Self::FinishNow { session }
            | Self::Steer { session, .. }
            | Self::SetBudget { session, .. }
            | Self::Continue { session, .. }
            | Self::Restart { session }
            | Self::Release { session }
            | Self::Fork { session, .. }
            | Self::Close { session }
            | Self::Delete { session, .. }
            | Self::Approve { session, .. }
            | Self::Deny { session, .. }
            | Self::AttachTool { session, .. } => Some(session),
            _ => None,
        }
    }
}
