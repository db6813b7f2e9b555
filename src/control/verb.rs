//! The verbs of the control channel, defined once for every transport.
//!
//! A verb is a JSON object whose `verb` is its name. An unknown field is refused by name, so that a
//! misspelt one is never ignored. docs/protocol.md, "Sessions and control", lists the verbs.
//!
//! The verbs are also the subcommands of `oracle ctl`: a text here is its help as well as the
//! description in the API.

use std::collections::HashMap;

use serde::{Deserialize, Deserializer, Serialize, de::Error as _};
use serde_json::value::RawValue;
#[cfg(feature = "openapi")]
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
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(ToSchema))]
#[cfg_attr(feature = "cli", derive(clap::Subcommand))]
#[serde(tag = "verb", rename_all = "snake_case", deny_unknown_fields)]
pub enum Verb {
    /// List sessions by name
    List {
        /// Tenant to list [default: your own]
        #[cfg_attr(feature = "cli", arg(long))]
        tenant: Option<TenantId>,
        /// List only sessions in this state; `running` and `waiting` are several
        #[cfg_attr(feature = "cli", arg(long))]
        state: Option<StateFilter>,
        /// List only sessions whose names start with this
        #[cfg_attr(feature = "cli", arg(long, value_name = "TEXT"))]
        prefix: Option<String>,
        /// List only sessions with a record since this time
        #[cfg_attr(feature = "cli", arg(skip))]
        updated_since: Option<Timestamp>,
        /// List only names after this one
        #[cfg_attr(feature = "cli", arg(long, value_name = "ID"))]
        after: Option<SessionName>,
        /// Maximum number of sessions, up to 1000
        #[cfg_attr(feature = "cli", arg(long, value_name = "N", default_value_t = page(), value_parser = clap::value_parser!(u32).range(1..)))]
        #[serde(default = "page", deserialize_with = "positive")]
        #[cfg_attr(feature = "openapi", schema(minimum = 1))]
        limit: u32,
    },
    /// List the tenants that have sessions
    #[cfg_attr(feature = "cli", command(display_order = 15))]
    Tenants {
        /// List only names after this one
        #[cfg_attr(feature = "cli", arg(long, value_name = "TENANT"))]
        after: Option<TenantId>,
        /// Maximum number of tenants, up to 1000
        #[cfg_attr(feature = "cli", arg(skip = 1_000_u32))]
        #[serde(default = "page", deserialize_with = "positive")]
        #[cfg_attr(feature = "openapi", schema(minimum = 1))]
        limit: u32,
    },
    /// Show the state of a session
    Inspect {
        /// Session, as `ID` or `TENANT/ID`
        #[cfg_attr(feature = "cli", arg(id = "subject", value_name = "ID"))]
        session: Subject,
    },
    /// Print a session's last events, or those after a number
    Tail {
        /// Session, as `ID` or `TENANT/ID`
        #[cfg_attr(feature = "cli", arg(id = "subject", value_name = "ID"))]
        session: Subject,
        /// Print only events after this number [default: the last ones]
        #[cfg_attr(feature = "cli", arg(long, value_name = "N"))]
        after: Option<Seq>,
        /// Maximum number of events, up to 512
        #[cfg_attr(feature = "cli", arg(long, value_name = "N", default_value_t = page(), value_parser = clap::value_parser!(u32).range(1..)))]
        #[serde(default = "page", deserialize_with = "positive")]
        #[cfg_attr(feature = "openapi", schema(minimum = 1))]
        limit: u32,
    },
    /// Pause a session: start no new model calls and no new tools
    Pause {
        /// Session, as `ID` or `TENANT/ID`
        #[cfg_attr(feature = "cli", arg(id = "subject", value_name = "ID"))]
        session: Subject,
    },
    /// Resume a paused session
    Resume {
        /// Session, as `ID` or `TENANT/ID`
        #[cfg_attr(feature = "cli", arg(id = "subject", value_name = "ID"))]
        session: Subject,
    },
    /// Cancel a query
    Interrupt {
        /// Session, as `ID` or `TENANT/ID`
        #[cfg_attr(feature = "cli", arg(id = "subject", value_name = "ID"))]
        session: Subject,
        /// Query to cancel [default: the running one]
        #[cfg_attr(feature = "cli", arg(long, value_name = "N"))]
        query: Option<QueryId>,
    },
    /// End the running query with the results so far
    #[cfg_attr(feature = "cli", command(name = "finish"))]
    FinishNow {
        /// Session, as `ID` or `TENANT/ID`
        #[cfg_attr(feature = "cli", arg(id = "subject", value_name = "ID"))]
        session: Subject,
    },
    /// Add a message to the running query, before its next model call; if no query runs, begin one
    /// with it
    #[cfg_attr(feature = "cli", command(about = "Add a message to the running query"))]
    Steer {
        /// Session, as `ID` or `TENANT/ID`
        #[cfg_attr(feature = "cli", arg(id = "subject", value_name = "ID"))]
        session: Subject,
        /// Text of the message; not blank
        #[cfg_attr(feature = "openapi", schema(min_length = 1, max_length = 1_048_576))]
        text: String,
        /// Author under which the message enters the conversation
        #[cfg_attr(feature = "cli", arg(long = "as-user", action = clap::ArgAction::SetTrue, help = "Add the message as the user's instead of the operator's"))]
        #[serde(default = "operator")]
        author: Author,
    },
    /// Change budgets of the running query; omitted budgets stay the same
    #[cfg_attr(feature = "cli", command(name = "budget", mut_group("PartialLimits", |limits| limits.required(true))))]
    SetBudget {
        /// Session, as `ID` or `TENANT/ID`
        #[cfg_attr(feature = "cli", arg(id = "subject", value_name = "ID"))]
        session: Subject,
        /// The budgets to change.
        #[cfg_attr(feature = "cli", command(flatten))]
        #[serde(deserialize_with = "super::limits::object")]
        limits: PartialLimits,
    },
    /// Continue a query that was forced to end; omitted budgets are the profile's
    #[cfg_attr(feature = "cli", command(mut_args(super::limits::of_whole_query)))]
    Continue {
        /// Session, as `ID` or `TENANT/ID`
        #[cfg_attr(feature = "cli", arg(id = "subject", value_name = "ID"))]
        session: Subject,
        /// Budgets of both queries together.
        #[cfg_attr(feature = "cli", command(flatten))]
        #[serde(deserialize_with = "super::limits::object")]
        limits: PartialLimits,
    },
    /// Stop a session and recover it from its records
    Restart {
        /// Session, as `ID` or `TENANT/ID`
        #[cfg_attr(feature = "cli", arg(id = "subject", value_name = "ID"))]
        session: Subject,
    },
    /// Release a quarantined session
    Release {
        /// Session, as `ID` or `TENANT/ID`
        #[cfg_attr(feature = "cli", arg(id = "subject", value_name = "ID"))]
        session: Subject,
    },
    /// Copy a session, up to a query or turn, into a new session
    Fork {
        /// Session, as `ID` or `TENANT/ID`
        #[cfg_attr(feature = "cli", arg(id = "subject", value_name = "ID"))]
        session: Subject,
        /// Name of the new session
        #[cfg_attr(feature = "cli", arg(value_name = "NEW"))]
        into: SessionName,
        /// Last query to copy; 0 copies none
        #[cfg_attr(feature = "cli", arg(long, value_name = "N"))]
        query: QueryId,
        /// Last turn of that query to copy, counted from 0 [default: all turns]
        #[cfg_attr(feature = "cli", arg(long, value_name = "N"))]
        turn: Option<Turn>,
    },
    /// Close a session: cancel its queries and refuse new messages
    Close {
        /// Session, as `ID` or `TENANT/ID`
        #[cfg_attr(feature = "cli", arg(id = "subject", value_name = "ID"))]
        session: Subject,
    },
    /// Permanently delete a session and its sub-agents
    Delete {
        /// Session, as `ID` or `TENANT/ID`
        #[cfg_attr(feature = "cli", arg(id = "subject", value_name = "ID"))]
        session: Subject,
        /// Delete even if a query is running
        #[cfg_attr(feature = "cli", arg(long))]
        #[serde(default)]
        anyway: bool,
    },
    /// List the tool calls that wait for approval
    Approvals {
        /// Tenant to list [default: your own]
        #[cfg_attr(feature = "cli", arg(long))]
        tenant: Option<TenantId>,
        /// Maximum number of calls, up to 1000
        #[cfg_attr(feature = "cli", arg(skip = 1_000_u32))]
        #[serde(default = "page", deserialize_with = "positive")]
        #[cfg_attr(feature = "openapi", schema(minimum = 1))]
        limit: u32,
    },
    /// Approve a tool call
    Approve {
        /// Session, as `ID` or `TENANT/ID`
        #[cfg_attr(feature = "cli", arg(id = "subject", value_name = "ID"))]
        session: Subject,
        /// Id of the call, as listed by `approvals`
        call: CallId,
        /// Token of the call, from `approvals` or the event `approval.requested`
        token: ApprovalToken,
    },
    /// Deny a tool call
    Deny {
        /// Session, as `ID` or `TENANT/ID`
        #[cfg_attr(feature = "cli", arg(id = "subject", value_name = "ID"))]
        session: Subject,
        /// Id of the call, as listed by `approvals`
        call: CallId,
        /// Token of the call, from `approvals` or the event `approval.requested`
        token: ApprovalToken,
        /// Why, for the model
        #[cfg_attr(feature = "cli", arg(long, value_name = "TEXT"))]
        #[cfg_attr(feature = "openapi", schema(max_length = 500))]
        reason: Option<String>,
    },
    /// Give a session an additional tool
    #[cfg_attr(feature = "cli", command(name = "attach"))]
    AttachTool {
        /// Session, as `ID` or `TENANT/ID`
        #[cfg_attr(feature = "cli", arg(id = "subject", value_name = "ID"))]
        session: Subject,
        /// Name of the tool
        tool: String,
    },
    /// List the MCP servers that Oracle uses, with the tools that are withheld because they have
    /// changed
    #[cfg_attr(feature = "cli", command(name = "mcp"))]
    ToolServers {},
    /// Approve the changed declaration of a withheld tool
    ApproveTool {
        /// Name of the tool, as listed by `tool_servers`
        #[cfg_attr(feature = "cli", arg(help = "Name of the tool, as listed by `mcp`"))]
        tool: String,
        /// Hash of the declaration, as listed by `tool_servers`
        #[cfg_attr(
            feature = "cli",
            arg(help = "Hash of the declaration, as listed by `mcp`")
        )]
        sha256: String,
    },
    /// Refuse new messages in all sessions until the next start; running queries continue
    Drain {},
    /// Shut down the server gracefully
    #[cfg_attr(feature = "cli", command(name = "shutdown"))]
    ShutDown {},
    /// Reload the configuration and apply the settings that need no restart
    Reload {},
}

/// Selects the records of a subscription.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::IntoParams))]
#[cfg_attr(feature = "cli", derive(clap::Args))]
#[serde(default, deny_unknown_fields)]
#[cfg_attr(feature = "openapi", into_params(parameter_in = Query))]
pub struct Watching {
    /// Session, as `ID` or `TENANT/ID` [default: all]
    #[cfg_attr(feature = "cli", arg(id = "subject", value_name = "ID"))]
    #[cfg_attr(feature = "openapi", param(inline))]
    pub session: Option<Subject>,
    /// Show only events of this tenant
    #[cfg_attr(feature = "cli", arg(long))]
    #[cfg_attr(feature = "openapi", param(inline))]
    pub tenant: Option<TenantId>,
    /// Start with the session's events after this number; needs the session
    #[cfg_attr(feature = "cli", arg(long, value_name = "N", requires = "subject"))]
    #[cfg_attr(feature = "openapi", param(inline))]
    pub after: Option<Seq>,
    /// Only types with one of these prefixes, separated by commas.
    #[cfg_attr(
        feature = "cli",
        arg(
            long = "type",
            value_name = "PREFIX",
            help = "Show only event types that start with this, such as `tool.`; can be repeated"
        )
    )]
    #[serde(skip_serializing_if = "Vec::is_empty", with = "commas")]
    #[cfg_attr(feature = "openapi", param(style = Form, explode = false))]
    pub types: Vec<String>,
    /// Show only events of at least this severity
    #[cfg_attr(feature = "cli", arg(long))]
    #[cfg_attr(feature = "openapi", param(inline))]
    pub severity: Option<Severity>,
}

pub mod commas {
    use serde::{Deserialize as _, Deserializer, Serializer};

    pub fn serialize<S: Serializer>(list: &[String], to: S) -> Result<S::Ok, S::Error> {
        to.serialize_str(&list.join(","))
    }

    pub fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<Vec<String>, D::Error> {
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

    pub fn read(text: &[u8]) -> Result<Self, String> {
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
