//! The options that several commands take, and which command takes which.
//!
//! Values that set a configuration key stay text here, so that the configuration reports all
//! invalid ones together.

use std::path::PathBuf;

use clap::{Arg, ArgAction, ArgMatches, Command, parser::ValueSource};

use super::{CliError, CliResult};
use crate::model::SessionName;
use oracle_config::Setting;

/// The options that several commands take, before the command's name or after it.
#[derive(Debug, Clone, PartialEq, Eq, clap::Args)]
#[command(next_help_heading = "Common options")]
pub struct Options {
    /// Project folder to ask about
    #[arg(long, value_name = "DIR", global = true, default_value = ".")]
    pub project: PathBuf,
    /// Folder where sessions are stored [default: $XDG_DATA_HOME/oracle]
    #[arg(long, value_name = "DIR", global = true)]
    pub data_dir: Option<String>,
    /// Configuration file [default: $XDG_CONFIG_HOME/oracle/oracle.toml, if it exists]
    #[arg(long, value_name = "FILE", global = true)]
    pub config: Option<PathBuf>,
    /// Model to use, or several separated by commas for failover; `offline` needs no key,
    /// `scripted/FILE` plays a script
    #[arg(long, value_name = "PROVIDER/MODEL", global = true)]
    pub model: Option<String>,
    /// Session to continue, by name or short id, or a new one
    #[arg(long, value_name = "ID", global = true)]
    pub session: Option<SessionName>,
    /// Maximum number of turns per query
    #[arg(long, value_name = "N", global = true, allow_negative_numbers = true)]
    pub max_turns: Option<String>,
    /// Print JSON
    #[arg(long, global = true)]
    pub json: bool,
    /// Log more to standard error; -vv and -vvv log even more. RUST_LOG takes precedence
    #[arg(short, long, action = ArgAction::Count, global = true)]
    pub verbose: u8,
}

impl Options {
    /// The configuration keys that the command line sets.
    pub fn settings(&self) -> Vec<Setting> {
        let given = [
            ("--max-turns", "oracle.max_turns", &self.max_turns),
            ("--model", "model.chain", &self.model),
            ("--data-dir", "data.dir", &self.data_dir),
        ];
        let setting = |(option, key, value): (&str, &str, &Option<String>)| {
            Some(Setting::new(option, key, value.as_deref()?))
        };
        given.into_iter().filter_map(setting).collect()
    }
}

/// The common options that each command takes; those of `dev` by their bare names.
const TAKEN: &str = "\
ask, chat: project data_dir config model session max_turns json verbose
serve, mcp: project data_dir config model max_turns verbose
bench: project data_dir config model max_turns json verbose
doctor: project data_dir config model json verbose
models: config model json verbose
sessions release: project data_dir config model json verbose
keys, ctl, sessions, usage, journal: data_dir config json verbose
top: data_dir config verbose
config show: data_dir config model max_turns json verbose
config check: project data_dir config model max_turns json verbose
config, classify: config json verbose
prompt: project config max_turns json verbose
replay: config session max_turns json verbose";

pub(super) fn taken_by(command: &str) -> impl Iterator<Item = &'static str> {
    let command = command.strip_prefix("dev ").unwrap_or(command);
    let is_of = |one: &str| command == one || command.starts_with(&format!("{one} "));
    let mut rows = TAKEN.lines().filter_map(|row| row.split_once(": "));
    let row = rows.find(|(of, _)| of.split(", ").any(is_of));
    row.map_or("", |(_, options)| options).split(' ')
}

/// Hides, in the help of each command, the common options that do not apply to it, and puts the
/// commands into the order of the help.
pub(super) fn hide_idle_options(command: Command, common: &[Arg], path: &str) -> Command {
    let mut below: Vec<&Command> = command.get_subcommands().collect();
    below.sort_by_key(|below| (below.get_display_order(), below.get_name()));
    let names = below.into_iter().map(Command::get_name);
    let names: Vec<String> = names.map(str::to_owned).collect();
    names.into_iter().fold(command, |command, name| {
        let path = format!("{path} {name}").trim_start().to_owned();
        let taken: Vec<&str> = taken_by(&path).collect();
        command.mut_subcommand(name, |below| {
            let is_idle = |option: &Arg| !taken.contains(&option.get_id().as_str());
            let own = common
                .iter()
                .map(|option| option.clone().hide(is_idle(option)));
            hide_idle_options(below.args(own), common, &path)
        })
    })
}

/// Refuses options that do not apply to the command.
pub(super) fn refuse_idle_options(matches: &ArgMatches) -> CliResult {
    let (mut matches, mut path) = (matches, String::new());
    while let Some((name, below)) = matches.subcommand() {
        path = format!("{path} {name}").trim_start().to_owned();
        matches = below;
    }
    let taken: Vec<&str> = taken_by(&path).collect();
    let is_idle = |option: &&str| {
        matches.value_source(option) == Some(ValueSource::CommandLine) && !taken.contains(option)
    };
    let idle = taken_by("ask").filter(is_idle).map(|option| {
        let option = option.replace('_', "-");
        format!("`--{option}` does nothing for `oracle {path}`: leave it out")
    });
    CliError::if_any(idle.collect())
}
