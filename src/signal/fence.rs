//! Detects lines that open or close a code fence, as in CommonMark.
//!
//! A probe keeps its position, so a line that arrives in pieces is read once.

use memchr::{memchr, memchr2};

use super::view::{View, visit};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
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

#[derive(Debug, Clone, Copy)]
enum FenceState {
    Indent(u8),
    Marks(Fence),
    Tail(Fence),
}

#[derive(Debug)]
pub(super) struct LineProbe {
    at: usize,
    state: FenceState,
}

impl LineProbe {
    pub(super) const fn new(start: usize) -> Self {
        Self {
            at: start,
            state: FenceState::Indent(0),
        }
    }

    pub(super) fn run(&mut self, purpose: Purpose, view: View<'_>) -> Line {
        loop {
            let byte = view.byte(self.at);
            if byte.is_none() && !view.is_last() {
                return Line::Undecided;
            }
            match self.state {
                FenceState::Indent(spaces) => match byte {
                    Some(b' ') if spaces < 3 => self.state = FenceState::Indent(spaces + 1),
                    Some(mark @ (b'`' | b'~')) => {
                        self.state = FenceState::Marks(Fence { mark, length: 1 });
                    }
                    Some(_) | None => return Line::Plain,
                },
                FenceState::Marks(Fence { mark, length }) if byte == Some(mark) => {
                    let length = length + 1;
                    self.state = FenceState::Marks(Fence { mark, length });
                }
                FenceState::Marks(fence) if fence.fits(purpose) => {
                    self.state = FenceState::Tail(fence);
                    continue;
                }
                FenceState::Marks(_) => return Line::Plain,
                FenceState::Tail(fence) => return self.tail(fence, purpose, view),
            }
            visit(1);
            self.at += 1;
        }
    }

    fn tail(&mut self, fence: Fence, purpose: Purpose, view: View<'_>) -> Line {
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
            Some(_) => Line::Plain,
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
