//! The command line: what may be typed, and how each command turns it into a call and the
//! result into text.
//!
//! It builds nothing: a command is handed what it needs (classifier, composer, system) by the
//! composition root. It reads no environment, only the arguments and streams that it is given.
//!
//! **Invariants:** results go to standard output, everything else to standard error. Every end has
//! its exit code from [`exit`]. No input and no closed stream makes it panic.

use std::{ffi::OsString, io::Write as _, path::PathBuf};

use clap::{
    CommandFactory, FromArgMatches, Parser, Subcommand,
    error::{ContextKind, ContextValue},
};
use clap_complete::Shell;

mod arguments;
pub mod ask;
pub mod batch;
pub mod chat;
pub mod classify;
pub mod config;
#[cfg(feature = "server")]
pub mod ctl;
pub mod doctor;
mod error;
pub mod exit;
mod help;
pub mod input;
mod interrupts;
pub mod journal;
#[cfg(feature = "server")]
pub mod keys;
mod markdown;
#[cfg(feature = "mock")]
pub mod mock_model;
pub mod models;
mod multiline;
mod progress;
pub mod prompt;
mod question;
pub mod replay;
#[cfg(feature = "server")]
pub mod serve;
pub mod sessions;
pub mod signal;
pub mod terminal;
mod text;
pub mod usage;
mod user;

pub use crate::config::Environment;
pub use arguments::{AskArgs, ChatArgs, Options};
pub use error::CliError;
pub use interrupts::{Interrupts, Signals};

/// A parsed command line.
#[derive(Debug, Clone, PartialEq, Eq, Parser)]
#[command(name = "oracle", bin_name = "oracle", version, about = help::ABOUT, after_help = help::TOP)]
pub struct Args {
    /// The options that all commands have in common.
    #[command(flatten)]
    pub options: Options,
    /// The command to run.
    #[command(subcommand)]
    pub command: Command,
}

/// A command and its arguments.
#[derive(Debug, Clone, PartialEq, Eq, Subcommand)]
pub enum Command {
    /// Ask one question and print the answer
    #[command(after_help = help::ASK)]
    Ask(AskArgs),
    /// Start or continue a conversation
    #[command(after_help = help::CHAT)]
    Chat(ChatArgs),
    /// Serve conversations over HTTP
    #[cfg(feature = "server")]
    #[command(after_help = help::SERVE)]
    Serve(serve::ServeArgs),
    /// Create, list and revoke the API keys of a server
    #[cfg(feature = "server")]
    #[command(subcommand, after_help = help::KEYS)]
    Keys(keys::KeysCommand),
    /// Control the sessions of a running server
    #[cfg(feature = "server")]
    #[command(after_help = help::CTL)]
    Ctl(Box<ctl::CtlArgs>),
    /// List, show, search, export and delete sessions
    #[command(subcommand, after_help = help::SESSIONS)]
    Sessions(sessions::SessionsCommand),
    /// Show token usage and cost
    #[command(after_help = help::USAGE)]
    Usage {
        /// How to group the usage
        #[arg(long, value_enum, value_name = "WHAT", default_value_t = usage::By::Tenant)]
        by: usage::By,
    },
    /// List the available providers and models
    #[command(after_help = help::MODELS)]
    Models,
    /// Check configuration, storage and models, and suggest fixes
    #[command(after_help = help::DOCTOR)]
    Doctor,
    /// Create, show or check the configuration
    #[command(subcommand, after_help = help::CONFIG)]
    Config(config::ConfigCommand),
    /// Generate shell completions
    #[command(after_help = help::COMPLETIONS)]
    Completions {
        /// Shell to generate completions for
        shell: Shell,
    },
    /// Inspect the parts of Oracle: classifier, signals, prompts, journal
    #[command(subcommand)]
    Dev(DevCommand),
    /// The commands of `dev` under their bare names, which the help does not list.
    #[command(flatten)]
    Bare(DevCommand),
}

/// A subcommand of `oracle dev`.
#[derive(Debug, Clone, PartialEq, Eq, Subcommand)]
pub enum DevCommand {
    /// Classify a query by type
    #[command(after_help = help::CLASSIFY)]
    Classify(classify::ClassifyArgs),
    /// Extract the signal from a model's reply
    #[command(after_help = help::SIGNAL)]
    Signal(signal::SignalArgs),
    /// Print the prompt that a query would get
    #[command(after_help = help::PROMPT)]
    Prompt(prompt::Subject),
    /// Run a scripted conversation through a real session, offline
    #[command(after_help = help::REPLAY)]
    Replay {
        /// Scenario file in JSON; `-` reads standard input
        #[arg(value_name = "FILE")]
        scenario: PathBuf,
    },
    /// Run a mock model server with fault injection, for tests
    #[cfg(feature = "mock")]
    #[command(after_help = help::MOCK_MODEL)]
    MockModel(Box<mock_model::MockModelArgs>),
    /// Verify the journal or show its statistics
    #[command(subcommand, after_help = help::JOURNAL)]
    Journal(journal::JournalCommand),
}

/// Commands that this program was built without, each with the feature that has it.
const MISSING: &[(&str, &str)] = &[
    #[cfg(not(feature = "server"))]
    ("serve", "server"),
    #[cfg(not(feature = "server"))]
    ("keys", "server"),
    #[cfg(not(feature = "server"))]
    ("ctl", "server"),
    #[cfg(not(feature = "mock"))]
    ("mock-model", "mock"),
];

impl Args {
    /// Reads a command line, the name of the program first.
    pub fn read(line: impl IntoIterator<Item = OsString>) -> Result<Self, CliError> {
        let matches = command().try_get_matches_from(line);
        matches
            .and_then(|matches| Self::from_arg_matches(&matches))
            .map_err(|error| not_understood(error, MISSING))
    }
}

/// The command line, with the bare names of `dev`'s commands hidden.
fn command() -> clap::Command {
    let dev = DevCommand::augment_subcommands(clap::Command::new("dev"));
    dev.get_subcommands().fold(Args::command(), |line, bare| {
        line.mut_subcommand(bare.get_name(), |bare| bare.hide(true))
    })
}

fn not_understood(error: clap::Error, missing: &[(&str, &str)]) -> CliError {
    let unknown = error.get(ContextKind::InvalidSubcommand);
    let is_it = |(command, _): &&(&str, &str)| matches!(unknown, Some(ContextValue::String(name)) if name == command);
    match missing.iter().find(is_it) {
        Some((command, feature)) => CliError::usage(format_args!(
            "`oracle {command}` needs the feature `{feature}`: `cargo install --path . --features {feature}`"
        )),
        None => CliError::CommandLine(error),
    }
}

/// Prints what a shell needs to complete command lines.
pub(crate) fn completions(shell: Shell, terminal: &mut terminal::Terminal) -> Result<(), CliError> {
    // Into memory first: the generator panics where it cannot write.
    let mut script = Vec::new();
    clap_complete::generate(shell, &mut command(), "oracle", &mut script);
    Ok(terminal.out.write_all(&script)?)
}

#[cfg(test)]
mod tests;
