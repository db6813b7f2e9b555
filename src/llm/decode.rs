//! Shared parts of the reply decoders: streamed pieces, and the finished reply.
//!
//! **Invariant:** whatever the provider sends, the calls of a finished reply have ids that are
//! unique in the conversation, and its usage is filled in.

use std::{collections::BTreeSet, sync::Arc};

use super::{Delta, Request, estimate_usage, fault, lenient::MOST};
use crate::model::visible::shell_word;
use crate::model::{CallId, Fault, OpaquePart, Part, Reply, StopReason, ToolCall, Usage};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Flow {
    More,
    End,
}

/// Decodes one reply in one dialect. No bytes, no I/O, no clock.
pub(super) trait Decode: Send {
    /// Takes the next event of a stream.
    fn event(&mut self, name: &str, data: &str, out: &mut Vec<Delta>) -> Result<Flow, Fault> {
        match data.trim() {
            "" => Ok(Flow::More),
            data if name == "error" => Err(fault::in_reply(data)),
            data => self.data(data, out),
        }
    }

    /// Takes the text of an event.
    fn data(&mut self, data: &str, out: &mut Vec<Delta>) -> Result<Flow, Fault>;

    /// Takes an answer that is not a stream.
    fn whole(&mut self, body: &str, out: &mut Vec<Delta>) -> Result<(), Fault>;

    /// Finishes the reply after the last event, or returns a fault if it is incomplete.
    fn reply(&mut self) -> Result<Reply, Fault>;

    /// Bytes of text held for the reply.
    #[cfg(test)]
    fn held(&self) -> usize;
}

/// What an item of a reply is.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) enum Kind {
    Text,
    Call,
    Thought,
    /// Calls and results of tools that the server runs itself, and future kinds.
    #[default]
    Other,
}

impl Kind {
    /// The delta of a piece, or of an item that begins with it.
    pub(super) fn delta(self, piece: &str) -> Option<Delta> {
        match self {
            Self::Call => Some(Delta::Progress(piece.to_owned())),
            Self::Other => Some(Delta::Progress(String::new())),
            Self::Text | Self::Thought if piece.is_empty() => None,
            Self::Text => Some(Delta::Text(piece.to_owned())),
            Self::Thought => Some(Delta::Reasoning(piece.to_owned())),
        }
    }
}

/// An item of a reply that is a list of items. It arrives in pieces.
#[derive(Debug, Default)]
pub(super) struct Item {
    pub(super) kind: Kind,
    /// Its place in the reply.
    pub(super) index: Option<u64>,
    pub(super) id: String,
    pub(super) call_id: String,
    /// The name of the called tool.
    pub(super) name: String,
    /// The text, the arguments of the call, or the thought.
    pub(super) text: String,
    /// What goes back with the text or in its place.
    pub(super) kept: String,
    pub(super) refused: bool,
    pub(super) closed: bool,
}

/// Bytes of the texts of items.
#[cfg(test)]
pub(super) fn held(items: &[Item]) -> usize {
    let held = |item: &Item| {
        let ids = item.id.len() + item.call_id.len() + item.name.len();
        ids + item.text.len() + item.kept.len()
    };
    items.iter().map(held).sum()
}

/// Adds an item, unless there are too many.
pub(super) fn add(items: &mut Vec<Item>, item: Item) -> Result<usize, Fault> {
    if items.len() == MOST {
        return Err(fault::too_much("the reply has too many items"));
    }
    items.push(item);
    Ok(items.len() - 1)
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Tokens {
    pub(super) input: Option<u64>,
    pub(super) cached: Option<u64>,
    pub(super) kept: Option<u64>,
    pub(super) output: Option<u64>,
    pub(super) reasoning: Option<u64>,
}

/// Larger counts are implausible and ignored: the largest context windows hold a few million.
const MOST_TOKENS: u64 = 16_000_000;

impl Tokens {
    fn so_far(self) -> Option<Delta> {
        let told = self.believed();
        let usage = told.usage(told.input.unwrap_or(0), told.output.unwrap_or(0));
        (!usage.is_none()).then_some(Delta::Used(usage))
    }

    fn usage(self, input_tokens: u64, output_tokens: u64) -> Usage {
        let cached_tokens = self.cached.unwrap_or(0).min(input_tokens);
        let kept = self.kept.unwrap_or(0);
        Usage {
            input_tokens,
            cached_tokens,
            cache_write_tokens: kept.min(input_tokens - cached_tokens),
            output_tokens,
            reasoning_tokens: self.reasoning.unwrap_or(0).min(output_tokens),
            ..Usage::default()
        }
    }

    fn believed(self) -> Self {
        let possible = |tokens: &u64| *tokens <= MOST_TOKENS;
        Self {
            input: self.input.filter(possible),
            cached: self.cached.filter(possible),
            kept: self.kept.filter(possible),
            output: self.output.filter(possible),
            reasoning: self.reasoning.filter(possible),
        }
    }
}

/// What every decoder gathers of a reply.
#[derive(Debug)]
pub(super) struct Draft {
    provider: Arc<str>,
    pub(super) request: Request,
    /// The prefix of generated ids, different for each reply.
    seed: String,
    /// The number of generated ids.
    generated: usize,
    /// The ids of its calls.
    ids: BTreeSet<String>,
    /// Whether any of the reply has arrived.
    pub(super) begun: bool,
    /// Whether the end mark has arrived.
    pub(super) marked: bool,
    /// Why the reply ended, in the provider's word; empty until it says so.
    pub(super) stop: String,
    pub(super) tokens: Tokens,
}

impl Draft {
    pub(super) fn new(provider: Arc<str>, request: Request, seed: String) -> Self {
        Self {
            provider,
            request,
            seed,
            generated: 0,
            ids: BTreeSet::new(),
            begun: false,
            marked: false,
            stop: String::new(),
            tokens: Tokens::default(),
        }
    }

    /// Counts what the provider has told so far, and passes news on.
    pub(super) fn count(&mut self, told: Tokens, out: &mut Vec<Delta>) {
        if std::mem::replace(&mut self.tokens, told) != told {
            out.extend(told.so_far());
        }
    }

    /// A call that arrived with the id `told`.
    pub(super) fn call(&mut self, told: &str, name: String, arguments: String) -> ToolCall {
        ToolCall {
            id: self.id(told),
            name,
            arguments,
        }
    }

    /// A unique id for a call: the provider's, unless that is missing, taken or no plain
    /// word in a command, because people paste it.
    fn id(&mut self, told: &str) -> CallId {
        let mut id = told.to_owned();
        while id.starts_with('-') || shell_word(&id) != id || self.is_taken(&id) {
            self.generated += 1;
            id = format!("call_{}_{}", self.seed, self.generated);
        }
        let given = CallId::new(&id);
        self.ids.insert(id);
        given
    }

    fn is_taken(&self, id: &str) -> bool {
        let earlier = self.request.messages.iter();
        let mut calls = earlier.flat_map(|message| message.calls());
        self.ids.contains(id) || calls.any(|call| *call.id.0 == *id)
    }

    /// A part that only this provider understands.
    pub(super) fn opaque(&self, body: String) -> Part {
        Part::Opaque(OpaquePart {
            provider: self.provider.to_string(),
            model: self.request.model.to_string(),
            body,
        })
    }

    /// Completes the reply with its usage, estimated where the provider reported none. Fails if it
    /// was cut off or never began.
    pub(super) fn finish(&self, parts: Vec<Part>, stop: StopReason) -> Result<Reply, Fault> {
        if !self.marked && self.stop.is_empty() {
            return Err(fault::cut());
        }
        if !self.begun {
            return Err(fault::empty_reply());
        }
        let told = self.tokens.believed();
        let told_fully = told.input.is_some_and(|n| n > 0) && told.output.is_some();
        let estimate = match told_fully {
            true => Usage::default(),
            false => estimate_usage(&self.request, &parts),
        };
        let input = told.input.filter(|n| *n > 0);
        let input = input.unwrap_or_else(|| estimate.input_tokens.max(1));
        let output = told.output.unwrap_or_else(|| estimate.output_tokens.max(1));
        Ok(Reply {
            parts,
            stop,
            usage: told.usage(input, output),
            model: format!("{}/{}", self.provider, self.request.model),
        })
    }
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;
    use crate::testkit::llm_conformance::{self as conformance, Scenario};

    pub(crate) fn draft(scenario: Scenario) -> Draft {
        let request = conformance::request(scenario);
        Draft::new("test".into(), request, "seed".to_owned())
    }

    /// Deltas and outcome: `pieces → parts stop input/cached/output`, or the fault's code.
    pub(crate) fn render(deltas: &[Delta], reply: Result<Reply, Fault>) -> String {
        let deltas: Vec<String> = deltas
            .iter()
            .filter_map(|delta| match delta {
                Delta::Text(text) => Some(format!("{text:?}")),
                Delta::Reasoning(text) => Some(format!("~{text:?}")),
                Delta::Progress(_) | Delta::Used(_) => None,
                Delta::Alive | Delta::Limits(_) | Delta::Done(_) => panic!("{delta:?}"),
            })
            .collect();
        let end = match reply {
            Err(fault) => format!("! {}", fault.code),
            Ok(reply) => {
                let parts = reply.parts.iter().map(|part| match part {
                    Part::Text { text } => format!("{text:?}"),
                    Part::ToolCall(call) => {
                        format!("{}:{}({})", call.id, call.name, call.arguments)
                    }
                    Part::Opaque(opaque) => format!("{} {}", opaque.provider, opaque.body),
                    Part::ToolResult(_) | Part::Image(_) => panic!("not of a reply"),
                });
                let parts: Vec<String> = parts.collect();
                let used = reply.usage;
                let (input, cached, output) =
                    (used.input_tokens, used.cached_tokens, used.output_tokens);
                format!(
                    "{} {:?} {input}/{cached}/{output}",
                    parts.join(" "),
                    reply.stop
                )
            }
        };
        format!("{} → {end}", deltas.join(" "))
    }

    #[test]
    fn tool_calls_get_unique_ids() {
        let mut draft = draft(Scenario::Results); // Has a call `conformance-1`.
        let told = ["a", "", "a", "conformance-1", "", "call_seed_5", "b"];
        let given: Vec<String> = told.iter().map(|told| draft.id(told).to_string()).collect();
        let expected = [
            "a",
            "call_seed_1",
            "call_seed_2",
            "call_seed_3",
            "call_seed_4",
            "call_seed_5",
            "b",
        ];
        assert_eq!(given, expected);
        assert_eq!(draft.id("").to_string(), "call_seed_6");
    }

    #[test]
    fn ids_of_calls_are_no_words_for_a_shell() {
        let mut draft = draft(Scenario::Question);
        for told in ["functions.search:0", "call_1__thought__Ab+/9=="] {
            assert_eq!(draft.id(told).to_string(), told);
        }
        for told in ["$(touch x);y", "a b", "-f", "=ls", "a\n", "~", "*"] {
            let given = draft.id(told).to_string();
            assert!(given.starts_with("call_seed_"), "{told}: {given}");
        }
    }

    #[test]
    fn missing_usage_is_estimated() {
        let mut draft = draft(Scenario::Question);
        (draft.begun, draft.marked) = (true, true);
        let parts = vec![Part::ToolCall(ToolCall {
            id: CallId::new("a"),
            name: "tool".into(),
            arguments: "{\"query\":1}".into(),
        })];
        let estimate = estimate_usage(&draft.request, &parts);
        let tokens = |input, cached, output| Tokens {
            input,
            reasoning: None,
            cached,
            kept: Some(4),
            output,
        };
        let usage = |input_tokens, cached_tokens, output_tokens| Usage {
            input_tokens,
            cached_tokens,
            cache_write_tokens: 4.min(input_tokens - cached_tokens),
            output_tokens,
            ..Usage::default()
        };
        let (input, output) = (estimate.input_tokens, estimate.output_tokens);
        assert_eq!((input, output), (49, 3));
        for (name, told, expected) in [
            (
                "all told",
                tokens(Some(9), Some(4), Some(2)),
                usage(9, 4, 2),
            ),
            (
                "nothing told",
                tokens(None, None, None),
                usage(input, 0, output),
            ),
            (
                "zero sent",
                tokens(Some(0), None, Some(2)),
                usage(input, 0, 2),
            ),
            (
                "no output told",
                tokens(Some(9), None, None),
                usage(9, 0, output),
            ),
            (
                "more than anybody has",
                tokens(Some(u64::MAX), Some(u64::MAX), Some(10_000_000_000_000)),
                usage(input, 0, output),
            ),
            (
                "more cached than sent",
                tokens(Some(9), Some(10), Some(0)),
                usage(9, 9, 0),
            ),
        ] {
            draft.tokens = told;
            let finished = draft.finish(parts.clone(), StopReason::ToolCalls);
            let reply = finished.unwrap();
            assert_eq!(reply.usage, expected, "{name}");
            assert_eq!(reply.model, "test/model");
        }
    }
}
