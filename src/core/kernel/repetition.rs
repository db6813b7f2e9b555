//! Detects loops of the same tool calls with the same results, and turns whose calls bring nothing new.

use std::{
    collections::HashSet,
    hash::{DefaultHasher, Hash, Hasher},
    sync::Arc,
};

use serde_json::Value;

use super::phase::ToolSlot;
use crate::model::{ToolStatus, json};

const RUN: usize = 3;
const ALTERNATIONS: usize = 3;
const SPAN: usize = 2 * ALTERNATIONS;

/// A call with its result, or all of a turn.
type Digest = u64;

fn hashed(value: impl Hash) -> Digest {
    let mut hasher = DefaultHasher::new();
    value.hash(&mut hasher);
    hasher.finish()
}

fn digest(slot: &ToolSlot) -> Digest {
    let result = slot.result().map(|found| (found.status, &found.content));
    hashed((&slot.call.name, canonical(&slot.call.arguments), result))
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
    recent: [Option<Digest>; SPAN],
    /// Those of all calls that succeeded.
    seen: Arc<HashSet<Digest>>,
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
    /// Takes in the calls of a turn, which must have results. Returns whether one that succeeded, or
    /// its result, is new in the query.
    pub(super) fn push(&mut self, calls: &[&ToolSlot]) -> bool {
        let digests: Vec<_> = calls.iter().map(|slot| digest(slot)).collect();
        self.recent.rotate_left(1);
        self.recent[SPAN - 1] = (!digests.is_empty()).then(|| hashed(&digests));
        let is_ok = |slot: &ToolSlot| {
            slot.result()
                .is_some_and(|end| end.status == ToolStatus::Ok)
        };
        let good = calls.iter().zip(digests).filter(|(slot, _)| is_ok(slot));
        let known = self.seen.len();
        Arc::make_mut(&mut self.seen).extend(good.map(|(_, digest)| digest));
        self.seen.len() > known
    }

    /// Whether a call succeeded.
    pub(super) fn has_results(&self) -> bool {
        !self.seen.is_empty()
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
    use super::*;
    use crate::{
        kernel::CallState,
        model::{CallId, ToolCall, ToolResult},
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
    fn digest_ignores_json_formatting() {
        let base = digest(&slot("search", r#"{"a":1,"b":[{"d":1,"c":2}]}"#, "x"));
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
            assert_eq!((digest(&other) == base), same, "{name}");
        }
        assert_eq!(
            digest(&slot("t", "", "x")),
            digest(&slot("t", "{}", "x")),
            "blank arguments are no arguments"
        );
    }

    #[test]
    fn loops_are_detected_from_digests() {
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
                let slot = slot("t", "{}", &turn.to_string());
                let calls = [&slot];
                repetition.push(if turn == '.' { &[] } else { &calls });
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
        let turn = slot("t", "{}", "x");
        for expected in [
            ToolLoop::None,
            ToolLoop::None,
            ToolLoop::First,
            ToolLoop::Again,
        ] {
            repetition.push(&[&turn]);
            assert_eq!(repetition.verdict(), expected);
            if expected == ToolLoop::First {
                repetition.mark_hinted();
            }
        }
    }

    #[test]
    fn a_success_is_new_if_the_call_or_its_result_is() {
        let mut repetition = Repetition::default();
        let mut failed = slot("t", "{}", "no");
        let result = ToolResult::new(CallId::new("c"), ToolStatus::Failed, "no");
        failed.state = CallState::Done(Arc::new(result));
        for (name, slots, is_new) in [
            ("the first", vec![slot("t", "{}", "x")], true),
            ("the same", vec![slot("t", "", "x")], false),
            ("another result", vec![slot("t", "{}", "y")], true),
            ("another call", vec![slot("t", "{\"a\":1}", "x")], true),
            (
                "one of two",
                vec![slot("t", "{}", "x"), slot("u", "{}", "x")],
                true,
            ),
            ("one of long ago", vec![slot("t", "{}", "x")], false),
            ("a failure", vec![failed], false),
            ("none", vec![], false),
        ] {
            let slots: Vec<_> = slots.iter().collect();
            assert_eq!(repetition.push(&slots), is_new, "{name}");
        }
    }
}
