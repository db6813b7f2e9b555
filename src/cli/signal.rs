//! `oracle dev signal`: reads the signals of replies, one JSON line each.
//!
//! The time of reading is omitted, so that equal replies yield equal lines.

use std::path::PathBuf;

use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::{CliResult, input::Source, terminal::Terminal};
use crate::model::{Signal, Timestamp};
use oracle_core::signal;

/// `oracle dev signal`: reads the signals in replies of models.
#[derive(Debug, Clone, PartialEq, Eq, clap::Args)]
pub struct SignalArgs {
    /// File that contains the reply; standard input if it is `-` or omitted
    pub file: Option<PathBuf>,
    /// Read one reply per line, as JSON: {"response": "…"}
    #[arg(long)]
    pub jsonl: bool,
}

/// A line of `--jsonl`.
#[derive(Deserialize)]
struct ReplyLine {
    response: String,
}

impl From<String> for ReplyLine {
    fn from(response: String) -> Self {
        Self { response }
    }
}

#[derive(Serialize)]
struct SignalReport {
    signal: Option<Value>,
    rejected: Option<String>,
    text: String,
}

/// Reads the reply, or each line of replies as it arrives.
pub(super) fn run(args: &SignalArgs, terminal: &mut Terminal) -> CliResult {
    let Terminal { input, out, .. } = terminal;
    let mut source = Source::open(args.file.as_deref(), input)?;
    if !args.jsonl {
        return out.json(&read(&source.whole()?));
    }
    while let Some(ReplyLine { response }) = source.record()? {
        out.json(&read(&response))?;
    }
    Ok(())
}

fn read(reply: &str) -> SignalReport {
    let signal::Reading { finding, text } = signal::read(reply, Timestamp::default());
    let (signal, rejected) = match finding {
        signal::Finding::Nothing => (None, None),
        signal::Finding::Signal(signal) => (Some(without_time(&signal)), None),
        signal::Finding::Rejection(rejection) => (None, Some(rejection.reason)),
    };
    SignalReport {
        signal,
        rejected,
        text,
    }
}

/// A signal without its time of reading.
pub(super) fn without_time(signal: &Signal) -> Value {
    let mut shown = json!(signal);
    if let Some(fields) = shown.as_object_mut() {
        fields.remove("timestamp");
    }
    shown
}
