//! Separates the visible text from the block that counts, for the reader and the stream.
//!
//! **Invariants:** tokens are shown in order, each at most once; no token is shown while a signal
//! tag before it is open, or while it is in a fence that may be the reply's signal.

use memchr::memchr;

use super::{
    block::{Block, NearMiss, Nest},
    fields,
    lone::{Hope, LoneFence, blank},
    scan::{Kind, Scanner, Token},
    tag,
    tidy::Tidy,
    view::{Meter, Rest, Span, View},
};

#[derive(Debug)]
pub(super) struct Sift {
    scanner: Scanner,
    tidy: Tidy,
    held: Vec<Held>,
    /// Indices of unmatched opening tags.
    open: Vec<usize>,
    /// Indices of unmatched near misses.
    missed: Vec<usize>,
    /// The latest fence that may be the signal, and the index of its first held token.
    fence: Option<(usize, LoneFence)>,
    block: Option<Block>,
    near_miss: Option<NearMiss>,
    /// Whether a reasoning tag has occurred.
    thoughts_seen: bool,
    /// End of the text that was shown before its token was complete.
    shown: usize,
}

#[derive(Debug)]
struct Held {
    token: Token,
    /// The index of the matching closing tag.
    mate: Option<usize>,
}

impl Default for Sift {
    fn default() -> Self {
        Self {
            scanner: Scanner::new(0),
            tidy: Tidy::default(),
            held: Vec::new(),
            open: Vec::new(),
            missed: Vec::new(),
            fence: None,
            block: None,
            near_miss: None,
            thoughts_seen: false,
            shown: 0,
        }
    }
}

impl Sift {
    /// Reads the new part of the window and appends visible text to `out`.
    pub(super) fn feed(&mut self, view: View<'_>, out: &mut String, meter: &mut impl Meter) {
        while let Some(token) = self.scanner.next(view, meter) {
            self.doubt_fence(token, view, meter);
            if !self.holds() {
                self.release(view, out, meter);
            }
            self.take(token, view, out, meter);
        }
        if view.is_last() {
            self.settle(view, out, meter);
        } else {
            self.show_ahead(view, out, meter);
        }
    }

    /// The first position that later calls need.
    pub(super) fn needs_from(&self) -> usize {
        self.held
            .first()
            .map_or(self.scanner.position(), |held| held.token.span.start)
    }

    pub(super) fn into_found(self) -> (Option<Block>, Option<NearMiss>) {
        (self.block, self.near_miss)
    }

    const fn holds(&self) -> bool {
        !self.open.is_empty() || !self.missed.is_empty() || self.fence.is_some()
    }

    fn take(&mut self, token: Token, view: View<'_>, out: &mut String, meter: &mut impl Meter) {
        match token.kind {
            Kind::Open => {
                self.open.push(self.held.len());
                self.hold(token);
            }
            Kind::NearMiss => {
                let [tag, whole] = [token.span; 2];
                self.near_miss.get_or_insert(NearMiss { tag, whole });
                self.missed.push(self.held.len());
                self.hold(token);
            }
            Kind::Close | Kind::ClosePlural => self.close(token, view, out, meter),
            Kind::Thought => self.thoughts_seen = true,
            // The opening tag was in the prompt, so everything before was reasoning, though already
            // shown.
            Kind::ThoughtEnd => {
                if !self.holds() && !std::mem::replace(&mut self.thoughts_seen, true) {
                    (self.block, self.near_miss) = (None, None);
                }
            }
            Kind::FenceOpen => {
                if self.block.is_none() {
                    self.fence = Some((self.held.len(), LoneFence::new(token.span.end)));
                }
                self.hold_or_show(token, view, out, meter);
            }
            Kind::Cut if self.open.is_empty() => {}
            Kind::Cut => self.hold(token),
            Kind::Text | Kind::FenceBody | Kind::FenceClose => {
                self.hold_or_show(token, view, out, meter);
            }
        }
    }

    /// Gives the fence up if it contains, or precedes, anything but one block.
    fn doubt_fence(&mut self, token: Token, view: View<'_>, meter: &mut impl Meter) {
        let Some((_, fence)) = &mut self.fence else {
            return;
        };
        let hope = match token.kind {
            Kind::FenceBody => fence.look(view.until(token.span.end, Rest::MayCome), meter),
            Kind::FenceClose => fence.look(view.until(token.span.start, Rest::None), meter),
            Kind::Text => blank(token, view, meter),
            Kind::Thought => Hope::Left,
            _anything_else => Hope::Lost,
        };
        if hope == Hope::Lost {
            self.fence = None;
        }
    }

    /// `</signal>` matches an opening tag, else a near miss; `</signals>` only a near miss. A stray
    /// `</signal>` is removed.
    fn close(&mut self, token: Token, view: View<'_>, out: &mut String, meter: &mut impl Meter) {
        let block = self.open.pop_if(|_| token.kind == Kind::Close);
        let around = self.open.last().copied();
        let mut after = |opening| self.missed.pop_if(|missed| Some(*missed) > opening);
        if let Some(opening) = block.or_else(|| after(around)) {
            while after(Some(opening)).is_some() {}
            let start = self.held[opening].token.span.start;
            if let Some(first) = &mut self.near_miss
                && first.tag.start == start
            {
                first.whole.end = token.span.end;
            }
            self.held[opening].mate = Some(self.held.len());
            self.hold(token);
            if block.is_some() && self.open.is_empty() {
                self.count(opening);
            }
            if !self.holds() {
                self.release(view, out, meter);
            }
        } else if token.kind == Kind::ClosePlural {
            self.hold_or_show(token, view, out, meter);
        }
    }

    /// Keeps the first complete block.
    fn count(&mut self, opening: usize) {
        if self.block.is_none() {
            let mut nest = Nest::default();
            let mut tokens = self.held[opening..].iter().map(|held| held.token);
            self.block = tokens.find_map(|token| nest.take(token));
        }
    }

    /// Shows the held tokens without complete blocks.
    fn release(&mut self, view: View<'_>, out: &mut String, meter: &mut impl Meter) {
        let held = std::mem::take(&mut self.held);
        let mut next = 0;
        while let Some(Held { token, mate }) = held.get(next) {
            match mate {
                Some(closing) => next = *closing,
                None => self.show(token.span, view, out, meter),
            }
            next += 1;
        }
    }

    /// Ends the reply: open tags never close, and the last fence may count.
    fn settle(&mut self, view: View<'_>, out: &mut String, meter: &mut impl Meter) {
        if let Some((_, fence)) = &mut self.fence
            && fence.look(view, meter) == Hope::Lost
        {
            self.fence = None;
        }
        let opens_block = |held: &Held| held.token.kind == Kind::Open && held.mate.is_some();
        if let Some(opening) = self.held.iter().position(opens_block) {
            self.count(opening);
        }
        if self.block.is_some() {
            self.fence = None;
        }
        let mut held = std::mem::take(&mut self.held);
        if let Some((first, fence)) = self.fence.take() {
            held.truncate(first);
            self.block = fence.into_block();
        }
        let end = held.last().map_or(0, |held| held.token.span.end);
        let mut next = 0;
        while let Some(Held { token, mate }) = held.get(next) {
            next += 1;
            match (token.kind, mate) {
                (_, Some(closing)) => next = closing + 1,
                (Kind::Open | Kind::NearMiss, None) => {
                    let after = held[next..].iter().position(|held| held.is_tag());
                    let tag = after.map(|offset| next + offset);
                    let stop = tag.map_or(end, |index| held[index].token.span.start);
                    let rest = view.slice(Span::new(token.span.end, stop));
                    if fields::are_all(rest, meter) {
                        next = tag.unwrap_or(held.len());
                    }
                }
                (Kind::Text | Kind::FenceOpen | Kind::FenceBody | Kind::FenceClose, None) => {
                    self.show(token.span, view, out, meter);
                }
                (_stray_tag, None) => {}
            }
        }
    }

    /// Shows text that is visible whether or not the backticks are code.
    fn show_ahead(&mut self, view: View<'_>, out: &mut String, meter: &mut impl Meter) {
        if self.holds() || !self.scanner.waits_at_ticks(view) {
            return;
        }
        let from = self.shown.max(self.scanner.position());
        let mut to = from;
        loop {
            let rest = view.bytes_from(to);
            let found = memchr(b'<', rest);
            meter.visit(found.unwrap_or(rest.len()) + 1);
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
        self.show(Span::new(from, to), view, out, meter);
        self.shown = to;
    }

    fn hold(&mut self, token: Token) {
        self.held.push(Held { token, mate: None });
    }

    fn hold_or_show(
        &mut self,
        token: Token,
        view: View<'_>,
        out: &mut String,
        meter: &mut impl Meter,
    ) {
        if self.holds() {
            self.hold(token);
        } else {
            self.show(token.span, view, out, meter);
        }
    }

    fn show(&mut self, span: Span, view: View<'_>, out: &mut String, meter: &mut impl Meter) {
        let start = span.start.max(self.shown);
        if start < span.end {
            self.tidy
                .push(view.slice(Span::new(start, span.end)), out, meter);
        }
    }
}

impl Held {
    const fn is_tag(&self) -> bool {
        use Kind::{Close, ClosePlural, Cut, NearMiss, Open};
        matches!(self.token.kind, Open | Close | NearMiss | ClosePlural | Cut)
    }
}
