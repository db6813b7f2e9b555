//! Signal blocks, whose tags match like brackets.

use super::{
    scan::{Token, TokenKind},
    view::Span,
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
