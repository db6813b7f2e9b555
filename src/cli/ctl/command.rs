//! What may be typed after `oracle ctl`, and which verb that is.

use clap::Subcommand;
use serde::{Serialize, Serializer};

use crate::{
    actor::SessionState,
    cli::arguments::one_of,
    control::{Subject, Verb, Watching},
    model::{CallId, Limits, NanoUsd, Seq, SessionName, Severity, TenantId, command::Author},
};

const MOST: u32 = 1_000;

/// The commands. Each is written as the verb that it is, but for those that `step` names.
#[derive(Debug, Clone, PartialEq, Eq, Subcommand, Serialize)]
#[serde(tag = "verb", rename_all = "snake_case")]
pub enum CtlCommand {
    /// List sessions by name
    List {
        /// Whose [default: one's own]
        #[arg(long, value_name = "TENANT")]
        tenant: Option<TenantId>,
        /// Only those in this state
        #[arg(long, value_name = "STATE", value_parser = one_of(SessionState::ALL, SessionState::as_str))]
        state: Option<SessionState>,
        /// Only those whose names begin like this
        #[arg(long, value_name = "TEXT")]
        prefix: Option<String>,
        /// Only those after this one
        #[arg(long, value_name = "ID")]
        after: Option<SessionName>,
        /// At most so many, up to 1000
        #[arg(long, value_name = "N", default_value_t = 100)]
        limit: u32,
    },
    /// Show how a session stands
    Inspect(One),
    /// Print a session's events
    Tail {
        /// The session
        #[command(flatten)]
        #[serde(flatten)]
        one: One,
        /// Only those after this number
        #[arg(long, value_name = "N", default_value_t = 0)]
        after: u64,
        /// At most so many, up to 512
        #[arg(long, value_name = "N", default_value_t = 100)]
        limit: u32,
    },
    /// Show what all sessions, or one, record from now on
    Watch {
        /// The session, `ID` or `TENANT/ID` [default: all]
        #[arg(id = "subject", value_name = "ID")]
        session: Option<Subject>,
        /// Only this tenant's
        #[arg(long, value_name = "TENANT")]
        tenant: Option<TenantId>,
        /// First what it recorded after this number
        #[arg(long, value_name = "N", requires = "subject")]
        after: Option<u64>,
        /// Only types that begin like this, such as `tool.`; may be given more than once
        #[arg(long = "type", value_name = "PREFIX")]
        types: Vec<String>,
        /// Only what matters this much
        #[arg(long, value_name = "SEVERITY", value_parser = one_of(Severity::ALL, Severity::as_str))]
        severity: Option<Severity>,
    },
    /// Let no new call and no new tool start
    Pause(One),
    /// Let it go on
    Resume(One),
    /// Take back the running query
    Interrupt {
        /// The session
        #[command(flatten)]
        #[serde(flatten)]
        one: One,
        /// Or this one
        #[arg(long, value_name = "N")]
        query: Option<u32>,
    },
    /// End the running query with what there is
    #[serde(rename = "finish_now")]
    Finish(One),
    /// Put words into the running query
    Steer {
        /// The session
        #[command(flatten)]
        #[serde(flatten)]
        one: One,
        /// The words
        #[arg(value_name = "TEXT")]
        text: String,
        /// As words of the person whose conversation it is
        #[arg(long)]
        #[serde(rename = "author", serialize_with = "author")]
        as_user: bool,
    },
    /// Change budgets of the running query; those that are not named stay
    Budget {
        /// The session
        #[command(flatten)]
        #[serde(flatten)]
        one: One,
        /// What is changed
        #[command(flatten)]
        budgets: Budgets,
    },
    /// Go on where a forced query stopped; what is not named is not limited
    Continue {
        /// The session
        #[command(flatten)]
        #[serde(flatten)]
        one: One,
        /// Most turns of both together
        #[arg(long, value_name = "N")]
        turns: u32,
        /// Most tokens of both together
        #[arg(long, value_name = "N")]
        tokens: Option<u64>,
        /// Most money of both together
        #[arg(long, value_name = "USD", value_parser = money)]
        cost: Option<NanoUsd>,
    },
    /// Stop a session and bring it back from its records
    Restart(One),
    /// Let a quarantined session go on
    Release(One),
    /// Copy a session up to a query or a turn, as a new one
    Fork {
        /// The session
        #[command(flatten)]
        #[serde(flatten)]
        one: One,
        /// The name of the new one
        #[arg(value_name = "NEW")]
        into: SessionName,
        /// Up to the end of this query; 0 is before the first
        #[arg(long, value_name = "N")]
        query: u32,
        /// Or only up to the end of this turn of it, from 0
        #[arg(long, value_name = "N")]
        turn: Option<u32>,
    },
    /// Take no more messages, and take back what runs and waits
    Close(One),
    /// Delete a session for good, with its sub-agents
    Delete {
        /// The session
        #[command(flatten)]
        #[serde(flatten)]
        one: One,
        /// Also in the middle of a query
        #[arg(long)]
        anyway: bool,
    },
    /// List the tenants that have sessions
    Tenants {
        /// Only those after this one
        #[arg(long, value_name = "TENANT")]
        after: Option<TenantId>,
        /// At most so many
        #[arg(skip = MOST)]
        limit: u32,
    },
    /// List the tool calls that wait for a person
    Approvals {
        /// Whose [default: one's own]
        #[arg(long, value_name = "TENANT")]
        tenant: Option<TenantId>,
        /// At most so many
        #[arg(skip = MOST)]
        limit: u32,
    },
    /// Let a tool call run
    Approve(Call),
    /// Let a tool call not run
    Deny(Call),
    /// Give a session one more tool
    #[serde(rename = "attach_tool")]
    Attach {
        /// The session
        #[command(flatten)]
        #[serde(flatten)]
        one: One,
        /// The tool
        #[arg(value_name = "TOOL")]
        tool: String,
    },
    /// Take no new messages in any session until the next start; what runs goes on
    Drain,
    /// End the server in order
    #[serde(rename = "shut_down")]
    Shutdown,
    /// Read the configuration anew, and put into effect what can be without a new start
    Reload,
}

/// A session.
#[derive(Debug, Clone, PartialEq, Eq, clap::Args, Serialize)]
pub struct One {
    /// The session, `ID` or `TENANT/ID`
    // As `session` clap would take it for the option `--session`.
    #[arg(id = "subject", value_name = "ID")]
    pub session: Subject,
}

/// A call that waits in a session.
#[derive(Debug, Clone, PartialEq, Eq, clap::Args, Serialize)]
pub struct Call {
    /// The session
    #[command(flatten)]
    #[serde(flatten)]
    pub one: One,
    /// The call, as `approvals` tells it
    #[arg(value_name = "CALL", value_parser = call)]
    pub call: CallId,
}

/// Budgets that are changed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::Args, Serialize)]
#[group(required = true, multiple = true)]
pub struct Budgets {
    /// Most turns
    #[arg(long, value_name = "N")]
    pub turns: Option<u32>,
    /// Most tokens
    #[arg(long, value_name = "N")]
    pub tokens: Option<u64>,
    /// Most money
    #[arg(long, value_name = "USD", value_parser = money)]
    pub cost: Option<NanoUsd>,
}

/// What a command comes to.
pub(super) enum Step {
    Do(Verb),
    Watch(Watching),
    Budget(Subject, Budgets),
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
            Self::Budget { one, budgets } => Step::Budget(one.session, budgets),
            Self::Continue {
                one,
                turns,
                tokens,
                cost,
            } => Step::Do(Verb::Continue {
                session: one.session,
                limits: Limits {
                    max_turns: turns,
                    max_tokens: tokens,
                    max_cost: cost,
                },
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

#[expect(clippy::unnecessary_wraps, reason = "as clap wants it")]
fn call(word: &str) -> Result<CallId, String> {
    Ok(CallId::new(word))
}

fn money(text: &str) -> Result<NanoUsd, String> {
    let wrong = || "write it in US dollars, such as 1.50".to_owned();
    let (whole, part) = text.split_once('.').unwrap_or((text, "0"));
    let digits = |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    if !digits(whole) || !digits(part) || part.len() > 9 {
        return Err(wrong());
    }
    let whole: u64 = whole.parse().map_err(|_| wrong())?;
    let part: u64 = format!("{part:0<9}").parse().map_err(|_| wrong())?;
    let all = whole.checked_mul(1_000_000_000);
    let all = all.and_then(|nanos| nanos.checked_add(part));
    all.map(NanoUsd).ok_or_else(wrong)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn money_is_read_exactly() {
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
