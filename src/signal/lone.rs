//! The code fence that may hold the reply's signal: one complete block and nothing else (spec 2,
//! "Which block counts"). What it holds is read as a reply of its own would be.
//!
//! Whether it is the last thing of the reply is watched above.

use super::{
    block::{Block, Nest},
    scan::{Kind, Scanner, Token},
    view::{Meter, View},
};

/// A fence that, so far, may be a lone fenced signal.
#[derive(Debug)]
pub(super) struct LoneFence {
    inner: Scanner,
    found: Found,
    content: Content,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Content {
    Growing,
    Ended,
}

#[derive(Debug)]
enum Found {
    Nothing,
    Part(Nest),
    Block(Block),
}

/// Whether it can still be one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Hope {
    /// It can, or it is.
    Left,
    /// It is an example or other code.
    Lost,
}

impl LoneFence {
    /// A fence whose content begins at `start`.
    pub(super) fn new(start: usize) -> Self {
        Self {
            inner: Scanner::new(start),
            found: Found::Nothing,
            content: Content::Growing,
        }
    }

    /// Looks at what has come of the content, which is where the window ends. Once the content
    /// has ended, its window no longer matters.
    pub(super) fn look(&mut self, content: View<'_>, meter: &mut impl Meter) -> Hope {
        if self.content == Content::Ended {
            return Hope::Left;
        }
        while let Some(token) = self.inner.next(content, meter) {
            if self.take(token, content, meter) == Hope::Lost {
                return Hope::Lost;
            }
        }
        if !content.is_last() {
            return Hope::Left;
        }
        self.content = Content::Ended;
        match self.found {
            Found::Block(_) => Hope::Left,
            Found::Nothing | Found::Part(_) => Hope::Lost,
        }
    }

    /// The block, if it is complete.
    pub(super) fn into_block(self) -> Option<Block> {
        match self.found {
            Found::Block(block) => Some(block),
            Found::Nothing | Found::Part(_) => None,
        }
    }

    fn take(&mut self, token: Token, view: View<'_>, meter: &mut impl Meter) -> Hope {
        let nest = match (&mut self.found, token.kind) {
            (Found::Part(nest), _) => nest,
            (Found::Nothing, Kind::Open) => {
                self.found = Found::Part(Nest::default());
                return self.take(token, view, meter);
            }
            (Found::Nothing | Found::Block(_), Kind::Text) => return blank(token, view, meter),
            (Found::Nothing | Found::Block(_), _anything_else) => return Hope::Lost,
        };
        if let Some(block) = nest.take(token) {
            self.found = Found::Block(block);
        }
        Hope::Left
    }
}

/// White space leaves the hope that was.
pub(super) fn blank(token: Token, view: View<'_>, meter: &mut impl Meter) -> Hope {
    let text = view.slice(token.span);
    let rest = text.trim_start();
    meter.visit(text.len() - rest.len() + 1);
    if rest.is_empty() {
        Hope::Left
    } else {
        Hope::Lost
    }
}
