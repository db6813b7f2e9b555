//! `oracle ctl`: the control channel on the command line.
//!
//! A command line becomes a verb, and its answer text; the server decides what is allowed.

use std::path::PathBuf;

use futures_util::TryStreamExt as _;

use super::{CliError, CliResult, interrupts::Interrupts, terminal::Terminal};
use crate::control::{Client, ClientError, Subject, Watching, WireUpdate};

mod command;
pub(super) mod output;

pub use command::CtlCommand;
use command::Step;

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

/// Executes a command on the server that `connect` finds for its session, if it names one.
///
/// # Errors
/// If the verb is refused, the server cannot be reached, or standard output cannot be written.
pub async fn run(
    command: &CtlCommand,
    connect: impl AsyncFnOnce(Option<&Subject>) -> CliResult<Client>,
    terminal: &mut Terminal,
) -> CliResult {
    let step = command.step().map_err(CliError::no_json)?;
    let client = connect(step.session()).await?;
    match step {
        Step::Do(verb) => output::answer(&client.carry_out(&verb).await?, terminal),
        Step::Watch(wanted) => watch(&client, &wanted, terminal).await,
    }
}

/// Prints records until Ctrl-C, or until the server has ended.
async fn watch(client: &Client, wanted: &Watching, terminal: &mut Terminal) -> CliResult {
    let mut interrupts = Interrupts::listen();
    let mut events = client.watch(wanted).await?;
    loop {
        let seen = tokio::select! {
            seen = events.try_next() => seen?,
            () = interrupts.pressed() => return Ok(()),
        };
        let Some(seen) = seen else {
            let why = "the server closed the control channel: check that it is still running";
            return Err(CliError::failed(why));
        };
        output::update(&seen, terminal)?;
        if matches!(seen, WireUpdate::End { .. }) {
            return Ok(());
        }
    }
}

impl From<ClientError> for CliError {
    fn from(error: ClientError) -> Self {
        match error {
            ClientError::Url { .. } => Self::usage(error),
            error => Self::Refused(error.into()),
        }
    }
}
