//! Signal blocks: tags matched like brackets.

use super::{
    scan::{Kind, Token},
    view::Span,
};

/// A complete block, from the opening tag to its closing tag.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Block {
    /// The opening tag.
    pub(super) opening: Span,
    /// What stands between the tags.
    pub(super) inside: Span,
    /// Blocks directly inside; their fields are not this one's.
    pub(super) nested: Vec<Span>,
    /// All of it.
    pub(super) whole: Span,
}

/// The first near miss of a reply.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct NearMiss {
    /// The tag itself.
    pub(super) tag: Span,
    /// The tag, up to its closing tag if it has one.
    pub(super) whole: Span,
}

/// Matches the tags of one outermost block.
#[derive(Debug, Default)]
pub(super) struct Nest {
    open: Vec<Span>,
    nested: Vec<Span>,
}

impl Nest {
    /// Takes the next token; gives the block that it completes, if no other is open around it.
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
