//! `/why`: explains a query from its records alone.
//!
//! Each record becomes a row of a label and a text; rows of a turn are indented under it. The text
//! is a template over the record's payload, and an empty one yields no row.

use std::{fmt::Display, sync::Arc};

use minijinja::{
    Environment, context,
    value::{Serde, Value},
};
use serde::Deserialize as _;
use unicode_width::UnicodeWidthStr;

use crate::{
    cli::text::{grouped, used, wrapped},
    model::{
        NanoUsd, Record, Timestamp, ToolCall, Usage,
        record::{Fact, QueryFact, ToolFact, TurnFact},
        time::Span,
    },
};
use oracle_journal::Entry;

const WORDS: usize = 12;
const STEP: usize = 2;
const NARROW: usize = 50;
/// Maximum length of a row and of a call's arguments, in characters; the log has the rest.
const LONGEST: usize = 240;
const ARGUMENTS: usize = 100;
const SEPARATOR: char = '\u{1e}';

/// Templates, one per line: record type, label (indented if it belongs to a turn), text.
const TEMPLATES: &str = include_str!("why.txt");

pub(super) fn why(records: &[Entry]) -> Rows {
    let mut explainer = Explainer {
        environment: environment(),
        ..Explainer::default()
    };
    for entry in records {
        explainer.take(&entry.record);
    }
    explainer.close()
}

fn templates() -> impl Iterator<Item = (&'static str, &'static str, &'static str)> {
    TEMPLATES.lines().filter_map(|line| {
        let (kind, rest) = line.split_once(": ")?;
        let (word, text) = rest.split_once(": ")?;
        Some((kind, word, text))
    })
}

fn environment() -> Environment<'static> {
    let mut environment = Environment::new();
    environment.add_filter("grouped", grouped);
    environment.add_filter("percent", |share: f64| format!("{:.0} %", share * 100.0));
    environment.add_filter("usd", |nanos: u64| NanoUsd(nanos).to_string());
    environment.add_filter("span", |millis: u64| {
        Span(std::time::Duration::from_millis(millis)).to_string()
    });
    environment.add_filter("words", |word: Value| word.to_string().replace('_', " "));
    environment.add_filter("used", |usage: Value| {
        Usage::deserialize(usage).map_or_else(|error| error.to_string(), |usage| used(&usage))
    });
    environment
}

#[derive(Default)]
struct Explainer {
    environment: Environment<'static>,
    rows: Rows,
    accepted: Option<Timestamp>,
    asked: Option<Timestamp>,
    /// Tool calls without an end, and their start times.
    calls: Vec<(Arc<ToolCall>, Option<Timestamp>)>,
    ended: bool,
}

impl Explainer {
    fn take(&mut self, record: &Record) {
        let took = |since: Option<Timestamp>| since.map(|since| Span(record.at.since(since)));
        let (mut since, mut arguments, mut reason) = (None, String::new(), None);
        match &record.fact {
            Fact::Query(QueryFact::Accepted(_)) => self.accepted = Some(record.at),
            Fact::Query(QueryFact::Finished(finished)) => {
                (since, self.ended) = (self.accepted, true);
                reason = finished.outcome.reason();
            }
            Fact::Turn(TurnFact::Started(_) | TurnFact::Restarted(_)) => {
                self.asked = Some(record.at);
            }
            Fact::Turn(TurnFact::Replied(_)) => since = self.asked,
            Fact::Tool(ToolFact::Requested(requested)) => {
                self.calls.push((requested.call.clone(), None));
            }
            Fact::Tool(ToolFact::Started(started)) => {
                let mut calls = self.calls.iter_mut();
                if let Some((_, since)) = calls.find(|(call, _)| call.id == started.call) {
                    *since = Some(record.at);
                }
            }
            Fact::Tool(ToolFact::Finished(finished)) => {
                let ended = |(call, _): &mut (Arc<ToolCall>, _)| call.id == finished.result.call;
                if let Some((call, began)) = self.calls.extract_if(.., ended).next() {
                    (arguments, since) = (short(&call.arguments, ARGUMENTS), began);
                }
            }
            Fact::Tool(ToolFact::Refused(refused)) => {
                self.calls.retain(|(call, _)| call.id != refused.call.id);
            }
            _ => {}
        }
        let kind = record.fact.kind();
        let fact = serde_json::to_value(&record.fact).unwrap_or_default();
        let context = context! {
            p => Value::from(Serde(&fact["payload"])),
            query => record.query.map(|query| query.to_string()),
            turn => record.turn.map_or(0, |turn| turn.0 + 1),
            took => took(since).map(|took| took.to_string()),
            arguments => arguments,
            reason => reason,
            separator => SEPARATOR.to_string(),
        };
        if let Some(row) = record.row {
            let text = format_args!("by row {row} of the decision table");
            self.rows.push(1, "decided", text);
        }
        for (_, word, text) in templates().filter(|saying| saying.0 == kind) {
            let render = |template: &str| {
                let said = self.environment.render_str(template, &context);
                said.unwrap_or_else(|error| error.to_string())
            };
            let (depth, text) = (usize::from(word.starts_with(' ')), render(text));
            let word = render(word.trim_start());
            for text in text.split(SEPARATOR).filter(|text| !text.is_empty()) {
                self.rows.push(depth, word.trim_end(), text);
            }
        }
    }

    fn close(mut self) -> Rows {
        for (call, since) in &self.calls {
            let (name, arguments) = (&call.name, &call.arguments);
            let how = since.map_or("not started yet", |_| "still running");
            self.rows
                .push(1, "tool", format_args!("{name} {arguments}: {how}"));
        }
        if !self.ended && self.accepted.is_some() {
            self.rows.push(0, "ended", "not yet");
        }
        self.rows
    }
}

#[derive(Debug, Default)]
pub(super) struct Rows(Vec<(usize, String, String)>);

impl Rows {
    /// Adds a row. White space is folded, and a long text is cut.
    pub(super) fn push(&mut self, depth: usize, word: &str, text: impl Display) {
        let text = short(&text.to_string(), LONGEST);
        self.0.push((depth, word.to_owned(), text));
    }

    pub(super) fn lines(&self, width: usize) -> Vec<String> {
        let labels = self.0.iter();
        let labels = labels.map(|(depth, word, _)| depth * STEP + word.width());
        let words = labels.max().unwrap_or(0).max(WORDS);
        let mut lines = Vec::new();
        for (depth, word, text) in &self.0 {
            let indent = " ".repeat(depth * STEP);
            let (head, hang) = if width < NARROW {
                lines.push(format!("{indent}{word}"));
                let hang = format!("{indent}{}", " ".repeat(STEP));
                (hang.clone(), hang)
            } else {
                let head = format!("{indent}{word:columns$}  ", columns = words - depth * STEP);
                let hang = " ".repeat(head.width());
                (head, hang)
            };
            let parts = wrapped(text, width.saturating_sub(hang.width()).max(1));
            for (at, part) in parts.iter().enumerate() {
                let line = format!("{}{part}", if at == 0 { &head } else { &hang });
                lines.push(line.trim_end().to_owned());
            }
        }
        lines
    }
}

fn short(text: &str, most: usize) -> String {
    let words: Vec<&str> = text.split_whitespace().collect();
    let text = words.join(" ");
    match text.char_indices().nth(most) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text,
    }
}

#[cfg(test)]
mod tests;
