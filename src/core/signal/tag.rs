//! Parses signal tags byte by byte.
//!
//! A probe keeps its position, so it reads each tag once. A quoted value ends at its line, so an
//! unclosed quote costs a line, not the reply.
//!
//! A near miss is an opening tag of `signal` or `signals` that has a `type=` and breaks the rules.
//! It ends at its `>`, else at the first `>` in or after its last value, or at the next tag or
//! line.

use memchr::{memchr2, memchr3};

use super::{
    scan::TokenKind,
    view::{View, visit},
};

const PLURAL: &[u8] = b"signals";
/// Length of the correct name.
const NAME: usize = 6;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Tag {
    /// A tag, up to this position.
    Token(TokenKind, usize),
    Text,
    Undecided,
}

#[derive(Debug, Clone, Copy)]
enum TagState {
    Start,
    /// The number of name letters read.
    Opening(usize),
    Closing(usize),
    BeforeAttribute,
    AttributeName,
    AfterAttributeName,
    BeforeValue,
    Value(u8),
    Unquoted,
    AfterValue,
    BeforeEnd,
    /// Searching for the end of a near miss.
    NearMiss,
}

enum Step {
    To(TagState),
    Open,
    Close,
    NearMiss,
    Text,
}

#[derive(Debug)]
pub(super) struct TagProbe {
    at: usize,
    state: TagState,
    /// Start of the latest attribute's name, then of its value.
    name: usize,
    value: usize,
    typed: bool,
    broken: bool,
}

impl TagProbe {
    pub(super) const fn new(start: usize) -> Self {
        Self {
            at: start + 1,
            state: TagState::Start,
            name: start,
            value: start,
            typed: false,
            broken: false,
        }
    }

    pub(super) fn run(&mut self, view: View<'_>) -> Tag {
        loop {
            let skipped = self.skip(view.bytes_from(self.at));
            visit(skipped);
            self.at += skipped;
            let Some(byte) = view.byte(self.at) else {
                match self.state {
                    _ if !view.is_last() => return Tag::Undecided,
                    // The quote is unclosed, so the tag may still end at a bracket within the
                    // value.
                    TagState::Value(_) if self.typed => self.miss(),
                    _ => return self.cut(),
                }
                continue;
            };
            let (byte, length) = match white_space(view.bytes_from(self.at)) {
                0 => (byte, 1),
                length => (b' ', length),
            };
            visit(length);
            self.at += length;
            match step(self.state, byte) {
                Step::To(state) => self.enter(state, byte, view),
                Step::Open if !self.broken => return Tag::Token(TokenKind::Open, self.at),
                Step::Open if self.typed => return Tag::Token(TokenKind::NearMiss, self.at),
                Step::Close if self.broken => return Tag::Token(TokenKind::ClosePlural, self.at),
                Step::Close => return Tag::Token(TokenKind::Close, self.at),
                Step::NearMiss => {
                    let end = self.at - usize::from(byte != b'>');
                    return Tag::Token(TokenKind::NearMiss, end);
                }
                Step::Text if self.typed => self.miss(),
                Step::Open | Step::Text => return Tag::Text,
            }
        }
    }

    /// Returns to the last value, to find where the broken tag ends.
    const fn miss(&mut self) {
        self.at = self.value;
        self.state = TagState::NearMiss;
    }

    fn enter(&mut self, state: TagState, byte: u8, view: View<'_>) {
        let here = self.at - 1;
        match (self.state, state) {
            (TagState::AttributeName | TagState::AfterAttributeName, TagState::BeforeValue) => {
                let name = &view.bytes_from(self.name)[..here - self.name];
                visit(name.len());
                let end = name.iter().position(|byte| !continues_name(*byte));
                let name = &name[..end.unwrap_or(name.len())];
                self.typed |= name.eq_ignore_ascii_case(b"type");
                self.value = self.at;
            }
            (TagState::BeforeAttribute, TagState::AttributeName) => self.name = here,
            (TagState::BeforeValue, TagState::Value(_) | TagState::Unquoted) => self.value = here,
            _ => {}
        }
        self.broken |= match state {
            TagState::Opening(seen) | TagState::Closing(seen) => seen > NAME,
            TagState::BeforeAttribute => byte == b'/',
            _ => matches!(state, TagState::Unquoted),
        };
        self.state = state;
    }

    /// Counts the bytes that leave the state unchanged; an optimisation.
    fn skip(&self, rest: &[u8]) -> usize {
        let stop = match self.state {
            TagState::AttributeName => rest.iter().position(|byte| !continues_name(*byte)),
            TagState::Value(quote) => memchr2(quote, b'\n', rest),
            TagState::NearMiss => memchr3(b'<', b'>', b'\n', rest),
            _ => Some(0),
        };
        stop.unwrap_or(rest.len())
    }

    /// Classifies a tag at the end of the reply: a clear one is removed, a bare `<signal` is text.
    const fn cut(&self) -> Tag {
        match self.state {
            TagState::Start | TagState::Opening(_) => Tag::Text,
            TagState::Closing(seen) if seen != NAME => Tag::Text,
            _ if self.broken && !self.typed => Tag::Text,
            _ => Tag::Token(TokenKind::Cut, self.at),
        }
    }
}

/// Length of the Unicode white space that a text begins with; 0 if there is none.
pub(super) fn white_space(text: &[u8]) -> usize {
    let length = match text.first() {
        Some(b'\t'..=b'\r' | b' ') => return 1,
        Some(0xC2) => 2,
        Some(0xE1..=0xE3) => 3,
        _ => return 0,
    };
    let first = text.get(..length);
    let first = first.and_then(|bytes| str::from_utf8(bytes).ok());
    let is_white = first.is_some_and(|text| text.chars().all(char::is_whitespace));
    if is_white { length } else { 0 }
}

/// White space of any kind is given as `b' '`.
fn step(state: TagState, byte: u8) -> Step {
    use TagState::{
        AfterAttributeName, AfterValue, AttributeName, BeforeAttribute, BeforeEnd, BeforeValue,
        Closing, NearMiss, Opening, Start, Unquoted, Value,
    };
    let white = byte == b' ';
    let continues = |seen| {
        let letter = PLURAL.get::<usize>(seen);
        letter.is_some_and(|letter| byte.eq_ignore_ascii_case(letter))
    };
    match state {
        Start if byte == b'/' => Step::To(Closing(0)),
        Start => step(Opening(0), byte),
        Opening(seen) if continues(seen) => Step::To(Opening(seen + 1)),
        Closing(seen) if continues(seen) => Step::To(Closing(seen + 1)),
        Opening(seen) | Closing(seen) if seen < NAME => Step::Text,
        Closing(_) | BeforeEnd if byte == b'>' => Step::Close,
        Closing(_) | BeforeEnd if white => Step::To(BeforeEnd),
        Opening(_) | BeforeAttribute | Unquoted | AfterValue if byte == b'>' => Step::Open,
        Opening(_) | BeforeAttribute | Unquoted | AfterValue if white => Step::To(BeforeAttribute),
        // A slash self-closes the tag if the tag ends here.
        BeforeAttribute | AfterValue if byte == b'/' => Step::To(BeforeAttribute),
        BeforeAttribute if byte.is_ascii_alphabetic() || byte == b'_' => Step::To(AttributeName),
        AttributeName if continues_name(byte) => Step::To(AttributeName),
        AttributeName | AfterAttributeName if byte == b'=' => Step::To(BeforeValue),
        AttributeName | AfterAttributeName if white => Step::To(AfterAttributeName),
        BeforeValue if white => Step::To(BeforeValue),
        BeforeValue if byte == b'"' || byte == b'\'' => Step::To(Value(byte)),
        BeforeValue | Unquoted if byte != b'<' && byte != b'>' => Step::To(Unquoted),
        Value(quote) if byte == quote => Step::To(AfterValue),
        NearMiss => Step::NearMiss,
        _no_valid_tag => Step::Text,
    }
}

fn continues_name(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || b"_-.:".contains(&byte)
}

/// Whether a tag or near miss begins here, or would with more bytes.
pub(super) fn may_begin(after: &[u8]) -> bool {
    let name = after.strip_prefix(b"/").unwrap_or(after);
    let seen = common(name, PLURAL);
    name.get(seen).is_none_or(|next| {
        white_space(&name[seen..]) > 0 && seen >= NAME || *next == b'>' && seen == NAME
    })
}

/// Whether a tag of the name begins here, or would with more bytes.
pub(super) fn may_begin_tag(after: &[u8], of: &[u8]) -> bool {
    let name = after.strip_prefix(b"/").unwrap_or(after);
    let seen = common(name, of);
    name.get(seen).is_none_or(|next| {
        seen == of.len() && (matches!(next, b'>' | b'/') || white_space(&name[seen..]) > 0)
    })
}

/// Number of equal letters at the beginning.
fn common(text: &[u8], name: &[u8]) -> usize {
    let pairs = text.iter().zip(name);
    pairs.take_while(|(a, b)| a.eq_ignore_ascii_case(b)).count()
}

/// Explains the right form to the model, without brackets, because guidance escapes them.
pub(super) fn fault(near_miss: &str) -> String {
    let fault = if near_miss.as_bytes()[1 + NAME].is_ascii_alphabetic() {
        "the tag is `signal`, not `signals`"
    } else if near_miss.ends_with("/>") {
        "a `signal` tag must not be self-closed"
    } else {
        "the attributes of a `signal` tag need quoted values and a `>` after the last"
    };
    format!(
        "{fault}; write `signal type=\"need_turn\"` in angle brackets, then the fields and a \
         closing `signal` tag"
    )
}

/// Returns the attributes of an opening tag in order.
pub(super) fn attributes(tag: &str) -> impl Iterator<Item = (&str, &str)> {
    let mut rest = tag.get(1 + NAME..).unwrap_or_default();
    std::iter::from_fn(move || {
        let (name, after) = rest.split_once('=')?;
        let after = after.trim_start();
        let quote = after.chars().next()?;
        let (value, next) = after[quote.len_utf8()..].split_once(quote)?;
        rest = next;
        Some((name.trim(), value))
    })
}
