//! What a question quotes: texts as they stand, names and files.

use super::{
    super::{
        term::{Term, TermKind},
        words::words,
    },
    files,
};

/// Where a quotation begins, and what ends it.
fn opening_quote(text: &str) -> Option<(usize, &'static [char])> {
    text.char_indices().find_map(|(at, c)| {
        let close: &[char] = match c {
            '`' => &['`'],
            '"' => &['"'],
            '“' => &['”'],
            '„' => &['“', '”'],
            '«' => &['»'],
            _ => return None,
        };
        Some((at, close))
    })
}

/// What stands in backticks or double quotes on one line, and the text without it.
pub(super) fn taken_from(text: &str) -> (Vec<Term>, String) {
    let (mut quoted, mut rest) = (Vec::new(), String::new());
    let mut left = text;
    while let Some((start, close)) = opening_quote(left) {
        let (before, from) = left.split_at(start);
        let inside = &from[from.chars().next().map_or(0, char::len_utf8)..];
        rest.push_str(before);
        match inside
            .find(close)
            .filter(|&end| !inside[..end].contains('\n'))
        {
            Some(end) => {
                quoted.extend(quoted_terms(&inside[..end]));
                rest.push(' ');
                left = &inside[end + inside[end..].chars().next().map_or(0, char::len_utf8)..];
            }
            None => {
                rest.push(' ');
                left = inside;
            }
        }
    }
    rest.push_str(left);
    (quoted, rest)
}

fn quoted_terms(inside: &str) -> Vec<Term> {
    let inside = inside.trim();
    let is_word = |c: char| c.is_alphanumeric() || matches!(c, '_' | ':' | '(' | ')');
    if inside.is_empty() {
        Vec::new()
    } else if let Some(file) = files::in_quotes(inside) {
        vec![file]
    } else if inside.chars().all(is_word) {
        // `llm::Offline` is two names; a plain word in quotes is meant as a name.
        let names = words(inside).filter(|word| word.chars().count() > 1);
        names.map(|word| Term::new(TermKind::Name, word)).collect()
    } else {
        vec![Term::new(TermKind::Phrase, inside)]
    }
}
