//! Inline code within a line: a run of n backticks closes at the next run of n, and is text if
//! there is none.
//!
//! The index of a line is built once and grows with the stream.

use std::collections::{HashMap, VecDeque};

use memchr::memchr2;

use super::view::{View, visit};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum InlineCode {
    /// Code or bare backticks, up to this position.
    Until(usize),
    Undecided,
}

#[derive(Debug, Default)]
pub(super) struct BacktickRuns {
    scanned: usize,
    unfinished: Option<usize>,
    line_ended: bool,
    runs: VecDeque<(usize, usize)>,
    starts_by_length: HashMap<usize, VecDeque<usize>>,
}

impl BacktickRuns {
    pub(super) fn pass(&mut self, start: usize, view: View<'_>) -> InlineCode {
        self.scan(start, view);
        while self.runs.front().is_some_and(|run| run.0 < start) {
            self.runs.pop_front();
        }
        let Some(&(_, length)) = self.runs.front() else {
            return InlineCode::Undecided;
        };
        let same = self.starts_by_length.entry(length).or_default();
        while same.front().is_some_and(|other| *other <= start) {
            same.pop_front();
        }
        match same.front() {
            Some(closing) => InlineCode::Until(closing + length),
            None if self.line_ended => InlineCode::Until(start + length),
            None => InlineCode::Undecided,
        }
    }

    fn scan(&mut self, start: usize, view: View<'_>) {
        self.scanned = self.scanned.max(start);
        while !self.line_ended {
            let rest = view.bytes_from(self.scanned);
            if let Some(run) = self.unfinished {
                let more = rest.iter().take_while(|byte| **byte == b'`').count();
                visit(more + 1);
                self.scanned += more;
                if more == rest.len() && !view.is_last() {
                    return;
                }
                self.unfinished = None;
                let length = self.scanned - run;
                self.runs.push_back((run, length));
                let starts = self.starts_by_length.entry(length).or_default();
                starts.push_back(run);
                continue;
            }
            let found = memchr2(b'`', b'\n', rest);
            visit(found.unwrap_or(rest.len()) + 1);
            match found {
                Some(offset) if rest[offset] == b'`' => {
                    self.unfinished = Some(self.scanned + offset);
                    self.scanned += offset + 1;
                }
                Some(_) => self.line_ended = true,
                None => {
                    self.scanned += rest.len();
                    self.line_ended = view.is_last();
                    return;
                }
            }
        }
    }
}
