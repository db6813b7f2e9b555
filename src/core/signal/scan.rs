//! Splits a reply into tokens: text, signal tags outside code, inline reasoning, written calls, marks
//! of chat templates, and code fences.
//!
//! Inline code is text without tags. Reasoning begins only at the start of a line, so an answer can
//! mention its tags. A call is read when the reply is complete.
//!
//! **Invariant:** the scanner can stop at any byte and resume with the same tokens, except where
//! text is cut; it reads each byte a bounded number of times.

use std::sync::Arc;

use memchr::{memchr, memchr2, memchr3};

use super::{
    fence::{Fence, Line, LineProbe, Purpose},
    mark::{self, Mark},
    tag::{Tag, TagProbe},
    ticks::{BacktickRuns, InlineCode},
    view::{Span, View, visit},
    written::{self, Written},
};
use crate::model::ToolSpec;

/// Prose is searched in pieces of this size, because what one search finds may be far behind what
/// the other does.
const PIECE: usize = 64;
/// Failed attempts to read a call, after which none is made.
const MOST_FAILED: usize = 8;
/// Longest header of a message in harmony.
const HEADER: usize = 200;
/// What an answer begins with in harmony without its marks.
const FINAL: &str = "assistantfinal";

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
    /// A written call, or several.
    Call,
    /// A mark of a chat template.
    Hidden,
    /// The end of the reply and what follows it, possibly in pieces.
    Over,
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
    /// Lasts until this closing tag; without one, until the next token of a chat template.
    InThought(Option<&'static str>),
    /// After the end of the reply.
    Over,
}

/// What is read besides signals and thoughts.
#[derive(Debug, Clone, Default)]
pub(super) struct Offer {
    /// The tools whose written calls are read.
    pub(super) tools: Arc<[ToolSpec]>,
    /// Whether the answer is text. JSON without a mark is no call if the answer is JSON.
    pub(super) is_text: bool,
}

#[derive(Debug, Default)]
pub(super) struct Scanner {
    /// The first byte that belongs to no token yet.
    pub(super) at: usize,
    region: Region,
    line: LineProbe,
    /// Whether the line has text besides white space so far.
    has_text: bool,
    ticks: BacktickRuns,
    tag: Option<TagProbe>,
    queued: Option<Token>,
    pub(super) offer: Offer,
    /// The calls of the tokens so far.
    pub(super) written: Vec<Written>,
    failed: usize,
    /// Whether there was text besides white space.
    begun: bool,
    /// Whether an opening tag of reasoning was in mid-line.
    mentioned: bool,
    /// Whether text precedes the open `<s>`.
    struck: Option<bool>,
}

impl Scanner {
    pub(super) fn new(start: usize, offer: Offer) -> Self {
        Self {
            at: start,
            line: LineProbe::new(start),
            offer,
            ..Self::default()
        }
    }

    /// Whether a run of backticks within a line is undecided.
    pub(super) fn is_at_undecided_backticks(&self, view: View<'_>) -> bool {
        matches!(self.region, Region::Prose)
            && self.line.is_plain
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
            Region::InThought(close) => {
                self.in_thought(close, view);
                if self.at == start && matches!(self.region, Region::Prose) {
                    return self.next(view);
                }
                (TokenKind::Thought, None)
            }
            Region::Over => {
                self.at = view.end();
                (TokenKind::Over, None)
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
            match self.line.run(Purpose::Open, view) {
                Line::Plain => {}
                Line::Fence(fence, end) => {
                    self.region = Region::InFence(fence);
                    return Some(self.line_token(TokenKind::FenceOpen, end));
                }
                Line::Undecided => return None,
            }
            let mut rest = view.bytes_from(self.at);
            if !self.has_text {
                let is_white = |byte: &&u8| byte.is_ascii_whitespace() && **byte != b'\n';
                let white = rest.iter().take_while(is_white).count();
                visit(white);
                self.at += white;
                rest = &rest[white..];
                match self.bare(view) {
                    Tag::Undecided => return None,
                    Tag::Token(kind, end) => return Some(self.tag_token(kind, end, view)),
                    Tag::Text => {}
                }
            }
            let piece = &rest[..rest.len().min(PIECE)];
            // `◁` begins with 0xE2.
            let found = [
                memchr3(b'<', b'`', b'\n', piece),
                memchr2(b'[', 0xE2, piece),
            ];
            let found = found.into_iter().flatten().min();
            let passed = found.unwrap_or(piece.len());
            visit(passed + 1);
            self.at += passed;
            if passed > 0 {
                self.begin();
            }
            match found.map(|offset| rest[offset]) {
                None if passed == rest.len() => return None,
                None => {}
                Some(b'\n') => {
                    self.at += 1;
                    self.next_line();
                }
                Some(b'`') => {
                    self.begin();
                    match self.ticks.pass(self.at, view) {
                        InlineCode::Until(end) => self.at = end,
                        InlineCode::Undecided => return None,
                    }
                }
                Some(bracket) => match self.bracket(bracket, view) {
                    Tag::Undecided => return None,
                    Tag::Text => {
                        self.tag = None;
                        self.begin();
                        self.at += 1;
                    }
                    Tag::Token(kind, end) => return Some(self.tag_token(kind, end, view)),
                },
            }
        }
    }

    /// Called at text.
    const fn begin(&mut self) {
        (self.has_text, self.begun) = (true, true);
    }

    /// The mark or the tag of a signal that begins here.
    fn bracket(&mut self, bracket: u8, view: View<'_>) -> Tag {
        if self.tag.is_none() {
            let mark = self.mark(view);
            if mark != Tag::Text || bracket != b'<' {
                return mark;
            }
        }
        self.tag.get_or_insert(TagProbe::new(self.at)).run(view)
    }

    fn mark(&mut self, view: View<'_>) -> Tag {
        let (mark, length) = mark::at(view.text_from(self.at));
        let end = self.at + length;
        match mark {
            Mark::Part if !view.is_last() => Tag::Undecided,
            Mark::Part | Mark::Absent => Tag::Text,
            Mark::Thought(Some(_)) if self.has_text => {
                self.mentioned = true;
                Tag::Text
            }
            Mark::Thought(close) => self.thought(close, end),
            Mark::ThoughtEnd => self.thought_end(end, view),
            Mark::Analysis => self.analysis(end, view),
            Mark::CallTag => self.call(view, true),
            Mark::Call => match self.call(view, true) {
                Tag::Text => Tag::Token(TokenKind::Hidden, end),
                tag => tag,
            },
            Mark::Speaker | Mark::Channel => self.header(mark, end, view),
            Mark::Head if self.begun => self.over(end),
            Mark::Head | Mark::Other => Tag::Token(TokenKind::Hidden, end),
            Mark::End => self.end(end, view),
            Mark::Strike => {
                self.struck = Some(self.begun);
                match self.begun {
                    true => Tag::Text,
                    false => Tag::Token(TokenKind::Hidden, end),
                }
            }
            Mark::StrikeEnd => match self.struck {
                // The token that begins a reply has its counterpart at the end.
                Some(false) if view.end() == end && !view.is_last() => Tag::Undecided,
                Some(begun) if begun || view.end() != end => {
                    self.struck = None;
                    Tag::Text
                }
                _ => self.over(end),
            },
        }
    }

    const fn thought(&mut self, close: Option<&'static str>, end: usize) -> Tag {
        self.region = Region::InThought(close);
        Tag::Token(TokenKind::Thought, end)
    }

    /// A closing tag, unless an answer mentions it in mid-line.
    fn thought_end(&self, end: usize, view: View<'_>) -> Tag {
        let after = view.text_from(end);
        let next_word = after.strip_prefix(' ').unwrap_or_default();
        let is_mention = self.mentioned
            || after.starts_with(['.', ',', ';', ':', ')', '\'', '"'])
            || next_word.starts_with(char::is_lowercase);
        match self.has_text {
            true if is_mention => Tag::Text,
            true if after.len() < 2 && !view.is_last() => Tag::Undecided,
            _ => Tag::Token(TokenKind::ThoughtEnd, end),
        }
    }

    /// The end of the reply, or what its template begins it with.
    fn end(&mut self, end: usize, view: View<'_>) -> Tag {
        if !self.begun {
            for role in ["assistant", "model"] {
                match mark::begins(view.text_from(end), role) {
                    Some(true) => return Tag::Token(TokenKind::Hidden, end + role.len()),
                    None if !view.is_last() => return Tag::Undecided,
                    _ => {}
                }
            }
        }
        self.over(end)
    }

    const fn over(&mut self, end: usize) -> Tag {
        self.region = Region::Over;
        Tag::Token(TokenKind::Over, end)
    }

    /// The header of a message in harmony: of reasoning, a call, text, or of another speaker's.
    fn header(&mut self, mark: Mark, end: usize, view: View<'_>) -> Tag {
        const MESSAGE: &str = "<|message|>";
        let rest = view.text_from(end);
        let head = &rest[..rest.floor_char_boundary(HEADER)];
        let message = head.find(MESSAGE);
        if message.is_none() && head.len() == rest.len() && !view.is_last() {
            return Tag::Undecided;
        }
        let word = head.bytes().take_while(u8::is_ascii_alphabetic).count();
        let header = &head[..message.unwrap_or(word)];
        let end = end + message.map_or(word, |at| at + MESSAGE.len());
        if mark == Mark::Speaker && !header.starts_with("assistant") {
            return self.over(end);
        }
        if header.contains("to=")
            && let tag @ (Tag::Token(..) | Tag::Undecided) = self.call(view, true)
        {
            return tag;
        }
        match header.contains("analysis") {
            true => self.thought(None, end),
            false => Tag::Token(TokenKind::Hidden, end),
        }
    }

    /// A call or an analysis without marks, where a line begins.
    fn bare(&mut self, view: View<'_>) -> Tag {
        let text = view.text_from(self.at);
        let has_tools = !self.offer.tools.is_empty();
        // A first letter alone is not held back.
        if !self.begun
            && text.starts_with('a')
            && (has_tools || text.len() > 1)
            && let tag @ (Tag::Token(..) | Tag::Undecided) = self.mark(view)
        {
            return tag;
        }
        if has_tools && self.offer.is_text {
            match written::begins_call(text, &self.offer.tools) {
                Some(true) => return self.call(view, false),
                None if !view.is_last() => return Tag::Undecided,
                _ => {}
            }
        }
        Tag::Text
    }

    /// An analysis without marks. Only a complete reply shows that it is no other word.
    fn analysis(&self, end: usize, view: View<'_>) -> Tag {
        let rest = view.text_from(end);
        let is_prose = |c: char| c.is_whitespace() || c.is_lowercase() || ".,;:-_')(".contains(c);
        if rest.starts_with(is_prose) {
            return Tag::Text;
        }
        if !view.is_last() {
            return Tag::Undecided;
        }
        visit(rest.len());
        let call = rest.find("assistantcommentary");
        let text = rest.find(FINAL).map(|at| at + FINAL.len());
        match call.into_iter().chain(text).min() {
            Some(length) => Tag::Token(TokenKind::Hidden, end + length),
            None => Tag::Text,
        }
    }

    /// Reads the call that begins here, once the reply is complete.
    fn call(&mut self, view: View<'_>, is_marked: bool) -> Tag {
        if self.offer.tools.is_empty() || self.failed == MOST_FAILED {
            return Tag::Text;
        }
        if !view.is_last() {
            return Tag::Undecided;
        }
        let read = written::read(view.text_from(self.at), &self.offer.tools, !is_marked);
        let Some((length, calls)) = read else {
            self.failed += 1;
            return Tag::Text;
        };
        let span = Span::new(self.at, self.at + length);
        self.written.push(Written {
            span,
            // JSON that a reply begins with is no example.
            is_marked: is_marked
                || !self.begun && matches!(view.byte(span.start), Some(b'{' | b'[')),
            calls,
        });
        Tag::Token(TokenKind::Call, span.end)
    }

    fn in_fence(&mut self, fence: Fence, view: View<'_>) -> Option<Token> {
        loop {
            match self.line.run(Purpose::Close(fence), view) {
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

    fn in_thought(&mut self, close: Option<&str>, view: View<'_>) {
        let bracket = close.map_or(b'<', |close| close.as_bytes()[0]);
        while let Some(offset) = memchr(bracket, view.bytes_from(self.at)) {
            visit(offset + 1);
            self.at += offset;
            let text = view.text_from(self.at);
            let ends = match close {
                Some(close) => mark::begins(text, close),
                None => {
                    let (mark, _) = mark::at(text);
                    (mark != Mark::Part).then(|| mark.is_token())
                }
            };
            match ends {
                Some(true) => {
                    let length = close.map_or(0, str::len);
                    visit(length);
                    self.at += length;
                    self.region = Region::Prose;
                    return;
                }
                None if !view.is_last() => return,
                _ => self.at += 1,
            }
        }
        visit(view.end() - self.at);
        self.at = view.end();
    }

    fn line_token(&mut self, kind: TokenKind, end: usize) -> Token {
        let span = Span::new(self.at, end);
        (self.at, self.begun) = (end, true);
        self.next_line();
        Token { kind, span }
    }

    fn tag_token(&mut self, kind: TokenKind, end: usize, view: View<'_>) -> Token {
        let span = Span::new(self.at, end);
        self.tag = None;
        self.at = end;
        let tag = view.slice(span).as_bytes();
        visit(tag.len());
        if kind == TokenKind::Hidden {
            self.next_line();
        } else if memchr(b'\n', tag).is_some() {
            self.ticks = BacktickRuns::default();
        }
        Token { kind, span }
    }

    /// Called at the start of the new line.
    fn next_line(&mut self) {
        self.line = LineProbe::new(self.at);
        self.has_text = false;
        self.ticks = BacktickRuns::default();
    }
}
