//! `oracle ctl`: the control channel (spec 10) for a person at a terminal, and for scripts.
//!
//! Says nothing by itself of what may be done: a command line becomes a verb, and its answer becomes text.

use std::path::PathBuf;

use super::{Stop, exit, interrupts::Interrupts, terminal::Terminal};
use crate::{
    control::{Answer, Client, ClientError, Code, Refused, Seen, Verb, Watching},
    model::Limits,
};

mod command;
pub(super) mod tell;

pub use command::CtlCommand;
use command::{Budgets, Step};

/// `oracle ctl`.
#[derive(Debug, Clone, PartialEq, Eq, clap::Args)]
pub struct CtlArgs {
    /// Server to talk to [default: the one that serves the data directory]
    #[arg(long, value_name = "URL")]
    pub url: Option<String>,
    /// File with the key for --url [default: the variable ORACLE_API_KEY]
    #[arg(long, value_name = "FILE", requires = "url")]
    pub key_file: Option<PathBuf>,
    /// What is to be done.
    #[command(subcommand)]
    pub command: CtlCommand,
}

/// Carries out a command at this server.
///
/// # Errors
/// When it is refused, the server cannot be asked, or standard output cannot be written.
pub async fn run(
    command: &CtlCommand,
    server: Client,
    json: bool,
    terminal: &mut Terminal,
) -> Result<(), Stop> {
    let verb = match command.step().map_err(Stop::no_json)? {
        Step::Do(verb) => verb,
        Step::Watch(wanted) => return watch(server, wanted, json, terminal).await,
        Step::Budget(session, budgets) => {
            let inspect = Verb::Inspect {
                session: session.clone(),
            };
            let limits = limits(server.carry_out(&inspect).await?, budgets)?;
            Verb::SetBudget { session, limits }
        }
    };
    let answer = server.carry_out(&verb).await?;
    tell::answer(&answer, json, terminal)
}

/// The budgets of the running query, with these changes.
fn limits(answer: Answer, budgets: Budgets) -> Result<Limits, Stop> {
    let now = match answer {
        Answer::Session { session } => session.limits,
        _ => None,
    };
    let now = now.ok_or_else(|| Stop::failed("no query is running in this session"))?;
    Ok(Limits {
        max_turns: budgets.turns.unwrap_or(now.max_turns),
        max_tokens: budgets.tokens.or(now.max_tokens),
        max_cost: budgets.cost.or(now.max_cost),
    })
}

/// Shows what is recorded until Ctrl-C, or the system's end.
async fn watch(
    server: Client,
    wanted: Watching,
    json: bool,
    terminal: &mut Terminal,
) -> Result<(), Stop> {
    let mut interrupts = Interrupts::listen();
    let mut watched = server.watch(&wanted).await?;
    loop {
        let seen = tokio::select! {
            seen = watched.next() => seen?,
            () = interrupts.pressed() => return Ok(()),
        };
        let Some(seen) = seen else {
            return Err(Stop::failed(
                "the control channel was closed at its other end",
            ));
        };
        tell::seen(&seen, json, terminal)?;
        if let Seen::End { .. } = seen {
            return Ok(());
        }
    }
}

/// What was refused has its exit code.
impl From<Refused> for Stop {
    fn from(refused: Refused) -> Self {
        Self::with_code(of_code(refused.code), [refused.message])
    }
}

impl From<ClientError> for Stop {
    fn from(error: ClientError) -> Self {
        match error {
            ClientError::Refused(refused) => refused.into(),
            ClientError::Url { .. } => Self::usage(error),
            _ => Self::failed(error),
        }
    }
}

const fn of_code(code: Code) -> u8 {
    match code {
        Code::Busy | Code::InboxFull | Code::Owned | Code::Overloaded | Code::Draining => {
            exit::BUSY
        }
        Code::InvalidValue
        | Code::InvalidName
        | Code::TooLong
        | Code::Reserved
        | Code::TurnsOutOfRange
        | Code::TokensOutOfRange
        | Code::CostOutOfRange
        | Code::ImportTooLarge
        | Code::EmptyQuestion
        | Code::Configuration
        | Code::QuestionTooLong => exit::USAGE,
        _ => exit::FAILED,
    }
}
