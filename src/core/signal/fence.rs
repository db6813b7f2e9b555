//! Detects lines that open or close a code fence, as in CommonMark.
//!
//! A probe keeps its position, so a line that arrives in pieces is read once.

use memchr::{memchr, memchr2};

use super::view::{View, visit};

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Fence {
    mark: u8,
    length: usize,
}

#[derive(Debug, Clone, Copy)]
pub(super) enum Purpose {
    Open,
    Close(Fence),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Line {
    Plain,
    /// The fence's marks and the end of its line.
    Fence(Fence, usize),
    Undecided,
}

/// Examines a line until it is known to be no fence.
#[derive(Debug, Default)]
pub(super) struct LineProbe {
    at: usize,
    /// The number of spaces before the marks.
    indent: u8,
    /// The marks so far.
    fence: Fence,
    /// Whether the marks are complete.
    is_tail: bool,
    pub(super) is_plain: bool,
}

impl LineProbe {
    pub(super) fn new(start: usize) -> Self {
        Self {
            at: start,
            ..Self::default()
        }
    }

    pub(super) fn run(&mut self, purpose: Purpose, view: View<'_>) -> Line {
        while !self.is_plain && !self.is_tail {
            match view.byte(self.at) {
                None if !view.is_last() => return Line::Undecided,
                Some(b' ') if self.fence.length == 0 && self.indent < 3 => self.indent += 1,
                Some(mark @ (b'`' | b'~')) if [0, mark].contains(&self.fence.mark) => {
                    self.fence.mark = mark;
                    self.fence.length += 1;
                }
                _ => {
                    self.is_tail = self.fence.fits(purpose);
                    self.is_plain = !self.is_tail;
                    continue;
                }
            }
            visit(1);
            self.at += 1;
        }
        match self.is_plain {
            true => Line::Plain,
            false => self.tail(purpose, view),
        }
    }

    fn tail(&mut self, purpose: Purpose, view: View<'_>) -> Line {
        let fence = self.fence;
        let rest = view.bytes_from(self.at);
        let stop = match purpose {
            // A backtick after a run of backticks makes the run inline code.
            Purpose::Open if fence.mark == b'`' => memchr2(b'`', b'\n', rest),
            Purpose::Open => memchr(b'\n', rest),
            Purpose::Close(_) => rest.iter().position(|byte| !b" \t\r".contains(byte)),
        };
        visit(stop.unwrap_or(rest.len()) + 1);
        self.at += stop.unwrap_or(rest.len());
        match stop.map(|offset| rest[offset]) {
            Some(b'\n') => Line::Fence(fence, self.at + 1),
            Some(_) => {
                self.is_plain = true;
                Line::Plain
            }
            None if view.is_last() => Line::Fence(fence, self.at),
            None => Line::Undecided,
        }
    }
}

impl Fence {
    fn fits(self, purpose: Purpose) -> bool {
        match purpose {
            Purpose::Open => self.length >= 3,
            Purpose::Close(opened) => self.mark == opened.mark && self.length >= opened.length,
        }
    }
}
