//! Messages of Anthropic's dialect, written.

use std::fmt::Write as _;

use super::{
    fault::{Cause, FaultKind, Problem},
    reply::{Call, Events, Holds, REASONING, Reply, Stop, halves, literal},
};

const SIGNATURE: &str = "\"bW9jayBzaWduYXR1cmU=\"";

pub(super) struct Anthropic<'a>(pub(super) Reply<'a>);

impl Anthropic<'_> {
    pub(super) fn whole(&self) -> String {
        let said = self.0.said;
        let mut blocks = Vec::new();
        if said.reasoning.is_some() {
            let thought = literal(REASONING);
            blocks.push(format!(
                "{{\"type\":\"thinking\",\"thinking\":{thought},\"signature\":{SIGNATURE}}}"
            ));
        }
        if !said.text.is_empty() || self.0.is(FaultKind::EmptyText) {
            blocks.push(format!(
                "{{\"type\":\"text\",\"text\":{}}}",
                said.text.whole
            ));
        }
        for call in &said.calls {
            let input = match self.0.fault {
                // Without a stream, a cut leaves a text in place of the object.
                Some(FaultKind::CallCut) => literal(&call.arguments),
                _ => call.arguments.clone(),
            };
            let (id, name) = (literal(&call.id), literal(&call.name));
            blocks.push(format!(
                "{{\"type\":\"tool_use\",\"id\":{id},\"name\":{name},\"input\":{input}}}"
            ));
        }
        let mut out = String::with_capacity(said.text.whole.len() + 512);
        self.head(&mut out);
        let _ = write!(out, "[{}]{}", blocks.join(","), self.stop());
        if !self.0.is(FaultKind::NoUsage) {
            let (sent, received) = (self.0.asked.tokens, said.tokens());
            let _ = write!(
                out,
                ",\"usage\":{{\"input_tokens\":{sent},\"output_tokens\":{received}}}"
            );
        }
        out.push('}');
        out
    }

    pub(super) fn events(&self) -> Events {
        let said = self.0.said;
        let pieces = said.text.pieces.len() + 4 * said.calls.len() + 12;
        let mut events = Events::with_capacity(pieces * 140 + said.text.whole.len(), pieces);
        let mut message = String::new();
        self.head(&mut message);
        message.push_str("[],\"stop_reason\":null,\"stop_sequence\":null");
        if !self.0.is(FaultKind::NoUsage) {
            let sent = self.0.asked.tokens;
            let _ = write!(
                message,
                ",\"usage\":{{\"input_tokens\":{sent},\"output_tokens\":1}}"
            );
        }
        let frame = Holds::Frame;
        events.named(
            frame,
            "message_start",
            format_args!(",\"message\":{message}}}"),
        );
        events.named(frame, "ping", format_args!(""));
        let mut block = 0;
        if said.reasoning.is_some() {
            let start = "{\"type\":\"thinking\",\"thinking\":\"\",\"signature\":\"\"}";
            let thought = format!(
                "{{\"type\":\"thinking_delta\",\"thinking\":{}}}",
                literal(REASONING)
            );
            let signature = format!("{{\"type\":\"signature_delta\",\"signature\":{SIGNATURE}}}");
            self.block(&mut events, &mut block, start, [thought, signature]);
        }
        if !said.text.is_empty() || self.0.is(FaultKind::EmptyText) {
            let start = "{\"type\":\"text\",\"text\":\"\"}";
            let delta = |piece: &String| format!("{{\"type\":\"text_delta\",\"text\":{piece}}}");
            self.block(
                &mut events,
                &mut block,
                start,
                said.text.pieces.iter().map(delta),
            );
        }
        for call in &said.calls {
            let (start, deltas) = self.call(call);
            self.block(&mut events, &mut block, &start, deltas);
        }
        if !self.0.is(FaultKind::FinishMissing) {
            let usage = match self.0.fault {
                Some(FaultKind::NoUsage) => String::new(),
                _ => format!(",\"usage\":{{\"output_tokens\":{}}}", said.tokens()),
            };
            let stop = self.stop();
            let delta = stop.trim_start_matches(',');
            events.named(
                Holds::End,
                "message_delta",
                format_args!(",\"delta\":{{{delta}}}{usage}"),
            );
        }
        events.named(Holds::Mark, "message_stop", format_args!(""));
        events
    }

    fn head(&self, out: &mut String) {
        let (replies, tokens) = (self.0.asked.replies, self.0.asked.tokens);
        let model = literal(&self.0.asked.model);
        let _ = write!(
            out,
            "{{\"id\":\"msg_mock_{replies}_{tokens}\",\"type\":\"message\",\"role\":\"assistant\",\"model\":{model},\"content\":"
        );
    }

    fn block(
        &self,
        events: &mut Events,
        block: &mut usize,
        start: &str,
        deltas: impl IntoIterator<Item = String>,
    ) {
        let index = match self.0.fault {
            Some(FaultKind::CallNoIndex) => String::new(),
            Some(FaultKind::CallSameIndex) => ",\"index\":0".to_owned(),
            _ => format!(",\"index\":{block}"),
        };
        let start = format_args!("{index},\"content_block\":{start}");
        events.named(Holds::Frame, "content_block_start", start);
        for delta in deltas {
            let delta = format_args!("{index},\"delta\":{delta}");
            events.named(Holds::Content, "content_block_delta", delta);
        }
        events.named(Holds::Frame, "content_block_stop", format_args!("{index}"));
        *block += 1;
    }

    /// The block of a call, and its deltas.
    fn call(&self, call: &Call) -> (String, Vec<String>) {
        let (id, name) = (literal(&call.id), literal(&call.name));
        let start = |input: &str| {
            format!("{{\"type\":\"tool_use\",\"id\":{id},\"name\":{name},\"input\":{input}}}")
        };
        if self.0.is(FaultKind::CallObject) {
            return (start(&call.arguments), Vec::new());
        }
        let delta = |part| {
            format!(
                "{{\"type\":\"input_json_delta\",\"partial_json\":{}}}",
                literal(part)
            )
        };
        (start("{}"), halves(&call.arguments).map(delta).collect())
    }

    fn stop(&self) -> &'static str {
        match (self.0.fault, self.0.said.stop) {
            (Some(FaultKind::FinishMissing), _) => ",\"stop_reason\":null,\"stop_sequence\":null",
            (Some(FaultKind::FinishEmpty), _) => ",\"stop_reason\":\"\",\"stop_sequence\":null",
            (Some(FaultKind::FinishStop), _) | (_, Stop::EndTurn) => {
                ",\"stop_reason\":\"end_turn\",\"stop_sequence\":null"
            }
            (_, Stop::ToolCalls) => ",\"stop_reason\":\"tool_use\",\"stop_sequence\":null",
            (_, Stop::MaxTokens) => ",\"stop_reason\":\"max_tokens\",\"stop_sequence\":null",
            (_, Stop::Refusal | Stop::ContentFilter) => {
                ",\"stop_reason\":\"refusal\",\"stop_sequence\":null"
            }
        }
    }
}

/// The status, where this dialect has one of its own.
pub(super) const fn status(problem: &Problem) -> u16 {
    match problem.cause {
        Cause::Quota => 402,
        Cause::Status | Cause::Context => problem.status,
    }
}

pub(super) fn error(problem: &Problem) -> String {
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
    let message = literal(message);
    format!(
        "{{\"type\":\"error\",\"error\":{{\"type\":\"{kind}\",\"message\":{message}}},\"request_id\":\"req_mock\"}}"
    )
}

pub(super) fn models(names: &[String]) -> String {
    let ids: Vec<String> = names.iter().map(|name| literal(name)).collect();
    let model = |id: &String| {
        format!(
            "{{\"type\":\"model\",\"id\":{id},\"display_name\":{id},\"created_at\":\"2023-11-14T22:13:20Z\"}}"
        )
    };
    let models: Vec<String> = ids.iter().map(model).collect();
    let end = |id: Option<&String>| id.map_or("null", |id| id).to_owned();
    format!(
        "{{\"data\":[{}],\"has_more\":false,\"first_id\":{},\"last_id\":{}}}",
        models.join(","),
        end(ids.first()),
        end(ids.last())
    )
}
