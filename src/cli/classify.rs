//! `oracle classify`: what kind of question a query is, one line of JSON a query (spec 4, 14).

use serde::Deserialize;

use super::{Stop, input::Source, terminal::Terminal};
use crate::query::{Classifier, Context};

/// `oracle classify`.
#[derive(Debug, Clone, PartialEq, Eq, clap::Args)]
pub struct ClassifyArgs {
    /// The query; without it, every line of standard input is one
    pub query: Option<String>,
    /// What was said before; with --jsonl, for lines that do not say it themselves
    #[arg(long, value_name = "TEXT")]
    pub context: Option<String>,
    /// Lines of standard input may be JSON: {"query": "…", "context": "…"}, or plain queries
    #[arg(long)]
    pub jsonl: bool,
}

/// A line of `--jsonl`.
#[derive(Deserialize)]
struct Line {
    query: String,
    #[serde(default)]
    context: Option<String>,
}

impl From<String> for Line {
    fn from(query: String) -> Self {
        Self {
            query,
            context: None,
        }
    }
}

/// Classifies the query, or every line of standard input as it comes.
///
/// # Errors
/// When a line cannot be read; those before it have been answered.
pub fn run(
    args: &ClassifyArgs,
    classifier: &Classifier,
    terminal: &mut Terminal,
) -> Result<(), Stop> {
    let before = args.context.as_deref();
    if let Some(query) = &args.query {
        return terminal
            .out
            .json(&classifier.classify(query, Context::from(before)));
    }
    let Terminal {
        input, out, err, ..
    } = terminal;
    if input.is_terminal() {
        err.say("one query a line, please; end with Ctrl-D");
    }
    let mut source = Source::standard(input);
    while let Some(line) = next(args, &mut source)? {
        let before = line.context.as_deref().or(before);
        out.json(&classifier.classify(&line.query, Context::from(before)))?;
    }
    Ok(())
}

fn next(args: &ClassifyArgs, source: &mut Source<'_>) -> Result<Option<Line>, Stop> {
    if args.jsonl {
        source.record_or_text()
    } else {
        Ok(source.line()?.map(Line::from))
    }
}
