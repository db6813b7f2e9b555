//! A reply before its dialect is applied, and the events of a stream.

use std::sync::Arc;

use bytes::Bytes;
use serde_json::Value;

use super::{fault::FaultKind, request::ParsedRequest};
use crate::model::StopReason;

pub(super) struct Reply<'a> {
    pub(super) asked: &'a ParsedRequest<'a>,
    pub(super) said: &'a ReplyContent,
    pub(super) fault: Option<FaultKind>,
}

impl Reply<'_> {
    pub(super) fn is(&self, kind: FaultKind) -> bool {
        self.fault == Some(kind)
    }
}

#[derive(Debug, Clone)]
pub(super) struct ReplyContent {
    pub(super) text: Arc<Text>,
    /// Name of the field for reasoning in OpenAI's dialect.
    pub(super) reasoning: Option<&'static str>,
    pub(super) calls: Vec<Call>,
    pub(super) stop: StopReason,
}

impl ReplyContent {
    pub(super) const fn text(text: Arc<Text>) -> Self {
        Self {
            text,
            reasoning: None,
            calls: Vec::new(),
            stop: StopReason::EndTurn,
        }
    }

    pub(super) fn tokens(&self) -> u64 {
        let calls = self
            .calls
            .iter()
            .map(|call| call.arguments.len() + call.name.len());
        let reasoning = self.reasoning.map_or(0, |_| REASONING.len());
        self.text.tokens + (calls.sum::<usize>() + reasoning) as u64 / 4
    }
}

pub(super) const REASONING: &str = "The question is about one place, so one search will do.";

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Call {
    pub(super) id: String,
    pub(super) name: String,
    pub(super) arguments: String,
}

impl Call {
    /// The arguments as JSON, or as a text if they are invalid.
    pub(super) fn object(&self) -> Value {
        let arguments = &*self.arguments;
        serde_json::from_str(arguments).unwrap_or_else(|_| arguments.into())
    }
}

/// A text as JSON literals, whole and in pieces.
#[derive(Debug)]
pub(super) struct Text {
    pub(super) whole: String,
    pub(super) pieces: Vec<String>,
    tokens: u64,
}

impl Default for Text {
    fn default() -> Self {
        Self {
            whole: literal(""),
            pieces: Vec::new(),
            tokens: 0,
        }
    }
}

impl Text {
    pub(super) fn cut(text: &str, pieces: usize) -> Arc<Self> {
        let characters: Vec<usize> = text.char_indices().map(|(at, _)| at).collect();
        let step = characters.len().div_ceil(pieces.max(1)).max(1);
        let starts = || characters.iter().copied().step_by(step);
        let ends = starts().skip(1).chain([text.len()]);
        Self::of(starts().zip(ends).map(|(from, to)| &text[from..to]))
    }

    pub(super) fn of<'a>(pieces: impl IntoIterator<Item = &'a str>) -> Arc<Self> {
        let pieces: Vec<&str> = pieces.into_iter().collect();
        let whole = pieces.concat();
        Arc::new(Self {
            tokens: whole.len() as u64 / 4,
            whole: literal(&whole),
            pieces: pieces.into_iter().map(literal).collect(),
        })
    }

    pub(super) const fn is_empty(&self) -> bool {
        self.pieces.is_empty()
    }
}

/// Cuts a text in two between characters.
pub(super) fn halves(text: &str) -> impl Iterator<Item = &str> {
    let (one, other) = text.split_at(text.floor_char_boundary(text.len() / 2));
    [one, other].into_iter().filter(|half| !half.is_empty())
}

pub(super) fn literal(text: &str) -> String {
    Value::from(text).to_string()
}

/// A placeholder that many texts replace in turn.
pub(super) const HOLE: &str = "\u{1}";

/// The JSON before and after the hole; nothing after it if there is none.
pub(super) fn around_hole(data: &Value) -> (String, String) {
    let text = data.to_string();
    let parts = text.split_once(r#""\u0001""#);
    let (head, tail) = parts.unwrap_or((&text, ""));
    (head.to_owned(), tail.to_owned())
}

/// What an event contains, as far as faults depend on it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum EventKind {
    Frame,
    /// A piece of text, reasoning or a call.
    Content,
    /// Stop reason or usage.
    End,
    Mark,
}

#[derive(Debug, Default)]
pub(super) struct Events {
    buffer: String,
    /// End of each event.
    ends: Vec<(usize, EventKind)>,
}

impl Events {
    pub(super) fn push(&mut self, holds: EventKind, parts: &[&str]) {
        for part in parts {
            self.buffer.push_str(part);
        }
        self.buffer.push_str("\n\n");
        self.ends.push((self.buffer.len(), holds));
    }

    pub(super) fn data(&mut self, holds: EventKind, data: &Value) {
        self.push(holds, &["data: ", &data.to_string()]);
    }

    /// Adds an event named by its type, as in Anthropic's dialect.
    pub(super) fn named(&mut self, holds: EventKind, data: &Value) {
        let name = data["type"].as_str().unwrap_or_default();
        self.push(holds, &["event: ", name, "\ndata: ", &data.to_string()]);
    }

    pub(super) fn whole(self) -> Bytes {
        Bytes::from(self.buffer)
    }

    pub(super) fn parted(self) -> Vec<(Bytes, EventKind)> {
        let whole = Bytes::from(self.buffer);
        let mut from = 0;
        let part = |(to, holds)| {
            let part = whole.slice(from..to);
            from = to;
            (part, holds)
        };
        self.ends.into_iter().map(part).collect()
    }
}
#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn mock_text_is_cut_between_characters() {
        for (text, pieces, want) in [
            ("", 3, vec![]),
            ("aöß€🦀", 2, vec!["\"aöß\"", "\"€🦀\""]),
            ("ab", 9, vec!["\"a\"", "\"b\""]),
            ("a\"b", 1, vec!["\"a\\\"b\""]),
        ] {
            let text = Text::cut(text, pieces);
            assert_eq!(text.pieces, want);
            assert_eq!(text.is_empty(), want.is_empty());
        }
        assert_eq!(Text::of(["a", "b"]).whole, "\"ab\"");
    }
}
