//! Anthropic's messages: requests, replies and refusals.

use std::time::{Duration, SystemTime};

use axum::http::HeaderMap;
use serde_json::{Value, json};

use super::{
    dialect::{Facts, MockDialect},
    fault::{CONTEXT, FaultKind, Problem, QUOTA},
    reply::{Event, EventKind, REASONING, Reply, emptied, halves},
    request::{Check, Message, Part, Rule, is_blank, list, text},
    strict::{Bound, Cache, Cached},
};
use crate::model::StopReason;

const SIGNATURE: &str = "bW9jayBzaWduYXR1cmU=";
/// Most cache marks.
const MARKS: usize = 4;
/// Most tokens of a reply.
const OUTPUT: u64 = 128_000;
/// Parts of the names of models with the rules of 2025.
const OLDER: [&str; 3] = ["claude-2", "claude-3", "-4-"];
const MARKED: &str = "cache_control";

pub(super) struct Anthropic;

impl MockDialect for Anthropic {
    fn facts(&self) -> &'static Facts {
        &Facts {
            path: "/v1/messages",
            key: "messages",
            roles: &["user", "assistant", "system"],
            alternates: true,
            itemized: false,
            filter_refuses: true,
            id: Check::plain_id,
            unanswered: "messages.{at}: `tool_use` ids were found without `tool_result` blocks \
                         immediately after: {id}. Each `tool_use` block must have a corresponding \
                         `tool_result` block in the next message.",
            unasked: "messages.{at}: unexpected `tool_use_id` found in `tool_result` blocks: {id}. \
                      Each `tool_result` block must have a corresponding `tool_use` block in the \
                      previous message.",
            arguments: "the input of the call `{id}` is not an object",
        }
    }

    fn message<'a>(&self, item: &'a Value) -> Message<'a> {
        let part = |block: &'a Value| match text(block, "type") {
            "tool_result" => Part::Result(text(block, "tool_use_id")),
            "tool_use" => Part::Call {
                id: text(block, "id"),
                name: text(block, "name"),
                is_valid: block["input"].is_object(),
            },
            "text" if is_blank(&block["text"]) => Part::EmptyText,
            _ => Part::Other,
        };
        let content = &item["content"];
        Message {
            role: text(item, "role"),
            content: Some(content),
            parts: list(content).iter().map(part).collect(),
        }
    }

    fn check(&self, body: &Value, check: &mut Check) {
        let most = body["max_tokens"].as_u64().unwrap_or(0);
        check.require(most > 0, Rule::Form, "max_tokens: Field required");
        // In JSON only a key has a colon after its quotes.
        let marks = body.to_string().matches(&format!("\"{MARKED}\":")).count();
        let what = format!("{marks} parts have `{MARKED}`, the maximum is {MARKS}");
        check.require(marks <= MARKS, Rule::Cache, what);
    }

    fn strict(&self, body: &Value, headers: &HeaderMap) -> Result<Option<Bound>, Problem> {
        let bound = match refusal(body, headers) {
            Some(what) => Err(what),
            None if is_older(body) => Ok(None),
            None => verify(body).map(Some),
        };
        bound.map_err(|what| Problem::new(400, what))
    }

    fn cached(&self, cache: &mut Cache, body: &Value) -> Cached {
        let of_role = |message: &Value, content: &str| {
            let role = &message["role"];
            let block =
                |block: &Value| json!({ "block": block, "role": role, MARKED: block[MARKED] });
            Vec::from_iter(blocks(&message[content]).iter().map(block))
        };
        let tools = list(&body["tools"]).iter().cloned();
        let said = list(&body["messages"]).iter();
        let said = said.flat_map(|message| of_role(message, "content"));
        // Another choice keeps the tools and the prompt, and not the messages.
        let choice = std::iter::once(body["tool_choice"].clone());
        let head = tools.chain(of_role(body, "system")).chain(choice);
        let prompt = head.chain(said);
        cache.marked(text(body, "model"), prompt)
    }

    fn whole(&self, reply: &Reply) -> Value {
        let blocks = blocks_of(reply).into_iter().map(|(block, _)| block);
        message(reply, blocks.collect(), stop(reply), reply.said.tokens())
    }

    /// Each block begins empty, and deltas fill it.
    fn events(&self, reply: &Reply) -> Vec<Event> {
        let begun = message(reply, Vec::new(), None, 1);
        let start = json!({ "type": "message_start", "message": begun });
        let ping = json!({ "type": "ping" });
        let mut events = vec![(EventKind::Frame, start), (EventKind::Frame, ping)];
        for (at, (block, deltas)) in blocks_of(reply).into_iter().enumerate() {
            let first = events.len();
            let mut begun = emptied(&block);
            if reply.is(FaultKind::CallObject) && block["type"] == "tool_use" {
                begun = block;
            }
            let start = json!({ "type": "content_block_start", "content_block": begun });
            events.push((EventKind::Frame, start));
            let delta = |delta| json!({ "type": "content_block_delta", "delta": delta });
            let deltas = deltas.into_iter().map(delta);
            events.extend(deltas.map(|data| (EventKind::Content, data)));
            events.push((EventKind::Frame, json!({ "type": "content_block_stop" })));
            if let Some(index) = reply.index(at) {
                let of_block = events[first..].iter_mut();
                of_block.for_each(|(_, data)| data["index"] = index.into());
            }
        }
        if let Some(stop) = stop(reply) {
            let delta = json!({ "stop_reason": stop, "stop_sequence": null });
            let mut end = json!({ "type": "message_delta", "delta": delta });
            if !reply.is(FaultKind::NoUsage) {
                end["usage"] = json!({ "output_tokens": reply.said.tokens() });
            }
            events.push((EventKind::End, end));
        }
        events.push((EventKind::Mark, json!({ "type": "message_stop" })));
        events
    }

    fn status(&self, problem: &Problem) -> u16 {
        match problem.code {
            Some(QUOTA) => 402,
            _ => problem.status,
        }
    }

    fn error(&self, problem: &Problem) -> Value {
        let kind = match self.status(problem) {
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
        let message = match problem.code {
            Some(CONTEXT) => "prompt is too long: 250000 tokens > 200000 maximum",
            _ => &problem.message,
        };
        let error = json!({ "type": kind, "message": message });
        json!({ "type": "error", "error": error, "request_id": "req_mock" })
    }

    fn models(&self, names: &[String]) -> Value {
        let model = |name| {
            let created = "2023-11-14T22:13:20Z";
            json!({ "type": "model", "id": name, "display_name": name, "created_at": created })
        };
        let models: Vec<Value> = names.iter().map(model).collect();
        let (first, last) = (names.first(), names.last());
        json!({ "data": models, "has_more": false, "first_id": first, "last_id": last })
    }

    fn limit(&self, name: &str, what: &str) -> String {
        format!("anthropic-ratelimit-{what}-{name}")
    }

    fn reset(&self, time: Duration, now: SystemTime) -> String {
        let time = jiff::Timestamp::try_from(now + time).unwrap_or_default();
        time.strftime("%FT%TZ").to_string()
    }
}

fn is_older(body: &Value) -> bool {
    let model = text(body, "model");
    OLDER.iter().any(|family| model.contains(family))
}

/// What a model refuses without a look at its messages.
fn refusal(body: &Value, headers: &HeaderMap) -> Option<String> {
    if !headers.contains_key("anthropic-version") {
        return Some("anthropic-version: header is required".into());
    }
    if let Some(most) = body["max_tokens"].as_u64().filter(|most| *most > OUTPUT) {
        let model = text(body, "model");
        return Some(format!(
            "max_tokens: {most} > {OUTPUT}, which is the maximum allowed number of output tokens for \
             {model}"
        ));
    }
    if is_older(body) {
        return None;
    }
    let is_set = |name: &&str| !body[*name].is_null() && body[*name].as_f64() != Some(1.0);
    if let Some(name) = ["temperature", "top_p", "top_k"].into_iter().find(is_set) {
        return Some(format!("`{name}` is deprecated for this model."));
    }
    if let Some("any" | "tool") = body["tool_choice"]["type"].as_str() {
        let what = "Thinking may not be enabled when tool_choice forces tool use.";
        return Some(what.into());
    }
    let kind = body["thinking"]["type"].as_str();
    let kind = kind.filter(|kind| ["disabled", "enabled"].contains(kind))?;
    Some(format!(
        "\"thinking.type.{kind}\" is not supported for this model. Use \"thinking.type.adaptive\" and \
         \"output_config.effort\" to control thinking behavior."
    ))
}

fn is_thought(block: &Value) -> bool {
    block["type"] == "thinking" || block["type"] == "redacted_thinking"
}

/// The blocks of a content; a text is one.
fn blocks(content: &Value) -> Vec<Value> {
    match content {
        Value::Array(blocks) => blocks.clone(),
        text => vec![json!({ "type": "text", "text": text })],
    }
}

/// Checks that each thinking block is unchanged and follows the same conversation, and that none is
/// missing between others. Returns what the next one is bound to. Blocks of other models are ignored.
fn verify(body: &Value) -> Result<Bound, String> {
    let (mut bound, body) = Bound::begin(body, "system");
    let drops = body["thinking"]["block_binding"]["prefix_mismatch_behavior"] == "drop_block";
    let messages = list(&body["messages"]);
    let mut said = messages.iter().map(|message| &message["content"]);
    let is_kept = said.any(|content| list(content).iter().any(is_thought));
    let last = messages
        .iter()
        .rposition(|message| message["role"] == "assistant");
    for (at, message) in messages.iter().enumerate() {
        let blocks = blocks(&message["content"]);
        let thoughts = blocks.iter().enumerate();
        for (n, block) in thoughts.filter(|(_, block)| block["type"] == "thinking") {
            let place =
                format!("messages.{at}.content.{n}: Invalid `signature` in `thinking` block");
            let signature = text(block, "signature");
            let [model, own, after] = signature.split('.').collect::<Vec<_>>()[..] else {
                return Err(place);
            };
            let expected = bound.parts(text(block, "thinking"));
            if own == expected[1] && (bound.after.is_empty() || after == expected[2]) {
                signature.clone_into(&mut bound.after);
            } else if model == expected[0] && !drops {
                return Err(format!(
                    "{place}. The block is bound to a different conversation. Remove the block, or \
                     set `thinking.block_binding.prefix_mismatch_behavior` to \"drop_block\"."
                ));
            }
        }
        let calls = blocks.iter().any(|block| block["type"] == "tool_use");
        let first = blocks.first().filter(|block| !is_thought(block));
        if let Some(first) = first.filter(|_| is_kept && calls && last == Some(at)) {
            let kind = text(first, "type");
            return Err(format!(
                "messages.{at}.content.0.type: Expected `thinking` or `redacted_thinking`, but found \
                 `{kind}`. When `thinking` is enabled, a final `assistant` message must start with a \
                 thinking block (preceeding the lastmost set of `tool_use` and `tool_result` blocks)."
            ));
        }
        // Thinking is chained by signatures instead.
        bound.add(&message["role"]);
        let others = blocks.iter().filter(|block| !is_thought(block));
        others.for_each(|block| bound.add(block));
    }
    Ok(bound)
}

/// The blocks of a reply, each with its deltas.
fn blocks_of(reply: &Reply) -> Vec<(Value, Vec<Value>)> {
    let said = reply.said;
    let mut blocks = Vec::new();
    if said.reasoning.is_some() {
        let is_shown = reply.asked.body["thinking"]["display"] == "summarized";
        let bound = reply.asked.bound.as_ref();
        let shown = Some(REASONING).filter(|_| is_shown || bound.is_none());
        let thought = shown.unwrap_or_default();
        let signature = bound.map_or_else(|| SIGNATURE.to_owned(), |bound| bound.sign(thought));
        let shown = shown.map(|text| json!({ "type": "thinking_delta", "thinking": text }));
        let mut deltas = Vec::from_iter(shown);
        deltas.push(json!({ "type": "signature_delta", "signature": signature }));
        let block = json!({ "type": "thinking", "thinking": thought, "signature": signature });
        blocks.push((block, deltas));
    }
    if reply.has_text() {
        let delta = |piece| json!({ "type": "text_delta", "text": piece });
        let block = json!({ "type": "text", "text": said.text.concat() });
        blocks.push((block, said.text.iter().map(delta).collect()));
    }
    for call in &said.calls {
        let (id, name, input) = (&call.id, &call.name, call.object());
        let parts = halves(&call.arguments).filter(|_| !reply.is(FaultKind::CallObject));
        let delta = |part| json!({ "type": "input_json_delta", "partial_json": part });
        let block = json!({ "type": "tool_use", "id": id, "name": name, "input": input });
        blocks.push((block, parts.map(delta).collect()));
    }
    blocks
}

fn message(reply: &Reply, content: Vec<Value>, stop: Option<&str>, tokens: u64) -> Value {
    let mut message = json!({
        "id": reply.id("msg"),
        "type": "message",
        "role": "assistant",
        "model": reply.asked.model(),
        "content": content,
        "stop_reason": stop,
        "stop_sequence": null,
    });
    if !reply.is(FaultKind::NoUsage) {
        message["usage"] = usage(reply, tokens);
    }
    message
}

fn usage(reply: &Reply, received: u64) -> Value {
    let sent = reply.asked.tokens;
    let Some(Cached { read, written }) = reply.asked.cached else {
        return json!({ "input_tokens": sent, "output_tokens": received });
    };
    json!({
        "input_tokens": sent.saturating_sub(read + written),
        "cache_read_input_tokens": read,
        "cache_creation_input_tokens": written,
        "cache_creation": { "ephemeral_5m_input_tokens": written, "ephemeral_1h_input_tokens": 0 },
        "output_tokens": received,
    })
}

fn stop(reply: &Reply) -> Option<&'static str> {
    reply.stop(match reply.said.stop {
        StopReason::EndTurn => "end_turn",
        StopReason::ToolCalls => "tool_use",
        StopReason::MaxTokens => "max_tokens",
        StopReason::Paused => "pause_turn",
        StopReason::Refusal | StopReason::ContentFilter => "refusal",
    })
}
