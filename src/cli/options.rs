//! The options that every command has, and which of them are configuration.
//!
//! A value that sets a key of the configuration is taken as text: the configuration says what is
//! wrong with it, together with everything else that is wrong.

use std::path::PathBuf;

use clap::ArgAction;

use crate::{config::Setting, model::SessionName};

/// What holds for every command.
#[derive(Debug, Clone, PartialEq, Eq, clap::Args)]
#[command(next_help_heading = "Common options")]
pub struct Options {
    /// Folder to answer about
    #[arg(long, value_name = "DIR", global = true, default_value = ".")]
    pub project: PathBuf,
    /// Folder for what is kept [default: $XDG_DATA_HOME/oracle]
    #[arg(long, value_name = "DIR", global = true)]
    pub data_dir: Option<String>,
    /// Configuration file [default: $XDG_CONFIG_HOME/oracle/oracle.toml, if it exists]
    #[arg(long, value_name = "FILE", global = true)]
    pub config: Option<PathBuf>,
    /// Model to ask, or several with commas between them; `offline` needs no key, `scripted/FILE`
    /// plays a script
    #[arg(long, value_name = "PROVIDER/MODEL", global = true)]
    pub model: Option<String>,
    /// Session to go on with, or the name of a new one
    #[arg(long, value_name = "ID", global = true)]
    pub session: Option<SessionName>,
    /// Most turns of a query
    #[arg(long, value_name = "N", global = true, allow_negative_numbers = true)]
    pub max_turns: Option<String>,
    /// Print JSON
    #[arg(long, global = true)]
    pub json: bool,
    /// Log more to standard error; -vv and -vvv still more. RUST_LOG wins over it
    #[arg(short, long, action = ArgAction::Count, global = true)]
    pub verbose: u8,
}

impl Options {
    /// What the command line sets of the configuration.
    #[must_use]
    pub fn settings(&self) -> Vec<Setting> {
        let setting = |(option, key, value): (&str, &str, &Option<String>)| {
            Some(Setting {
                option: option.to_owned(),
                key: key.to_owned(),
                value: value.clone()?,
            })
        };
        [
            ("--max-turns", "oracle.max_turns", &self.max_turns),
            ("--model", "model.chain", &self.model),
            ("--data-dir", "data.dir", &self.data_dir),
        ]
        .into_iter()
        .filter_map(setting)
        .collect()
    }
}
