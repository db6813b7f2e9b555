//! A code fence that may be the reply's signal: one complete block and nothing else.

use super::{
    block::{Block, Nest},
    scan::{Kind, Scanner, Token},
    view::{Meter, View},
};

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

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Hope {
    Left,
    Lost,
}

impl LoneFence {
    pub(super) fn new(start: usize) -> Self {
        Self {
            inner: Scanner::new(start),
            found: Found::Nothing,
            content: Content::Growing,
        }
    }

    /// Reads the new part of the content; after its end the window is ignored.
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
