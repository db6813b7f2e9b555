//! A code fence that may be the reply's signal or call: one complete block or a call, and nothing
//! else.

use super::{
    block::{Block, BlockNesting},
    scan::{Offer, Scanner, Token, TokenKind},
    view::{View, visit},
    written::Written,
};

#[derive(Debug)]
pub(super) struct LoneFence {
    inner: Scanner,
    nesting: BlockNesting,
    block: Option<Block>,
    has_ended: bool,
}

/// The fence is not the reply's signal.
#[derive(Debug)]
pub(super) struct Rejected;

impl LoneFence {
    pub(super) fn new(start: usize, offer: Offer) -> Self {
        Self {
            inner: Scanner::new(start, offer),
            nesting: BlockNesting::default(),
            block: None,
            has_ended: false,
        }
    }

    /// Reads the new part of the content; after its end the window is ignored.
    pub(super) fn feed(&mut self, content: View<'_>) -> Result<(), Rejected> {
        if self.has_ended {
            return Ok(());
        }
        while let Some(token) = self.inner.next(content) {
            self.take(token, content)?;
        }
        self.has_ended = content.is_last();
        match self.block.is_none() && self.inner.written.is_empty() && self.has_ended {
            true => Err(Rejected),
            false => Ok(()),
        }
    }

    pub(super) fn into_block(self) -> Option<Block> {
        self.block
    }

    /// The call that fills the fence.
    pub(super) const fn written(&mut self) -> &mut Vec<Written> {
        &mut self.inner.written
    }

    fn take(&mut self, token: Token, view: View<'_>) -> Result<(), Rejected> {
        let begins = self.block.is_none() && token.kind == TokenKind::Open;
        if begins || self.nesting.is_open() {
            self.block = self.nesting.take(token);
            return Ok(());
        }
        match token.kind {
            TokenKind::Text => check_blank(token, view),
            TokenKind::Call if self.block.is_none() && self.inner.written.len() == 1 => Ok(()),
            _anything_else => Err(Rejected),
        }
    }
}

pub(super) fn check_blank(token: Token, view: View<'_>) -> Result<(), Rejected> {
    let text = view.slice(token.span);
    let rest = text.trim_start();
    visit(text.len() - rest.len() + 1);
    rest.is_empty().then_some(()).ok_or(Rejected)
}
