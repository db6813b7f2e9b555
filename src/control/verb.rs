//! The verbs of the control channel (spec 10): the one definition that every transport carries.
//!
//! A verb is a JSON object with its name as `verb`. What is not known is refused by name, so that a
//! misspelt field never means less than was asked for.

use std::collections::HashMap;

use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
#[cfg(feature = "server")]
use utoipa::ToSchema;

use super::{Code, Refused, subject::Subject};
use crate::{
    actor::SessionState,
    model::{
        CallId, Limits, QueryId, Seq, SessionName, Severity, TenantId, Timestamp, Turn,
        command::Author,
    },
};

/// Sessions or calls of a list, where nothing is said.
const PAGE: u32 = 100;

const fn page() -> u32 {
    PAGE
}

const fn operator() -> Author {
    Author::Operator
}

/// What can be done to sessions and to the system. A session is named `NAME`, or `TENANT/NAME` for
/// another tenant's than one's own.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "server", derive(ToSchema))]
#[serde(tag = "verb", rename_all = "snake_case", deny_unknown_fields)]
pub enum Verb {
    /// Lists sessions by name.
    List {
        /// Whose; one's own if nobody is named.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        tenant: Option<TenantId>,
        /// Only those that stand like this.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        state: Option<SessionState>,
        /// Only those whose names begin like this.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        prefix: Option<String>,
        /// Only those that recorded something since.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        updated_since: Option<Timestamp>,
        /// Only those after this one.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        after: Option<SessionName>,
        /// At most so many, up to 1,000.
        #[serde(default = "page")]
        limit: u32,
    },
    /// Lists the tenants that have sessions, by name.
    Tenants {
        /// Only those after this one.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        after: Option<TenantId>,
        /// At most so many, up to 1,000.
        #[serde(default = "page")]
        limit: u32,
    },
    /// Tells how a session stands.
    Inspect {
        /// Which session.
        session: Subject,
    },
    /// Tells events of a session from its log.
    Tail {
        /// Which session.
        session: Subject,
        /// Only those after this number.
        #[serde(default)]
        after: Seq,
        /// At most so many, up to 512.
        #[serde(default = "page")]
        limit: u32,
    },
    /// Lets no new call and no new tool start.
    Pause {
        /// Which session.
        session: Subject,
    },
    /// Lets it go on.
    Resume {
        /// Which session.
        session: Subject,
    },
    /// Takes back a query, or the one that runs.
    Interrupt {
        /// Which session.
        session: Subject,
        /// Which query; the one that runs if none is named.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        query: Option<QueryId>,
    },
    /// Ends the running query with what there is.
    FinishNow {
        /// Which session.
        session: Subject,
    },
    /// Puts words into the running query, before its next call.
    Steer {
        /// Which session.
        session: Subject,
        /// The words; not blank.
        #[cfg_attr(feature = "server", schema(min_length = 1, max_length = 1_048_576))]
        text: String,
        /// As whose they enter the conversation.
        #[serde(default = "operator")]
        author: Author,
    },
    /// Sets all budgets of the running query.
    SetBudget {
        /// Which session.
        session: Subject,
        /// The new budgets; what is left out is not limited.
        #[serde(deserialize_with = "super::limits::object")]
        limits: Limits,
    },
    /// Goes on where a forced query stopped.
    Continue {
        /// Which session.
        session: Subject,
        /// What both together may use; what is left out is not limited.
        #[serde(deserialize_with = "super::limits::object")]
        limits: Limits,
    },
    /// Stops a session and brings it back from its records.
    Restart {
        /// Which session.
        session: Subject,
    },
    /// Lets a session go on that was set aside.
    Release {
        /// Which session.
        session: Subject,
    },
    /// Copies a session up to a turn, as a new one of the same tenant.
    Fork {
        /// Which session.
        session: Subject,
        /// The name of the new one.
        into: SessionName,
        /// Up to the end of this query; 0 is before the first.
        query: QueryId,
        /// Or only up to the end of this turn of it, from 0.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        turn: Option<Turn>,
    },
    /// Takes no more messages. What runs is taken back, and so is what waits.
    Close {
        /// Which session.
        session: Subject,
    },
    /// Deletes a session for good, with its sub-agents'.
    Delete {
        /// Which session.
        session: Subject,
        /// Also in the middle of a query.
        #[serde(default)]
        anyway: bool,
    },
    /// Lists the tool calls that wait for a person, the one that has waited longest first.
    Approvals {
        /// Whose; one's own if nobody is named.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        tenant: Option<TenantId>,
        /// At most so many, up to 1,000.
        #[serde(default = "page")]
        limit: u32,
    },
    /// Lets a call run.
    Approve {
        /// Which session.
        session: Subject,
        /// Which call.
        call: CallId,
    },
    /// Lets a call not run.
    Deny {
        /// Which session.
        session: Subject,
        /// Which call.
        call: CallId,
    },
    /// Gives a session one more tool, of those that are ready for that.
    AttachTool {
        /// Which session.
        session: Subject,
        /// Its name.
        tool: String,
    },
    /// Takes no new messages in any session; what runs goes on.
    Drain {},
    /// Ends the system in order.
    ShutDown {},
    /// Reads the configuration anew, and puts into effect what can be without a new start.
    Reload {},
}

/// What of the events that are recorded from now on somebody wants to hear.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "server", derive(utoipa::IntoParams))]
#[serde(default, deny_unknown_fields)]
#[cfg_attr(feature = "server", into_params(parameter_in = Query))]
pub struct Watching {
    /// Only of this session, `NAME` or `TENANT/NAME`; of all if none is named.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "server", param(inline))]
    pub session: Option<Subject>,
    /// Only of this tenant's sessions; of all if none is named.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "server", param(inline))]
    pub tenant: Option<TenantId>,
    /// First what the session recorded after this number; only with `session`.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "server", param(inline))]
    pub after: Option<Seq>,
    /// Only types that begin with one of these, with commas between them.
    #[serde(skip_serializing_if = "Vec::is_empty", with = "commas")]
    #[cfg_attr(feature = "server", param(style = Form, explode = false))]
    pub types: Vec<String>,
    /// Only what matters this much.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "server", param(inline))]
    pub severity: Option<Severity>,
}

/// A list as a text with commas.
pub(crate) mod commas {
    use serde::{Deserialize as _, Deserializer, Serializer};

    pub(crate) fn serialize<S: Serializer>(list: &[String], to: S) -> Result<S::Ok, S::Error> {
        to.serialize_str(&list.join(","))
    }

    pub(crate) fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<Vec<String>, D::Error> {
        let text = String::deserialize(from)?;
        Ok(text.split(',').map(str::to_owned).collect())
    }
}

impl Verb {
    /// Reads a verb.
    ///
    /// # Errors
    /// [`Code::InvalidValue`], with what is wrong.
    pub fn from_json(text: &[u8]) -> Result<Self, Refused> {
        Self::read(text).map_err(|why| {
            let message = format!("that is no verb of the control channel: {why}");
            Refused::new(Code::InvalidValue, message)
        })
    }

    /// Reads a verb, or says what is wrong with it.
    pub(crate) fn read(text: &[u8]) -> Result<Self, String> {
        // serde would take a list of the values and the number of a verb too, and numbers change.
        let fields: HashMap<String, &RawValue> =
            serde_json::from_slice(text).map_err(|error| error.to_string())?;
        match fields.get("verb") {
            Some(verb) if !verb.get().starts_with('"') => Err("`verb` has to be its name".into()),
            _ => serde_json::from_slice(text).map_err(|error| error.to_string()),
        }
    }

    /// The session that it is about, if it is about one.
    #[must_use]
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
