//! `oracle config`: creates a configuration file, shows the configuration with its sources, and
//! checks whether a start would succeed.

use std::{
    fs::{self, File},
    io::{self, Write},
    path::Path,
};

use clap::Subcommand;
use serde_json::{Map, Value, json};

use super::{
    CliError, CliResult,
    context::{CommandContext, find, usual_file},
    exit,
    terminal::Terminal,
};
use oracle_config::{Loaded, Problem};

/// A subcommand of `oracle config`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Subcommand)]
pub enum ConfigCommand {
    /// Write a short configuration file to start with
    Init,
    /// Print the settings that differ from their defaults, with their sources, as TOML
    Show {
        /// Print all settings, as --json always does
        #[arg(long)]
        all: bool,
    },
    /// Check settings, prompts, lexicon, models and project folder
    Check,
}

/// The file that `oracle config init` writes.
const STARTER: &str = oracle_defaults::STARTER;

/// Runs a subcommand and returns the exit code.
pub(super) fn run(command: ConfigCommand, context: CommandContext<'_>) -> CliResult<u8> {
    match command {
        ConfigCommand::Init => {
            let named = context.options.config.clone();
            let file = named.or_else(|| usual_file(context.environment));
            let file = file.ok_or_else(|| {
                CliError::usage("no home directory for the file; name one with --config FILE")
            })?;
            init(&file, context.terminal)?;
        }
        ConfigCommand::Show { all } => show(&context.load()?, all, context.terminal)?,
        ConfigCommand::Check => return check(context),
    }
    Ok(exit::DONE)
}

/// Prints the result of the check and returns the exit code.
fn check(context: CommandContext<'_>) -> CliResult<u8> {
    let (file, loaded) = find(context.options, context.environment, [&[], &[]]);
    let problems: Vec<String> = match loaded {
        Err(problems) => problems.iter().map(Problem::to_string).collect(),
        Ok(loaded) => context.builder(&loaded.config).problems(),
    };
    let terminal = context.terminal;
    if terminal.json {
        let report = json!({ "file": file, "problems": problems });
        terminal.out.json(&report)?;
    } else if problems.is_empty() {
        let file = file.map_or("no file".into(), |file| {
            format!("file `{}`", file.display())
        });
        writeln!(terminal.out, "the configuration is valid ({file})")?;
    } else {
        for line in problems.iter().flat_map(|problem| problem.lines()) {
            terminal.say(line);
        }
    }
    Ok(exit::done_unless(!problems.is_empty(), exit::USAGE))
}

/// Writes a short configuration file; one that exists stays as it is.
fn init(file: &Path, terminal: &mut Terminal) -> CliResult {
    let failed = |error: io::Error| {
        let reason = match error.kind() {
            io::ErrorKind::AlreadyExists => {
                "it exists; edit it, or name another file with --config".to_owned()
            }
            _ => format!("{error}; name another file with --config"),
        };
        CliError::failed(format_args!("cannot create `{}`: {reason}", file.display()))
    };
    if let Some(folder) = file.parent() {
        fs::create_dir_all(folder).map_err(failed)?;
    }
    let created = File::create_new(file).map_err(failed)?;
    (&created).write_all(STARTER.as_bytes()).map_err(failed)?;
    let created = format!("created `{}`", file.display());
    terminal.result(&json!({ "file": file }), &created)
}

/// Prints the settings with their sources: those that are set, or all; as JSON always all.
fn show(loaded: &Loaded, all: bool, terminal: &mut Terminal) -> CliResult {
    if terminal.json {
        return terminal.out.json(&sourced(loaded)?);
    }
    let text = loaded.show(all).map_err(|error| {
        CliError::failed(format_args!("cannot show the configuration: {error}"))
    })?;
    write!(terminal.out, "{text}")?;
    if !all {
        terminal.say("all other settings have their defaults; --all prints them");
    }
    Ok(())
}

/// Values as `{"value", "source"}` by section and key; providers and models as lists.
fn sourced(loaded: &Loaded) -> CliResult<Value> {
    let mut config = serde_json::to_value(&loaded.config).map_err(CliError::no_json)?;
    if loaded.config.model.chain.is_none() {
        config["model"]["chain"] = json!(loaded.choice.chain);
    }
    let sections = config.as_object().into_iter().flatten();
    let sections = sections.map(|(name, value)| (name.clone(), with_source(loaded, name, value)));
    Ok(sections.collect::<Map<_, _>>().into())
}

fn with_source(loaded: &Loaded, place: &str, value: &Value) -> Value {
    if let Value::Array(tables) = value {
        let table = |(at, table)| with_source(loaded, &format!("{place}.{at}"), table);
        return tables.iter().enumerate().map(table).collect();
    }
    let keys = value.as_object().into_iter().flatten();
    let key = |(key, value): (&String, &Value)| {
        let place = format!("{place}.{key}");
        let mut items = value.as_array().into_iter().flatten();
        let value = match items.any(Value::is_object) {
            true => with_source(loaded, &place, value),
            false => json!({ "value": value, "source": source(loaded, &place) }),
        };
        (key.clone(), value)
    };
    keys.map(key).collect::<Map<_, _>>().into()
}

fn source(loaded: &Loaded, place: &str) -> String {
    if place == "model.chain" && loaded.config.model.chain.is_none() {
        return loaded.choice.because.to_string();
    }
    loaded.origin(place).to_string()
}
