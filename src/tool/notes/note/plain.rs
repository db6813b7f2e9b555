//! Notes that are no Markdown: reStructuredText, and lists of changes in plain text.
//!
//! Only headings are looked for: a line with a line of signs below it (and perhaps above), or one that
//! begins with a version. Which signs are which level follows from their order, as docutils has it.

use std::sync::Arc;

use super::{Lines, MAX_SECTIONS, Note, Section, tidy};
use crate::tool::notes::{date, kind};

/// Longest line that can be a heading of a version, in characters.
const MAX_HEADING: usize = 100;

impl Note {
    /// Reads a note that is no Markdown.
    pub(in crate::tool::notes) fn read_plain(text: &str) -> Self {
        let text = text.strip_prefix('\u{feff}').unwrap_or(text);
        let lines: Vec<&str> = text.lines().collect();
        let mut note = Self {
            lines: u32::try_from(lines.len()).unwrap_or(u32::MAX),
            ..Self::default()
        };
        // The signs in the order in which they appear, each a level.
        let mut signs: Vec<(char, bool)> = Vec::new();
        let mut open: Vec<(usize, Arc<str>)> = Vec::new();
        for (at, line) in lines.iter().enumerate() {
            let Some((style, first)) = heading(&lines, at) else {
                continue;
            };
            let level = signs
                .iter()
                .position(|known| *known == style)
                .unwrap_or_else(|| {
                    signs.push(style);
                    signs.len() - 1
                });
            let words = tidy(line);
            note.title.get_or_insert_with(|| words.clone());
            open.retain(|(outer, _)| *outer < level);
            open.push((level, words.into()));
            if note.sections.len() >= MAX_SECTIONS {
                break;
            }
            let first = u32::try_from(first + 1).unwrap_or(u32::MAX);
            let path = open.iter().map(|(_, words)| Arc::clone(words)).collect();
            note.sections.push(Section {
                path,
                first,
                last: first,
            });
        }
        note.close_sections(text, &Lines::of(text));
        note
    }
}

/// What stands for a version without any signs.
const VERSION: (char, bool) = ('v', false);

/// The style of the heading on this line, if it is one, and the line where it begins.
fn heading(lines: &[&str], at: usize) -> Option<((char, bool), usize)> {
    let line = lines.get(at)?.trim_end();
    if line.trim().is_empty() || underline(line).is_some() {
        return None;
    }
    let below = lines.get(at + 1).copied().and_then(underline);
    if let Some((sign, long)) = below {
        // docutils wants it as long as the heading; people are not that exact.
        if long + 2 >= line.chars().count() {
            let above = at.checked_sub(1).and_then(|above| underline(lines[above]));
            // Else it is the line below another heading.
            let free = at < 2 || lines[at - 2].trim().is_empty();
            let boxed = free && above.is_some_and(|(over, _)| over == sign);
            return Some(((sign, boxed), at - usize::from(boxed)));
        }
    }
    let alone = at
        .checked_sub(1)
        .is_none_or(|above| lines[above].trim().is_empty());
    let starts = line.starts_with(|c: char| c.is_ascii_digit() || matches!(c, 'v' | 'V' | '['));
    let short = line.chars().count() <= MAX_HEADING;
    let first = line.split_whitespace().next().unwrap_or_default();
    let versioned = kind::has_version(first)
        || (first.eq_ignore_ascii_case("version") && kind::has_version(line));
    let told = line.split_whitespace().count() <= 2 || date::first_in(line).is_some();
    (alone && starts && short && versioned && told).then_some((VERSION, at))
}

/// The sign of a line of at least three equal ones, and how long it is.
fn underline(line: &str) -> Option<(char, usize)> {
    let line = line.trim_end();
    let sign = line
        .chars()
        .next()
        .filter(|sign| sign.is_ascii_punctuation())?;
    let long = line.chars().count();
    (long >= 3 && line.chars().all(|c| c == sign)).then_some((sign, long))
}
