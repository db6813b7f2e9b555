//! Text for people at a terminal.

use std::sync::LazyLock;

use regex::Regex;
use serde_json::Value;
use unicode_width::{UnicodeWidthChar, UnicodeWidthStr};

use crate::{
    actor::{SessionState, SessionView, SubAgent},
    model::{Event, Timestamp, Usage},
};

pub(super) fn cut(text: &str, width: usize) -> String {
    if text.width() <= width {
        return text.to_owned();
    }
    let (mut cut, mut columns) = (String::new(), 1);
    for c in text.chars() {
        columns += c.width().unwrap_or(0);
        if columns > width {
            break;
        }
        cut.push(c);
    }
    if width > 0 {
        cut.push('…');
    }
    cut
}

/// The age of a time in words.
pub(super) fn ago(at: Timestamp, now: Timestamp) -> String {
    let minutes = now.since(at).as_secs() / 60;
    let (hours, days) = (minutes / 60, minutes / (24 * 60));
    match (minutes, hours, days) {
        (0, ..) => "just now".to_owned(),
        (_, 0, _) => format!("{minutes} min ago"),
        (.., 0) => format!("{hours} h ago"),
        (.., 1) => "yesterday".to_owned(),
        _ => format!("{days} days ago"),
    }
}

/// Breaks a text between words where it is wider than `width`.
pub(super) fn wrapped(text: &str, width: usize) -> Vec<String> {
    let mut lines: Vec<String> = Vec::new();
    for word in text.split(' ') {
        match lines.last_mut() {
            Some(line) if line.width() + 1 + word.width() <= width => line.extend([" ", word]),
            _ => lines.push(word.to_owned()),
        }
    }
    lines
}

/// Lays rows out in columns, right-aligned from column `right` on.
pub(super) fn columns<const N: usize>(rows: &[[String; N]], right: usize) -> Vec<String> {
    let width = |column: usize| rows.iter().map(|row| row[column].width()).max();
    let widths: [usize; N] = std::array::from_fn(|column| width(column).unwrap_or(0));
    let line = |row: &[String; N]| {
        let cells = row.iter().zip(widths).enumerate();
        let cells = cells.map(|(at, (cell, width))| {
            let space = " ".repeat(width - cell.width());
            match at < right {
                true => format!("{cell}{space}"),
                false => format!("{space}{cell}"),
            }
        });
        let line: Vec<String> = cells.collect();
        line.join("  ").trim_end().to_owned()
    };
    rows.iter().map(line).collect()
}

pub(super) fn grouped(figure: u64) -> String {
    let digits = figure.to_string();
    let groups = digits.as_bytes().rchunks(3).rev();
    let groups: Vec<_> = groups.map(String::from_utf8_lossy).collect();
    groups.join(",")
}

/// Complete control sequences (ECMA-48): colours, titles, links.
static SEQUENCE: LazyLock<Option<Regex>> = LazyLock::new(|| {
    let control = r"(?:\x1b\[|\u{9b})[0-?]*[ -/]*[@-~]";
    let text = r"(?:\x1b[\]P_^X]|[\u{9d}\u{90}])[^\x07\x1b\u{9c}\n]*(?:\x07|\x1b\\|\u{9c})";
    let short = r"\x1b[ -/]*[0-~]";
    Regex::new(&format!("{control}|{text}|{short}")).ok()
});

/// The columns of a text, without its control sequences.
pub(super) fn width(text: &str) -> usize {
    cleaned(text).width()
}

pub(super) fn cleaned(message: &str) -> String {
    let plain = match &*SEQUENCE {
        Some(sequence) => sequence.replace_all(message, ""),
        None => message.into(),
    };
    visible(&plain)
}

pub(super) fn visible(text: &str) -> String {
    let is_text = |c: &char| !c.is_control() || matches!(c, '\n' | '\t');
    text.chars().filter(is_text).collect()
}

/// Describes a session's state in lines of a label and a text.
pub(super) fn standing(view: &SessionView) -> Vec<String> {
    let is_more = view.paused && view.state != SessionState::Paused;
    let paused = if is_more { ", paused" } else { "" };
    let mut rows = vec![("state", format!("{}{paused}", view.state))];
    if let Some(reason) = &view.quarantine {
        rows.push(("quarantined", reason.clone()));
    }
    if let Some(grant) = &view.grant {
        let (tools, until) = (grant.tools.join(" or "), grant.until);
        let wanted = format!("{tools}, to be attached until {until}");
        rows.push(("waits for", wanted));
    }
    rows.push(("records", view.last.to_string()));
    if let (Some(query), Some(limits)) = (view.query, view.limits) {
        let (turns, most) = (view.turns, limits.max_turns);
        let running = format!("question {query}, {turns} of {most} turns");
        rows.push(("running", running));
        let tokens = limits.max_tokens.map(|tokens| tokens.to_string());
        rows.extend(tokens.map(|tokens| ("token budget", tokens)));
        let cost = limits.max_cost.map(|cost| cost.to_string());
        rows.extend(cost.map(|cost| ("cost budget", cost)));
    }
    rows.push(("waiting", view.waiting.to_string()));
    rows.push(("used", used(&view.usage)));
    let rows = rows.into_iter();
    rows.map(|(label, text)| format!("{label:<15}{text}"))
        .collect()
}

pub(super) fn used(usage: &Usage) -> String {
    let (sent, received) = (grouped(usage.input_tokens), grouped(usage.output_tokens));
    let cached = match (usage.cached_tokens, usage.missed_tokens) {
        (0, 0) => String::new(),
        (cached, 0) => format!(" ({} of them cached)", grouped(cached)),
        (cached, missed) => {
            let [cached, missed] = [cached, missed].map(grouped);
            format!(" ({cached} of them cached, {missed} missed)")
        }
    };
    let reasoning = match usage.reasoning_tokens {
        0 => String::new(),
        reasoning => format!(" ({} of them reasoning)", grouped(reasoning)),
    };
    let cost = cost(usage);
    format!("{sent} tokens sent{cached}, {received} received{reasoning}, {cost}")
}

/// A cost for people.
pub(super) fn cost(usage: &Usage) -> String {
    let cost = usage.known_cost().map(|cost| cost.to_string());
    cost.unwrap_or_else(|| "cost unknown".to_owned())
}

/// Longest value of an event, in characters.
const LONGEST: usize = 60;

pub(super) fn event_line(event: &Event) -> String {
    let turn = event.turn.map(|turn| (turn.0 + 1).to_string());
    let turn = turn.as_deref().unwrap_or("-");
    let mut line = format!("{:>4} {turn:>3} {}", event.seq, event.kind);
    line.extend(event.row.map(|row| format!(" row={row}")));
    if let Value::Object(fields) = &event.payload {
        // Times differ between runs and say little here.
        for (name, value) in fields.iter().filter(|(name, _)| *name != "timestamp") {
            if let Some(value) = short(value) {
                line.push_str(&format!(" {name}={value}"));
            }
        }
    }
    line
}

/// Formats plain values; nested ones appear only in JSON.
fn short(value: &Value) -> Option<String> {
    let text = match value {
        Value::String(text) => format!("{text:?}"),
        Value::Number(number) => number.to_string(),
        Value::Bool(switch) => switch.to_string(),
        Value::Null | Value::Array(_) | Value::Object(_) => return None,
    };
    if text.chars().count() <= LONGEST {
        return Some(text);
    }
    Some(text.chars().take(LONGEST).chain(['…']).collect())
}

/// The lines of a tree of sub-agents, each with its depth from 1.
pub(super) fn sub_agents(tree: &[SubAgent]) -> Vec<(usize, String)> {
    let mut lines = Vec::new();
    for agent in tree {
        let (outcome, turns) = (agent.outcome.unwrap_or("running"), agent.turns);
        let tokens = grouped(agent.tokens);
        let (session, scope) = (&agent.session, &agent.scope);
        let line = format!("{session}: {outcome}; {turns} turns, {tokens} tokens: {scope}");
        lines.push((1, line));
        let below = sub_agents(&agent.sub_agents).into_iter();
        lines.extend(below.map(|(depth, line)| (depth + 1, line)));
    }
    lines
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_is_truncated_by_display_columns() {
        for (text, width, kept) in [
            ("abc", 3, "abc"),
            ("abcd", 3, "ab…"),
            ("日本語", 6, "日本語"),
            ("日本語", 5, "日本…"),
            ("日本語", 4, "日…"),
            ("e\u{301}tude", 3, "e\u{301}t…"),
            ("abc", 0, ""),
        ] {
            assert_eq!(cut(text, width), kept, "{text} in {width}");
        }
    }

    #[test]
    fn text_is_wrapped_between_words() {
        for (text, width, lines) in [
            ("", 3, vec![""]),
            ("one two", 7, vec!["one two"]),
            ("one two three", 7, vec!["one two", "three"]),
            ("a longer word", 4, vec!["a", "longer", "word"]),
            ("日本 語", 4, vec!["日本", "語"]),
        ] {
            assert_eq!(wrapped(text, width), lines, "{text} in {width}");
        }
    }

    #[test]
    fn age_is_told_in_words() {
        const MINUTE: i64 = 60_000;
        let now = Timestamp::from_millis(1_767_225_600_000);
        for (minutes, told) in [
            (-5, "just now"),
            (0, "just now"),
            (1, "1 min ago"),
            (59, "59 min ago"),
            (60, "1 h ago"),
            (24 * 60 - 1, "23 h ago"),
            (24 * 60, "yesterday"),
            (2 * 24 * 60, "2 days ago"),
            (31 * 24 * 60 - 1, "30 days ago"),
        ] {
            let at = Timestamp::from_millis(now.as_millis() - minutes * MINUTE);
            assert_eq!(ago(at, now), told, "{minutes} min");
        }
    }

    #[test]
    fn thousands_are_grouped_by_commas() {
        let grouped = [0, 999, 1_000, 1_234_567].map(grouped);
        assert_eq!(grouped, ["0", "999", "1,000", "1,234,567"]);
    }
}
