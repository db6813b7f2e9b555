//! OpenAI's responses: requests, replies and refusals.

use axum::http::HeaderMap;
use serde::{Deserialize, de::Error as _};
use serde_json::{Map, Value, json, value::RawValue};

use super::{
    dialect::{CREATED, MockDialect},
    fault::{FaultKind, Problem},
    openai::{UNSUPPORTED, effort, generation},
    reply::{Call, Event, EventKind, NUMBER, REASONING, Reply, event, halves},
    request::{Asked, Check, Message, ParsedRequest, RequestTool, Rule, is_blank},
    strict::{Bound, Cached, Prefix},
};
use crate::model::StopReason;

/// Fields of a request that its reply repeats.
const REPEATED: [&str; 13] = [
    "instructions",
    "max_output_tokens",
    "metadata",
    "parallel_tool_calls",
    "previous_response_id",
    "prompt_cache_key",
    "reasoning",
    "service_tier",
    "store",
    "text",
    "tool_choice",
    "tools",
    "truncation",
];
/// Parameters of today's API.
const KNOWN: [&str; 34] = [
    "access_programs",
    "background",
    "background_options",
    "context_management",
    "conversation",
    "image",
    "include",
    "input",
    "instructions",
    "max_output_tokens",
    "max_tool_calls",
    "metadata",
    "model",
    "moderation",
    "parallel_tool_calls",
    "previous_response_id",
    "prompt",
    "prompt_cache_key",
    "prompt_cache_options",
    "prompt_cache_retention",
    "reasoning",
    "safety_identifier",
    "service_tier",
    "store",
    "stream",
    "stream_options",
    "temperature",
    "text",
    "tool_choice",
    "tools",
    "top_logprobs",
    "top_p",
    "truncation",
    "user",
];
const ENCRYPTED: &str = "reasoning.encrypted_content";

pub(super) struct Responses;

impl MockDialect for Responses {
    fn path(&self) -> &'static str {
        "/v1/responses"
    }

    fn read<'a>(&self, bytes: &'a [u8]) -> Result<ParsedRequest<'a>, serde_json::Error> {
        let body: Body = serde_json::from_slice(bytes)?;
        let mut check = Check::new(unanswered, unasked);
        let messages = messages(body.input, &mut check)?;
        let mut tools = Vec::new();
        for tool in body.tools.into_iter().flatten() {
            if tool.kind == "function" {
                let missing = || serde_json::Error::missing_field("name");
                let name = tool.name.ok_or_else(missing)?;
                let schema = tool.parameters;
                tools.push(RequestTool { name, schema });
            }
        }
        let mut choice = body.tool_choice;
        if let Some(allowed) = choice["tools"].as_array() {
            tools.retain(|tool| allowed.iter().any(|named| named["name"] == tool.name));
            choice = choice["mode"].clone();
        }
        let format = &body.text["format"];
        let is_json = !format.is_null() && format["type"] != "text";
        let asked = Asked {
            body: bytes,
            model: body.model,
            stream: body.stream,
            usage: true,
            tools,
            tool_choice: choice,
            format: is_json.then(|| format["schema"].clone()),
            messages,
        };
        Ok(asked.finish(check))
    }

    fn strict(&self, body: &Value, _: &HeaderMap) -> Result<Option<Bound>, Problem> {
        let refuse =
            |what: String, name: &str, code| Err(Problem::new(400, what).about(name, code));
        for name in body.as_object().into_iter().flat_map(Map::keys) {
            if !KNOWN.contains(&&**name) {
                let what = format!("Unknown parameter: '{name}'.");
                return refuse(what, name, Some("unknown_parameter"));
            }
        }
        check_choice(&body["tool_choice"])?;
        if let Some(id) = body["previous_response_id"].as_str() {
            let what = format!("Previous response with id '{id}' not found.");
            let code = Some("previous_response_not_found");
            return refuse(what, "previous_response_id", code);
        }
        let model = body["model"].as_str().unwrap_or_default();
        let is_old = model.starts_with("gpt-") && generation(model).is_none();
        if is_old || effort(model, &body["reasoning"]["effort"])? == "none" {
            return Ok(None);
        }
        for name in ["temperature", "top_p"] {
            if !body[name].is_null() {
                let what =
                    format!("Unsupported parameter: '{name}' is not supported with this model.");
                return refuse(what, name, UNSUPPORTED);
            }
        }
        let prefix = verify(body, model)?;
        Ok(Some(bound(model, prefix, &body["reasoning"])))
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
            failed["error"] = error;
            json!({ "type": "response.failed", "response": failed, "sequence_number": NUMBER })
        };
        event(EventKind::Frame, &data)
    }
}

fn bound(model: &str, prefix: String, reasoning: &Value) -> Bound {
    Bound {
        model: model.to_owned(),
        prefix,
        after: String::new(),
        shown: !reasoning["summary"].is_null(),
    }
}

fn check_choice(choice: &Value) -> Result<(), Problem> {
    let named = |name: &str| choice[name].is_string() || choice[name].is_array();
    let missing = match (choice, choice["type"].as_str()) {
        (Value::Null, _) => None,
        (Value::String(mode), _) if ["none", "auto", "required"].contains(&&**mode) => None,
        (Value::Object(_), Some("function" | "custom")) if !named("name") => Some("name"),
        (Value::Object(_), Some("allowed_tools")) if !named("tools") => Some("tools"),
        (Value::Object(_), Some(_)) => None,
        (Value::Object(_), None) => Some("type"),
        _ => {
            let what = format!(
                "Invalid value: {choice}. Supported values are: 'none', 'auto', and 'required'."
            );
            return Err(Problem::new(400, what).about("tool_choice", Some("invalid_value")));
        }
    };
    missing.map_or(Ok(()), |name| {
        let name = format!("tool_choice.{name}");
        let what = format!("Missing required parameter: '{name}'.");
        Err(Problem::new(400, what).about(&name, Some("missing_required_parameter")))
    })
}

/// Checks that reasoning is as it was, after what it was, and before what it was for. Returns the
/// hash of the conversation. Reasoning of earlier turns may be left out as a whole.
fn verify(body: &Value, model: &str) -> Result<String, Problem> {
    let refuse = |status, what: String, code| Err(Problem::new(status, what).about("input", code));
    let mut prefix = Prefix::of([&body["tools"], &body["instructions"]]);
    let items: Vec<&Value> = match &body["input"] {
        Value::Array(items) => items.iter().collect(),
        text => vec![text],
    };
    let is_thought = |item: &&&Value| item["type"] == "reasoning";
    let thoughts: Vec<_> = items
        .iter()
        .filter(is_thought)
        .map(|item| &item["id"])
        .collect();
    let turn = items
        .iter()
        .rposition(|item| item["role"] == "user")
        .unwrap_or(0);
    let is_kept = items[..turn].iter().any(|item| is_thought(&item));
    for (at, item) in items.iter().enumerate() {
        let id = item["id"].as_str().unwrap_or_default();
        if is_thought(&item) {
            let (hash, sealed) = (prefix.hash(), item["encrypted_content"].as_str());
            if sealed.is_none() && body["store"] == false {
                let what = format!(
                    "Item with id '{id}' not found. Items are not persisted when `store` is set to \
                     false. Try again with `store` set to true, or remove this item from your input."
                );
                return refuse(404, what, None);
            }
            let seal = bound(model, hash.clone(), &Value::Null).sign(&item["summary"].to_string());
            if id != format!("rs_{hash}") || sealed.is_some_and(|sealed| sealed != seal) {
                let what = format!(
                    "The encrypted content for item {id} could not be verified. Reason: Encrypted \
                     content could not be decrypted or parsed."
                );
                return refuse(400, what, Some("invalid_encrypted_content"));
            }
            let follows = items.get(at + 1).is_some_and(|next| {
                let is_output = next["type"] == "function_call" || next["role"] == "assistant";
                is_output && thought_of(next).is_none_or(|thought| thought == id)
            });
            if !follows {
                let what = format!(
                    "Item '{id}' of type 'reasoning' was provided without its required following item."
                );
                return refuse(400, what, None);
            }
            continue;
        }
        let thought = thought_of(item).filter(|id| !thoughts.iter().any(|thought| *thought == id));
        if let Some(thought) = thought.filter(|_| at > turn || is_kept) {
            let kind = item["type"].as_str().unwrap_or("message");
            let what = format!(
                "Item '{id}' of type '{kind}' was provided without its required 'reasoning' item: \
                 '{thought}'."
            );
            return refuse(400, what, None);
        }
        prefix.add((*item).clone());
    }
    Ok(prefix.hash())
}

/// The id of the reasoning that an item of strict mode belongs to.
fn thought_of(item: &Value) -> Option<String> {
    let mut parts = item["id"].as_str()?.split('_').skip(1);
    let hash = parts.next().filter(|hash| hash.len() == 32)?;
    Some(format!("rs_{hash}"))
}

fn unanswered(_: usize, id: &str) -> String {
    format!("No tool output found for function call {id}.")
}

fn unasked(_: usize, id: &str) -> String {
    format!("No tool call found for function call output with call_id {id}.")
}

#[derive(Deserialize)]
struct Body<'a> {
    #[serde(default)]
    model: String,
    #[serde(borrow)]
    input: Option<&'a RawValue>,
    stream: Option<bool>,
    #[serde(borrow)]
    tools: Option<Vec<Tool<'a>>>,
    #[serde(default)]
    tool_choice: Value,
    #[serde(default)]
    text: Value,
}

#[derive(Deserialize)]
struct Tool<'a> {
    #[serde(rename = "type")]
    kind: String,
    name: Option<String>,
    #[serde(borrow)]
    parameters: Option<&'a RawValue>,
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

/// The messages of an input; the items of a reply are one.
fn messages<'a>(
    input: Option<&'a RawValue>,
    check: &mut Check,
) -> Result<Vec<Message<'a>>, serde_json::Error> {
    let text = input.map_or("[]", RawValue::get);
    if text.starts_with('"') {
        let (role, content) = ("user".into(), input);
        return Ok(vec![Message { role, content }]);
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
            let content = item.content;
            messages.push(Message { role, content });
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
        let mut send = |kind, name: &str, fields: Value| {
            let mut data = fields;
            data["type"] = name.into();
            if !index.is_null() {
                data["output_index"] = index.clone();
            }
            events.push((kind, data));
        };
        let id = &item["id"];
        let framed = |item: &Value| json!({ "item": item });
        send(
            EventKind::Frame,
            "output_item.added",
            framed(&emptied(item)),
        );
        let arguments = item["arguments"]
            .as_str()
            .map(|text| halves(text).collect());
        let said: Vec<&str> = self.reply.said.text.iter().map(String::as_str).collect();
        let (summary, content) = (&item["summary"][0], &item["content"][0]);
        // The name of the text, its part with the name and the index of its events, its pieces.
        let (name, part, of, pieces) = match item["type"].as_str() {
            Some("function_call") => ("function_call_arguments", None, "", arguments),
            Some("reasoning") if summary.is_object() => {
                let part = Some((summary, "reasoning_summary_part"));
                (
                    "reasoning_summary_text",
                    part,
                    "summary_index",
                    Some(halves(REASONING).collect()),
                )
            }
            Some("reasoning") if content.is_object() => (
                "reasoning_text",
                None,
                "content_index",
                Some(halves(REASONING).collect()),
            ),
            Some("message") => {
                let name = match content["type"] == "refusal" {
                    true => "refusal",
                    false => "output_text",
                };
                (
                    name,
                    Some((content, "content_part")),
                    "content_index",
                    Some(said),
                )
            }
            _ => ("", None, "", None),
        };
        let place = |key: &str, value: Value| {
            let mut place = json!({ "item_id": id, key: value });
            if !of.is_empty() {
                place[of] = 0.into();
            }
            if name == "output_text" && key != "part" {
                place["logprobs"] = json!([]);
            }
            place
        };
        if let Some((part, name)) = part {
            send(
                EventKind::Frame,
                &format!("{name}.added"),
                place("part", emptied(part)),
            );
        }
        if let Some(pieces) = pieces {
            for piece in &pieces {
                send(
                    EventKind::Content,
                    &format!("{name}.delta"),
                    place("delta", (*piece).into()),
                );
            }
            let key = match name {
                "function_call_arguments" => "arguments",
                "refusal" => "refusal",
                _ => "text",
            };
            send(
                EventKind::Frame,
                &format!("{name}.done"),
                place(key, pieces.concat().into()),
            );
        }
        if let Some((part, name)) = part {
            send(
                EventKind::Frame,
                &format!("{name}.done"),
                place("part", part.clone()),
            );
        }
        send(EventKind::Frame, "output_item.done", framed(item));
    }

    fn items(&self) -> Vec<Value> {
        let said = self.reply.said;
        let mut items = Vec::new();
        if let Some(name) = said.reasoning {
            items.push(self.reasoning(name));
        }
        if !said.text.is_empty() || self.reply.is(FaultKind::EmptyText) {
            let text = said.text.concat();
            let part = match said.stop {
                StopReason::Refusal => json!({ "type": "refusal", "refusal": text }),
                _ => {
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
        if name == "reasoning_content" {
            item["content"] = text("reasoning_text");
        } else if self.is_summarized() {
            item["summary"] = text("summary_text");
        }
        let included = self.asked["include"].as_array();
        if included.is_some_and(|all| all.iter().any(|name| name == ENCRYPTED)) {
            let sealed =
                (self.reply.asked.bound()).map(|bound| bound.sign(&item["summary"].to_string()));
            item["encrypted_content"] = sealed
                .unwrap_or_else(|| "bW9jayByZWFzb25pbmc=".into())
                .into();
        }
        item
    }

    fn is_summarized(&self) -> bool {
        let is_fault = matches!(
            self.reply.fault,
            Some(FaultKind::Reasoning | FaultKind::ReasoningOnly)
        );
        is_fault || !self.asked["reasoning"]["summary"].is_null()
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
        let (is_whole, stop) = (status != "in_progress", self.reply.said.stop);
        let completed = Some(CREATED).filter(|_| status == "completed");
        let why = match stop {
            StopReason::MaxTokens => "max_output_tokens",
            _ => "content_filter",
        };
        let incomplete = (status == "incomplete").then(|| json!({ "reason": why }));
        let mut response = json!({
            "id": self.id("resp"),
            "object": "response",
            "created_at": CREATED,
            "status": status,
            "background": false,
            "completed_at": completed,
            "error": null,
            "frequency_penalty": 0.0,
            "incomplete_details": incomplete,
            "instructions": null,
            "max_output_tokens": null,
            "max_tool_calls": null,
            "metadata": {},
            "model": self.reply.asked.model,
            "output": items,
            "parallel_tool_calls": true,
            "presence_penalty": 0.0,
            "previous_response_id": null,
            "prompt_cache_key": null,
            "reasoning": { "effort": "medium", "summary": null },
            "safety_identifier": null,
            "service_tier": "default",
            "store": true,
            "temperature": 1.0,
            "text": { "format": { "type": "text" }, "verbosity": "medium" },
            "tool_choice": "auto",
            "tools": [],
            "top_logprobs": 0,
            "top_p": 1.0,
            "truncation": "disabled",
            "usage": null,
            "user": null,
        });
        for name in REPEATED {
            if let Some(value) = self.asked.get(name).filter(|value| !value.is_null()) {
                response[name] = value.clone();
            }
        }
        if is_whole && !self.reply.is(FaultKind::NoUsage) {
            response["usage"] = self.usage();
        }
        match self.reply.fault.filter(|_| is_whole) {
            Some(FaultKind::FinishEmpty) => response["status"] = "".into(),
            Some(FaultKind::FinishMissing) => response["status"] = Value::Null,
            _ => {}
        }
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
