//! Renders untrusted text in tool results: lossy, bounded, without extra line breaks.
//!
//! Signals and markup are not escaped: results are data, and are escaped where they enter a prompt.

use std::{
    borrow::{Borrow, Cow},
    fmt::Write as _,
    path::Path,
};

/// Longest quotation of the model's input, in characters.
const MAX_ECHO: usize = 200;

/// The first `limit` characters, and whether more follow.
pub fn clipped(text: &str, limit: usize) -> (&str, bool) {
    match text.char_indices().nth(limit) {
        Some((end, _)) => (&text[..end], true),
        None => (text, false),
    }
}

/// The first `limit` characters, with a mark if text was cut.
pub fn shortened(text: &str, limit: usize) -> String {
    let (start, cut) = clipped(text, limit);
    format!("{start}{}", if cut { "…" } else { "" })
}

/// Quotes the model's input in backticks, shortened and on one line; backticks inside are replaced,
/// so that the end is clear.
pub fn quoted(text: &str) -> String {
    let text = shortened(text, MAX_ECHO);
    format!("`{}`", on_one_line(&text).replace('`', "'"))
}

/// A normalized path in the form that a model reads and can send back: lossy, on one line.
pub fn display_path(path: &Path) -> String {
    match &*path.to_string_lossy() {
        "" => ".".to_owned(),
        path => on_one_line(path).into_owned(),
    }
}

/// Whether a word is one of some, between which there are blanks.
pub fn is_one_of(words: &str, word: &str) -> bool {
    words.split_ascii_whitespace().any(|known| known == word)
}

/// Joins texts by a separator.
pub fn joined(texts: impl IntoIterator<Item = impl Borrow<str>>, separator: &str) -> String {
    let texts: Vec<_> = texts.into_iter().collect();
    texts.join(separator)
}

/// Replaces control characters, so that a name cannot span lines.
pub fn on_one_line(text: &str) -> Cow<'_, str> {
    if !text.contains(char::is_control) {
        return Cow::Borrowed(text);
    }
    let mut clean = String::with_capacity(text.len());
    for c in text.chars() {
        if c.is_control() {
            let _ = write!(clean, "{}", c.escape_default());
        } else {
            clean.push(c);
        }
    }
    Cow::Owned(clean)
}

/// Formats a count: `1 file`, `2 files`, `2 matches`.
pub fn counted(count: u64, noun: &str) -> String {
    let ending = match count {
        1 => "",
        _ if noun.ends_with("ch") => "es",
        _ => "s",
    };
    format!("{count} {noun}{ending}")
}

/// The first `most` of these words, and how many more there are: `a, b and 3 more`.
pub fn listed(words: &[String], most: usize) -> String {
    let shown = &words[..words.len().min(most)];
    match words.len() - shown.len() {
        0 => shown.join(", "),
        more => format!("{} and {more} more", shown.join(", ")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn model_text_is_quoted_in_one_short_line() {
        let long = "x".repeat(300);
        let cut = format!("`{}…`", "x".repeat(200));
        for (name, text, shown) in [
            ("plain", "src/a.rs", "`src/a.rs`"),
            ("line break", "a\nb", "`a\\nb`"),
            ("escape sequence", "\u{1b}[31m", "`\\u{1b}[31m`"),
            ("backticks", "a`; b", "`a'; b`"),
            ("too long", long.as_str(), cut.as_str()),
        ] {
            assert_eq!(quoted(text), shown, "{name}");
        }
    }

    #[test]
    fn paths_are_shown_with_slashes() {
        assert_eq!(display_path(Path::new("src/a.rs")), "src/a.rs");
        assert_eq!(display_path(Path::new("")), ".");
    }
}
