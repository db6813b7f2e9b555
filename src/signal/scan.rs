//! Splits a reply into tokens: text, signal tags outside code, inline reasoning, written calls, marks
//! of chat templates, and code fences.
//!
//! Inline code is text without tags. Reasoning begins only at the start of a line, so an answer can
//! mention its tags. A call is read when the reply is complete.
//!
//! **Invariant:** the scanner can stop at any byte and resume with the same tokens, except where
//! text is cut; it reads each byte a bounded number of times.

use std::sync::Arc;

use memchr::{memchr, memchr2_iter, memchr3, memmem};

use super::{
    fence::{Fence, Line, LineProbe, Purpose},
    tag::{Tag, TagProbe},
    thought::{self, Thought},
    ticks::{BacktickRuns, InlineCode},
    token::{self, Meaning},
    view::{Span, View, visit},
    written::{self, Written},
};
use crate::model::ToolSpec;

/// Prose is searched in pieces of this size, because the marks of a line can be dense.
const PIECE: usize = 64;
/// Marks whose calls cannot be read, after which no more are read.
const MOST_FAILED: usize = 8;
/// Longest header of a message in harmony.
const HEADER: usize = 200;
/// Harmony without its marks.
const PLAIN: [&str; 3] = ["analysis", "assistantfinal", "assistantcommentary"];

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
    /// A mark of a chat template, or what follows the end of the reply.
    Hidden,
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
    /// Lasts until the closing tag of this name in brackets of this kind; without a name, until the
    /// next token of a chat template.
    InThought(&'static str, u8),
    /// After the end of the reply.
    Over,
}

/// What is read besides signals and thoughts.
#[derive(Debug, Clone, Default)]
pub(super) struct Offer {
    /// The tools whose written calls are read.
    pub(super) tools: Arc<[ToolSpec]>,
    /// Whether the answer is JSON, so that JSON without a mark is no call.
    pub(super) is_json: bool,
}

/// What begins at a bracket.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Mark {
    Thought(TokenKind, &'static str, usize),
    Call,
    /// A token of a chat template, up to this position.
    Token(usize),
    Absent,
    Undecided,
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
    offer: Offer,
    written: Option<Written>,
    failed: usize,
    /// Whether there was text besides white space.
    begun: bool,
    /// Whether an opening tag of reasoning was in mid-line.
    mentioned: bool,
    /// Whether `<s>` was, as in HTML.
    struck: bool,
    harmony: bool,
    /// Where the search for the end of an analysis without marks goes on.
    analysed: usize,
    over: Option<usize>,
}

impl Default for Scanner {
    fn default() -> Self {
        Self::new(0, Offer::default())
    }
}

impl Scanner {
    pub(super) fn new(start: usize, offer: Offer) -> Self {
        Self {
            offer,
            written: None,
            failed: 0,
            begun: false,
            mentioned: false,
            struck: false,
            harmony: false,
            analysed: start,
            over: None,
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

    /// The call of the token that was returned last.
    pub(super) const fn take_written(&mut self) -> Option<Written> {
        self.written.take()
    }

    /// Where the reply ended before its text did.
    pub(super) const fn over(&self) -> Option<usize> {
        self.over
    }

    pub(super) const fn offer(&self) -> &Offer {
        &self.offer
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
            Region::InThought(name, bracket) => {
                self.in_thought(name, bracket, view);
                if self.at == start && matches!(self.region, Region::Prose) {
                    return self.next(view);
                }
                (TokenKind::Thought, None)
            }
            Region::Over => {
                self.at = view.end();
                (TokenKind::Hidden, None)
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
            let piece = &rest[..rest.len().min(PIECE)];
            let found = memchr3(b'<', b'`', b'\n', piece);
            let passed = &piece[..found.unwrap_or(piece.len())];
            visit(passed.len() + 1);
            // `◁` begins with 0xE2.
            let brackets = memchr2_iter(b'[', 0xE2, passed);
            let mut marks = brackets.filter(|at| self.mark(self.at + at, view) != Mark::Absent);
            let found = marks.next().or(found);
            visit(found.unwrap_or(piece.len()));
            if self.blank {
                let passed = &piece[..found.unwrap_or(piece.len())];
                visit(passed.len());
                let text = passed.iter().position(|byte| !byte.is_ascii_whitespace());
                if let Some(offset) = text {
                    match self.bare(self.at + offset, view) {
                        Tag::Undecided => return None,
                        Tag::Token(kind, end) => {
                            self.at += offset;
                            return Some(self.tag_token(kind, end, view));
                        }
                        Tag::Text => {}
                    }
                }
                self.blank = text.is_none();
                self.begun |= !self.blank;
            }
            let Some(offset) = found else {
                self.at += piece.len();
                if piece.len() == rest.len() {
                    return None;
                }
                continue;
            };
            self.at += offset;
            match rest[offset] {
                b'\n' => {
                    self.at += 1;
                    self.next_line();
                }
                b'`' => {
                    (self.blank, self.begun) = (false, true);
                    match self.ticks.pass(self.at, view) {
                        InlineCode::Until(end) => self.at = end,
                        InlineCode::Undecided => return None,
                    }
                }
                byte => {
                    let mut tag = Tag::Text;
                    if self.tag.is_none() {
                        tag = self.marked(view);
                    }
                    if tag == Tag::Text && byte == b'<' {
                        let probe = self.tag.get_or_insert(TagProbe::new(self.at));
                        tag = probe.run(view);
                    }
                    match tag {
                        Tag::Undecided => return None,
                        Tag::Text => {
                            self.tag = None;
                            (self.blank, self.begun) = (false, true);
                            self.struck |= rest[offset..].starts_with(b"<s>");
                            self.at += 1;
                        }
                        Tag::Token(kind, end) => return Some(self.tag_token(kind, end, view)),
                    }
                }
            }
        }
    }

    /// What begins at `<`, `[` or `◁`, besides signals.
    fn mark(&self, at: usize, view: View<'_>) -> Mark {
        match thought::tag_at(at, view) {
            Thought::Tag(kind, name, end) => return Mark::Thought(kind, name, end),
            Thought::Undecided => return Mark::Undecided,
            Thought::Absent => {}
        }
        let text = view.text_from(at);
        if !text.starts_with(['<', '[']) {
            return Mark::Absent;
        }
        if !self.offer.tools.is_empty() {
            match written::is_mark(text, view.is_last()) {
                Some(true) => return Mark::Call,
                None => return Mark::Undecided,
                Some(false) => {}
            }
        }
        match token::at(text) {
            _ if text.starts_with("</s>") => Mark::Token(at + 4),
            token::Token::Whole(length) => Mark::Token(at + length),
            token::Token::Part if !view.is_last() => Mark::Undecided,
            _ if !view.is_last() && "</s>".starts_with(text) => Mark::Undecided,
            _ => Mark::Absent,
        }
    }

    /// Whether text from `at` may be shown before its line is complete.
    pub(super) fn may_mark(&self, at: usize, view: View<'_>) -> bool {
        self.mark(at, view) != Mark::Absent
    }

    fn marked(&mut self, view: View<'_>) -> Tag {
        match self.mark(self.at, view) {
            Mark::Undecided => Tag::Undecided,
            Mark::Absent => Tag::Text,
            Mark::Call => self.call(view, true),
            Mark::Thought(TokenKind::Thought, name, end) => {
                if !self.blank {
                    self.mentioned = true;
                    return Tag::Text;
                }
                self.region = Region::InThought(name, view.byte(self.at).unwrap_or(b'<'));
                Tag::Token(TokenKind::Thought, end)
            }
            Mark::Thought(kind, _, end) => match self.blank {
                true => Tag::Token(kind, end),
                false => self.thought_end(end, view),
            },
            Mark::Token(end) => self.token(end, view),
        }
    }

    /// A closing tag in mid-line, unless an answer mentions it.
    fn thought_end(&self, end: usize, view: View<'_>) -> Tag {
        let mut after = view.text_from(end).chars();
        let (first, second) = (after.next(), after.next());
        let is_mention = match first {
            _ if self.mentioned => true,
            None if !view.is_last() => return Tag::Undecided,
            Some(' ') if second.is_none() && !view.is_last() => return Tag::Undecided,
            Some(' ') => second.is_some_and(char::is_lowercase),
            first => first.is_some_and(|first| ".,;:)'\"".contains(first)),
        };
        match is_mention {
            true => Tag::Text,
            false => Tag::Token(TokenKind::ThoughtEnd, end),
        }
    }

    fn token(&mut self, end: usize, view: View<'_>) -> Tag {
        let name = token::name(view.slice(Span::new(self.at, end)));
        let rest = view.text_from(end);
        let hidden = |end| Tag::Token(TokenKind::Hidden, end);
        match token::meaning(&name) {
            Meaning::Call if !self.offer.tools.is_empty() => match self.call(view, true) {
                Tag::Text => hidden(end),
                tag => tag,
            },
            Meaning::Thought => {
                self.region = Region::InThought("", b'<');
                Tag::Token(TokenKind::Thought, end)
            }
            Meaning::Channel => self.channel(end, view),
            Meaning::End if name == "/s" && std::mem::take(&mut self.struck) => Tag::Text,
            Meaning::End if self.harmony && matches!(&*name, "end" | "call") => hidden(end),
            Meaning::End => {
                let opens = !self.begun || name == "start";
                let roles = ["assistant", "model"];
                if opens && !view.is_last() && roles.iter().any(|role| role.starts_with(rest)) {
                    return Tag::Undecided;
                }
                let role = roles.iter().find(|role| rest.starts_with(**role));
                let heads = "assistant begin_of_text begin_of_sentence bos /inst";
                let after = role.map_or("", |role| &rest[role.len()..]);
                if name == "start" && opens && role.is_some() && !self.offer.tools.is_empty() {
                    if !view.is_last() && " to=".starts_with(after) {
                        return Tag::Undecided;
                    }
                    if after.starts_with(" to=")
                        && let tag @ (Tag::Token(..) | Tag::Undecided) = self.call(view, true)
                    {
                        return tag;
                    }
                }
                match role {
                    Some(role) if opens => hidden(end + role.len()),
                    None if opens && heads.split(' ').any(|head| head == name) => hidden(end),
                    _ => {
                        self.over = Some(self.at);
                        self.region = Region::Over;
                        hidden(end)
                    }
                }
            }
            _ => hidden(end),
        }
    }

    /// The header of a message: of reasoning, of a call, or of text.
    fn channel(&mut self, end: usize, view: View<'_>) -> Tag {
        const MESSAGE: &str = "<|message|>";
        let rest = view.text_from(end);
        let head = &rest[..rest.floor_char_boundary(HEADER)];
        let header = head.find(MESSAGE);
        if header.is_none() && head.len() == rest.len() && !view.is_last() {
            return Tag::Undecided;
        }
        let word = head.bytes().take_while(u8::is_ascii_alphabetic).count();
        let after = end + header.map_or(word, |at| at + MESSAGE.len());
        let header = &head[..header.unwrap_or(word)];
        self.harmony = true;
        if header.contains("to=") && !self.offer.tools.is_empty() {
            match self.call(view, true) {
                Tag::Text => {}
                tag => return tag,
            }
        }
        if header.starts_with("analysis") {
            self.region = Region::InThought("", b'<');
            return Tag::Token(TokenKind::Thought, after);
        }
        Tag::Token(TokenKind::Hidden, after)
    }

    /// A call or an analysis without marks, where a line begins.
    fn bare(&mut self, at: usize, view: View<'_>) -> Tag {
        let text = view.text_from(at);
        let [analysis, last, call] = PLAIN;
        if !self.begun && text.starts_with(analysis) {
            let is_sentence =
                |c: char| c.is_whitespace() || c.is_lowercase() || ".,;:-_')(".contains(c);
            match text[analysis.len()..].chars().next() {
                None if !view.is_last() => return Tag::Undecided,
                None => return Tag::Text,
                Some(c) if is_sentence(c) => return Tag::Text,
                Some(_) => {}
            }
            let from = self.analysed.max(at);
            let rest = view.bytes_from(from);
            visit(rest.len());
            let ends = [last, call].map(|mark| memmem::find(rest, mark.as_bytes()));
            return match ends {
                [Some(end), other] if other.is_none_or(|other| end < other) => {
                    Tag::Token(TokenKind::Hidden, from + end + last.len())
                }
                [_, Some(end)] => Tag::Token(TokenKind::Hidden, from + end),
                _ if view.is_last() => Tag::Text,
                _ => {
                    self.analysed = view.end().saturating_sub(call.len()).max(at);
                    Tag::Undecided
                }
            };
        }
        // A first letter alone is not held back.
        let is_part = text.len() > 1 && analysis.starts_with(text);
        if !view.is_last() && !self.begun && is_part {
            return Tag::Undecided;
        }
        if self.offer.tools.is_empty() {
            return Tag::Text;
        }
        let (is_mark, is_json) = match text.as_bytes().first() {
            Some(b'{' | b'[') if !self.offer.is_json => {
                (Some(false), written::is_json(text, view.is_last()))
            }
            Some(b'a') if !self.begun => (written::is_mark(text, view.is_last()), Some(false)),
            _ => return Tag::Text,
        };
        match (is_mark, is_json) {
            (None, _) | (_, None) => Tag::Undecided,
            (Some(false), Some(false)) => Tag::Text,
            (is_mark, _) => {
                let before = std::mem::replace(&mut self.at, at);
                let tag = self.call(view, is_mark == Some(true));
                self.at = before;
                tag
            }
        }
    }

    /// Reads the call that begins here, once the reply is complete.
    fn call(&mut self, view: View<'_>, is_marked: bool) -> Tag {
        if !view.is_last() {
            return Tag::Undecided;
        }
        if self.failed == MOST_FAILED {
            return Tag::Text;
        }
        let text = view.text_from(self.at);
        let Some((length, calls)) = written::read(text, &self.offer.tools, !is_marked) else {
            self.failed += 1;
            return Tag::Text;
        };
        let span = Span::new(self.at, self.at + length);
        // Nothing is before JSON that is all of a reply.
        let is_marked = is_marked || !self.begun;
        self.written = Some(Written {
            span,
            is_marked,
            calls,
        });
        Tag::Token(TokenKind::Call, span.end)
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

    fn in_thought(&mut self, name: &str, bracket: u8, view: View<'_>) {
        while let Some(offset) = memchr(bracket, view.bytes_from(self.at)) {
            visit(offset + 1);
            self.at += offset;
            let token = match name {
                "" => token::at(view.text_from(self.at)),
                _ => token::Token::Absent,
            };
            match (token, thought::tag_at(self.at, view)) {
                (_, Thought::Tag(TokenKind::ThoughtEnd, found, end)) if found == name => {
                    self.region = Region::Prose;
                    self.at = end;
                    return;
                }
                (token::Token::Whole(_), _) => {
                    self.region = Region::Prose;
                    return;
                }
                (token::Token::Part, _) | (_, Thought::Undecided) if !view.is_last() => return,
                _ => self.at += 1,
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
        if kind == TokenKind::Hidden {
            self.next_line();
        } else if memchr(b'\n', tag).is_some() {
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
