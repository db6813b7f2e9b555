//! Texts for people at a terminal.

use std::sync::LazyLock;

use regex::Regex;
use unicode_width::{UnicodeWidthChar, UnicodeWidthStr};

/// The first columns of a text; what is cut off is marked.
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

/// A figure that people can read.
pub(super) fn grouped(figure: u64) -> String {
    let digits = figure.to_string();
    let groups = digits.as_bytes().rchunks(3).rev();
    let groups: Vec<_> = groups.map(String::from_utf8_lossy).collect();
    groups.join(",")
}

/// What terminals are told by, whole (ECMA-48): colours of a log that was pasted, titles, links.
static SEQUENCE: LazyLock<Option<Regex>> = LazyLock::new(|| {
    let control = r"(?:\x1b\[|\u{9b})[0-?]*[ -/]*[@-~]";
    let text = r"(?:\x1b[\]P_^X]|[\u{9d}\u{90}])[^\x07\x1b\u{9c}\n]*(?:\x07|\x1b\\|\u{9c})";
    let short = r"\x1b[ -/]*[0-~]";
    Regex::new(&format!("{control}|{text}|{short}")).ok()
});

/// A message without what is no text: a paste may have brought it.
pub(super) fn cleaned(message: &str) -> String {
    let plain = match &*SEQUENCE {
        Some(sequence) => sequence.replace_all(message, ""),
        None => message.into(),
    };
    visible(&plain)
}

/// A text without the characters that have no width, and with all others.
pub(super) fn visible(text: &str) -> String {
    let is_text = |c: &char| !c.is_control() || matches!(c, '\n' | '\t');
    text.chars().filter(is_text).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_are_cut_by_columns() {
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
    fn figures_are_in_groups() {
        let grouped = [0, 999, 1_000, 1_234_567].map(grouped);
        assert_eq!(grouped, ["0", "999", "1,000", "1,234,567"]);
    }
}
