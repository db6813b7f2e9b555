//! `oracle dev classify`: classifies queries, one JSON line each, and measures accuracy on labelled
//! queries.

use std::{
    fs,
    path::{Path, PathBuf},
};

use serde::Deserialize;

use super::{
    CliError, CliResult,
    context::CommandContext,
    input::Source,
    terminal::{Terminal, harmless},
};
use crate::{
    app,
    query::{Classifier, Evaluation, LabelledQuery, QueryContext},
};

const SHOWN: usize = 40;

/// `oracle dev classify`.
#[derive(Debug, Clone, PartialEq, Eq, clap::Args)]
pub struct ClassifyArgs {
    /// Query to classify; if omitted, every line of standard input is a query
    pub query: Option<String>,
    /// Preceding conversation; with --jsonl, for lines without a `context` of their own
    #[arg(long, value_name = "TEXT")]
    pub context: Option<String>,
    /// Accept JSON lines on standard input, besides plain queries: {"query": "…", "context": "…"}
    #[arg(long)]
    pub jsonl: bool,
    /// Measure accuracy and calibration on the labeled queries in this file
    #[arg(long, value_name = "FILE", conflicts_with_all = ["query", "context", "jsonl"])]
    pub evaluate: Option<PathBuf>,
}

/// A line of `--jsonl`.
#[derive(Deserialize)]
struct QueryLine {
    query: String,
    context: Option<String>,
}

impl From<String> for QueryLine {
    fn from(query: String) -> Self {
        Self {
            query,
            context: None,
        }
    }
}

/// Classifies the query, or each line of standard input as it arrives.
pub(super) fn run(args: &ClassifyArgs, context: CommandContext<'_>) -> CliResult {
    let classifier = &app::classifier(&context.load()?.config)?;
    let terminal = context.terminal;
    if let Some(path) = &args.evaluate {
        return evaluate(path, classifier, terminal);
    }
    let before = args.context.as_deref();
    let (input, out) = (&mut terminal.input, &mut terminal.out);
    let mut answer = |query: &str, before: Option<&str>| {
        out.json(&classifier.classify(query, QueryContext::from(before)))
    };
    if let Some(query) = &args.query {
        return answer(query, before);
    }
    if input.is_terminal() {
        let how = "enter one query per line; end with Ctrl-D";
        terminal.err.say(how);
    }
    let mut source = Source::standard(input);
    while let Some(line) = next(args, &mut source)? {
        answer(&line.query, line.context.as_deref().or(before))?;
    }
    Ok(())
}

fn evaluate(path: &Path, classifier: &Classifier, terminal: &mut Terminal) -> CliResult {
    let origin = path.display().to_string();
    let text = fs::read_to_string(path)
        .map_err(|error| CliError::usage(format_args!("cannot read `{origin}`: {error}")))?;
    let rows = LabelledQuery::parse(&text, &origin).map_err(CliError::usage)?;
    if rows.is_empty() {
        return Err(CliError::usage(format_args!(
            "`{origin}` has no labelled queries: write lines of a type, a tab and a query"
        )));
    }
    let found = Evaluation::of(classifier, &rows);
    let mut text = found.to_string();
    if !found.mistakes.is_empty() {
        text += "\nmost confident mistakes:\n";
    }
    for mistake in found.mistakes.iter().take(SHOWN) {
        let (sure, row) = (mistake.confidence, &mistake.row);
        let (is, taken, query) = (row.query_type, mistake.predicted, &row.query);
        text += &format!("{sure:.2} {is} classified as {taken}: {query}\n");
    }
    Ok(terminal.write(&harmless(&text))?)
}

fn next(args: &ClassifyArgs, source: &mut Source<'_>) -> CliResult<Option<QueryLine>> {
    if args.jsonl {
        source.record_or_text()
    } else {
        Ok(source.any_line()?.map(QueryLine::from))
    }
}
