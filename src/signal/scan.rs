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
    ticks::{BacktickRuns, InlineCode},
    view::{Span, View, visit},
};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum TokenKind {
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
    pub(super) kind: TokenKind,
    pub(super) span: Span,
}

#[derive(Debug, Default)]
enum Region {
    #[default]
    Prose,
    InFence(Fence),
    /// Lasts until the closing tag of this name.
    InThought(&'static str),
}

#[derive(Debug)]
pub(super) struct Scanner {
    at: usize,
    region: Region,
    /// Examines the line until it is known to be no fence.
    line: Option<LineProbe>,
    /// Whether the line is white space so far.
    blank: bool,
    ticks: BacktickRuns,
    tag: Option<TagProbe>,
    queued: Option<Token>,
}

impl Default for Scanner {
    fn default() -> Self {
        Self::new(0)
    }
}

impl Scanner {
    pub(super) fn new(start: usize) -> Self {
        Self {
            at: start,
            region: Region::Prose,
            line: Some(LineProbe::new(start)),
            blank: true,
            ticks: BacktickRuns::default(),
            tag: None,
            queued: None,
        }
    }

    /// The first byte that belongs to no token yet.
    pub(super) const fn position(&self) -> usize {
        self.at
    }

    /// Whether a run of backticks within a line is undecided.
    pub(super) fn is_at_undecided_backticks(&self, view: View<'_>) -> bool {
        matches!(self.region, Region::Prose)
            && self.line.is_none()
            && view.byte(self.at) == Some(b'`')
    }

    /// Returns the next token, or `None` if the window does not decide it.
    pub(super) fn next(&mut self, view: View<'_>) -> Option<Token> {
        if let Some(token) = self.queued.take() {
            return Some(token);
        }
        let start = self.at;
        let (kind, special) = match self.region {
            Region::Prose => (TokenKind::Text, self.prose(view)),
            Region::InFence(fence) => (TokenKind::FenceBody, self.in_fence(fence, view)),
            Region::InThought(name) => {
                self.in_thought(name, view);
                (TokenKind::Thought, None)
            }
        };
        let end = special.map_or(self.at, |token| token.span.start);
        if start == end {
            return special;
        }
        self.queued = special;
        let span = Span::new(start, end);
        Some(Token { kind, span })
    }

    fn prose(&mut self, view: View<'_>) -> Option<Token> {
        loop {
            match self.line_is(Purpose::Open, view) {
                Line::Plain => {}
                Line::Fence(fence, end) => {
                    self.region = Region::InFence(fence);
                    return Some(self.line_token(TokenKind::FenceOpen, end));
                }
                Line::Undecided => return None,
            }
            let rest = view.bytes_from(self.at);
            let found = memchr3(b'<', b'`', b'\n', rest);
            visit(found.map_or(rest.len(), |offset| offset + 1));
            if self.blank {
                let passed = &rest[..found.unwrap_or(rest.len())];
                visit(passed.len());
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
                    match self.ticks.pass(self.at, view) {
                        InlineCode::Until(end) => self.at = end,
                        InlineCode::Undecided => return None,
                    }
                }
                _ => {
                    if self.blank && self.tag.is_none() {
                        match thought::tag_at(self.at, view) {
                            Thought::Undecided => return None,
                            Thought::Tag(kind, name, end) => {
                                if kind == TokenKind::Thought {
                                    self.region = Region::InThought(name);
                                }
                                return Some(self.tag_token(kind, end, view));
                            }
                            Thought::Absent => {}
                        }
                    }
                    let probe = self.tag.get_or_insert(TagProbe::new(self.at));
                    match probe.run(view) {
                        Tag::Undecided => return None,
                        Tag::Text => {
                            self.tag = None;
                            self.blank = false;
                            self.at += 1;
                        }
                        Tag::Token(kind, end) => {
                            return Some(self.tag_token(kind, end, view));
                        }
                    }
                }
            }
        }
    }

    fn in_fence(&mut self, fence: Fence, view: View<'_>) -> Option<Token> {
        loop {
            match self.line_is(Purpose::Close(fence), view) {
                Line::Plain => {}
                Line::Fence(_, end) => {
                    self.region = Region::Prose;
                    return Some(self.line_token(TokenKind::FenceClose, end));
                }
                Line::Undecided => return None,
            }
            let rest = view.bytes_from(self.at);
            let found = memchr(b'\n', rest);
            visit(found.map_or(rest.len(), |offset| offset + 1));
            let Some(offset) = found else {
                self.at = view.end();
                return None;
            };
            self.at += offset + 1;
            self.next_line();
        }
    }

    fn in_thought(&mut self, name: &str, view: View<'_>) {
        while let Some(offset) = memchr(b'<', view.bytes_from(self.at)) {
            visit(offset + 1);
            self.at += offset;
            match thought::tag_at(self.at, view) {
                Thought::Tag(TokenKind::ThoughtEnd, found, end) if found == name => {
                    self.region = Region::Prose;
                    self.at = end;
                    return;
                }
                Thought::Undecided => return,
                Thought::Tag(..) | Thought::Absent => self.at += 1,
            }
        }
        visit(view.end() - self.at);
        self.at = view.end();
    }

    fn line_is(&mut self, purpose: Purpose, view: View<'_>) -> Line {
        let Some(probe) = &mut self.line else {
            return Line::Plain;
        };
        let line = probe.run(purpose, view);
        if line == Line::Plain {
            self.line = None;
        }
        line
    }

    fn line_token(&mut self, kind: TokenKind, end: usize) -> Token {
        let span = Span::new(self.at, end);
        self.at = end;
        self.next_line();
        Token { kind, span }
    }

    fn tag_token(&mut self, kind: TokenKind, end: usize, view: View<'_>) -> Token {
        let span = Span::new(self.at, end);
        self.tag = None;
        self.at = end;
        let tag = view.slice(span).as_bytes();
        visit(tag.len());
        if memchr(b'\n', tag).is_some() {
            self.ticks.next_line();
        }
        Token { kind, span }
    }

    /// Called at the start of the new line.
    fn next_line(&mut self) {
        self.line = Some(LineProbe::new(self.at));
        self.blank = true;
        self.ticks.next_line();
    }
}
