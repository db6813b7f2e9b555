//! Text with styles, wrapped to the columns of a terminal.

use std::{fmt::Write as _, ops::Range, path::Path, sync::Arc};

use unicode_linebreak::linebreaks;
use unicode_width::{UnicodeWidthChar as _, UnicodeWidthStr as _};

use crate::cli::terminal::harmless;

/// How rows look.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Look {
    /// Columns of a row.
    pub columns: usize,
    /// Whether rows have colours and emphasis.
    pub is_coloured: bool,
    /// The folder in which `path:line` links to a file; `None` for no links.
    pub links: Option<Arc<Path>>,
}

/// The style of a piece of text.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Paint {
    pub bold: bool,
    pub italic: bool,
    pub strike: bool,
    pub underline: bool,
    pub dim: bool,
    /// One of the sixteen colours.
    pub colour: Option<u8>,
    /// The address that it links to.
    pub link: Option<String>,
}

impl Look {
    /// Appends text in a style, which ends with it.
    pub(super) fn paint(&self, into: &mut String, paint: &Paint, text: &str) {
        let link = paint.link.as_deref().filter(|_| self.links.is_some());
        if let Some(link) = link {
            let _ = write!(into, "\x1b]8;;{link}\x1b\\");
        }
        let codes = self.codes(paint);
        match codes.is_empty() {
            true => into.push_str(text),
            false => {
                let _ = write!(into, "\x1b[{codes}m{text}\x1b[0m");
            }
        }
        if link.is_some() {
            into.push_str("\x1b]8;;\x1b\\");
        }
    }

    fn codes(&self, paint: &Paint) -> String {
        if !self.is_coloured {
            return String::new();
        }
        let effects = [
            (paint.bold, 1),
            (paint.dim, 2),
            (paint.italic, 3),
            (paint.underline, 4),
            (paint.strike, 9),
        ];
        let effects = effects.iter().filter(|(is, _)| *is).map(|(_, code)| *code);
        let of_colour = |colour| if colour < 8 { 30 + colour } else { 82 + colour };
        let codes = effects.chain(paint.colour.map(of_colour));
        let codes: Vec<String> = codes.map(|code: u8| code.to_string()).collect();
        codes.join(";")
    }
}

/// Text with styles.
#[derive(Debug, Clone, Default)]
pub(super) struct Text {
    text: String,
    /// Where each style ends, and the style.
    runs: Vec<(usize, Paint)>,
}

impl Text {
    /// Adds text, made harmless once more: entities such as `&#27;` were decoded.
    pub(super) fn push(&mut self, paint: &Paint, text: &str) {
        self.text.push_str(&harmless(text));
        let end = self.text.len();
        match self.runs.last_mut() {
            Some((last, same)) if same == paint => *last = end,
            _ => self.runs.push((end, paint.clone())),
        }
    }

    pub(super) fn is_blank(&self) -> bool {
        self.text.trim().is_empty()
    }

    pub(super) fn ends_with(&self, text: &str) -> bool {
        self.text.ends_with(text)
    }

    pub(super) fn width(&self) -> usize {
        self.text.width()
    }

    /// Wraps the text into rows of at most these columns, each with its width.
    pub(super) fn wrap(&self, columns: usize, look: &Look) -> Vec<(String, usize)> {
        let rows = self.breaks(columns.max(1)).into_iter().map(|row| {
            let width = self.text.get(row.clone()).unwrap_or_default().width();
            (self.painted(row, look), width)
        });
        rows.collect()
    }

    /// The ranges of the rows, without the spaces at their ends.
    fn breaks(&self, columns: usize) -> Vec<Range<usize>> {
        let (mut rows, mut begin, mut end, mut at) = (Vec::new(), 0, 0, 0);
        for (next, opportunity) in linebreaks(&self.text) {
            let word = self.text.get(at..next).unwrap_or_default();
            let is_forced = word.ends_with('\n');
            let word = word.trim_end_matches([' ', '\n', '\t']);
            let fits = |begin: usize, end: usize| {
                self.text.get(begin..end).unwrap_or_default().width() <= columns
            };
            if end > begin && !fits(begin, at + word.len()) {
                rows.push(begin..end);
                begin = at;
            }
            end = at + word.len();
            while !fits(begin, end) {
                let cut = self.fitting(begin..end, columns);
                rows.push(begin..cut);
                begin = cut;
            }
            if is_forced && opportunity == unicode_linebreak::BreakOpportunity::Mandatory {
                rows.push(begin..end);
                begin = next;
                end = next;
            }
            at = next;
        }
        if end > begin {
            rows.push(begin..end);
        }
        rows
    }

    /// The end of the characters that fit, at least of one.
    fn fitting(&self, range: Range<usize>, columns: usize) -> usize {
        let (mut width, mut cut) = (0, range.start);
        for character in self.text.get(range.clone()).unwrap_or_default().chars() {
            width += character.width().unwrap_or(0);
            if width > columns && cut > range.start {
                break;
            }
            cut += character.len_utf8();
        }
        cut.max(range.start + 1).min(range.end)
    }

    fn painted(&self, row: Range<usize>, look: &Look) -> String {
        let (mut painted, mut begin) = (String::new(), 0);
        for (end, paint) in &self.runs {
            let run = begin.max(row.start)..(*end).min(row.end);
            begin = *end;
            if let Some(text) = self.text.get(run).filter(|text| !text.is_empty()) {
                look.paint(&mut painted, paint, text);
            }
        }
        painted
    }
}
