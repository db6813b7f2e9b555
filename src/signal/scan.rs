//! Splits a reply into tokens: text, signal tags outside code, inline reasoning, and code fences.
//!
//! Inline code is text without tags. Reasoning begins only at the start of a line, so an answer can
//! mention its tags.
//!
//! **Invariant:** the scanner can stop at any byte and resume with the same tokens, except where
//! text is cut; it reads each byte a bounded number of times.

use memchr::{memchr, memchr3};

use super::{
    fence::{Fence, Line, LineProbe, Purpose},
    tag::{Tag, TagProbe},
    thought::{self, Thought},
    ticks::{Inline, Ticks},
    view::{Meter, Span, View},
};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    /// Text with inline code.
    Text,
    Open,
    Close,
    /// An opening tag that names a type and breaks the rules.
    NearMiss,
    /// `</signals>`, which closes a near miss or is text.
    ClosePlural,
    /// A signal tag cut by the end of the reply.
    Cut,
    /// Inline reasoning with its tags, possibly in pieces.
    Thought,
    /// A closing tag of reasoning whose opening tag is missing.
    ThoughtEnd,
    FenceOpen,
    /// Content of a fence, possibly in pieces.
    FenceBody,
    FenceClose,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Token {
    pub(super) kind: Kind,
    pub(super) span: Span,
}

#[derive(Debug, Default)]
enum Place {
    #[default]
    Prose,
    InFence(Fence),
    /// Lasts until the closing tag of this name.
    InThought(&'static str),
}

#[derive(Debug)]
enum InLine {
    /// At the start of a line; the probe exists once the line was examined.
    Start(Option<LineProbe>),
    Middle,
}

#[derive(Debug)]
pub(super) struct Scanner {
    at: usize,
    place: Place,
    line: InLine,
    /// Whether the line is white space so far.
    blank: bool,
    ticks: Ticks,
    tag: Option<TagProbe>,
    queued: Option<Token>,
}

impl Scanner {
    pub(super) fn new(start: usize) -> Self {
        Self {
            at: start,
            place: Place::Prose,
            line: InLine::Start(None),
            blank: true,
            ticks: Ticks::default(),
            tag: None,
            queued: None,
        }
    }

    /// The first byte that belongs to no token yet.
    pub(super) const fn position(&self) -> usize {
        self.at
    }

    /// Whether a run of backticks within a line is undecided.
    pub(super) fn waits_at_ticks(&self, view: View<'_>) -> bool {
        let in_prose = matches!((&self.place, &self.line), (Place::Prose, InLine::Middle));
        in_prose && view.byte(self.at) == Some(b'`')
    }

    /// Returns the next token, or `None` if the window does not decide it.
    pub(super) fn next(&mut self, view: View<'_>, meter: &mut impl Meter) -> Option<Token> {
        if let Some(token) = self.queued.take() {
            return Some(token);
        }
        let start = self.at;
        let (kind, special) = match self.place {
            Place::Prose => (Kind::Text, self.prose(view, meter)),
            Place::InFence(fence) => (Kind::FenceBody, self.in_fence(fence, view, meter)),
            Place::InThought(name) => {
                self.in_thought(name, view, meter);
                (Kind::Thought, None)
            }
        };
        let end = special.map_or(self.at, |token| token.span.start);
        let before = Token {
            kind,
            span: Span::new(start, end),
        };
        if start == end {
            return special;
        }
        self.queued = special;
        Some(before)
    }

    fn prose(&mut self, view: View<'_>, meter: &mut impl Meter) -> Option<Token> {
        loop {
            match self.line_is(Purpose::Open, view, meter) {
                Line::Plain => {}
                Line::Fence(fence, end) => {
                    self.place = Place::InFence(fence);
                    return Some(self.line_token(Kind::FenceOpen, end));
                }
                Line::Undecided => return None,
            }
            let rest = view.bytes_from(self.at);
            let found = memchr3(b'<', b'`', b'\n', rest);
            meter.visit(found.map_or(rest.len(), |offset| offset + 1));
            if self.blank {
                let passed = &rest[..found.unwrap_or(rest.len())];
                meter.visit(passed.len());
                self.blank = passed.trim_ascii_start().is_empty();
            }
            let Some(offset) = found else {
                self.at = view.end();
                return None;
            };
            self.at += offset;
            match rest[offset] {
                b'\n' => {
                    self.at += 1;
                    self.next_line();
                }
                b'`' => {
                    self.blank = false;
                    match self.ticks.pass(self.at, view, meter) {
                        Inline::Until(end) => self.at = end,
                        Inline::Undecided => return None,
                    }
                }
                _ => {
                    if self.blank && self.tag.is_none() {
                        match thought::tag_at(self.at, view, meter) {
                            Thought::Undecided => return None,
                            Thought::Tag(kind, name, end) => {
                                if kind == Kind::Thought {
                                    self.place = Place::InThought(name);
                                }
                                return Some(self.tag_token(kind, end, view, meter));
                            }
                            Thought::Absent => {}
                        }
                    }
                    let probe = self.tag.get_or_insert(TagProbe::new(self.at));
                    let (kind, end) = match probe.run(view, meter) {
                        Tag::Undecided => return None,
                        Tag::Text => {
                            self.tag = None;
                            self.blank = false;
                            self.at += 1;
                            continue;
                        }
                        Tag::Open(end) => (Kind::Open, end),
                        Tag::Close(end) => (Kind::Close, end),
                        Tag::NearMiss(end) => (Kind::NearMiss, end),
                        Tag::ClosePlural(end) => (Kind::ClosePlural, end),
                        Tag::Cut => (Kind::Cut, view.end()),
                    };
                    return Some(self.tag_token(kind, end, view, meter));
                }
            }
        }
    }

    fn in_fence(&mut self, fence: Fence, view: View<'_>, meter: &mut impl Meter) -> Option<Token> {
        loop {
            match self.line_is(Purpose::Close(fence), view, meter) {
                Line::Plain => {}
                Line::Fence(_, end) => {
                    self.place = Place::Prose;
                    return Some(self.line_token(Kind::FenceClose, end));
                }
                Line::Undecided => return None,
            }
            let rest = view.bytes_from(self.at);
            let found = memchr(b'\n', rest);
            meter.visit(found.map_or(rest.len(), |offset| offset + 1));
            let Some(offset) = found else {
                self.at = view.end();
                return None;
            };
            self.at += offset + 1;
            self.next_line();
        }
    }

    fn in_thought(&mut self, name: &str, view: View<'_>, meter: &mut impl Meter) {
        while let Some(offset) = memchr(b'<', view.bytes_from(self.at)) {
            meter.visit(offset + 1);
            self.at += offset;
            match thought::tag_at(self.at, view, meter) {
                Thought::Tag(Kind::ThoughtEnd, found, end) if found == name => {
                    self.place = Place::Prose;
                    self.at = end;
                    return;
                }
                Thought::Undecided => return,
                Thought::Tag(..) | Thought::Absent => self.at += 1,
            }
        }
        meter.visit(view.end() - self.at);
        self.at = view.end();
    }

    fn line_is(&mut self, purpose: Purpose, view: View<'_>, meter: &mut impl Meter) -> Line {
        let InLine::Start(probe) = &mut self.line else {
            return Line::Plain;
        };
        let line = probe
            .get_or_insert(LineProbe::new(self.at))
            .run(purpose, view, meter);
        if line == Line::Plain {
            self.line = InLine::Middle;
        }
        line
    }

    fn line_token(&mut self, kind: Kind, end: usize) -> Token {
        let span = Span::new(self.at, end);
        self.at = end;
        self.next_line();
        Token { kind, span }
    }

    fn tag_token(
        &mut self,
        kind: Kind,
        end: usize,
        view: View<'_>,
        meter: &mut impl Meter,
    ) -> Token {
        let span = Span::new(self.at, end);
        self.tag = None;
        self.at = end;
        let tag = view.slice(span).as_bytes();
        meter.visit(tag.len());
        if memchr(b'\n', tag).is_some() {
            self.ticks.next_line();
        }
        Token { kind, span }
    }

    fn next_line(&mut self) {
        self.line = InLine::Start(None);
        self.blank = true;
        self.ticks.next_line();
    }
}
