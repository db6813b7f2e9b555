//! Separates the visible text from the block that counts, for the reader and the stream.
//!
//! **Invariants:** tokens are shown in order, each at most once; no token is shown while a signal
//! tag before it is open, or while it is in a fence that may be the reply's signal.

use memchr::memchr3_iter;

use super::{
    block::{Block, BlockNesting, LoneFence, NearMiss, is_blank},
    fields,
    mark::{self, Mark},
    read,
    scan::{Offer, Scanner, Token, TokenKind},
    tag,
    tidy::WhitespaceNormalizer,
    view::{Span, View, visit},
    written::Written,
};
use crate::model::signal::SignalClass;

#[derive(Debug, Default)]
pub(super) struct SignalFilter {
    pub(super) scanner: Scanner,
    tidy: WhitespaceNormalizer,
    pending: Vec<PendingToken>,
    /// Indices of unmatched opening tags.
    open: Vec<usize>,
    /// Indices of unmatched near misses.
    near_misses: Vec<usize>,
    /// The latest fence that may be the signal, and the index of its first pending token.
    fence: Option<(usize, LoneFence)>,
    pub(super) block: Option<Block>,
    /// Whether the block's signal is terminal.
    is_end: bool,
    pub(super) near_miss: Option<NearMiss>,
    pub(super) verdict: Verdict,
    /// Where the reply ended before its text did.
    pub(super) over: Option<usize>,
    /// Whether a reasoning tag has occurred.
    thoughts_seen: bool,
    /// End of the text that was shown before its token was complete.
    shown: usize,
}

/// What the written calls of a reply are.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) enum Verdict {
    /// Part of the text.
    #[default]
    Text,
    Calls,
    /// Neither: calls that cannot be read, or that text follows.
    NearMiss,
}

#[derive(Debug)]
struct PendingToken {
    token: Token,
    /// The index of the matching closing tag.
    mate: Option<usize>,
}

impl SignalFilter {
    pub(super) fn new(offer: Offer) -> Self {
        Self {
            scanner: Scanner::new(0, offer),
            ..Self::default()
        }
    }

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
        let first = self.pending.first();
        first.map_or(self.scanner.at, |pending| pending.token.span.start)
    }

    const fn is_holding(&self) -> bool {
        let is_open = !self.open.is_empty() || !self.near_misses.is_empty();
        is_open || self.fence.is_some() || !self.scanner.written.is_empty()
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
            TokenKind::ThoughtEnd if self.is_holding() => self.push_pending(token),
            TokenKind::ThoughtEnd => self.end_thought(out),
            TokenKind::Hidden => {}
            TokenKind::Over => self.over = self.over.or(Some(token.span.start)),
            TokenKind::FenceOpen => {
                if self.block.is_none() {
                    let offer = self.scanner.offer.clone();
                    self.fence = Some((self.pending.len(), LoneFence::new(token.span.end, offer)));
                }
                self.push_or_emit(token, view, out);
            }
            TokenKind::Cut if self.open.is_empty() => {}
            TokenKind::Cut | TokenKind::Call => self.push_pending(token),
            TokenKind::Text | TokenKind::FenceBody => self.push_or_emit(token, view, out),
            TokenKind::FenceClose => {
                self.push_or_emit(token, view, out);
                self.take_fenced_call(token.span.end);
            }
        }
    }

    fn end_thought(&mut self, out: &mut String) {
        if !std::mem::replace(&mut self.thoughts_seen, true) {
            (self.block, self.near_miss, self.is_end) = (None, None, false);
            out.clear();
        }
    }

    /// Gives the fence up if it contains, or precedes, anything but one block or call.
    fn check_fence(&mut self, token: Token, view: View<'_>) {
        self.fence.take_if(|(_, fence)| {
            let fits = match token.kind {
                TokenKind::FenceBody => fence.feed(view.until(token.span.end, false)),
                TokenKind::FenceClose => fence.feed(view.until(token.span.start, true)),
                TokenKind::Text => is_blank(token, view),
                TokenKind::Thought | TokenKind::Hidden | TokenKind::Over => true,
                _anything_else => false,
            };
            !fits
        });
    }

    /// Replaces the tokens of a fence, which ends at `end`, by the call that fills it.
    fn take_fenced_call(&mut self, end: usize) {
        let is_call = |(_, fence): &mut (usize, LoneFence)| !fence.inner.written.is_empty();
        let fence = self.fence.take_if(is_call);
        if let Some((first, fence)) = fence {
            let span = Span::new(self.pending[first].token.span.start, end);
            self.pending.truncate(first);
            self.push_pending(Token {
                kind: TokenKind::Call,
                span,
            });
            let written = fence.inner.written.into_iter().map(|written| Written {
                span,
                is_marked: false,
                ..written
            });
            self.scanner.written.extend(written);
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
                self.record_block(opening, view);
            }
            if !self.is_holding() {
                self.release(view, out);
            }
        } else if token.kind == TokenKind::ClosePlural {
            self.push_or_emit(token, view, out);
        }
    }

    /// Keeps the first complete block.
    fn record_block(&mut self, opening: usize, view: View<'_>) {
        if self.block.is_none() {
            let mut nest = BlockNesting::default();
            let mut tokens = self.pending[opening..].iter().map(|pending| pending.token);
            self.keep(tokens.find_map(|token| nest.take(token)), view);
        }
    }

    fn keep(&mut self, block: Option<Block>, view: View<'_>) {
        let opening = block.as_ref().map(|block| view.slice(block.opening));
        let kind = opening.and_then(|opening| read::kind(opening).ok());
        self.is_end = kind.is_some_and(|kind| kind.class() == SignalClass::Terminal);
        self.block = block;
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
        self.fence.take_if(|(_, fence)| !fence.feed(view));
        self.take_fenced_call(view.end());
        let from = self.finish_thought(out);
        let opens_block = |pending: &PendingToken| {
            pending.token.kind == TokenKind::Open && pending.mate.is_some()
        };
        if let Some(opening) = self.pending[from..].iter().position(opens_block) {
            self.record_block(from + opening, view);
        }
        let mut pending = std::mem::take(&mut self.pending);
        let fence = self.fence.take().filter(|_| self.block.is_none());
        if let Some((first, fence)) = fence {
            pending.truncate(first);
            self.keep(fence.block, view);
        }
        let end = pending.last().map_or(0, |pending| pending.token.span.end);
        let (mut next, mut shown) = (from, Vec::new());
        while let Some(PendingToken { token, mate }) = pending.get(next) {
            next += 1;
            match (token.kind, mate) {
                (_, Some(closing)) => next = closing + 1,
                (TokenKind::Open | TokenKind::NearMiss, None) => {
                    let after = pending[next..].iter().position(|pending| pending.is_tag());
                    let tag = after.map(|offset| next + offset);
                    let stop = tag.map_or(end, |index| pending[index].token.span.start);
                    if fields::are_all(view.slice(Span::new(token.span.end, stop))) {
                        next = tag.unwrap_or(pending.len());
                    }
                }
                (TokenKind::Close | TokenKind::ClosePlural | TokenKind::Cut, None)
                | (TokenKind::ThoughtEnd, None) => {}
                (_text, None) => shown.push(*token),
            }
        }
        self.verdict = self.judge(&shown, view);
        for token in shown {
            if token.kind != TokenKind::Call || self.verdict == Verdict::Text {
                self.emit(token.span, view, out);
            }
        }
    }

    /// Drops what was held back before the end of a thought without an opening tag. Returns the index
    /// of what follows.
    fn finish_thought(&mut self, out: &mut String) -> usize {
        let mut next = 0;
        while let Some(PendingToken { token, mate }) = self.pending.get(next)
            && !self.thoughts_seen
        {
            next = mate.unwrap_or(next) + 1;
            if token.kind == TokenKind::ThoughtEnd {
                let end = token.span.end;
                self.end_thought(out);
                let written = &mut self.scanner.written;
                written.retain(|written| written.span.start >= end);
                return next;
            }
        }
        0
    }

    /// Calls count if only signals follow them. With a terminal signal, a text that has calls is an
    /// answer about them.
    fn judge(&self, shown: &[Token], view: View<'_>) -> Verdict {
        let written = &self.scanner.written;
        let Some(last) = written.last() else {
            return Verdict::Text;
        };
        let is_text = |token: &&Token| {
            token.kind != TokenKind::Call && !view.slice(token.span).trim().is_empty()
        };
        let text = shown.iter().rfind(is_text);
        let is_followed = text.is_some_and(|text| text.span.start >= last.span.end);
        if self.is_end && (text.is_some() || self.tidy.begun)
            || is_followed && !written.iter().any(|written| written.is_marked)
        {
            Verdict::Text
        } else if is_followed || written.iter().any(|written| written.calls.is_err()) {
            Verdict::NearMiss
        } else {
            Verdict::Calls
        }
    }

    /// Shows text that is visible whether or not the backticks are code.
    fn emit_ahead(&mut self, view: View<'_>, out: &mut String) {
        if self.is_holding() || !self.scanner.is_at_undecided_backticks(view) {
            return;
        }
        let from = self.shown.max(self.scanner.at);
        let rest = view.text_from(from);
        let may_hide = |at: &usize| {
            let text = &rest[*at..];
            let name = text.strip_prefix('<').map(str::as_bytes);
            name.is_some_and(tag::may_begin) || mark::at(text).0 != Mark::Absent
        };
        let found = memchr3_iter(b'<', b'[', 0xE2, rest.as_bytes()).find(may_hide);
        let length = found.unwrap_or(rest.len());
        visit(length + 1);
        let to = from + length;
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
