//! `oracle signal`: how a model's reply says it stands, one line of JSON a reply.
//!
//! When a reply was read is left out: the same reply gives the same line.

use std::path::PathBuf;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::{Stop, input::Source, terminal::Terminal};
use crate::{
    model::{Signal, SignalFields, SignalType, Timestamp},
    signal,
};

/// `oracle signal`.
#[derive(Debug, Clone, PartialEq, Eq, clap::Args)]
pub struct SignalArgs {
    /// The file with the reply; standard input if it is `-` or missing
    pub file: Option<PathBuf>,
    /// Lines are JSON, a reply each: {"response": "…"}
    #[arg(long)]
    pub jsonl: bool,
}

/// A line of `--jsonl`.
#[derive(Deserialize)]
struct Line {
    response: String,
}

impl From<String> for Line {
    fn from(response: String) -> Self {
        Self { response }
    }
}

#[derive(Serialize)]
struct Printed {
    signal: Option<PrintedSignal>,
    rejected: Option<String>,
    text: String,
}

#[derive(Serialize)]
struct PrintedSignal {
    #[serde(rename = "type")]
    kind: SignalType,
    confidence: f64,
    fields: Value,
    raw_xml: String,
}

/// Reads the reply, or every line of replies as it comes.
pub fn run(args: &SignalArgs, terminal: &mut Terminal) -> Result<(), Stop> {
    let Terminal { input, out, .. } = terminal;
    let mut source = Source::open(args.file.as_deref(), input)?;
    if !args.jsonl {
        return out.json(&read(&source.whole()?)?);
    }
    while let Some(Line { response }) = source.record()? {
        out.json(&read(&response)?)?;
    }
    Ok(())
}

fn read(reply: &str) -> Result<Printed, Stop> {
    let signal::Reading { finding, text } = signal::read(reply, Timestamp::default());
    let (signal, rejected) = match finding {
        signal::Finding::Nothing => (None, None),
        signal::Finding::Signal(signal) => (Some(printed(signal)?), None),
        signal::Finding::Rejection(rejection) => (None, Some(rejection.reason)),
    };
    Ok(Printed {
        signal,
        rejected,
        text,
    })
}

fn printed(signal: Signal) -> Result<PrintedSignal, Stop> {
    let fields = match &signal.fields {
        SignalFields::NeedTurn(fields) => serde_json::to_value(fields),
        SignalFields::ContextSufficient(fields) => serde_json::to_value(fields),
        SignalFields::Stuck(fields) => serde_json::to_value(fields),
        SignalFields::NeedCapability(fields) => serde_json::to_value(fields),
        SignalFields::PartialAnswer(fields) => serde_json::to_value(fields),
        SignalFields::DelegationRecommended(fields) => serde_json::to_value(fields),
    };
    Ok(PrintedSignal {
        kind: signal.kind(),
        confidence: signal.confidence,
        fields: fields.map_err(Stop::no_json)?,
        raw_xml: signal.raw_xml,
    })
}
