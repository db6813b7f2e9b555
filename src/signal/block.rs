//! Signal blocks: tags matched like brackets.

use super::{
    scan::{Kind, Token},
    view::Span,
};

/// A complete block.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Block {
    /// The opening tag.
    pub(super) opening: Span,
    /// The content between the tags.
    pub(super) inside: Span,
    /// Blocks directly inside; their fields are not this one's.
    pub(super) nested: Vec<Span>,
    pub(super) whole: Span,
}

/// The first near miss of a reply.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct NearMiss {
    pub(super) tag: Span,
    /// The tag, or the block if it is closed.
    pub(super) whole: Span,
}

#[derive(Debug, Default)]
pub(super) struct Nest {
    open: Vec<Span>,
    nested: Vec<Span>,
}

impl Nest {
    /// Returns the outermost block that the token completes.
    pub(super) fn take(&mut self, token: Token) -> Option<Block> {
        match token.kind {
            Kind::Open => self.open.push(token.span),
            Kind::Close => {
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
