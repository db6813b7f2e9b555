//! The subcommands of `oracle ctl` and their verbs.

use clap::{
    Subcommand,
    builder::{StringValueParser, TypedValueParser as _},
    value_parser,
};
use serde::{Serialize, Serializer};

use crate::{
    actor::StateFilter,
    cli::arguments::one_of,
    control::{Subject, Verb, Watching},
    model::{
        ApprovalToken, CallId, NanoUsd, Seq, SessionName, Severity, TenantId, command::Author,
        decimal,
    },
};

const MOST: u32 = 1_000;

/// A subcommand. All but `watch` serialize as their verbs.
#[derive(Debug, Clone, PartialEq, Eq, Subcommand, Serialize)]
#[serde(tag = "verb", rename_all = "snake_case")]
pub enum CtlCommand {
    /// List sessions by name
    List {
        /// Tenant to list [default: your own]
        #[arg(long, value_name = "TENANT")]
        tenant: Option<TenantId>,
        /// List only sessions in this state; `running` and `waiting` are several
        #[arg(long, value_name = "STATE", value_parser = one_of(StateFilter::all(), StateFilter::as_str))]
        state: Option<StateFilter>,
        /// List only sessions whose names start with this
        #[arg(long, value_name = "TEXT")]
        prefix: Option<String>,
        /// List only names after this one
        #[arg(long, value_name = "ID")]
        after: Option<SessionName>,
        /// Maximum number of sessions, up to 1000
        #[arg(long, value_name = "N", default_value_t = 100, value_parser = value_parser!(u32).range(1..))]
        limit: u32,
    },
    /// Show the state of a session
    Inspect(SubjectArg),
    /// Print a session's last events, or those after a number
    Tail {
        /// Session, as `ID` or `TENANT/ID`
        #[arg(id = "subject", value_name = "ID")]
        session: Subject,
        /// Print only events after this number
        #[arg(long, value_name = "N")]
        after: Option<u64>,
        /// Maximum number of events, up to 512
        #[arg(long, value_name = "N", default_value_t = 100, value_parser = value_parser!(u32).range(1..))]
        limit: u32,
    },
    /// Watch new events of one session or all sessions
    Watch {
        /// Session, as `ID` or `TENANT/ID` [default: all]
        #[arg(id = "subject", value_name = "ID")]
        session: Option<Subject>,
        /// Show only events of this tenant
        #[arg(long, value_name = "TENANT")]
        tenant: Option<TenantId>,
        /// Start with the events recorded after this number
        #[arg(long, value_name = "N", requires = "subject")]
        after: Option<u64>,
        /// Show only event types that start with this, such as `tool.`; can be repeated
        #[arg(long = "type", value_name = "PREFIX")]
        types: Vec<String>,
        /// Show only events of at least this severity
        #[arg(long, value_name = "SEVERITY", value_parser = one_of(Severity::ALL, Severity::as_str))]
        severity: Option<Severity>,
    },
    /// Pause a session: start no new model calls and no new tools
    Pause(SubjectArg),
    /// Resume a paused session
    Resume(SubjectArg),
    /// Cancel the running query
    Interrupt {
        /// Session, as `ID` or `TENANT/ID`
        #[arg(id = "subject", value_name = "ID")]
        session: Subject,
        /// Query to cancel [default: the running one]
        #[arg(long, value_name = "N")]
        query: Option<u32>,
    },
    /// End the running query with the results so far
    #[serde(rename = "finish_now")]
    Finish(SubjectArg),
    /// Add a message to the running query
    Steer {
        /// Session, as `ID` or `TENANT/ID`
        #[arg(id = "subject", value_name = "ID")]
        session: Subject,
        /// Text of the message
        #[arg(value_name = "TEXT")]
        text: String,
        /// Add the message as the user's instead of the operator's
        #[arg(long)]
        #[serde(rename = "author", serialize_with = "author")]
        as_user: bool,
    },
    /// Change budgets of the running query; omitted budgets stay the same
    #[serde(rename = "set_budget")]
    Budget {
        /// Session, as `ID` or `TENANT/ID`
        #[arg(id = "subject", value_name = "ID")]
        session: Subject,
        /// The budgets to change.
        #[command(flatten)]
        limits: Budgets,
    },
    /// Continue a query that was forced to end; omitted budgets are the profile's
    Continue {
        /// Session, as `ID` or `TENANT/ID`
        #[arg(id = "subject", value_name = "ID")]
        session: Subject,
        /// Budgets of both queries together.
        #[command(flatten)]
        limits: WholeBudgets,
    },
    /// Stop a session and recover it from its records
    Restart(SubjectArg),
    /// Release a quarantined session
    Release(SubjectArg),
    /// Copy a session, up to a query or turn, into a new session
    Fork {
        /// Session, as `ID` or `TENANT/ID`
        #[arg(id = "subject", value_name = "ID")]
        session: Subject,
        /// Name of the new session
        #[arg(value_name = "NEW")]
        into: SessionName,
        /// Last query to copy; 0 copies none
        #[arg(long, value_name = "N")]
        query: u32,
        /// Last turn of that query to copy, counted from 0 [default: all turns]
        #[arg(long, value_name = "N")]
        turn: Option<u32>,
    },
    /// Close a session: cancel its queries and refuse new messages
    Close(SubjectArg),
    /// Permanently delete a session and its sub-agents
    Delete {
        /// Session, as `ID` or `TENANT/ID`
        #[arg(id = "subject", value_name = "ID")]
        session: Subject,
        /// Delete even if a query is running
        #[arg(long)]
        anyway: bool,
    },
    /// List the tenants that have sessions
    Tenants {
        /// List only names after this one
        #[arg(long, value_name = "TENANT")]
        after: Option<TenantId>,
        /// Maximum number of entries.
        #[arg(skip = MOST)]
        limit: u32,
    },
    /// List the tool calls that wait for approval
    Approvals {
        /// Tenant to list [default: your own]
        #[arg(long, value_name = "TENANT")]
        tenant: Option<TenantId>,
        /// Maximum number of entries.
        #[arg(skip = MOST)]
        limit: u32,
    },
    /// Approve a tool call
    Approve(CallArg),
    /// Deny a tool call
    Deny {
        /// The call.
        #[command(flatten)]
        #[serde(flatten)]
        call: CallArg,
        /// Why, for the model
        #[arg(long, value_name = "TEXT")]
        reason: Option<String>,
    },
    /// Give a session an additional tool
    #[serde(rename = "attach_tool")]
    Attach {
        /// Session, as `ID` or `TENANT/ID`
        #[arg(id = "subject", value_name = "ID")]
        session: Subject,
        /// Name of the tool
        #[arg(value_name = "TOOL")]
        tool: String,
    },
    /// List the MCP servers that Oracle uses, with the tools that are withheld because they have
    /// changed
    #[serde(rename = "tool_servers")]
    Mcp,
    /// Approve the changed declaration of a withheld tool
    ApproveTool {
        /// Name of the tool, as listed by `mcp`
        #[arg(value_name = "TOOL")]
        tool: String,
        /// Hash of the declaration, as listed by `mcp`
        #[arg(value_name = "SHA256")]
        sha256: String,
    },
    /// Refuse new messages in all sessions until the next start; running queries continue
    Drain,
    /// Shut down the server gracefully
    #[serde(rename = "shut_down")]
    Shutdown,
    /// Reload the configuration and apply the settings that need no restart
    Reload,
}

/// A session.
#[derive(Debug, Clone, PartialEq, Eq, clap::Args, Serialize)]
pub struct SubjectArg {
    /// Session, as `ID` or `TENANT/ID`
    // As `session` clap would take it for the option `--session`.
    #[arg(id = "subject", value_name = "ID")]
    pub session: Subject,
}

/// A tool call that waits for approval in a session.
#[derive(Debug, Clone, PartialEq, Eq, clap::Args, Serialize)]
pub struct CallArg {
    /// Session, as `ID` or `TENANT/ID`
    #[arg(id = "subject", value_name = "ID")]
    pub session: Subject,
    /// Id of the call, as listed by `approvals`
    #[arg(value_name = "CALL", value_parser = StringValueParser::new().map(|id| CallId::new(&id)))]
    pub call: CallId,
    /// Token of the call, as listed by `approvals`
    #[arg(value_name = "TOKEN", value_parser = StringValueParser::new().map(ApprovalToken))]
    pub token: ApprovalToken,
}

/// Budgets to change.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::Args, Serialize)]
#[group(required = true, multiple = true)]
pub struct Budgets {
    /// Maximum number of turns
    #[arg(long, value_name = "N")]
    #[serde(rename = "max_turns")]
    pub turns: Option<u32>,
    /// Maximum number of tokens
    #[arg(long, value_name = "N")]
    #[serde(rename = "max_tokens")]
    pub tokens: Option<u64>,
    /// Maximum cost in US dollars
    #[arg(long, value_name = "USD", value_parser = money)]
    #[serde(rename = "max_cost")]
    pub cost: Option<NanoUsd>,
}

/// Budgets of a query that continues another one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::Args, Serialize)]
pub struct WholeBudgets {
    /// Maximum number of turns, including those already used
    #[arg(long, value_name = "N")]
    #[serde(rename = "max_turns")]
    pub turns: u32,
    /// Maximum number of tokens, including those already used
    #[arg(long, value_name = "N")]
    #[serde(rename = "max_tokens")]
    pub tokens: Option<u64>,
    /// Maximum cost in US dollars, including what is already spent
    #[arg(long, value_name = "USD", value_parser = money)]
    #[serde(rename = "max_cost")]
    pub cost: Option<NanoUsd>,
}

/// The action that a command needs.
pub(super) enum Step {
    Do(Verb),
    Watch(Watching),
}

impl Step {
    pub(super) const fn session(&self) -> Option<&Subject> {
        match self {
            Self::Do(verb) => verb.session(),
            Self::Watch(wanted) => wanted.session.as_ref(),
        }
    }
}

impl CtlCommand {
    pub(super) fn step(&self) -> Result<Step, serde_json::Error> {
        Ok(match self.clone() {
            Self::Watch {
                session,
                tenant,
                after,
                types,
                severity,
            } => Step::Watch(Watching {
                session,
                tenant,
                after: after.map(Seq),
                types,
                severity,
            }),
            verb => Step::Do(serde_json::from_value(serde_json::to_value(verb)?)?),
        })
    }
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "as serde wants it")]
fn author<S: Serializer>(as_user: &bool, serializer: S) -> Result<S::Ok, S::Error> {
    let author = match as_user {
        true => Author::User,
        false => Author::Operator,
    };
    author.serialize(serializer)
}

fn money(text: &str) -> Result<NanoUsd, &'static str> {
    let nanos = decimal::scaled(text, 9).map(NanoUsd);
    nanos.ok_or("write an amount in US dollars, such as 1.50")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn money_is_parsed_exactly() {
        for (text, nanos) in [
            ("1", Some(1_000_000_000)),
            ("1.50", Some(1_500_000_000)),
            ("0.000000001", Some(1)),
            ("18446744073.709551615", Some(u64::MAX)),
            ("18446744073.709551616", None),
            ("0.0000000001", None),
            ("", None),
            (".5", None),
            ("1.", None),
            ("-1", None),
            ("1e3", None),
        ] {
            assert_eq!(money(text).ok(), nanos.map(NanoUsd), "{text}");
        }
    }
}
