//! What the commands that run queries are given; what they do with it is in their own files.

use std::path::PathBuf;

/// `oracle ask`.
#[derive(Debug, Clone, PartialEq, Eq, clap::Args)]
pub struct AskArgs {
    /// The question; read from standard input if it is `-`, or missing and piped in
    pub question: Option<String>,
    /// Print the events of the query as they happen, as JSON lines
    #[arg(long)]
    pub events: bool,
}

/// `oracle chat`.
#[derive(Debug, Clone, PartialEq, Eq, clap::Args)]
pub struct ChatArgs {
    /// Print the events of the queries as they happen, as JSON lines
    #[arg(long)]
    pub events: bool,
}

/// `oracle replay`.
#[derive(Debug, Clone, PartialEq, Eq, clap::Args)]
pub struct ReplayArgs {
    /// The scenario, a JSON file; standard input if it is `-`
    #[arg(value_name = "FILE")]
    pub scenario: PathBuf,
}
