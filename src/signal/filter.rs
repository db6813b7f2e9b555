//! Separates the visible text from the block that counts, for the reader and the stream.
//!
//! **Invariants:** tokens are shown in order, each at most once; no token is shown while a signal
//! tag before it is open, or while it is in a fence that may be the reply's signal.

use memchr::memchr;

use super::{
    block::{Block, BlockNesting, NearMiss},
    fields,
    lone::{LoneFence, Rejected, check_blank},
    scan::{Scanner, Token, TokenKind},
    tag,
    tidy::WhitespaceNormalizer,
    view::{Span, View, WindowEnd, visit},
};

#[derive(Debug, Default)]
pub(super) struct SignalFilter {
    scanner: Scanner,
    tidy: WhitespaceNormalizer,
    pending: Vec<PendingToken>,
    /// Indices of unmatched opening tags.
    open: Vec<usize>,
    /// Indices of unmatched near misses.
    near_misses: Vec<usize>,
    /// The latest fence that may be the signal, and the index of its first pending token.
    fence: Option<(usize, LoneFence)>,
    block: Option<Block>,
    near_miss: Option<NearMiss>,
    /// Whether a reasoning tag has occurred.
    thoughts_seen: bool,
    /// End of the text that was shown before its token was complete.
    shown: usize,
}

#[derive(Debug)]
struct PendingToken {
    token: Token,
    /// The index of the matching closing tag.
    mate: Option<usize>,
}

impl SignalFilter {
    /// Reads the new part of the window and appends visible text to `out`.
    pub(super) fn feed(&mut self, view: View<'_>, out: &mut String) {
        while let Some(token) = self.scanner.next(view) {
            self.check_fence(token, view);
            if !self.is_holding() {
                self.release(view, out);
            }
            self.take(token, view, out);
        }
        if view.is_last() {
            self.finish(view, out);
        } else {
            self.emit_ahead(view, out);
        }
    }

    /// The first position that later calls need.
    pub(super) fn first_needed(&self) -> usize {
        self.pending
            .first()
            .map_or(self.scanner.position(), |pending| pending.token.span.start)
    }

    pub(super) fn into_parts(self) -> (Option<Block>, Option<NearMiss>) {
        (self.block, self.near_miss)
    }

    const fn is_holding(&self) -> bool {
        !self.open.is_empty() || !self.near_misses.is_empty() || self.fence.is_some()
    }

    fn take(&mut self, token: Token, view: View<'_>, out: &mut String) {
        match token.kind {
            TokenKind::Open => {
                self.open.push(self.pending.len());
                self.push_pending(token);
            }
            TokenKind::NearMiss => {
                let [tag, whole] = [token.span; 2];
                self.near_miss.get_or_insert(NearMiss { tag, whole });
                self.near_misses.push(self.pending.len());
                self.push_pending(token);
            }
            TokenKind::Close | TokenKind::ClosePlural => self.close(token, view, out),
            TokenKind::Thought => self.thoughts_seen = true,
            // The opening tag was in the prompt, so everything before was reasoning, though already
            // shown.
            TokenKind::ThoughtEnd => {
                if !self.is_holding() && !std::mem::replace(&mut self.thoughts_seen, true) {
                    (self.block, self.near_miss) = (None, None);
                }
            }
            TokenKind::FenceOpen => {
                if self.block.is_none() {
                    self.fence = Some((self.pending.len(), LoneFence::new(token.span.end)));
                }
                self.push_or_emit(token, view, out);
            }
            TokenKind::Cut if self.open.is_empty() => {}
            TokenKind::Cut => self.push_pending(token),
            TokenKind::Text | TokenKind::FenceBody | TokenKind::FenceClose => {
                self.push_or_emit(token, view, out);
            }
        }
    }

    /// Gives the fence up if it contains, or precedes, anything but one block.
    fn check_fence(&mut self, token: Token, view: View<'_>) {
        let Some((_, fence)) = &mut self.fence else {
            return;
        };
        let checked = match token.kind {
            TokenKind::FenceBody => fence.feed(view.until(token.span.end, WindowEnd::MayGrow)),
            TokenKind::FenceClose => fence.feed(view.until(token.span.start, WindowEnd::None)),
            TokenKind::Text => check_blank(token, view),
            TokenKind::Thought => Ok(()),
            _anything_else => Err(Rejected),
        };
        if checked.is_err() {
            self.fence = None;
        }
    }

    /// `</signal>` matches an opening tag, else a near miss; `</signals>` only a near miss. A stray
    /// `</signal>` is removed.
    fn close(&mut self, token: Token, view: View<'_>, out: &mut String) {
        let block = self.open.pop_if(|_| token.kind == TokenKind::Close);
        let around = self.open.last().copied();
        let mut after = |opening| self.near_misses.pop_if(|at| Some(*at) > opening);
        if let Some(opening) = block.or_else(|| after(around)) {
            while after(Some(opening)).is_some() {}
            let start = self.pending[opening].token.span.start;
            if let Some(first) = &mut self.near_miss
                && first.tag.start == start
            {
                first.whole.end = token.span.end;
            }
            self.pending[opening].mate = Some(self.pending.len());
            self.push_pending(token);
            if block.is_some() && self.open.is_empty() {
                self.record_block(opening);
            }
            if !self.is_holding() {
                self.release(view, out);
            }
        } else if token.kind == TokenKind::ClosePlural {
            self.push_or_emit(token, view, out);
        }
    }

    /// Keeps the first complete block.
    fn record_block(&mut self, opening: usize) {
        if self.block.is_none() {
            let mut nest = BlockNesting::default();
            let mut tokens = self.pending[opening..].iter().map(|pending| pending.token);
            self.block = tokens.find_map(|token| nest.take(token));
        }
    }

    /// Shows the pending tokens without complete blocks.
    fn release(&mut self, view: View<'_>, out: &mut String) {
        let pending = std::mem::take(&mut self.pending);
        let mut next = 0;
        while let Some(PendingToken { token, mate }) = pending.get(next) {
            match mate {
                Some(closing) => next = *closing,
                None => self.emit(token.span, view, out),
            }
            next += 1;
        }
    }

    /// Ends the reply: open tags never close, and the last fence may count.
    fn finish(&mut self, view: View<'_>, out: &mut String) {
        if let Some((_, fence)) = &mut self.fence
            && fence.feed(view).is_err()
        {
            self.fence = None;
        }
        let opens_block = |pending: &PendingToken| {
            pending.token.kind == TokenKind::Open && pending.mate.is_some()
        };
        if let Some(opening) = self.pending.iter().position(opens_block) {
            self.record_block(opening);
        }
        if self.block.is_some() {
            self.fence = None;
        }
        let mut pending = std::mem::take(&mut self.pending);
        if let Some((first, fence)) = self.fence.take() {
            pending.truncate(first);
            self.block = fence.into_block();
        }
        let end = pending.last().map_or(0, |pending| pending.token.span.end);
        let mut next = 0;
        while let Some(PendingToken { token, mate }) = pending.get(next) {
            next += 1;
            match (token.kind, mate) {
                (_, Some(closing)) => next = closing + 1,
                (TokenKind::Open | TokenKind::NearMiss, None) => {
                    let after = pending[next..].iter().position(|pending| pending.is_tag());
                    let tag = after.map(|offset| next + offset);
                    let stop = tag.map_or(end, |index| pending[index].token.span.start);
                    let rest = view.slice(Span::new(token.span.end, stop));
                    if fields::are_all(rest) {
                        next = tag.unwrap_or(pending.len());
                    }
                }
                (TokenKind::Close | TokenKind::ClosePlural | TokenKind::Cut, None) => {}
                (_text, None) => self.emit(token.span, view, out),
            }
        }
    }

    /// Shows text that is visible whether or not the backticks are code.
    fn emit_ahead(&mut self, view: View<'_>, out: &mut String) {
        if self.is_holding() || !self.scanner.is_at_undecided_backticks(view) {
            return;
        }
        let from = self.shown.max(self.scanner.position());
        let mut to = from;
        loop {
            let rest = view.bytes_from(to);
            let found = memchr(b'<', rest);
            visit(found.unwrap_or(rest.len()) + 1);
            match found {
                None => to = view.end(),
                Some(offset) => {
                    to += offset;
                    if !tag::may_begin(&rest[offset + 1..]) {
                        to += 1;
                        continue;
                    }
                }
            }
            break;
        }
        self.emit(Span::new(from, to), view, out);
        self.shown = to;
    }

    fn push_pending(&mut self, token: Token) {
        self.pending.push(PendingToken { token, mate: None });
    }

    fn push_or_emit(&mut self, token: Token, view: View<'_>, out: &mut String) {
        if self.is_holding() {
            self.push_pending(token);
        } else {
            self.emit(token.span, view, out);
        }
    }

    fn emit(&mut self, span: Span, view: View<'_>, out: &mut String) {
        let start = span.start.max(self.shown);
        if start < span.end {
            self.tidy.push(view.slice(Span::new(start, span.end)), out);
        }
    }
}

impl PendingToken {
    const fn is_tag(&self) -> bool {
        use TokenKind::{Close, ClosePlural, Cut, NearMiss, Open};
        matches!(self.token.kind, Open | Close | NearMiss | ClosePlural | Cut)
    }
}
