//! Anthropic's messages: requests, replies and refusals.

use std::{ops::Range, time::Duration};

use axum::http::HeaderMap;
use memchr::memmem;
use serde::{Deserialize, de::Error as _};
use serde_json::{Map, Value, json, value::RawValue};

use super::{
    dialect::MockDialect,
    fault::{Cause, FaultKind, Problem},
    reply::{Call, Event, EventKind, HOLE, REASONING, Reply, event, halves, pieces},
    request::{Body, Check, Message, ParsedRequest, Rule, is_blank},
    strict::{Bound, Cache, Cached, Prefix},
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
const MARK: &str = "\"cache_control\"";

const WORDS: [&str; 2] = [
    "messages.{at}: `tool_use` ids were found without `tool_result` blocks immediately after: {id}. \
     Each `tool_use` block must have a corresponding `tool_result` block in the next message.",
    "messages.{at}: unexpected `tool_use_id` found in `tool_result` blocks: {id}. Each `tool_result` \
     block must have a corresponding `tool_use` block in the previous message.",
];

pub(super) struct Anthropic;

impl MockDialect for Anthropic {
    fn path(&self) -> &'static str {
        "/v1/messages"
    }

    fn read<'a>(&self, bytes: &'a [u8]) -> Result<ParsedRequest<'a>, serde_json::Error> {
        let mut body: Body = serde_json::from_slice(bytes)?;
        let mut check = Check::new(WORDS);
        let missing = || serde_json::Error::missing_field("messages");
        let messages = body.messages.as_ref().ok_or_else(missing)?;
        for (at, message) in (1_usize..).zip(messages) {
            let before = at.checked_sub(2).and_then(|at| messages.get(at));
            check_message(&mut check, at, message, before);
        }
        check.unanswered(messages.len() + 1);
        if body.max_tokens.is_none_or(|most| most == 0) {
            check.broken(Rule::Form, "max_tokens: Field required");
        }
        marks(&mut check, bytes);
        let tools = body.tools()?;
        Ok(body.finish(bytes, tools, None, true, check))
    }

    fn strict(&self, body: &Value, headers: &HeaderMap) -> Result<Option<Bound>, Problem> {
        let model = body["model"].as_str().unwrap_or_default();
        let bound = match refusal(body, model, headers) {
            Some(what) => Err(what),
            None if OLDER.iter().any(|family| model.contains(family)) => return Ok(None),
            None => verify(body, model).map(Some),
        };
        bound.map_err(|what| Problem::new(400, what))
    }

    fn cached(&self, cache: &mut Cache, body: &Value) -> Cached {
        let blocks = |content: &Value, role: &Value| -> Vec<Value> {
            let block =
                |block: &Value| json!({ "block": block, "role": role, MARKED: block[MARKED] });
            match content {
                Value::Array(blocks) => blocks.iter().map(block).collect(),
                text => vec![block(&json!({ "type": "text", "text": text }))],
            }
        };
        let tools = list(&body["tools"]).cloned();
        let system = blocks(&body["system"], &Value::Null);
        let said = list(&body["messages"])
            .flat_map(|message| blocks(&message["content"], &message["role"]));
        let model = body["model"].as_str().unwrap_or_default();
        cache.marked(model, tools.chain(system).chain(said))
    }

    fn whole(&self, reply: Reply) -> Value {
        Messages(reply).whole()
    }

    fn events(&self, reply: Reply) -> Vec<Event> {
        Messages(reply).events()
    }

    fn filter_refuses(&self) -> bool {
        true
    }

    fn status(&self, problem: &Problem) -> u16 {
        match problem.cause {
            Cause::Quota => 402,
            Cause::Status | Cause::Context => problem.status,
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
        let message = match problem.cause {
            Cause::Context => "prompt is too long: 250000 tokens > 200000 maximum",
            Cause::Status | Cause::Quota => &problem.message,
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

    fn reset(&self, time: Duration, date: &dyn Fn(Duration) -> String) -> String {
        date(time)
    }
}

fn list(value: &Value) -> impl Iterator<Item = &Value> + Clone {
    value.as_array().into_iter().flatten()
}

/// What a model refuses without a look at its messages.
fn refusal(body: &Value, model: &str, headers: &HeaderMap) -> Option<String> {
    if !headers.contains_key("anthropic-version") {
        return Some("anthropic-version: header is required".into());
    }
    if let Some(most) = body["max_tokens"].as_u64().filter(|most| *most > OUTPUT) {
        return Some(format!(
            "max_tokens: {most} > {OUTPUT}, which is the maximum allowed number of output tokens for \
             {model}"
        ));
    }
    if OLDER.iter().any(|family| model.contains(family)) {
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

/// A message without its thinking, which is chained by signatures instead.
fn unthought(message: &Value) -> Value {
    let mut message = message.clone();
    if let Some(blocks) = message.get_mut("content").and_then(Value::as_array_mut) {
        blocks.retain(|block| !is_thought(block));
    }
    message
}

/// Checks that each thinking block is as it was, after what it was, and that none is missing
/// between others. Returns what the next one is bound to. Blocks of other models are ignored.
fn verify(body: &Value, model: &str) -> Result<Bound, String> {
    let drops = body["thinking"]["block_binding"]["prefix_mismatch_behavior"] == "drop_block";
    let messages: Vec<&Value> = list(&body["messages"]).collect();
    let mut said = messages
        .iter()
        .flat_map(|message| list(&message["content"]));
    let is_kept = said.any(is_thought);
    let last = messages
        .iter()
        .rposition(|message| message["role"] == "assistant");
    let mut prefix = Prefix::of([&body["tools"], &body["system"]]);
    let mut bound = Bound {
        model: model.to_owned(),
        prefix: prefix.hash(),
        after: String::new(),
        shown: body["thinking"]["display"] == "summarized",
    };
    for (at, message) in messages.iter().enumerate() {
        let blocks = list(&message["content"]);
        let thoughts = blocks.clone().enumerate();
        for (n, block) in thoughts.filter(|(_, block)| block["type"] == "thinking") {
            let place =
                format!("messages.{at}.content.{n}: Invalid `signature` in `thinking` block");
            let signature = block["signature"].as_str().unwrap_or_default();
            let expected = bound.sign(block["thinking"].as_str().unwrap_or_default());
            if signature.len() != expected.len() || !signature.is_ascii() {
                return Err(place);
            }
            // Its model, its prefix and text, and what it follows.
            let is_same = |part: Range<usize>| signature[part.clone()] == expected[part];
            if is_same(8..40) && (bound.after.is_empty() || is_same(40..72)) {
                signature.clone_into(&mut bound.after);
            } else if is_same(0..8) && !drops {
                return Err(format!(
                    "{place}. The block is bound to a different conversation. Remove the block, or \
                     set `thinking.block_binding.prefix_mismatch_behavior` to \"drop_block\"."
                ));
            }
        }
        let calls = blocks.clone().any(|block| block["type"] == "tool_use");
        let first = blocks.clone().next().filter(|block| !is_thought(block));
        if let Some(first) = first.filter(|_| is_kept && calls && last == Some(at)) {
            let kind = first["type"].as_str().unwrap_or_default();
            return Err(format!(
                "messages.{at}.content.0.type: Expected `thinking` or `redacted_thinking`, but found \
                 `{kind}`. When `thinking` is enabled, a final `assistant` message must start with a \
                 thinking block (preceeding the lastmost set of `tool_use` and `tool_result` blocks)."
            ));
        }
        prefix.add(unthought(message));
        bound.prefix = prefix.hash();
    }
    Ok(bound)
}

#[derive(Deserialize)]
struct Block<'a> {
    #[serde(rename = "type")]
    kind: String,
    #[serde(borrow)]
    text: Option<&'a RawValue>,
    #[serde(default)]
    id: String,
    #[serde(default)]
    name: String,
    #[serde(borrow)]
    input: Option<&'a RawValue>,
    #[serde(default)]
    tool_use_id: String,
}

fn check_message(check: &mut Check, at: usize, message: &Message, before: Option<&Message>) {
    match (&*message.role, before) {
        ("user" | "assistant", Some(before)) if before.role == message.role => {
            let what = format!("it follows another message of the role `{}`", message.role);
            check.note(Rule::Roles, at, what);
        }
        ("system", Some(before)) if before.role == "user" => {}
        ("assistant", None) => {
            check.note(Rule::Roles, at, "the first message is not the user's");
        }
        ("user" | "assistant", _) => {}
        (role, _) => check.note(Rule::Roles, at, format!("unknown role `{role}`")),
    }
    if is_blank(message.content) {
        check.note(Rule::Empty, at, "it has no content");
    }
    let asked = blocks(check, at, message);
    check.unanswered(at);
    check.called |= !asked.is_empty();
    check.open = asked;
}

/// Matches results with calls, and returns the ids of new calls.
fn blocks(check: &mut Check, at: usize, message: &Message) -> Vec<String> {
    let mut asked = Vec::new();
    let content = message.content.map_or("", RawValue::get);
    if !content.starts_with('[') {
        return asked;
    }
    let blocks: Vec<Block> = match serde_json::from_str(content) {
        Ok(blocks) => blocks,
        Err(error) => {
            check.note(Rule::Form, at, error);
            return asked;
        }
    };
    let mut other = false;
    for block in &blocks {
        match &*block.kind {
            "tool_result" => {
                let id = &block.tool_use_id;
                check.result(at, id, message.role == "user");
                if other {
                    let what = format!("the result `{id}` is not before all other content");
                    check.note(Rule::Roles, at, what);
                }
            }
            "tool_use" => {
                check.plain_id(&block.id);
                check.name(&block.name);
                let input = block.input.map_or("", RawValue::get);
                if serde_json::from_str::<Map<String, Value>>(input).is_err() {
                    let what = format!("the input of the call `{}` is not an object", block.id);
                    check.note(Rule::Arguments, at, what);
                }
                asked.push(block.id.to_string());
            }
            "text" if is_blank(block.text) => {
                check.note(Rule::Empty, at, "it has an empty text");
            }
            _ => {}
        }
        other |= block.kind != "tool_result";
    }
    asked
}

/// Counts keys only: quotes within a text are escaped.
fn marks(check: &mut Check, body: &[u8]) {
    let is_key = |at: &usize| {
        let rest = body[at + MARK.len()..].trim_ascii_start();
        rest.starts_with(b":") && !body[..*at].ends_with(b"\\")
    };
    let marks = memmem::find_iter(body, MARK).filter(is_key).count();
    if marks > MARKS {
        let what = format!("{marks} parts have `cache_control`, the maximum is {MARKS}");
        check.broken(Rule::Cache, what);
    }
}

struct Messages<'a>(Reply<'a>);

impl Messages<'_> {
    fn whole(&self) -> Value {
        let said = self.0.said;
        let mut blocks = Vec::new();
        if said.reasoning.is_some() {
            let (text, signature) = self.thought();
            let thinking = json!({ "type": "thinking", "thinking": text, "signature": signature });
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
            whole["usage"] = self.usage(said.tokens());
        }
        whole
    }

    fn events(&self) -> Vec<Event> {
        let said = self.0.said;
        let mut message = self.message(Vec::new(), None);
        if !self.0.is(FaultKind::NoUsage) {
            message["usage"] = self.usage(1);
        }
        let start = json!({ "type": "message_start", "message": message });
        let ping = json!({ "type": "ping" });
        let mut events = Vec::from([start, ping].map(|data| event(EventKind::Frame, &data)));
        let mut block = 0;
        if said.reasoning.is_some() {
            let start = json!({ "type": "thinking", "thinking": "", "signature": "" });
            events.push(self.begin(block, start));
            let (text, signature) = self.thought();
            let thought = json!({ "type": "thinking_delta", "thinking": text });
            let thought = Some(thought).filter(|_| !text.is_empty());
            let signature = json!({ "type": "signature_delta", "signature": signature });
            for delta in thought.into_iter().chain([signature]) {
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

    fn thought(&self) -> (&'static str, String) {
        match self.0.asked.bound() {
            None => (REASONING, SIGNATURE.to_owned()),
            Some(bound) => {
                let text = if bound.shown { REASONING } else { "" };
                (text, bound.sign(text))
            }
        }
    }

    fn usage(&self, received: u64) -> Value {
        let sent = self.0.asked.tokens;
        let Some(Cached { read, written }) = self.0.asked.cached() else {
            return json!({ "input_tokens": sent, "output_tokens": received });
        };
        json!({
            "input_tokens": sent.saturating_sub(read + written),
            "cache_read_input_tokens": read,
            "cache_creation_input_tokens": written,
            "cache_creation":
                { "ephemeral_5m_input_tokens": written, "ephemeral_1h_input_tokens": 0 },
            "output_tokens": received,
        })
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
