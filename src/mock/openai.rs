//! Chat completions of OpenAI's dialect, written.

use std::fmt::Write as _;

use super::{
    fault::{Cause, FaultKind, Problem},
    reply::{Call, Events, Holds, REASONING, Reply, Stop, halves, literal},
};

/// A fixed time, because replies are deterministic.
const CREATED: &str = "1700000000";
const DONE: &str = "data: [DONE]";

pub(super) struct OpenAi<'a>(pub(super) Reply<'a>);

impl OpenAi<'_> {
    pub(super) fn whole(&self) -> String {
        let mut out = String::with_capacity(self.0.said.text.whole.len() + 512);
        self.head(&mut out, "chat.completion");
        if !self.0.is(FaultKind::EmptyChoices) {
            let refusal = self.0.said.stop == Stop::Refusal;
            let (content, refused) = match (self.0.said.text.is_empty(), refusal) {
                (_, true) => ("null", &*self.0.said.text.whole),
                (true, false) if !self.0.said.calls.is_empty() => ("null", "null"),
                (true, false) => ("\"\"", "null"),
                (false, false) => (&*self.0.said.text.whole, "null"),
            };
            let _ = write!(
                out,
                "{{\"index\":0,\"message\":{{\"role\":\"assistant\",\"content\":{content},\"refusal\":{refused}"
            );
            if let Some(reasoning) = self.0.said.reasoning {
                let _ = write!(out, ",\"{}\":{}", reasoning, literal(REASONING));
            }
            if !self.0.said.calls.is_empty() {
                out.push_str(",\"tool_calls\":[");
                for (n, call) in self.0.said.calls.iter().enumerate() {
                    out.push_str(if n == 0 { "" } else { "," });
                    let arguments = match self.0.fault {
                        Some(FaultKind::CallObject) => call.arguments.clone(),
                        _ => literal(&call.arguments),
                    };
                    let _ = write!(
                        out,
                        "{{\"id\":{},\"type\":\"function\",\"function\":{{\"name\":{},\"arguments\":{arguments}}}}}",
                        literal(&call.id),
                        literal(&call.name)
                    );
                }
                out.push(']');
            }
            let _ = write!(out, "}},\"logprobs\":null{}}}", self.finish());
        }
        out.push(']');
        if !self.0.is(FaultKind::NoUsage) {
            let _ = write!(out, ",\"usage\":{}", self.usage());
        }
        out.push('}');
        out
    }

    pub(super) fn events(&self) -> Events {
        let said = self.0.said;
        let mut head = "data: ".to_owned();
        self.head(&mut head, "chat.completion.chunk");
        let tail = if self.0.asked.usage {
            "],\"usage\":null}"
        } else {
            "]}"
        };
        let pieces = said.text.pieces.len() + 2 * said.calls.len() + 5;
        let mut events =
            Events::with_capacity(pieces * (head.len() + 80) + said.text.whole.len(), pieces);
        if self.0.is(FaultKind::EmptyChoices) {
            events.push(Holds::Frame, &[&head, tail]);
            events.push(Holds::Mark, &[DONE]);
            return events;
        }
        let open = "{\"index\":0,\"delta\":{";
        let close = "},\"finish_reason\":null}";
        let first = "\"role\":\"assistant\",\"content\":\"\"";
        events.push(Holds::Frame, &[&head, open, first, close, tail]);
        if let Some(reasoning) = said.reasoning {
            let delta = format!("\"{}\":{}", reasoning, literal(REASONING));
            events.push(Holds::Content, &[&head, open, &delta, close, tail]);
        }
        let key = if said.stop == Stop::Refusal {
            "\"refusal\":"
        } else {
            "\"content\":"
        };
        let finish = format!("}}{}}}", self.finish());
        let with_last = self.0.is(FaultKind::FinishWithLast) && said.calls.is_empty();
        let mut left = said.text.pieces.len();
        for piece in &said.text.pieces {
            left -= 1;
            let close = if with_last && left == 0 {
                &finish
            } else {
                close
            };
            events.push(Holds::Content, &[&head, open, key, piece, close, tail]);
        }
        for (n, call) in said.calls.iter().enumerate() {
            for delta in self.call_deltas(n, call) {
                events.push(
                    Holds::Content,
                    &[&head, open, "\"tool_calls\":[", &delta, "]", close, tail],
                );
            }
        }
        if !with_last || said.text.is_empty() {
            events.push(Holds::End, &[&head, open, &finish, tail]);
        }
        if self.0.asked.usage && !self.0.is(FaultKind::NoUsage) {
            let usage = format!("],\"usage\":{}}}", self.usage());
            events.push(Holds::End, &[&head, &usage]);
        }
        events.push(Holds::Mark, &[DONE]);
        events
    }

    fn head(&self, out: &mut String, object: &str) {
        let (replies, tokens) = (self.0.asked.replies, self.0.asked.tokens);
        let _ = write!(
            out,
            "{{\"id\":\"chatcmpl-mock-{replies}-{tokens}\",\"object\":\"{object}\",\"created\":{CREATED},\"model\":{},\"choices\":[",
            literal(&self.0.asked.model)
        );
    }

    /// The first delta has the name, the others the arguments.
    fn call_deltas(&self, n: usize, call: &Call) -> Vec<String> {
        let index = match self.0.fault {
            Some(FaultKind::CallNoIndex) => String::new(),
            Some(FaultKind::CallSameIndex) => "\"index\":0,".to_owned(),
            _ => format!("\"index\":{n},"),
        };
        let first = |arguments: &str| {
            format!(
                "{{{index}\"id\":{},\"type\":\"function\",\"function\":{{\"name\":{},\"arguments\":{arguments}}}}}",
                literal(&call.id),
                literal(&call.name)
            )
        };
        if self.0.is(FaultKind::CallObject) {
            return vec![first(&call.arguments)];
        }
        let mut deltas = vec![first("\"\"")];
        for part in halves(&call.arguments) {
            let arguments = literal(part);
            deltas.push(format!(
                "{{{index}\"function\":{{\"arguments\":{arguments}}}}}"
            ));
        }
        deltas
    }

    fn finish(&self) -> &'static str {
        match (self.0.fault, self.0.said.stop) {
            (Some(FaultKind::FinishMissing), _) => "",
            (Some(FaultKind::FinishEmpty), _) => ",\"finish_reason\":\"\"",
            (Some(FaultKind::FinishStop), _) | (_, Stop::EndTurn | Stop::Refusal) => {
                ",\"finish_reason\":\"stop\""
            }
            (_, Stop::ToolCalls) => ",\"finish_reason\":\"tool_calls\"",
            (_, Stop::MaxTokens) => ",\"finish_reason\":\"length\"",
            (_, Stop::ContentFilter) => ",\"finish_reason\":\"content_filter\"",
        }
    }

    fn usage(&self) -> String {
        let (sent, received) = (self.0.asked.tokens, self.0.said.tokens());
        let total = sent + received;
        format!(
            "{{\"prompt_tokens\":{sent},\"completion_tokens\":{received},\"total_tokens\":{total}}}"
        )
    }
}

pub(super) fn error(problem: &Problem) -> String {
    let (kind, code) = match (problem.cause, problem.status) {
        (Cause::Context, _) => ("invalid_request_error", "\"context_length_exceeded\""),
        (Cause::Quota, _) => ("insufficient_quota", "\"insufficient_quota\""),
        (Cause::Status, 401) => ("invalid_request_error", "\"invalid_api_key\""),
        (Cause::Status, 404) => ("invalid_request_error", "\"model_not_found\""),
        (Cause::Status, 429) => ("requests", "\"rate_limit_exceeded\""),
        (Cause::Status, 400..=499) => ("invalid_request_error", "null"),
        (Cause::Status, _) => ("server_error", "null"),
    };
    let message = literal(&problem.message);
    format!(
        "{{\"error\":{{\"message\":{message},\"type\":\"{kind}\",\"param\":null,\"code\":{code}}}}}"
    )
}

pub(super) fn models(names: &[String]) -> String {
    let model = |name: &String| {
        let id = literal(name);
        format!("{{\"id\":{id},\"object\":\"model\",\"created\":{CREATED},\"owned_by\":\"mock\"}}")
    };
    let models: Vec<String> = names.iter().map(model).collect();
    format!("{{\"object\":\"list\",\"data\":[{}]}}", models.join(","))
}
