//! What the commands that run queries are given; what they do with it is in their own files.

use std::path::PathBuf;

use clap::builder::{PossibleValuesParser, TypedValueParser};

use crate::model::{BusyPolicy, ProfileName};

/// Questions of `ask --jsonl` that are under way at one time, unless somebody says otherwise.
pub(super) const PARALLEL: u16 = 8;
/// At most so many: each has a session in memory.
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
    #[arg(long, value_name = "POLICY", default_value = "queue", value_parser = busy())]
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

fn busy() -> impl TypedValueParser<Value = BusyPolicy> {
    let names = BusyPolicy::ALL.map(BusyPolicy::as_str);
    PossibleValuesParser::new(names).try_map(|name| name.parse::<BusyPolicy>())
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
