//! Writes chat completions in OpenAI's dialect.

use serde_json::{Value, json};

use super::{
    fault::{Cause, FaultKind, Problem},
    reply::{Call, EventKind, Events, HOLE, REASONING, Reply, around_hole, halves},
};
use crate::model::StopReason;

/// Fixed, because replies are deterministic.
const CREATED: u64 = 1_700_000_000;

pub(super) struct OpenAi<'a>(pub(super) Reply<'a>);

impl OpenAi<'_> {
    pub(super) fn whole(&self) -> String {
        let said = self.0.said;
        let mut whole = self.head("chat.completion");
        if !self.0.is(FaultKind::EmptyChoices) {
            let (content, refusal) = match said.stop {
                StopReason::Refusal => (Value::Null, json!(HOLE)),
                _ if said.text.is_empty() && !said.calls.is_empty() => (Value::Null, Value::Null),
                _ => (json!(HOLE), Value::Null),
            };
            let mut message =
                json!({ "role": "assistant", "content": content, "refusal": refusal });
            if let Some(reasoning) = said.reasoning {
                message[reasoning] = REASONING.into();
            }
            if !said.calls.is_empty() {
                let call = |call| self.call(call, &call.arguments);
                message["tool_calls"] = said.calls.iter().map(call).collect();
            }
            let choice = json!({ "index": 0, "message": message, "logprobs": null });
            whole["choices"] = json!([self.finished(choice)]);
        }
        if !self.0.is(FaultKind::NoUsage) {
            whole["usage"] = self.usage();
        }
        let (head, tail) = around_hole(&whole);
        match tail.is_empty() {
            true => head,
            false => head + &said.text.whole + &tail,
        }
    }

    pub(super) fn events(&self) -> Events {
        let said = self.0.said;
        let mut events = Events::default();
        if self.0.is(FaultKind::EmptyChoices) {
            events.data(EventKind::Frame, &self.chunk(json!([])));
            events.push(EventKind::Mark, &["data: [DONE]"]);
            return events;
        }
        let role = json!({ "role": "assistant", "content": "" });
        events.data(EventKind::Frame, &self.delta(role));
        if let Some(reasoning) = said.reasoning {
            let delta = self.delta(json!({ reasoning: REASONING }));
            events.data(EventKind::Content, &delta);
        }
        let key = match said.stop {
            StopReason::Refusal => "refusal",
            _ => "content",
        };
        let piece = json!({ key: HOLE });
        let (head, tail) = around_hole(&self.delta(piece.clone()));
        let with_last = self.0.is(FaultKind::FinishWithLast) && said.calls.is_empty();
        let last = said.text.pieces.len().checked_sub(1).filter(|_| with_last);
        for (n, text) in said.text.pieces.iter().enumerate() {
            if Some(n) == last {
                let (head, tail) = around_hole(&self.end(piece.clone()));
                events.push(EventKind::Content, &["data: ", &head, text, &tail]);
            } else {
                events.push(EventKind::Content, &["data: ", &head, text, &tail]);
            }
        }
        for (n, call) in said.calls.iter().enumerate() {
            for delta in self.call_deltas(n, call) {
                let delta = self.delta(json!({ "tool_calls": [delta] }));
                events.data(EventKind::Content, &delta);
            }
        }
        if last.is_none() {
            events.data(EventKind::End, &self.end(json!({})));
        }
        if self.0.asked.usage && !self.0.is(FaultKind::NoUsage) {
            let mut chunk = self.chunk(json!([]));
            chunk["usage"] = self.usage();
            events.data(EventKind::End, &chunk);
        }
        events.push(EventKind::Mark, &["data: [DONE]"]);
        events
    }

    fn head(&self, object: &str) -> Value {
        let (replies, tokens) = (self.0.asked.replies, self.0.asked.tokens);
        json!({
            "id": format!("chatcmpl-mock-{replies}-{tokens}"),
            "object": object,
            "created": CREATED,
            "model": self.0.asked.model,
            "choices": [],
        })
    }

    fn chunk(&self, choices: Value) -> Value {
        let mut chunk = self.head("chat.completion.chunk");
        chunk["choices"] = choices;
        if self.0.asked.usage {
            chunk["usage"] = Value::Null;
        }
        chunk
    }

    fn delta(&self, delta: Value) -> Value {
        self.chunk(json!([{ "index": 0, "delta": delta, "finish_reason": null }]))
    }

    fn end(&self, delta: Value) -> Value {
        let choice = self.finished(json!({ "index": 0, "delta": delta }));
        self.chunk(json!([choice]))
    }

    fn call(&self, call: &Call, arguments: &str) -> Value {
        let arguments = match self.0.is(FaultKind::CallObject) {
            true => call.object(),
            false => arguments.into(),
        };
        let function = json!({ "name": call.name, "arguments": arguments });
        json!({ "id": call.id, "type": "function", "function": function })
    }

    /// The first delta has the name, the others the arguments.
    fn call_deltas(&self, n: usize, call: &Call) -> Vec<Value> {
        let mut deltas = vec![self.call(call, "")];
        if !self.0.is(FaultKind::CallObject) {
            let delta = |part| json!({ "function": { "arguments": part } });
            deltas.extend(halves(&call.arguments).map(delta));
        }
        let index = match self.0.fault {
            Some(FaultKind::CallNoIndex) => return deltas,
            Some(FaultKind::CallSameIndex) => 0,
            _ => n,
        };
        for delta in &mut deltas {
            delta["index"] = index.into();
        }
        deltas
    }

    fn finished(&self, mut choice: Value) -> Value {
        let reason = match (self.0.fault, self.0.said.stop) {
            (Some(FaultKind::FinishMissing), _) => return choice,
            (Some(FaultKind::FinishEmpty), _) => "",
            (Some(FaultKind::FinishStop), _) | (_, StopReason::EndTurn | StopReason::Refusal) => {
                "stop"
            }
            (_, StopReason::ToolCalls) => "tool_calls",
            (_, StopReason::MaxTokens) => "length",
            (_, StopReason::ContentFilter) => "content_filter",
        };
        choice["finish_reason"] = reason.into();
        choice
    }

    fn usage(&self) -> Value {
        let (sent, received) = (self.0.asked.tokens, self.0.said.tokens());
        let total = sent + received;
        json!({ "prompt_tokens": sent, "completion_tokens": received, "total_tokens": total })
    }
}

pub(super) fn error(problem: &Problem) -> Value {
    let (kind, code) = match (problem.cause, problem.status) {
        (Cause::Context, _) => ("invalid_request_error", Some("context_length_exceeded")),
        (Cause::Quota, _) => ("insufficient_quota", Some("insufficient_quota")),
        (Cause::Status, 401) => ("invalid_request_error", Some("invalid_api_key")),
        (Cause::Status, 404) => ("invalid_request_error", Some("model_not_found")),
        (Cause::Status, 429) => ("requests", Some("rate_limit_exceeded")),
        (Cause::Status, 400..=499) => ("invalid_request_error", None),
        (Cause::Status, _) => ("server_error", None),
    };
    json!({ "error": { "message": problem.message, "type": kind, "param": null, "code": code } })
}

pub(super) fn models(names: &[String]) -> Value {
    let model =
        |name| json!({ "id": name, "object": "model", "created": CREATED, "owned_by": "mock" });
    let models: Vec<Value> = names.iter().map(model).collect();
    json!({ "object": "list", "data": models })
}
