//! The command line: what may be typed, what each command builds and does, and the text that becomes
//! of the result. A command is one file: its arguments, its behaviour and its output.
//!
//! It reads no environment, only the arguments and streams that it is given.
//!
//! **Invariants:** results go to standard output, everything else to standard error. Every end has
//! its exit code from [`exit`]. No input and no closed stream makes it panic.

use std::{
    ffi::OsString,
    fs,
    io::Write as _,
    path::{Path, PathBuf},
};

use clap::{
    Arg, ArgMatches, CommandFactory, FromArgMatches, Parser, Subcommand,
    error::{ContextKind, ContextValue},
};
use clap_complete::Shell;

use crate as cli;
use oracle_control as control;
use oracle_core::{kernel, model, query};
#[cfg(feature = "server")]
use oracle_http as http;
use oracle_llm as llm;
#[cfg(feature = "mock")]
use oracle_mock as mock;
#[cfg(feature = "server")]
use oracle_ports::access;
#[cfg(test)]
use oracle_runtime::testkit;
use oracle_runtime::{actor, app};
use oracle_tool as tool;

mod arguments;
mod ask;
#[cfg(feature = "bench")]
mod bench;
mod chat;
mod classify;
mod config;
mod context;
#[cfg(feature = "server")]
mod ctl;
mod doctor;
mod error;
pub mod exit;
mod failure;
mod input;
mod interrupts;
mod journal;
#[cfg(feature = "server")]
mod keys;
mod markdown;
#[cfg(feature = "mcp")]
mod mcp;
#[cfg(feature = "mock")]
mod mock_model;
mod models;
mod multiline;
mod ollama;
mod progress;
mod prompt;
mod replay;
#[cfg(feature = "server")]
mod rlimits;
mod runtime;
#[cfg(feature = "server")]
mod serve;
mod sessions;
mod signal;
mod storage;
mod system;
#[doc(hidden)]
pub mod telemetry;
pub mod terminal;
mod text;
#[cfg(feature = "tui")]
mod top;
mod usage;
mod user;

use context::CommandContext;
use oracle_config::near_misses;
use terminal::Terminal;

pub use arguments::Options;
pub use error::{CliError, CliResult};
pub use interrupts::{Interrupts, Signals};
pub use oracle_config::Environment;

/// A long help text: examples, then details.
macro_rules! help {
    ($name:literal) => {
        include_str!(concat!("help/", $name, ".txt")).trim_ascii_end()
    };
}

/// A parsed command line.
#[derive(Debug, Clone, PartialEq, Eq, Parser)]
#[command(name = "oracle", bin_name = "oracle", version, about = "Durable conversations with LLM agents about your project", after_help = help!("top_short"), after_long_help = help!("top"))]
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
    #[command(after_long_help = help!("ask"))]
    Ask(ask::AskArgs),
    /// Start or continue a conversation
    #[command(after_long_help = help!("chat"))]
    Chat(chat::ChatArgs),
    /// Serve the project's tools and conversations to another agent over MCP
    #[cfg(feature = "mcp")]
    #[command(after_long_help = help!("mcp"))]
    Mcp,
    /// Serve conversations over HTTP
    #[cfg(feature = "server")]
    #[command(after_long_help = help!("serve"))]
    Serve(serve::ServeArgs),
    /// Create, list and revoke the API keys of a server
    #[cfg(feature = "server")]
    #[command(subcommand, after_long_help = help!("keys"))]
    Keys(keys::KeysCommand),
    /// Control the sessions of a running server
    #[cfg(feature = "server")]
    #[command(after_long_help = help!("ctl"))]
    Ctl(Box<ctl::CtlArgs>),
    /// Watch and steer the sessions of a running server in a live table
    #[cfg(feature = "tui")]
    #[command(after_long_help = help!("top_table"))]
    Top(top::TopArgs),
    /// List, show, search, export and delete sessions
    #[command(subcommand, after_long_help = help!("sessions"))]
    Sessions(sessions::SessionsCommand),
    /// Show token usage and cost
    #[command(after_long_help = help!("usage"))]
    Usage {
        /// How to group the usage
        #[arg(long, value_enum, value_name = "WHAT", default_value_t = usage::By::Tenant)]
        by: usage::By,
    },
    /// Verify, copy or migrate the journal, or show its statistics
    #[command(subcommand, after_long_help = help!("journal"))]
    Journal(journal::JournalCommand),
    /// Measure a system or a server under load
    #[cfg(feature = "bench")]
    #[command(after_long_help = help!("bench"))]
    Bench(Box<bench::BenchArgs>),
    /// List the available providers and models
    #[command(after_long_help = help!("models"))]
    Models {
        /// What to do instead of listing
        #[command(subcommand)]
        command: Option<models::ModelsCommand>,
    },
    /// Check configuration, storage and models, and suggest fixes
    #[command(after_long_help = help!("doctor"))]
    Doctor,
    /// Create, show or check the configuration
    #[command(subcommand, after_long_help = help!("config"))]
    Config(config::ConfigCommand),
    /// Generate shell completions
    #[command(after_long_help = help!("completions"))]
    Completions {
        /// Shell to generate completions for
        shell: Shell,
    },
    /// Inspect the parts of Oracle: classifier, signals, prompts
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
    #[command(after_long_help = help!("classify"))]
    Classify(classify::ClassifyArgs),
    /// Extract the signal from a model's reply
    #[command(after_long_help = help!("signal"))]
    Signal(signal::SignalArgs),
    /// Print the prompt that a query would get
    #[command(after_long_help = help!("prompt"))]
    Prompt(prompt::Subject),
    /// Run a scripted conversation through a real session, offline
    #[command(after_long_help = help!("replay"))]
    Replay {
        /// Scenario file in JSON; `-` reads standard input
        #[arg(value_name = "FILE")]
        scenario: PathBuf,
    },
    /// Run a mock model server with fault injection, for tests
    #[cfg(feature = "mock")]
    #[command(after_long_help = help!("mock_model"))]
    MockModel(Box<mock_model::MockModelArgs>),
    /// Write the manual pages of all commands
    #[command(after_long_help = help!("man"))]
    Man {
        /// Folder for the pages, which is created if needed
        #[arg(value_name = "DIR")]
        folder: PathBuf,
    },
}

/// Commands that need a feature, and whether this program has it.
const OPTIONAL: [(&str, &str, bool); 7] = [
    ("mcp", "mcp", cfg!(feature = "mcp")),
    ("serve", "server", cfg!(feature = "server")),
    ("keys", "server", cfg!(feature = "server")),
    ("ctl", "server", cfg!(feature = "server")),
    ("top", "tui", cfg!(feature = "tui")),
    ("bench", "bench", cfg!(feature = "bench")),
    ("mock-model", "mock", cfg!(feature = "mock")),
];

impl Args {
    /// Reads a command line, the name of the program first. A question in place of a command is
    /// asked.
    pub fn read(line: impl IntoIterator<Item = OsString>) -> CliResult<Self> {
        let line: Vec<OsString> = line.into_iter().collect();
        let matches = match command().try_get_matches_from(&line) {
            Err(error) => as_question(&line, error),
            matches => matches,
        };
        let matches = matches.map_err(|error| not_understood(error, &line, &OPTIONAL))?;
        arguments::refuse_idle_options(&matches)?;
        Self::from_arg_matches(&matches).map_err(CliError::CommandLine)
    }
}

/// The command line: commands hide the options that do nothing for them, and the bare names of
/// `dev`'s commands are hidden.
fn command() -> clap::Command {
    let dev = DevCommand::augment_subcommands(clap::Command::new("dev"));
    let line = dev.get_subcommands().fold(Args::command(), |line, bare| {
        line.mut_subcommand(bare.get_name(), |bare| bare.hide(true))
    });
    let common: Vec<Arg> = line.get_arguments().cloned().collect();
    arguments::hide_idle_options(line, &common, "")
}

/// Reads a line without a command as `ask`, if it has a question in quotes.
fn as_question(line: &[OsString], error: clap::Error) -> Result<ArgMatches, clap::Error> {
    let mut asked = line.to_vec();
    asked.insert(1.min(asked.len()), "ask".into());
    let asked = command().try_get_matches_from(asked).ok();
    let words = |matches: &ArgMatches| {
        let (_, ask) = matches.subcommand()?;
        Some(ask.get_many::<String>("question")?.cloned().collect())
    };
    let words: Vec<String> = asked.as_ref().and_then(words).unwrap_or_default();
    let names = Args::command();
    let is_command = |word: &String| names.find_subcommand(word).is_some();
    let is_question = words.iter().any(|word| word.contains(' ')) && !words.iter().any(is_command);
    asked.filter(|_| is_question).ok_or(error)
}

fn not_understood(
    mut error: clap::Error,
    line: &[OsString],
    optional: &[(&str, &str, bool)],
) -> CliError {
    let unknown = error.get(ContextKind::InvalidSubcommand).cloned();
    let Some(ContextValue::String(unknown)) = unknown else {
        return CliError::CommandLine(error);
    };
    let mut missing = optional.iter().filter(|(.., is_here)| !is_here);
    if let Some((command, feature, _)) = missing.find(|(command, ..)| unknown == *command) {
        return CliError::usage(format_args!(
            "`oracle {command}` needs the feature `{feature}`: `cargo install --path . --features {feature}`"
        ));
    }
    let of = Args::command();
    if line.iter().any(|part| of.find_subcommand(part).is_some()) {
        // The unknown word is in place of a subcommand's subcommand.
        return CliError::CommandLine(error);
    }
    error.remove(ContextKind::SuggestedSubcommand);
    let mut names = of.get_subcommands().map(clap::Command::get_name);
    // Transposed letters are one mistake, unlike in clap's own measure.
    if let Some(name) =
        names.find(|name| strsim::osa_distance(name, &unknown) <= 1.max(name.len() / 4))
    {
        let name = ContextValue::Strings(vec![name.to_owned()]);
        error.insert(ContextKind::SuggestedSubcommand, name);
    }
    let tip = format!("to ask a question: `oracle ask \"{unknown} …\"`");
    let tip = ContextValue::StyledStrs(vec![tip.into()]);
    error.insert(ContextKind::Suggested, tip);
    CliError::CommandLine(error)
}

/// Runs a command and returns its exit code.
///
/// # Errors
/// [`CliError`], with the message and exit code of a failed command.
pub fn run(args: &Args, environment: &Environment, terminal: &mut Terminal) -> CliResult<u8> {
    terminal.json = args.options.json;
    for (name, near) in near_misses(environment.pairs()) {
        let why = format!("`{name}` is not a setting and is ignored: did you mean `{near}`?");
        match args.command {
            #[cfg(feature = "server")]
            Command::Serve(_) => tracing::warn!("{why}"),
            Command::Completions { .. } => {}
            _ => terminal.say(format_args!("warning: {why}")),
        }
    }
    let context = CommandContext {
        options: &args.options,
        environment,
        terminal,
    };
    let done = match &args.command {
        Command::Ask(args) => return ask::run(args, context),
        Command::Chat(args) => return chat::run(args, context),
        #[cfg(feature = "mcp")]
        Command::Mcp => mcp::run(context),
        #[cfg(feature = "server")]
        Command::Serve(args) => serve::run(args, context),
        #[cfg(feature = "server")]
        Command::Keys(command) => keys::run(command, context),
        #[cfg(feature = "server")]
        Command::Ctl(args) => ctl::run(args, context),
        #[cfg(feature = "tui")]
        Command::Top(args) => top::run(args, context),
        Command::Sessions(command) => sessions::run(command, context),
        Command::Usage { by } => usage::run(*by, context),
        Command::Journal(command) => return journal::run(command, context),
        #[cfg(feature = "bench")]
        Command::Bench(args) => bench::run(args, context),
        Command::Models { command } => models::run(command.as_ref(), context),
        Command::Doctor => return doctor::run(context),
        Command::Config(command) => return config::run(*command, context),
        Command::Completions { shell } => completions(*shell, context.terminal),
        Command::Dev(command) | Command::Bare(command) => match command {
            DevCommand::Classify(args) => classify::run(args, context),
            DevCommand::Signal(args) => signal::run(args, context.terminal),
            DevCommand::Prompt(subject) => prompt::run(subject, context),
            DevCommand::Replay { scenario } => return replay::run(scenario, context),
            #[cfg(feature = "mock")]
            DevCommand::MockModel(args) => mock_model::run(args, context.terminal),
            DevCommand::Man { folder } => manual(folder),
        },
    };
    done.map(|()| exit::DONE)
}

/// Writes the manual pages.
fn manual(folder: &Path) -> CliResult {
    let written =
        fs::create_dir_all(folder).and_then(|()| clap_mangen::generate_to(command(), folder));
    written.map_err(|error| {
        let folder = folder.display();
        CliError::failed(format_args!(
            "cannot write to `{folder}`: {error}; use another folder"
        ))
    })
}

/// Prints what a shell needs to complete command lines.
fn completions(shell: Shell, terminal: &mut Terminal) -> CliResult {
    // Into memory first: the generator panics where it cannot write.
    let mut script = Vec::new();
    clap_complete::generate(shell, &mut command(), "oracle", &mut script);
    Ok(terminal.out.write_all(&script)?)
}

#[cfg(test)]
mod tests;
