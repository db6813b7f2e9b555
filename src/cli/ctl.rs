//! `oracle ctl`: the control channel on the command line.
//!
//! A command line becomes a verb, and its answer text; the server decides what is allowed.

use std::path::PathBuf;

use super::{CliError, terminal::Terminal};
use crate::{
    control::{Answer, Client, ClientError, Verb},
    model::{Owner, PartialLimits, SessionKey},
};

mod command;
pub(super) mod output;
mod servers;

pub use command::CtlCommand;
use command::{Budgets, Step};
pub(super) use servers::Servers;

/// The server to control.
#[derive(Debug, Clone, PartialEq, Eq, clap::Args)]
pub struct ServerArgs {
    /// Server to connect to [default: the one that uses the data directory]
    #[arg(long, value_name = "URL")]
    pub url: Option<String>,
    /// File that contains the key for --url [default: the variable ORACLE_API_KEY]
    #[arg(long, value_name = "FILE", requires = "url")]
    pub key_file: Option<PathBuf>,
    /// Process id of the server, if several use the data directory
    #[arg(long, value_name = "PID", conflicts_with = "url")]
    pub pid: Option<u32>,
}

/// `oracle ctl`.
#[derive(Debug, Clone, PartialEq, Eq, clap::Args)]
pub struct CtlArgs {
    /// The server.
    #[command(flatten)]
    pub server: ServerArgs,
    /// The command to run.
    #[command(subcommand)]
    pub command: CtlCommand,
}

/// A server with a control channel.
#[derive(Debug)]
pub struct Server {
    /// Its process id, if it uses the data directory.
    pub pid: Option<u32>,
    /// The client that talks to it.
    pub client: Client,
}

/// Executes a command, on the session's `owner` if there are several servers.
///
/// # Errors
/// If the verb is refused, the server cannot be reached, or standard output cannot be written.
pub async fn run(
    command: &CtlCommand,
    all: &[Server],
    owner: impl Fn(&SessionKey) -> Option<Owner>,
    terminal: &mut Terminal,
) -> Result<(), CliError> {
    let owner = &owner;
    let servers = Servers { all, owner };
    let verb = match command.step().map_err(CliError::no_json)? {
        Step::Do(verb) => verb,
        Step::Watch(wanted) => return servers.watch(&wanted, terminal).await,
        Step::Budget(session, budgets) => {
            let inspect = Verb::Inspect {
                session: session.clone(),
            };
            let limits = limits(servers.carry_out(&inspect).await?, budgets)?;
            Verb::SetBudget { session, limits }
        }
    };
    let answer = servers.carry_out(&verb).await?;
    output::answer(&answer, terminal)
}

/// The budgets of the running query with these changes.
fn limits(answer: Answer, budgets: Budgets) -> Result<PartialLimits, CliError> {
    let now = match answer {
        Answer::Session { session } => session.limits,
        _ => None,
    };
    let now = now.ok_or_else(|| CliError::failed("no query is running in this session"))?;
    Ok(PartialLimits {
        max_turns: budgets.turns.or(Some(now.max_turns)),
        max_tokens: budgets.tokens.or(now.max_tokens),
        max_cost: budgets.cost.or(now.max_cost),
    })
}

impl From<ClientError> for CliError {
    fn from(error: ClientError) -> Self {
        match error {
            ClientError::Url { .. } => Self::usage(error),
            error => Self::Refused(error.into()),
        }
    }
}
