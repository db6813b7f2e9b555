//! How tools show text of unknown origin: lossy, in bounded pieces, one line to a line.
//!
//! No escaping of signals or markup: results are data, and whoever puts them into a prompt
//! escapes them.

use std::{borrow::Cow, fmt::Write as _, path::Path};

/// Longest piece of what the model wrote that is repeated to it, in characters.
const MAX_ECHO: usize = 200;

/// The first `limit` characters; the flag says whether that is all.
pub(super) fn clipped(text: &str, limit: usize) -> (&str, bool) {
    match text.char_indices().nth(limit) {
        Some((end, _)) => (&text[..end], true),
        None => (text, false),
    }
}

/// The first `limit` characters, with a mark if that is not all.
pub(super) fn shortened(text: &str, limit: usize) -> String {
    let (start, cut) = clipped(text, limit);
    format!("{start}{}", if cut { "…" } else { "" })
}

/// What the model wrote, in backticks, short, and on one line; without such of its own, so that who reads a
/// result knows where it ends.
pub(super) fn quoted(text: &str) -> String {
    let text = shortened(text, MAX_ECHO);
    format!("`{}`", on_one_line(&text).replace('`', "'"))
}

/// A path as the model reads it and may write it back: with `/`, lossy, on one line.
pub(super) fn shown_path(path: &Path) -> String {
    let mut shown = String::new();
    for part in path.components() {
        if !shown.is_empty() {
            shown.push('/');
        }
        shown.push_str(&on_one_line(&part.as_os_str().to_string_lossy()));
    }
    if shown.is_empty() {
        ".".to_owned()
    } else {
        shown
    }
}

/// Without line breaks and other control characters, which would let a name pass as several lines.
pub(super) fn on_one_line(text: &str) -> Cow<'_, str> {
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

/// `1 file`, `2 files`: English needs it often.
pub(super) fn counted(count: u64, one: &str, many: &str) -> String {
    format!("{count} {}", if count == 1 { one } else { many })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_the_model_wrote_is_repeated_short_and_on_one_line() {
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
        assert_eq!(shown_path(Path::new("src/a.rs")), "src/a.rs");
        assert_eq!(shown_path(Path::new("")), ".");
    }
}
