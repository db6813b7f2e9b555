//! A code fence that may be the reply's signal: one complete block and nothing else.

use super::{
    block::{Block, BlockNesting},
    scan::{Scanner, Token, TokenKind},
    view::{Meter, View},
};

#[derive(Debug)]
pub(super) struct LoneFence {
    inner: Scanner,
    found: BlockSearch,
    content: Content,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Content {
    Growing,
    Ended,
}

#[derive(Debug)]
enum BlockSearch {
    Nothing,
    Part(BlockNesting),
    Block(Block),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum FenceStatus {
    Candidate,
    Rejected,
}

impl LoneFence {
    pub(super) fn new(start: usize) -> Self {
        Self {
            inner: Scanner::new(start),
            found: BlockSearch::Nothing,
            content: Content::Growing,
        }
    }

    /// Reads the new part of the content; after its end the window is ignored.
    pub(super) fn feed(&mut self, content: View<'_>, meter: &mut impl Meter) -> FenceStatus {
        if self.content == Content::Ended {
            return FenceStatus::Candidate;
        }
        while let Some(token) = self.inner.next(content, meter) {
            if self.take(token, content, meter) == FenceStatus::Rejected {
                return FenceStatus::Rejected;
            }
        }
        if !content.is_last() {
            return FenceStatus::Candidate;
        }
        self.content = Content::Ended;
        match self.found {
            BlockSearch::Block(_) => FenceStatus::Candidate,
            BlockSearch::Nothing | BlockSearch::Part(_) => FenceStatus::Rejected,
        }
    }

    pub(super) fn into_block(self) -> Option<Block> {
        match self.found {
            BlockSearch::Block(block) => Some(block),
            BlockSearch::Nothing | BlockSearch::Part(_) => None,
        }
    }

    fn take(&mut self, token: Token, view: View<'_>, meter: &mut impl Meter) -> FenceStatus {
        let nest = match (&mut self.found, token.kind) {
            (BlockSearch::Part(nest), _) => nest,
            (BlockSearch::Nothing, TokenKind::Open) => {
                self.found = BlockSearch::Part(BlockNesting::default());
                return self.take(token, view, meter);
            }
            (_, TokenKind::Text) => return check_blank(token, view, meter),
            (_, _anything_else) => return FenceStatus::Rejected,
        };
        if let Some(block) = nest.take(token) {
            self.found = BlockSearch::Block(block);
        }
        FenceStatus::Candidate
    }
}

pub(super) fn check_blank(token: Token, view: View<'_>, meter: &mut impl Meter) -> FenceStatus {
    let text = view.slice(token.span);
    let rest = text.trim_start();
    meter.visit(text.len() - rest.len() + 1);
    match rest.is_empty() {
        true => FenceStatus::Candidate,
        false => FenceStatus::Rejected,
    }
}
