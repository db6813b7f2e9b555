//! The options that every command has, and the arguments of the commands that run queries.
//!
//! A value that sets a key of the configuration is taken as text: the configuration says what is wrong with
//! it, together with everything else that is wrong.

use std::path::PathBuf;

use clap::{
    ArgAction,
    builder::{PossibleValuesParser, TypedValueParser},
};

use crate::{
    config::Setting,
    model::{BusyPolicy, ProfileName, SessionName},
};

/// Questions of `ask --jsonl` that are under way at one time, unless somebody says otherwise.
pub(super) const PARALLEL: u16 = 8;
const MOST_PARALLEL: i64 = 1_024;

/// `oracle ask`.
#[derive(Debug, Clone, PartialEq, Eq, clap::Args)]
pub struct AskArgs {
    /// The question; read from standard input if it is `-`, or missing and piped in
    #[arg(conflicts_with = "jsonl")]
    pub question: Option<String>,
    /// Print the events of the query as they happen, as JSON lines
    #[arg(long)]
    pub events: bool,
    /// Go on with the session that was used last
    #[arg(long, conflicts_with_all = ["session", "jsonl"])]
    pub last: bool,
    /// Makes a question that is asked again one question, within its session
    #[arg(long, value_name = "KEY", conflicts_with = "jsonl")]
    pub idempotency_key: Option<String>,
    /// What to do if the session is busy with another question
    #[arg(long, value_name = "POLICY", default_value = "queue", value_parser = one_of(BusyPolicy::ALL, BusyPolicy::as_str))]
    pub busy: BusyPolicy,
    /// Profile of a session that is new [default: oracle]
    #[arg(long, value_name = "NAME")]
    pub profile: Option<ProfileName>,
    /// Every line of standard input is a question: {"session": "…", "question": "…"}
    #[arg(long)]
    pub jsonl: bool,
    /// With --jsonl: sessions that are asked at the same time
    #[arg(long, value_name = "N", default_value_t = PARALLEL, requires = "jsonl")]
    #[arg(conflicts_with = "question", value_parser = clap::value_parser!(u16).range(1..=MOST_PARALLEL))]
    pub parallel: u16,
}

/// Reads one of these values by its name.
pub(super) fn one_of<T: Copy + Send + Sync + 'static, const N: usize>(
    all: [T; N],
    name: fn(T) -> &'static str,
) -> impl TypedValueParser<Value = T> {
    let found = move |word: String| {
        let one = all.into_iter().find(|one| name(*one) == word);
        one.ok_or("there is no such value")
    };
    PossibleValuesParser::new(all.map(name)).try_map(found)
}

/// `oracle chat`.
#[derive(Debug, Clone, PartialEq, Eq, clap::Args)]
pub struct ChatArgs {
    /// Print the events of the queries as they happen, as JSON lines
    #[arg(long)]
    pub events: bool,
    /// Go on with the session that was used last
    #[arg(long, conflicts_with = "session")]
    pub last: bool,
    /// Profile of a session that is new [default: oracle]
    #[arg(long, value_name = "NAME")]
    pub profile: Option<ProfileName>,
}

/// `oracle replay`.
#[derive(Debug, Clone, PartialEq, Eq, clap::Args)]
pub struct ReplayArgs {
    /// The scenario, a JSON file; standard input if it is `-`
    #[arg(value_name = "FILE")]
    pub scenario: PathBuf,
}

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
