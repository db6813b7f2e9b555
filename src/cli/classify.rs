//! `oracle classify`: what kind of question a query is, one line of JSON a query, why that
//! is, and how often it is right on labelled queries.

use std::{
    fmt::Display,
    fs,
    io::Write,
    path::{Path, PathBuf},
};

use serde::Deserialize;

use super::{
    Stop,
    input::Source,
    terminal::{Stream, Terminal, harmless},
};
use crate::query::{Classifier, Context, Evaluation, Labelled};

const SHOWN: usize = 40;

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
    /// Say what counted for the answer and against it
    #[arg(long)]
    pub explain: bool,
    /// Say how often the answer is right, and how sure, on the labelled queries of this file
    #[arg(long, value_name = "FILE", conflicts_with_all = ["query", "context", "jsonl", "explain"])]
    pub evaluate: Option<PathBuf>,
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
pub fn run(
    args: &ClassifyArgs,
    classifier: &Classifier,
    terminal: &mut Terminal,
) -> Result<(), Stop> {
    if let Some(path) = &args.evaluate {
        return evaluate(path, classifier, &mut terminal.out);
    }
    let before = args.context.as_deref();
    let Terminal {
        input, out, err, ..
    } = terminal;
    if let Some(query) = &args.query {
        return answer(args, classifier, (query, before), out);
    }
    if input.is_terminal() {
        err.say("one query a line, please; end with Ctrl-D");
    }
    let mut source = Source::standard(input);
    while let Some(line) = next(args, &mut source)? {
        let before = line.context.as_deref().or(before);
        answer(args, classifier, (&line.query, before), out)?;
        if args.explain {
            show(&"\n", out)?;
        }
    }
    Ok(())
}

fn answer(
    args: &ClassifyArgs,
    classifier: &Classifier,
    (query, before): (&str, Option<&str>),
    out: &mut Stream,
) -> Result<(), Stop> {
    let context = Context::from(before);
    if args.explain {
        return show(&classifier.explain(query, context), out);
    }
    out.json(&classifier.classify(query, context))
}

fn evaluate(path: &Path, classifier: &Classifier, out: &mut Stream) -> Result<(), Stop> {
    let origin = path.display().to_string();
    let text = fs::read_to_string(path)
        .map_err(|error| Stop::usage(format_args!("`{origin}` cannot be read: {error}")))?;
    let rows = Labelled::parse(&text, &origin).map_err(Stop::usage)?;
    if rows.is_empty() {
        let why =
            format_args!("`{origin}` has no labelled query: a line is a type, a tab and a query");
        return Err(Stop::usage(why));
    }
    let found = Evaluation::of(classifier, &rows);
    show(&found, out)?;
    if !found.mistakes.is_empty() {
        show(&"\nthe surest mistakes:\n", out)?;
    }
    for mistake in found.mistakes.iter().take(SHOWN) {
        let (sure, row) = (mistake.confidence, &mistake.row);
        let (is, taken, query) = (row.query_type, mistake.taken_for, &row.query);
        show(
            &format_args!("{sure:.2} {is} taken for {taken}: {query}\n"),
            out,
        )?;
    }
    Ok(())
}

fn show(text: &impl Display, out: &mut Stream) -> Result<(), Stop> {
    out.write_all(harmless(&text.to_string()).as_bytes())?;
    Ok(out.flush()?)
}

fn next(args: &ClassifyArgs, source: &mut Source<'_>) -> Result<Option<Line>, Stop> {
    if args.jsonl {
        source.record_or_text()
    } else {
        Ok(source.any_line()?.map(Line::from))
    }
}
