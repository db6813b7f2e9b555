//! Writes messages in Anthropic's dialect.

use serde_json::{Value, json};

use super::{
    fault::{Cause, FaultKind, Problem},
    reply::{Call, Event, EventKind, HOLE, REASONING, Reply, event, halves, pieces},
};
use crate::model::StopReason;

const SIGNATURE: &str = "bW9jayBzaWduYXR1cmU=";

pub(super) struct Anthropic<'a>(pub(super) Reply<'a>);

impl Anthropic<'_> {
    pub(super) fn whole(&self) -> Value {
        let said = self.0.said;
        let mut blocks = Vec::new();
        if said.reasoning.is_some() {
            let thinking = json!({ "type": "thinking", "thinking": REASONING,
                "signature": SIGNATURE });
            blocks.push(thinking);
        }
        if self.has_text() {
            blocks.push(json!({ "type": "text", "text": said.text.concat() }));
        }
        for call in &said.calls {
            let input = match self.0.fault {
                // Without a stream, truncated arguments are a text instead of an object.
                Some(FaultKind::CallCut) => call.arguments.as_str().into(),
                _ => call.object(),
            };
            let (id, name) = (&call.id, &call.name);
            blocks.push(json!({ "type": "tool_use", "id": id, "name": name, "input": input }));
        }
        let mut whole = self.message(blocks, self.stop());
        if !self.0.is(FaultKind::NoUsage) {
            let (sent, received) = (self.0.asked.tokens, said.tokens());
            whole["usage"] = json!({ "input_tokens": sent, "output_tokens": received });
        }
        whole
    }

    pub(super) fn events(&self) -> Vec<Event> {
        let said = self.0.said;
        let mut message = self.message(Vec::new(), None);
        if !self.0.is(FaultKind::NoUsage) {
            message["usage"] = json!({ "input_tokens": self.0.asked.tokens, "output_tokens": 1 });
        }
        let start = json!({ "type": "message_start", "message": message });
        let ping = json!({ "type": "ping" });
        let mut events = Vec::from([start, ping].map(|data| event(EventKind::Frame, &data)));
        let mut block = 0;
        if said.reasoning.is_some() {
            let start = json!({ "type": "thinking", "thinking": "", "signature": "" });
            events.push(self.begin(block, start));
            let thought = json!({ "type": "thinking_delta", "thinking": REASONING });
            let signature = json!({ "type": "signature_delta", "signature": SIGNATURE });
            for delta in [thought, signature] {
                events.push(event(EventKind::Content, &self.delta(block, delta)));
            }
            events.push(self.end(block));
            block += 1;
        }
        if self.has_text() {
            events.push(self.begin(block, json!({ "type": "text", "text": "" })));
            let piece = self.delta(block, json!({ "type": "text_delta", "text": HOLE }));
            events.extend(pieces(&piece, &said.text));
            events.push(self.end(block));
            block += 1;
        }
        for (call, block) in said.calls.iter().zip(block..) {
            self.call(&mut events, block, call);
        }
        if !self.0.is(FaultKind::FinishMissing) {
            let delta = json!({ "stop_reason": self.stop(), "stop_sequence": null });
            let mut end = json!({ "type": "message_delta", "delta": delta });
            if !self.0.is(FaultKind::NoUsage) {
                end["usage"] = json!({ "output_tokens": said.tokens() });
            }
            events.push(event(EventKind::End, &end));
        }
        events.push(event(EventKind::Mark, &json!({ "type": "message_stop" })));
        events
    }

    fn has_text(&self) -> bool {
        !self.0.said.text.is_empty() || self.0.is(FaultKind::EmptyText)
    }

    fn message(&self, content: Vec<Value>, stop: Option<&str>) -> Value {
        let (replies, tokens) = (self.0.asked.replies, self.0.asked.tokens);
        json!({
            "id": format!("msg_mock_{replies}_{tokens}"),
            "type": "message",
            "role": "assistant",
            "model": self.0.asked.model,
            "content": content,
            "stop_reason": stop,
            "stop_sequence": null,
        })
    }

    fn begin(&self, block: usize, start: Value) -> Event {
        let start = json!({ "type": "content_block_start", "content_block": start });
        event(EventKind::Frame, &self.numbered(block, start))
    }

    fn delta(&self, block: usize, delta: Value) -> Value {
        let delta = json!({ "type": "content_block_delta", "delta": delta });
        self.numbered(block, delta)
    }

    fn end(&self, block: usize) -> Event {
        let stop = self.numbered(block, json!({ "type": "content_block_stop" }));
        event(EventKind::Frame, &stop)
    }

    fn numbered(&self, block: usize, mut event: Value) -> Value {
        match self.0.fault {
            Some(FaultKind::CallNoIndex) => {}
            Some(FaultKind::CallSameIndex) => event["index"] = 0.into(),
            _ => event["index"] = block.into(),
        }
        event
    }

    fn call(&self, events: &mut Vec<Event>, block: usize, call: &Call) {
        let is_object = self.0.is(FaultKind::CallObject);
        let input = if is_object { call.object() } else { json!({}) };
        let (id, name) = (&call.id, &call.name);
        let start = json!({ "type": "tool_use", "id": id, "name": name, "input": input });
        events.push(self.begin(block, start));
        for part in halves(&call.arguments).filter(|_| !is_object) {
            let delta = json!({ "type": "input_json_delta", "partial_json": part });
            events.push(event(EventKind::Content, &self.delta(block, delta)));
        }
        events.push(self.end(block));
    }

    fn stop(&self) -> Option<&'static str> {
        Some(match (self.0.fault, self.0.said.stop) {
            (Some(FaultKind::FinishMissing), _) => return None,
            (Some(FaultKind::FinishEmpty), _) => "",
            (Some(FaultKind::FinishStop), _) | (_, StopReason::EndTurn) => "end_turn",
            (_, StopReason::ToolCalls) => "tool_use",
            (_, StopReason::MaxTokens) => "max_tokens",
            (_, StopReason::Paused) => "pause_turn",
            (_, StopReason::Refusal | StopReason::ContentFilter) => "refusal",
        })
    }
}

/// The status in this dialect.
pub(super) const fn status(problem: &Problem) -> u16 {
    match problem.cause {
        Cause::Quota => 402,
        Cause::Status | Cause::Context => problem.status,
    }
}

pub(super) fn error(problem: &Problem) -> Value {
    let kind = match status(problem) {
        401 => "authentication_error",
        402 => "billing_error",
        403 => "permission_error",
        404 => "not_found_error",
        413 => "request_too_large",
        429 => "rate_limit_error",
        504 => "timeout_error",
        503 | 529 => "overloaded_error",
        400..=499 => "invalid_request_error",
        _ => "api_error",
    };
    let message = match problem.cause {
        Cause::Context => "prompt is too long: 250000 tokens > 200000 maximum",
        Cause::Status | Cause::Quota => &problem.message,
    };
    let error = json!({ "type": kind, "message": message });
    json!({ "type": "error", "error": error, "request_id": "req_mock" })
}

pub(super) fn models(names: &[String]) -> Value {
    let model = |name| {
        let created = "2023-11-14T22:13:20Z";
        json!({ "type": "model", "id": name, "display_name": name, "created_at": created })
    };
    let models: Vec<Value> = names.iter().map(model).collect();
    let (first, last) = (names.first(), names.last());
    json!({ "data": models, "has_more": false, "first_id": first, "last_id": last })
}
