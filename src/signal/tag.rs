//! Signal tags, byte by byte (spec 2, "Tags"): is this `<` the start of one, and where does it end.
//!
//! A probe keeps its place, so a tag that arrives in pieces is looked at once. A quoted value ends
//! on its line, as inline code does: a lost quote costs a line, not the rest of the reply.

use memchr::memchr2;

use super::view::{Meter, View};

const NAME: &[u8] = b"signal";

/// What stands at a `<`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Tag {
    /// An opening tag that ends before this position.
    Open(usize),
    /// A closing tag that ends before this position.
    Close(usize),
    /// A tag that the end of the reply cut off.
    Cut,
    /// No signal tag.
    Text,
    /// More bytes decide.
    Undecided,
}

#[derive(Debug, Clone, Copy)]
enum State {
    Start,
    Name { side: Side, seen: usize },
    BeforeAttribute,
    AttributeName,
    AfterAttributeName,
    BeforeValue,
    Value(u8),
    AfterValue,
    BeforeEnd,
}

#[derive(Debug, Clone, Copy)]
enum Side {
    Opening,
    Closing,
}

enum Step {
    To(State),
    Open,
    Close,
    Text,
}

/// A tag that is being looked at.
#[derive(Debug)]
pub(super) struct TagProbe {
    at: usize,
    state: State,
}

impl TagProbe {
    /// At the `<` at `start`.
    pub(super) const fn new(start: usize) -> Self {
        Self {
            at: start + 1,
            state: State::Start,
        }
    }

    /// Looks as far as the window goes.
    pub(super) fn run(&mut self, view: View<'_>, meter: &mut impl Meter) -> Tag {
        loop {
            let skipped = self.skip(view.bytes_from(self.at));
            meter.visit(skipped);
            self.at += skipped;
            let Some(byte) = view.byte(self.at) else {
                return if view.is_last() {
                    self.cut()
                } else {
                    Tag::Undecided
                };
            };
            meter.visit(1);
            self.at += 1;
            match step(self.state, byte) {
                Step::To(state) => self.state = state,
                Step::Open => return Tag::Open(self.at),
                Step::Close => return Tag::Close(self.at),
                Step::Text => return Tag::Text,
            }
        }
    }

    /// How many bytes stay within the name or value that it stands in. Spares steps, decides nothing.
    fn skip(&mut self, rest: &[u8]) -> usize {
        match &mut self.state {
            State::Name { seen, .. } => {
                let pairs = NAME[*seen..].iter().zip(rest);
                let same = pairs.take_while(|(one, other)| one.eq_ignore_ascii_case(other));
                let skipped = same.count();
                *seen += skipped;
                skipped
            }
            State::AttributeName => {
                let name = rest.iter().take_while(|byte| continues_name(**byte));
                name.count()
            }
            State::Value(quote) => memchr2(*quote, b'\n', rest).unwrap_or(rest.len()),
            State::Start
            | State::BeforeAttribute
            | State::AfterAttributeName
            | State::BeforeValue
            | State::AfterValue
            | State::BeforeEnd => 0,
        }
    }

    /// At the end of the reply: a tag that was surely meant as one goes, a bare `<signal` is text.
    const fn cut(&self) -> Tag {
        match self.state {
            State::Name {
                side: Side::Closing,
                seen,
            } if seen == NAME.len() => Tag::Cut,
            State::Start | State::Name { .. } => Tag::Text,
            State::BeforeAttribute
            | State::AttributeName
            | State::AfterAttributeName
            | State::BeforeValue
            | State::Value(_)
            | State::AfterValue
            | State::BeforeEnd => Tag::Cut,
        }
    }
}

fn step(state: State, byte: u8) -> Step {
    let white = byte.is_ascii_whitespace();
    match state {
        State::Start if byte == b'/' => Step::To(State::Name {
            side: Side::Closing,
            seen: 0,
        }),
        State::Start => step(
            State::Name {
                side: Side::Opening,
                seen: 0,
            },
            byte,
        ),
        State::Name { side, seen } if seen < NAME.len() => {
            if byte.eq_ignore_ascii_case(&NAME[seen]) {
                Step::To(State::Name {
                    side,
                    seen: seen + 1,
                })
            } else {
                Step::Text
            }
        }
        State::Name {
            side: Side::Opening,
            ..
        } if byte == b'>' => Step::Open,
        State::Name {
            side: Side::Opening,
            ..
        } if white => Step::To(State::BeforeAttribute),
        State::Name {
            side: Side::Closing,
            ..
        }
        | State::BeforeEnd
            if byte == b'>' =>
        {
            Step::Close
        }
        State::Name {
            side: Side::Closing,
            ..
        }
        | State::BeforeEnd
            if white =>
        {
            Step::To(State::BeforeEnd)
        }
        State::Name { .. } | State::BeforeEnd => Step::Text,
        State::BeforeAttribute | State::AfterValue if byte == b'>' => Step::Open,
        State::BeforeAttribute | State::AfterValue if white => Step::To(State::BeforeAttribute),
        State::BeforeAttribute if byte.is_ascii_alphabetic() || byte == b'_' => {
            Step::To(State::AttributeName)
        }
        State::AttributeName if continues_name(byte) => Step::To(State::AttributeName),
        State::AttributeName | State::AfterAttributeName if byte == b'=' => {
            Step::To(State::BeforeValue)
        }
        State::AttributeName | State::AfterAttributeName if white => {
            Step::To(State::AfterAttributeName)
        }
        State::BeforeValue if white => Step::To(State::BeforeValue),
        State::BeforeValue if byte == b'"' || byte == b'\'' => Step::To(State::Value(byte)),
        State::Value(quote) if byte == quote => Step::To(State::AfterValue),
        State::BeforeAttribute
        | State::AttributeName
        | State::AfterAttributeName
        | State::BeforeValue
        | State::Value(_)
        | State::AfterValue => Step::Text,
    }
}

fn continues_name(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || b"_-.:".contains(&byte)
}

/// Whether the bytes after a `<` begin a signal tag, or would with more bytes after them.
pub(super) fn may_begin(after: &[u8]) -> bool {
    let name = after.strip_prefix(b"/").unwrap_or(after);
    let seen = name.len().min(NAME.len());
    name[..seen].eq_ignore_ascii_case(&NAME[..seen])
        && name
            .get(NAME.len())
            .is_none_or(|byte| *byte == b'>' || byte.is_ascii_whitespace())
}

/// The attributes of an opening tag that a probe found, in order; names as written.
pub(super) fn attributes(tag: &str) -> impl Iterator<Item = (&str, &str)> {
    let mut rest = tag.get(1 + NAME.len()..).unwrap_or_default();
    std::iter::from_fn(move || {
        let (name, after) = rest.split_once('=')?;
        let after = after.trim_start();
        let quote = after.chars().next()?;
        let (value, next) = after[quote.len_utf8()..].split_once(quote)?;
        rest = next;
        Some((name.trim(), value))
    })
}
