//! Writes chat completions in OpenAI's dialect.

use serde_json::{Value, json};

use super::{
    fault::{Cause, FaultKind, Problem},
    reply::{Call, Event, EventKind, HOLE, REASONING, Reply, event, halves, pieces},
};
use crate::model::StopReason;

/// Fixed, because replies are deterministic.
const CREATED: u64 = 1_700_000_000;

pub(super) struct OpenAi<'a>(pub(super) Reply<'a>);

impl OpenAi<'_> {
    pub(super) fn whole(&self) -> Value {
        let said = self.0.said;
        let mut whole = self.head("chat.completion");
        if !self.0.is(FaultKind::EmptyChoices) {
            let (content, refusal) = match said.stop {
                StopReason::Refusal => (Value::Null, said.text.concat().into()),
                _ if said.text.is_empty() && !said.calls.is_empty() => (Value::Null, Value::Null),
                _ => (said.text.concat().into(), Value::Null),
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
        whole
    }

    pub(super) fn events(&self) -> Vec<Event> {
        let said = self.0.said;
        let mark = ("data: [DONE]\n\n".to_owned(), EventKind::Mark);
        if self.0.is(FaultKind::EmptyChoices) {
            return vec![event(EventKind::Frame, &self.chunk(json!([]))), mark];
        }
        let role = json!({ "role": "assistant", "content": "" });
        let mut events = vec![event(EventKind::Frame, &self.delta(role))];
        let content = |delta| event(EventKind::Content, &self.delta(delta));
        if let Some(reasoning) = said.reasoning {
            events.push(content(json!({ reasoning: REASONING })));
        }
        let key = match said.stop {
            StopReason::Refusal => "refusal",
            _ => "content",
        };
        events.extend(pieces(&self.delta(json!({ key: HOLE })), &said.text));
        for (n, call) in said.calls.iter().enumerate() {
            let deltas = self.call_deltas(n, call).into_iter();
            events.extend(deltas.map(|delta| content(json!({ "tool_calls": [delta] }))));
        }
        match said.text.last() {
            Some(last) if self.0.is(FaultKind::FinishWithLast) && said.calls.is_empty() => {
                events.pop();
                let end = self.end(json!({ key: last }));
                events.push(event(EventKind::Content, &end));
            }
            _ => events.push(event(EventKind::End, &self.end(json!({})))),
        }
        if self.0.asked.usage && !self.0.is(FaultKind::NoUsage) {
            let mut chunk = self.chunk(json!([]));
            chunk["usage"] = self.usage();
            events.push(event(EventKind::End, &chunk));
        }
        events.push(mark);
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
            (Some(FaultKind::FinishStop), _)
            | (_, StopReason::EndTurn | StopReason::Paused | StopReason::Refusal) => "stop",
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
