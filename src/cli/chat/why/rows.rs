//! Rows for people: a word, and what there is to say about it, within the width of a terminal.

use std::fmt::Display;

use serde::Serialize;
use unicode_width::UnicodeWidthStr;

use crate::{cli::text::grouped, model::Usage};

/// Columns of the words.
const WORDS: usize = 12;
/// Columns of a step to the right.
const STEP: usize = 2;
/// A narrower terminal gets the word on a line of its own.
const NARROW: usize = 50;
/// Longest text of a row, in characters: the log has the rest.
const LONGEST: usize = 240;

/// Rows, to be shown.
#[derive(Debug, Default)]
pub(in crate::cli::chat) struct Rows(Vec<Row>);

#[derive(Debug)]
struct Row {
    depth: usize,
    word: String,
    text: String,
}

impl Rows {
    /// One more. White space in the text is folded, and a long text is cut.
    pub(in crate::cli::chat) fn push(&mut self, depth: usize, word: &str, text: impl Display) {
        self.0.push(Row {
            depth,
            word: word.to_owned(),
            text: short(&text.to_string(), LONGEST),
        });
    }

    /// As lines of at most so many columns, as far as words let it.
    pub(in crate::cli::chat) fn lines(&self, width: usize) -> Vec<String> {
        let mut lines = Vec::new();
        for Row { depth, word, text } in &self.0 {
            let indent = " ".repeat(depth * STEP);
            let (head, hang) = if width < NARROW {
                lines.push(format!("{indent}{word}"));
                let hang = format!("{indent}{}", " ".repeat(STEP));
                (hang.clone(), hang)
            } else {
                let columns = WORDS - depth * STEP;
                let head = format!("{indent}{word:columns$}  ");
                let hang = " ".repeat(head.width());
                (head, hang)
            };
            wrap(&mut lines, head, &hang, text, width);
        }
        lines
    }
}

/// Puts words on lines.
fn wrap(lines: &mut Vec<String>, head: String, hang: &str, text: &str, width: usize) {
    let (mut line, mut begun) = (head, false);
    for word in text.split(' ') {
        if begun && line.width() + 1 + word.width() > width {
            lines.push(std::mem::replace(&mut line, hang.to_owned()));
            begun = false;
        }
        if begun {
            line.push(' ');
        }
        line.push_str(word);
        begun = true;
    }
    lines.push(line.trim_end().to_owned());
}

/// White space folded, and no more than so many characters.
pub(super) fn short(text: &str, most: usize) -> String {
    let words: Vec<&str> = text.split_whitespace().collect();
    let text = words.join(" ");
    match text.char_indices().nth(most) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text,
    }
}

/// A word of the log as people write it.
pub(in crate::cli::chat) fn told(word: &impl Serialize) -> String {
    match serde_json::to_value(word) {
        Ok(serde_json::Value::String(word)) => word.replace('_', " "),
        Ok(other) => other.to_string(),
        Err(_) => String::new(),
    }
}

/// 0..=1 as people say it.
pub(super) fn percent(share: f64) -> String {
    format!("{:.0} %", share * 100.0)
}

/// Tokens and money.
pub(in crate::cli::chat) fn used(usage: &Usage) -> String {
    let (sent, received) = (grouped(usage.input_tokens), grouped(usage.output_tokens));
    let cached = match usage.cached_tokens {
        0 => String::new(),
        cached => format!(" ({} of them cached)", grouped(cached)),
    };
    format!(
        "{sent} tokens sent{cached}, {received} received, {}",
        usage.cost
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_fit_the_terminal() {
        let mut rows = Rows::default();
        rows.push(
            0,
            "question 1",
            "where  is\nthe parser of the configuration file?",
        );
        rows.push(1, "tool", "code_search: ok");
        rows.push(0, "ended", "");
        for (width, lines) in [
            (
                60,
                vec![
                    "question 1    where is the parser of the configuration file?",
                    "  tool        code_search: ok",
                    "ended",
                ],
            ),
            (
                50,
                vec![
                    "question 1    where is the parser of the",
                    "              configuration file?",
                    "  tool        code_search: ok",
                    "ended",
                ],
            ),
            (
                20,
                vec![
                    "question 1",
                    "  where is the",
                    "  parser of the",
                    "  configuration",
                    "  file?",
                    "  tool",
                    "    code_search: ok",
                    "ended",
                    "",
                ],
            ),
        ] {
            assert_eq!(rows.lines(width), lines, "{width}");
        }
    }

    #[test]
    fn figures_are_readable() {
        assert_eq!(
            short(&"a".repeat(300), LONGEST).chars().count(),
            LONGEST + 1
        );
        assert_eq!([0.0, 0.936, 1.0].map(percent), ["0 %", "94 %", "100 %"]);
        let usage = Usage {
            input_tokens: 1_200,
            cached_tokens: 1_000,
            output_tokens: 30,
            ..Usage::default()
        };
        let said = "1,200 tokens sent (1,000 of them cached), 30 received, $0.000000";
        assert_eq!(used(&usage), said);
    }
}
