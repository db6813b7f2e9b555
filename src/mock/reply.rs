//! A reply before its dialect is applied, and the events of a stream.

use std::sync::Arc;

use serde_json::{Value, json};

use super::{fault::FaultKind, request::ParsedRequest};
use crate::model::StopReason;

pub(super) struct Reply<'a> {
    pub(super) asked: &'a ParsedRequest,
    pub(super) said: &'a ReplyContent,
    pub(super) fault: Option<FaultKind>,
}

impl Reply<'_> {
    pub(super) fn is(&self, kind: FaultKind) -> bool {
        self.fault == Some(kind)
    }

    pub(super) fn has_text(&self) -> bool {
        !self.said.text.is_empty() || self.is(FaultKind::EmptyText)
    }

    /// An id that follows from the request.
    pub(super) fn id(&self, kind: &str) -> String {
        format!("{kind}_mock_{}_{}", self.asked.replies, self.asked.tokens)
    }

    /// The index of a call or a block, as far as a fault allows.
    pub(super) fn index(&self, at: usize) -> Option<usize> {
        match self.fault {
            Some(FaultKind::CallNoIndex) => None,
            Some(FaultKind::CallSameIndex) => Some(0),
            _ => Some(at),
        }
    }

    /// The arguments of a call: this text, or an object if a fault makes it one.
    pub(super) fn arguments(&self, call: &Call, text: &str) -> Value {
        match self.is(FaultKind::CallObject) {
            true => call.object(),
            false => text.into(),
        }
    }

    /// The stop reason by its name in the dialect; `None` if a fault removes it.
    pub(super) fn stop(&self, name: &'static str) -> Option<&'static str> {
        match self.fault {
            Some(FaultKind::FinishMissing) => None,
            Some(FaultKind::FinishEmpty) => Some(""),
            _ => Some(name),
        }
    }
}

#[derive(Debug, Clone)]
pub(super) struct ReplyContent {
    /// Text in the pieces of its stream.
    pub(super) text: Arc<[String]>,
    /// Name of the field for reasoning in OpenAI's dialect.
    pub(super) reasoning: Option<&'static str>,
    pub(super) calls: Vec<Call>,
    pub(super) stop: StopReason,
}

impl ReplyContent {
    pub(super) const fn text(text: Arc<[String]>) -> Self {
        Self {
            text,
            reasoning: None,
            calls: Vec::new(),
            stop: StopReason::EndTurn,
        }
    }

    /// The same with calls of these names, with these arguments.
    pub(super) fn calling(
        mut self,
        asked: &ParsedRequest,
        calls: impl IntoIterator<Item = (String, String)>,
    ) -> Self {
        self.calls.clear();
        for (n, (name, arguments)) in calls.into_iter().enumerate() {
            let id = format!("call_{}_{n}", asked.replies);
            self.calls.push(Call {
                id,
                name,
                arguments,
            });
            self.stop = StopReason::ToolCalls;
        }
        self
    }

    /// An estimate.
    pub(super) fn tokens(&self) -> u64 {
        let text = self.text.iter().map(String::len);
        let calls = self.calls.iter();
        let calls = calls.map(|call| call.arguments.len() + call.name.len());
        let reasoning = self.reasoning.map_or(0, |_| REASONING.len());
        text.chain(calls).chain([reasoning]).sum::<usize>() as u64 / 4
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

/// Cuts a text between characters into pieces of the same length.
pub(super) fn cut(text: &str, pieces: usize) -> Arc<[String]> {
    let characters: Vec<char> = text.chars().collect();
    let length = characters.len().div_ceil(pieces.max(1)).max(1);
    let pieces = characters.chunks(length);
    pieces.map(String::from_iter).collect()
}

/// Cuts a text in two between characters.
pub(super) fn halves(text: &str) -> impl Iterator<Item = &str> {
    let (one, other) = text.split_at(text.floor_char_boundary(text.len() / 2));
    [one, other].into_iter().filter(|half| !half.is_empty())
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

/// An event of a stream.
pub(super) type Event = (EventKind, Value);

/// The text of an event, named by the type of its data if it has one.
pub(super) fn event_text(data: &Value) -> String {
    match (data["type"].as_str(), data.as_str()) {
        (Some(name), _) => format!("event: {name}\ndata: {data}\n\n"),
        (None, Some(mark)) => format!("data: {mark}\n\n"),
        (None, None) => format!("data: {data}\n\n"),
    }
}

/// An item, a block or a part as it begins.
pub(super) fn emptied(item: &Value) -> Value {
    let mut item = item.clone();
    for (key, empty) in [
        ("arguments", json!("")),
        ("content", json!([])),
        ("encrypted_content", json!("bW9jaw==")),
        ("input", json!({})),
        ("refusal", json!("")),
        ("signature", json!("")),
        ("status", json!("in_progress")),
        ("summary", json!([])),
        ("text", json!("")),
        ("thinking", json!("")),
    ] {
        if item.get(key).is_some() {
            item[key] = empty;
        }
    }
    item
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn mock_text_is_cut_between_characters() {
        for (text, pieces, want) in [
            ("", 3, &[][..]),
            ("aöß€🦀", 2, &["aöß", "€🦀"]),
            ("ab", 9, &["a", "b"]),
        ] {
            assert_eq!(*cut(text, pieces), *want);
        }
    }
}
