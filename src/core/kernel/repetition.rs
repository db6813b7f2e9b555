//! Detects loops of the same tool calls with the same results.

use std::hash::{DefaultHasher, Hash, Hasher};

use serde_json::Value;

use super::phase::ToolSlot;
use crate::model::json;

const RUN: usize = 3;
const ALTERNATIONS: usize = 3;
const SPAN: usize = 2 * ALTERNATIONS;

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) struct TurnDigest(u64);

impl TurnDigest {
    /// All calls must have results.
    pub(super) fn of(slots: &[ToolSlot]) -> Option<Self> {
        if slots.is_empty() {
            return None;
        }
        let mut hasher = DefaultHasher::new();
        for slot in slots {
            slot.call.name.hash(&mut hasher);
            canonical(&slot.call.arguments).hash(&mut hasher);
            if let Some(result) = slot.result() {
                (result.status, &result.content).hash(&mut hasher);
            }
        }
        Some(Self(hasher.finish()))
    }
}

/// Sorts keys and removes white space; returns invalid JSON unchanged.
fn canonical(arguments: &str) -> String {
    let blank = arguments.trim().is_empty();
    let arguments = if blank { "{}" } else { arguments };
    json::read(arguments).map_or_else(
        |_| arguments.to_owned(),
        |mut value: Value| {
            value.sort_all_objects();
            value.to_string()
        },
    )
}

#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Repetition {
    /// Oldest first; `None` for a turn without calls.
    recent: [Option<TurnDigest>; SPAN],
    hinted: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ToolLoop {
    None,
    /// The first repetition of the query, which brings a hint.
    First,
    /// A repetition after the hint, which is a loop.
    Again,
}

impl Repetition {
    pub(super) fn push(&mut self, turn: Option<TurnDigest>) {
        self.recent.rotate_left(1);
        self.recent[SPAN - 1] = turn;
    }

    pub(super) fn mark_hinted(&mut self) {
        self.hinted = true;
    }

    pub(super) fn verdict(&self) -> ToolLoop {
        match (self.repeats(), self.hinted) {
            (false, _) => ToolLoop::None,
            (true, false) => ToolLoop::First,
            (true, true) => ToolLoop::Again,
        }
    }

    fn repeats(&self) -> bool {
        let turns = &self.recent;
        let last = &turns[SPAN - RUN..];
        let runs = last[0].is_some() && last.iter().all(|turn| *turn == last[0]);
        let two = turns[0].is_some() && turns[1].is_some() && turns[0] != turns[1];
        runs || two && turns.iter().zip(&turns[2..]).all(|(a, b)| a == b)
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;
    use crate::{
        kernel::CallState,
        model::{CallId, ToolCall, ToolResult, ToolStatus},
    };

    fn slot(name: &str, arguments: &str, content: &str) -> ToolSlot {
        let id = CallId::new("c");
        let result = ToolResult::new(id.clone(), ToolStatus::Ok, content);
        let call = ToolCall {
            id,
            name: name.into(),
            arguments: arguments.into(),
        };
        ToolSlot {
            call: Arc::new(call),
            state: CallState::Done(Arc::new(result)),
        }
    }

    #[test]
    fn turn_digest_ignores_json_formatting() {
        let base = TurnDigest::of(&[slot("search", r#"{"a":1,"b":[{"d":1,"c":2}]}"#, "x")]);
        for (name, other, same) in [
            (
                "keys in another order",
                slot("search", r#"{ "b": [{"c":2,"d":1}], "a": 1 }"#, "x"),
                true,
            ),
            (
                "another value",
                slot("search", r#"{"a":2,"b":[{"d":1,"c":2}]}"#, "x"),
                false,
            ),
            (
                "another tool",
                slot("read", r#"{"a":1,"b":[{"d":1,"c":2}]}"#, "x"),
                false,
            ),
            (
                "another result",
                slot("search", r#"{"a":1,"b":[{"d":1,"c":2}]}"#, "y"),
                false,
            ),
        ] {
            assert_eq!(TurnDigest::of(&[other]) == base, same, "{name}");
        }
        assert_eq!(
            TurnDigest::of(&[slot("t", "", "x")]),
            TurnDigest::of(&[slot("t", "{}", "x")]),
            "blank arguments are no arguments"
        );
        assert_eq!(TurnDigest::of(&[]), None);
    }

    #[test]
    fn loops_are_detected_from_turn_digests() {
        for (name, turns, first_at) in [
            ("three alike", "aaa", Some(3)),
            ("two alike", "aa", None),
            ("a turn without calls between", "aa.a", None),
            ("another turn between", "aaba", None),
            ("three turns without calls", "...", None),
            ("alternating three times", "ababab", Some(6)),
            ("alternating twice and a half", "ababa", None),
            ("three turns in rotation", "abcabcabc", None),
            ("late", "xyzaaa", Some(6)),
        ] {
            let mut repetition = Repetition::default();
            let mut found = None;
            for (index, turn) in turns.chars().enumerate() {
                let slots = [slot("t", "{}", &turn.to_string())];
                repetition.push(if turn == '.' {
                    None
                } else {
                    TurnDigest::of(&slots)
                });
                if repetition.verdict() == ToolLoop::First && found.is_none() {
                    found = Some(index + 1);
                    repetition.mark_hinted();
                }
            }
            assert_eq!(found, first_at, "{name}");
        }
    }

    #[test]
    fn repetition_after_the_hint_is_a_loop() {
        let mut repetition = Repetition::default();
        let turn = TurnDigest::of(&[slot("t", "{}", "x")]);
        for expected in [
            ToolLoop::None,
            ToolLoop::None,
            ToolLoop::First,
            ToolLoop::Again,
        ] {
            repetition.push(turn);
            assert_eq!(repetition.verdict(), expected);
            if expected == ToolLoop::First {
                repetition.mark_hinted();
            }
        }
    }
}
