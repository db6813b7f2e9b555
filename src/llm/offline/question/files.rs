//! Files that a question names, with the line that it means: as people write them, as answers cite
//! them and as programs report faults.

use std::sync::LazyLock;

use regex::{Captures, Regex};

use super::super::term::{Term, TermKind};

/// Endings of names that may have blanks and letters of any language, if they are quoted.
const OF_NOTES: &[&str] = &["md", "markdown", "txt", "rst", "adoc", "org"];

/// `"a.py", line 12`, `a.py line 12`, and `line 12 of a.py`.
static SPELT_OUT: LazyLock<Option<[Regex; 2]>> = LazyLock::new(|| {
    let file = r#"["'`]?([\w./-]+\.[A-Za-z][A-Za-z0-9]{0,4})["'`]?"#;
    let behind = Regex::new(&format!(
        r"(?i){file},? (?:on |at |in )?lines? (\d{{1,7}})\b"
    ))
    .ok()?;
    let before = Regex::new(&format!(r"(?i)\blines? (\d{{1,7}}) (?:of|in) {file}")).ok()?;
    Some([behind, before])
});

/// `a.py:12`, `a.py:12:5`, `a.py:12-20`, `a.cs(12)` and `a.cs(12,5)`, less the path.
static NUMBERS: LazyLock<Option<Regex>> = LazyLock::new(|| {
    Regex::new(r"(?::(\d{1,7})(?:[:–-]\d{1,7})*:?|\((\d{1,7})(?:,\s?\d{1,7})*\)?:?)$").ok()
});

/// A text in which lines of files are written as answers cite them.
pub(super) fn with_lines(text: &str) -> String {
    let Some([behind, before]) = &*SPELT_OUT else {
        return text.to_owned();
    };
    let text = behind.replace_all(text, " $1:$2 ");
    let place = |found: &Captures<'_>| format!(" {}:{} ", &found[2], &found[1]);
    before.replace_all(&text, place).into_owned()
}

/// The file that a word names.
pub(super) fn in_word(word: &str) -> Option<Term> {
    file(word, is_path)
}

/// The file that a quotation names.
pub(super) fn in_quotes(inside: &str) -> Option<Term> {
    file(inside, |path| is_path(path) || is_note(path))
        .or_else(|| file(inside, is_name).filter(|term| term.line().is_some()))
}

fn file(text: &str, names: impl Fn(&str) -> bool) -> Option<Term> {
    let numbers = NUMBERS.as_ref().and_then(|numbers| numbers.captures(text));
    let (path, line) = match &numbers {
        Some(found) => {
            let number = found.get(1).or_else(|| found.get(2));
            (
                &text[..text.len() - found[0].len()],
                number.and_then(|number| number.as_str().parse().ok()),
            )
        }
        None => (text, None),
    };
    names(path).then(|| Term::new(TermKind::Path, path).at_line(line.filter(|line| *line > 0)))
}

/// Whether this names a file: it ends with an extension that begins with a letter.
fn is_path(token: &str) -> bool {
    let part = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '-' | '.' | '/');
    token.chars().all(part) && is_name(token)
}

/// The same with anything before the extension.
fn is_name(token: &str) -> bool {
    let Some((stem, extension)) = token.rsplit_once('.') else {
        return false;
    };
    let file = stem.rsplit('/').next().unwrap_or(stem);
    (file.len() >= 2 || token.contains('/'))
        && (1..=5).contains(&extension.len())
        && extension.starts_with(|c: char| c.is_ascii_lowercase())
        && extension.chars().all(|c| c.is_ascii_alphanumeric())
}

fn is_note(token: &str) -> bool {
    let extension = token
        .rsplit_once('.')
        .map_or("", |(_, extension)| extension);
    OF_NOTES.contains(&extension) && is_name(token)
}
