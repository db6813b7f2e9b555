//! Signal blocks, whose tags match like brackets, and code fences that may be the reply's signal or
//! call: one complete block or a call, and nothing else.

use super::{
    scan::{Offer, Scanner, Token, TokenKind},
    view::{Span, View, visit},
};

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Block {
    pub(super) opening: Span,
    pub(super) inside: Span,
    /// Directly nested blocks, whose fields do not belong to this one.
    pub(super) nested: Vec<Span>,
    pub(super) whole: Span,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct NearMiss {
    pub(super) tag: Span,
    /// The tag alone, or the block if a closing tag follows.
    pub(super) whole: Span,
}

#[derive(Debug, Default)]
pub(super) struct BlockNesting {
    open: Vec<Span>,
    nested: Vec<Span>,
}

impl BlockNesting {
    pub(super) fn is_open(&self) -> bool {
        !self.open.is_empty()
    }

    /// Returns the outermost block that the token completes.
    pub(super) fn take(&mut self, token: Token) -> Option<Block> {
        match token.kind {
            TokenKind::Open => self.open.push(token.span),
            TokenKind::Close => {
                let opening = self.open.pop()?;
                let whole = Span::new(opening.start, token.span.end);
                match self.open.len() {
                    0 => {
                        let inside = Span::new(opening.end, token.span.start);
                        let nested = std::mem::take(&mut self.nested);
                        return Some(Block {
                            opening,
                            inside,
                            nested,
                            whole,
                        });
                    }
                    1 => self.nested.push(whole),
                    _deeper => {}
                }
            }
            _no_tag_of_a_block => {}
        }
        None
    }
}

#[derive(Debug, Default)]
pub(super) struct LoneFence {
    /// Holds the call that fills the fence.
    pub(super) inner: Scanner,
    nesting: BlockNesting,
    pub(super) block: Option<Block>,
    has_ended: bool,
}

impl LoneFence {
    pub(super) fn new(start: usize, offer: Offer) -> Self {
        Self {
            inner: Scanner::new(start, offer),
            ..Self::default()
        }
    }

    /// Reads the new part of the content; after its end the window is ignored. Returns whether it may
    /// be the reply's signal or call.
    pub(super) fn feed(&mut self, content: View<'_>) -> bool {
        if self.has_ended {
            return true;
        }
        while let Some(token) = self.inner.next(content) {
            if !self.take(token, content) {
                return false;
            }
        }
        self.has_ended = content.is_last();
        !self.has_ended || self.block.is_some() || !self.inner.written.is_empty()
    }

    fn take(&mut self, token: Token, view: View<'_>) -> bool {
        let begins = self.block.is_none() && token.kind == TokenKind::Open;
        if begins || self.nesting.is_open() {
            self.block = self.nesting.take(token);
            return true;
        }
        match token.kind {
            TokenKind::Text => is_blank(token, view),
            TokenKind::Call => self.block.is_none() && self.inner.written.len() == 1,
            _anything_else => false,
        }
    }
}

pub(super) fn is_blank(token: Token, view: View<'_>) -> bool {
    let text = view.slice(token.span);
    let rest = text.trim_start();
    visit(text.len() - rest.len() + 1);
    rest.is_empty()
}
