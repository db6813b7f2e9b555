//! OpenAI's responses: requests, replies and refusals.

use axum::http::HeaderMap;
use serde::Deserialize;
use serde_json::{Map, Value, json, value::RawValue};

use super::{
    dialect::{CREATED, MockDialect},
    fault::{FaultKind, Problem},
    openai::{UNSUPPORTED, effort, generation},
    reply::{Call, Event, EventKind, NUMBER, REASONING, Reply, event, halves},
    request::{Body, Check, Message, ParsedRequest, Rule, is_blank},
    strict::{Bound, Cached, Prefix},
};
use crate::model::StopReason;

/// A response; a request's fields of these names replace these.
const RESPONSE: &str = r#"{"object": "response", "background": false, "completed_at": null,
    "error": null, "frequency_penalty": 0.0, "incomplete_details": null, "instructions": null,
    "max_output_tokens": null, "max_tool_calls": null, "metadata": {}, "parallel_tool_calls": true,
    "presence_penalty": 0.0, "previous_response_id": null, "prompt_cache_key": null,
    "reasoning": {"effort": "medium", "summary": null}, "safety_identifier": null,
    "service_tier": "default", "store": true, "temperature": 1.0,
    "text": {"format": {"type": "text"}, "verbosity": "medium"}, "tool_choice": "auto", "tools": [],
    "top_logprobs": 0, "top_p": 1.0, "truncation": "disabled", "usage": null, "user": null}"#;
/// Parameters of today's API.
const KNOWN: &str = "access_programs background background_options context_management conversation \
    image include input instructions max_output_tokens max_tool_calls metadata model moderation \
    parallel_tool_calls previous_response_id prompt prompt_cache_key prompt_cache_options \
    prompt_cache_retention reasoning safety_identifier service_tier store stream stream_options \
    temperature text tool_choice tools top_logprobs top_p truncation user";
/// Encrypted reasoning that is bound to nothing.
const SEAL: &str = "bW9jayByZWFzb25pbmc=";
const ENCRYPTED: &str = "reasoning.encrypted_content";
const WORDS: [&str; 2] = [
    "No tool output found for function call {id}.",
    "No tool call found for function call output with call_id {id}.",
];

pub(super) struct Responses;

impl MockDialect for Responses {
    fn path(&self) -> &'static str {
        "/v1/responses"
    }

    fn read<'a>(&self, bytes: &'a [u8]) -> Result<ParsedRequest<'a>, serde_json::Error> {
        let mut body: Body = serde_json::from_slice(bytes)?;
        let mut check = Check::new(WORDS);
        body.messages = Some(messages(body.input, &mut check)?);
        let mut tools = body.tools()?;
        if let Some(allowed) = body.tool_choice["tools"].as_array() {
            tools.retain(|tool| allowed.iter().any(|named| named["name"] == tool.name));
            body.tool_choice = body.tool_choice["mode"].clone();
        }
        let format = &body.text["format"];
        let is_json = !format.is_null() && format["type"] != "text";
        let format = is_json.then(|| format["schema"].clone());
        Ok(body.finish(bytes, tools, format, true, check))
    }

    fn strict(&self, body: &Value, _: &HeaderMap) -> Result<Option<Bound>, Problem> {
        let mut given = body.as_object().into_iter().flat_map(Map::keys);
        if let Some(name) = given.find(|name| !KNOWN.split(' ').any(|known| known == *name)) {
            let what = format!("Unknown parameter: '{name}'.");
            return Err(Problem::about(name, Some("unknown_parameter"), what));
        }
        if let Some(id) = body["previous_response_id"].as_str() {
            let what = format!("Previous response with id '{id}' not found.");
            let code = Some("previous_response_not_found");
            return Err(Problem::about("previous_response_id", code, what));
        }
        let choice = &body["tool_choice"];
        let modes = [json!(null), json!("none"), json!("auto"), json!("required")];
        if choice["type"] == "function" && !choice["name"].is_string() {
            let what = "Missing required parameter: 'tool_choice.name'.";
            let code = Some("missing_required_parameter");
            return Err(Problem::about("tool_choice.name", code, what));
        }
        if !choice["type"].is_string() && !modes.contains(choice) {
            let what = format!(
                "Invalid value: {choice}. Supported values are: 'none', 'auto', and 'required'."
            );
            return Err(Problem::about("tool_choice", Some("invalid_value"), what));
        }
        let model = body["model"].as_str().unwrap_or_default();
        let is_old = model.starts_with("gpt-") && generation(model).is_none();
        if is_old || effort(model, &body["reasoning"]["effort"])? == "none" {
            return Ok(None);
        }
        let is_set = |name: &&str| !body[*name].is_null();
        if let Some(name) = ["temperature", "top_p"].into_iter().find(is_set) {
            let what = format!("Unsupported parameter: '{name}' is not supported with this model.");
            return Err(Problem::about(name, UNSUPPORTED, what));
        }
        verify(body, model).map(Some)
    }

    fn whole(&self, reply: Reply) -> Value {
        Output::of(reply).whole()
    }

    fn events(&self, reply: Reply) -> Vec<Event> {
        Output::of(reply).events()
    }

    /// Before the first item an event of its own, then a failed response.
    fn error_event(&self, problem: &Problem, reply: Reply) -> Event {
        let mut error = self.error(problem)["error"].take();
        let data = if reply.is(FaultKind::ErrorFirst) {
            error["code"] = error["type"].take();
            error["type"] = "error".into();
            error["sequence_number"] = NUMBER.into();
            error
        } else {
            let error = json!({ "code": error["type"], "message": error["message"] });
            let mut failed = Output::of(reply).response("failed", &[]);
            (failed["error"], failed["usage"]) = (error, Value::Null);
            json!({ "type": "response.failed", "response": failed, "sequence_number": NUMBER })
        };
        event(EventKind::Frame, &data)
    }
}

/// Checks that reasoning is as it was, after what it was, and before what it was for. Returns what
/// the next one is bound to. Reasoning of earlier turns may be left out as a whole.
fn verify(body: &Value, model: &str) -> Result<Bound, Problem> {
    let text = [body["input"].clone()];
    let items = body["input"].as_array().map_or(&text[..], Vec::as_slice);
    let is_thought = |item: &Value| item["type"] == "reasoning";
    let user = items.iter().rposition(|item| item["role"] == "user");
    let turn = user.unwrap_or(0);
    let is_kept = items[..turn].iter().any(is_thought);
    let mut prefix = Prefix::of([&body["tools"], &body["instructions"]]);
    let mut bound = Bound {
        model: model.to_owned(),
        prefix: prefix.hash(),
        after: String::new(),
        shown: false,
    };
    for (at, item) in items.iter().enumerate() {
        let id = item["id"].as_str().unwrap_or_default();
        let (mut status, mut code) = (400, None);
        let what = if is_thought(item) {
            let sealed = item["encrypted_content"].as_str();
            let seal = bound.sign(&item["summary"].to_string());
            let is_bound = id.strip_prefix("rs_") == Some(&*bound.prefix);
            let belongs = |next: &Value| {
                let is_output = next["type"] == "function_call" || next["role"] == "assistant";
                is_output && thought_of(next).is_none_or(|thought| thought == id)
            };
            if sealed.is_none() && body["store"] == false {
                status = 404;
                format!(
                    "Item with id '{id}' not found. Items are not persisted when `store` is set to \
                     false. Try again with `store` set to true, or remove this item from your input."
                )
            } else if !is_bound || sealed.is_some_and(|sealed| sealed != seal) {
                code = Some("invalid_encrypted_content");
                format!(
                    "The encrypted content for item {id} could not be verified. Reason: Encrypted \
                     content could not be decrypted or parsed."
                )
            } else if !items.get(at + 1).is_some_and(belongs) {
                format!(
                    "Item '{id}' of type 'reasoning' was provided without its required following item."
                )
            } else {
                continue;
            }
        } else {
            let is_there = |id: &String| items.iter().any(|item| item["id"] == **id);
            let missing = thought_of(item).filter(|id| !is_there(id));
            let Some(missing) = missing.filter(|_| at > turn || is_kept) else {
                prefix.add(item.clone());
                bound.prefix = prefix.hash();
                continue;
            };
            let kind = item["type"].as_str().unwrap_or("message");
            format!(
                "Item '{id}' of type '{kind}' was provided without its required 'reasoning' item: \
                 '{missing}'."
            )
        };
        let problem = Problem::about("input", code, what);
        return Err(Problem { status, ..problem });
    }
    Ok(bound)
}

/// The id of the reasoning that an item of strict mode belongs to.
fn thought_of(item: &Value) -> Option<String> {
    let mut parts = item["id"].as_str()?.split('_').skip(1);
    let hash = parts.next().filter(|hash| hash.len() == 32)?;
    Some(format!("rs_{hash}"))
}

#[derive(Deserialize)]
struct Item<'a> {
    #[serde(rename = "type")]
    kind: Option<String>,
    #[serde(default)]
    role: String,
    #[serde(borrow)]
    content: Option<&'a RawValue>,
    #[serde(default)]
    call_id: String,
    #[serde(default)]
    name: String,
    #[serde(default)]
    arguments: String,
}

fn message(role: String, content: Option<&RawValue>) -> Message<'_> {
    Message {
        role,
        content,
        ..Message::default()
    }
}

/// The messages of an input; the items of a reply are one.
fn messages<'a>(
    input: Option<&'a RawValue>,
    check: &mut Check,
) -> Result<Vec<Message<'a>>, serde_json::Error> {
    let text = input.map_or("[]", RawValue::get);
    if text.starts_with('"') {
        return Ok(vec![message("user".into(), input)]);
    }
    let items: Vec<Item> = serde_json::from_str(text)?;
    let count = items.len();
    let mut messages: Vec<Message> = Vec::new();
    for (at, item) in (1..).zip(items) {
        let role = match item.kind.as_deref().unwrap_or("message") {
            "message" => {
                if !["system", "developer", "user", "assistant"].contains(&&*item.role) {
                    check.note(Rule::Roles, at, format!("unknown role `{}`", item.role));
                }
                if is_blank(item.content) {
                    check.note(Rule::Empty, at, "it has no content");
                }
                item.role
            }
            "function_call" => {
                check.call(at, &item.call_id, &item.name, &item.arguments);
                "assistant".into()
            }
            "function_call_output" => {
                check.result(at, &item.call_id, true);
                "tool".into()
            }
            _ => "assistant".into(),
        };
        let is_reply = |last: &Message| last.role == "assistant" && role == "assistant";
        if !messages.last().is_some_and(is_reply) {
            messages.push(message(role, item.content));
        }
    }
    check.unanswered(count + 1);
    Ok(messages)
}

struct Output<'a> {
    reply: Reply<'a>,
    asked: Value,
}

impl<'a> Output<'a> {
    fn of(reply: Reply<'a>) -> Self {
        let asked = serde_json::from_slice(reply.asked.body).unwrap_or_default();
        Self { reply, asked }
    }

    fn whole(&self) -> Value {
        self.response(self.status(), &self.items())
    }

    const fn status(&self) -> &'static str {
        match self.reply.said.stop {
            StopReason::MaxTokens | StopReason::ContentFilter => "incomplete",
            _ => "completed",
        }
    }

    fn events(&self) -> Vec<Event> {
        let items = self.items();
        let begun = self.response("in_progress", &[]);
        let mut events: Vec<(EventKind, Value)> = ["created", "in_progress"]
            .map(|name| (EventKind::Frame, json!({ "type": name, "response": begun })))
            .into();
        for (at, item) in items.iter().enumerate() {
            let index = match self.reply.fault {
                Some(FaultKind::CallNoIndex) if item["type"] == "function_call" => Value::Null,
                Some(FaultKind::CallSameIndex) if item["type"] == "function_call" => 0.into(),
                _ => at.into(),
            };
            self.item(item, &index, &mut events);
        }
        let status = self.status();
        let end = json!({ "type": status, "response": self.response(status, &items) });
        events.push((EventKind::End, end));
        let number = |(at, (kind, mut data)): (usize, (EventKind, Value))| {
            data["type"] = format!("response.{}", data["type"].as_str().unwrap_or_default()).into();
            data["sequence_number"] = at.into();
            event(kind, &data)
        };
        events.into_iter().enumerate().map(number).collect()
    }

    /// The events of an item.
    fn item(&self, item: &Value, index: &Value, events: &mut Vec<(EventKind, Value)>) {
        let (summary, content) = (&item["summary"][0], &item["content"][0]);
        let part = if summary.is_object() {
            summary
        } else {
            content
        };
        // The name of the text's events, its field, the name of the part's events, its index.
        let (name, key, of, place) = match part["type"].as_str() {
            Some("summary_text") => {
                let of = "reasoning_summary_part";
                ("reasoning_summary_text", "text", of, "summary_index")
            }
            Some("reasoning_text") => ("reasoning_text", "text", "", "content_index"),
            Some("refusal") => ("refusal", "refusal", "content_part", "content_index"),
            Some(_) => ("output_text", "text", "content_part", "content_index"),
            None => ("function_call_arguments", "arguments", "", ""),
        };
        let mut send = |kind, name: &str, event: &str, key: &str, value: Value| {
            let mut data = json!({ "type": format!("{name}.{event}"), key: value });
            if key != "item" {
                data["item_id"] = item["id"].clone();
            }
            if key != "item" && !place.is_empty() {
                data[place] = 0.into();
            }
            if name == "output_text" {
                data["logprobs"] = json!([]);
            }
            if !index.is_null() {
                data["output_index"] = index.clone();
            }
            events.push((kind, data));
        };
        let frame = EventKind::Frame;
        send(frame, "output_item", "added", "item", emptied(item));
        if !of.is_empty() {
            send(frame, of, "added", "part", emptied(part));
        }
        let whole = part[key].as_str().or_else(|| item[key].as_str());
        let said = self.reply.said.text.iter().map(String::as_str);
        let pieces: Vec<&str> = match item["type"] == "message" {
            true => said.collect(),
            false => halves(whole.unwrap_or_default()).collect(),
        };
        for piece in pieces {
            send(EventKind::Content, name, "delta", "delta", piece.into());
        }
        if let Some(whole) = whole {
            send(frame, name, "done", key, whole.into());
        }
        if !of.is_empty() {
            send(frame, of, "done", "part", part.clone());
        }
        send(frame, "output_item", "done", "item", item.clone());
    }

    fn items(&self) -> Vec<Value> {
        let said = self.reply.said;
        let mut items: Vec<Value> = said
            .reasoning
            .map(|name| self.reasoning(name))
            .into_iter()
            .collect();
        if !said.text.is_empty() || self.reply.is(FaultKind::EmptyText) {
            let text = said.text.concat();
            let part = match said.stop == StopReason::Refusal {
                true => json!({ "type": "refusal", "refusal": text }),
                false => {
                    json!({ "type": "output_text", "text": text, "annotations": [], "logprobs": [] })
                }
            };
            let phase = match said.calls.is_empty() {
                true => "final_answer",
                false => "commentary",
            };
            let (id, status) = (self.id("msg"), self.status());
            items.push(json!({ "type": "message", "id": id, "status": status,
                "role": "assistant", "phase": phase, "content": [part] }));
        }
        let calls = said.calls.iter().enumerate();
        items.extend(calls.map(|(n, call)| self.call(n, call)));
        items
    }

    fn reasoning(&self, name: &str) -> Value {
        let text = |kind| json!([{ "type": kind, "text": REASONING }]);
        let mut item =
            json!({ "type": "reasoning", "id": self.id("rs"), "summary": [], "content": [] });
        let is_asked = !self.asked["reasoning"]["summary"].is_null();
        if name == "reasoning_content" {
            item["content"] = text("reasoning_text");
        } else if is_asked || self.reply.asked.bound().is_none() {
            item["summary"] = text("summary_text");
        }
        let mut included = self.asked["include"].as_array().into_iter().flatten();
        if included.any(|name| name == ENCRYPTED) {
            let summary = item["summary"].to_string();
            let seal = (self.reply.asked.bound()).map(|bound| bound.sign(&summary));
            item["encrypted_content"] = seal.map_or_else(|| SEAL.into(), Value::from);
        }
        item
    }

    fn call(&self, n: usize, call: &Call) -> Value {
        let arguments = match self.reply.is(FaultKind::CallObject) {
            true => call.object(),
            false => (&*call.arguments).into(),
        };
        let id = format!("{}_{n}", self.id("fc"));
        json!({ "type": "function_call", "id": id, "status": "completed", "call_id": call.id,
            "name": call.name, "arguments": arguments })
    }

    fn id(&self, kind: &str) -> String {
        let (replies, tokens) = (self.reply.asked.replies, self.reply.asked.tokens);
        match self.reply.asked.bound() {
            Some(bound) => format!("{kind}_{}", bound.prefix),
            None => format!("{kind}_mock_{replies}_{tokens}"),
        }
    }

    fn response(&self, status: &str, items: &[Value]) -> Value {
        let mut response: Map<String, Value> = serde_json::from_str(RESPONSE).unwrap_or_default();
        for (name, value) in &mut response {
            let asked = self.asked.get(name).filter(|asked| !asked.is_null());
            *value = asked.unwrap_or(value).clone();
        }
        let mut response = Value::Object(response);
        response["id"] = self.id("resp").into();
        response["created_at"] = CREATED.into();
        response["model"] = (&*self.reply.asked.model).into();
        response["output"] = items.into();
        response["status"] = status.into();
        if status == "in_progress" {
            return response;
        }
        if status == "completed" {
            response["completed_at"] = CREATED.into();
        } else if status == "incomplete" {
            let why = match self.reply.said.stop {
                StopReason::MaxTokens => "max_output_tokens",
                _ => "content_filter",
            };
            response["incomplete_details"] = json!({ "reason": why });
        }
        match self.reply.fault {
            Some(FaultKind::FinishEmpty) => response["status"] = "".into(),
            Some(FaultKind::FinishMissing) => response["status"] = Value::Null,
            Some(FaultKind::NoUsage) => return response,
            _ => {}
        }
        response["usage"] = self.usage();
        response
    }

    fn usage(&self) -> Value {
        let (sent, received) = (self.reply.asked.tokens, self.reply.said.tokens());
        let Cached { read, written } = self.reply.asked.cached().unwrap_or_default();
        let thought = self.reply.said.reasoning.map_or(0, |_| REASONING.len() / 4);
        json!({
            "input_tokens": sent,
            "input_tokens_details": { "cached_tokens": read, "cache_write_tokens": written },
            "output_tokens": received,
            "output_tokens_details": { "reasoning_tokens": thought },
            "total_tokens": sent + received,
        })
    }
}

/// An item or a part as it begins.
fn emptied(item: &Value) -> Value {
    let mut item = item.clone();
    for (key, empty) in [
        ("arguments", json!("")),
        ("content", json!([])),
        ("encrypted_content", json!("bW9jaw==")),
        ("refusal", json!("")),
        ("status", json!("in_progress")),
        ("summary", json!([])),
        ("text", json!("")),
    ] {
        if item.get(key).is_some() {
            item[key] = empty;
        }
    }
    item
}
