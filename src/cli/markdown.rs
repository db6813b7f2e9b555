//! Markdown as rows of a terminal, while it arrives.
//!
//! Rows of a block are final once the next block begins, those of a fenced block of code line by
//! line. What is still open is rendered again with each piece, so its size is bounded.

use std::{mem, ops::Range};

use pulldown_cmark::{CodeBlockKind, Event, Options, Parser, Tag};

use super::terminal::harmless;

mod blocks;
mod code;
mod inline;

use blocks::Blocks;
use code::Code;
pub(super) use inline::Look;

/// Longest open block, in bytes: a longer one is cut at a line or a word.
const MAX_OPEN: usize = 16 << 10;

pub(super) const SYNTAX: Options = Options::ENABLE_TABLES
    .union(Options::ENABLE_STRIKETHROUGH)
    .union(Options::ENABLE_TASKLISTS);

/// A text that grows, and the rows that it becomes.
#[derive(Default)]
pub(super) struct Markdown {
    /// Text without final rows.
    open: String,
    /// The fenced block of code that the open text continues.
    code: Option<Code>,
    /// Whether a blank row separates the open text from the rows before it.
    is_apart: bool,
}

impl Markdown {
    /// Adds a piece of text, and returns the rows that have become final.
    pub(super) fn push(&mut self, text: &str, look: &Look) -> Vec<String> {
        self.open.push_str(&harmless(&text.replace('\r', "")));
        let mut rows = Vec::new();
        loop {
            if let Some(code) = &mut self.code {
                if !code.take_lines(&mut self.open, look, &mut rows) {
                    return rows;
                }
                (self.code, self.is_apart) = (None, true);
            }
            // An incomplete line may yet continue the block before it.
            let whole = self.open.rfind('\n').map_or(0, |end| end + 1);
            let (whole, _) = self.open.split_at(whole);
            let last = last_block(whole);
            if last.start > 0 {
                let settled: String = self.open.drain(..last.start).collect();
                rows.extend(self.rows(&settled, look));
                self.is_apart = !last.is_item || settled.trim_end_matches(' ').ends_with("\n\n");
            }
            match last.code {
                // Its language is known, and its first line begins.
                Some(code) if self.open.contains('\n') => {
                    let begins = self.open.find('\n').map_or(0, |end| end + 1);
                    self.open.drain(..begins);
                    rows.extend(mem::take(&mut self.is_apart).then(String::new));
                    self.code = Some(code);
                }
                _ if self.open.len() > MAX_OPEN => {
                    let cut = self.open.floor_char_boundary(MAX_OPEN / 2);
                    let (before, _) = self.open.split_at(cut);
                    let cut = before.rfind('\n').or_else(|| before.rfind(' '));
                    let cut = cut.map_or(before.len(), |cut| cut + 1);
                    let settled: String = self.open.drain(..cut).collect();
                    rows.extend(self.rows(&settled, look));
                    self.is_apart = false;
                }
                _ => return rows,
            }
        }
    }

    /// Returns the rows of the open text, as they are now.
    pub(super) fn open_rows(&self, look: &Look) -> Vec<String> {
        match &self.code {
            Some(code) => code.open_row(&self.open, look).into_iter().collect(),
            None => self.rows(&self.open, look),
        }
    }

    /// Ends the text, and returns its last rows.
    pub(super) fn finish(&mut self, look: &Look) -> Vec<String> {
        let mut rows = Vec::new();
        if let Some(mut code) = self.code.take() {
            if !self.open.is_empty() {
                self.open.push('\n');
            }
            code.take_lines(&mut self.open, look, &mut rows);
        } else {
            rows = self.rows(&self.open, look);
        }
        *self = Self::default();
        rows
    }

    /// Returns the rows of this text, which ends it.
    pub(super) fn whole(mut self, text: &str, look: &Look) -> Vec<String> {
        let mut rows = self.push(text, look);
        rows.extend(self.finish(look));
        rows
    }

    fn rows(&self, text: &str, look: &Look) -> Vec<String> {
        // A definition of a link is shown: the link that it belongs to is in another block.
        let line = |line: &str| match line.starts_with('[') && line.contains("]:") {
            true => format!("\\{line}"),
            false => line.to_owned(),
        };
        let text: String = text.split_inclusive('\n').map(line).collect();
        let rows = Blocks::render(&text, look);
        let gap = self.is_apart && !rows.is_empty();
        gap.then(String::new).into_iter().chain(rows).collect()
    }
}

/// The last block of a text, or the last item of its last list.
#[derive(Default)]
struct LastBlock {
    start: usize,
    /// Whether it is an item after others.
    is_item: bool,
    /// A fenced block of code.
    code: Option<Code>,
}

fn last_block(text: &str) -> LastBlock {
    let mut last = LastBlock::default();
    let mut depth = 0;
    for (event, Range { start, .. }) in Parser::new_ext(text, SYNTAX).into_offset_iter() {
        match event {
            Event::Start(tag) => {
                if depth == 0 {
                    let code = match &tag {
                        Tag::CodeBlock(CodeBlockKind::Fenced(info)) => {
                            text.get(start..).and_then(|from| Code::begin(from, info))
                        }
                        _ => None,
                    };
                    last = LastBlock {
                        start,
                        is_item: false,
                        code,
                    };
                } else if depth == 1 && matches!(tag, Tag::Item) {
                    last.is_item |= start > last.start;
                    last.start = start;
                }
                depth += 1;
            }
            Event::End(_) => depth -= 1,
            Event::Rule if depth == 0 => {
                last = LastBlock {
                    start,
                    ..LastBlock::default()
                };
            }
            _ => {}
        }
    }
    last
}

#[cfg(test)]
mod tests;
