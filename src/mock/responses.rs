//! OpenAI's responses: requests, replies and refusals.

use axum::http::HeaderMap;
use serde_json::{Map, Value, json};

use super::{
    dialect::{CREATED, Facts, MockDialect},
    fault::{FaultKind, Problem},
    openai::{INVALID_JSON, UNSUPPORTED, effort, generation},
    reply::{Call, Event, EventKind, REASONING, Reply, emptied, halves},
    request::{Message, Part, list, text},
    strict::{Bound, Cached},
};
use crate::model::StopReason;

/// An item's type, and the role of its message.
const OUTPUT: &str = "function_call_output";
/// Parameters of today's API.
const KNOWN: &str = "access_programs background background_options context_management conversation \
    image include input instructions max_output_tokens max_tool_calls metadata model moderation \
    parallel_tool_calls previous_response_id prompt prompt_cache_key prompt_cache_options \
    prompt_cache_retention reasoning safety_identifier service_tier store stream stream_options \
    temperature text tool_choice tools top_logprobs top_p truncation user";
/// Encrypted reasoning that is bound to nothing.
const SEAL: &str = "bW9jayByZWFzb25pbmc=";
const ENCRYPTED: &str = "reasoning.encrypted_content";

pub(super) struct Responses;

impl MockDialect for Responses {
    fn facts(&self) -> &'static Facts {
        &Facts {
            path: "/v1/responses",
            key: "input",
            roles: &["system", "developer", "user", "assistant", OUTPUT],
            alternates: false,
            itemized: true,
            filter_refuses: false,
            id: |_, _| {},
            unanswered: "No tool output found for function call {id}.",
            unasked: "No tool call found for function call output with call_id {id}.",
            arguments: INVALID_JSON,
        }
    }

    fn message<'a>(&self, item: &'a Value) -> Message<'a> {
        let id = text(item, "call_id");
        let (role, parts) = match text(item, "type") {
            "message" | "" => (text(item, "role"), Vec::new()),
            "function_call" => ("assistant", vec![Part::call(id, item)]),
            OUTPUT => (OUTPUT, vec![Part::Result(id)]),
            _ => ("assistant", vec![Part::Other]),
        };
        Message {
            role,
            content: parts.is_empty().then_some(&item["content"]),
            parts,
        }
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
        let model = text(body, "model");
        let is_old = model.starts_with("gpt-") && generation(model).is_none();
        if is_old || effort(model, &body["reasoning"]["effort"])? == "none" {
            return Ok(None);
        }
        let is_set = |name: &&str| !body[*name].is_null();
        if let Some(name) = ["temperature", "top_p"].into_iter().find(is_set) {
            let what = format!("Unsupported parameter: '{name}' is not supported with this model.");
            return Err(Problem::about(name, UNSUPPORTED, what));
        }
        verify(body).map(Some)
    }

    fn whole(&self, reply: &Reply) -> Value {
        response(reply, status(reply), &items(reply))
    }

    fn events(&self, reply: &Reply) -> Vec<Event> {
        let (status, items) = (status(reply), items(reply));
        let begun = response(reply, "in_progress", &[]);
        let begin = |name| (EventKind::Frame, json!({ "type": name, "response": begun }));
        let mut events = Vec::from(["created", "in_progress"].map(begin));
        for (at, item) in items.iter().enumerate() {
            let index = match item["type"] == "function_call" {
                true => reply.index(at),
                false => Some(at),
            };
            events.extend(item_events(reply, item, index));
        }
        let whole = response(reply, status, &items);
        events.push((EventKind::End, json!({ "type": status, "response": whole })));
        for (at, (_, data)) in events.iter_mut().enumerate() {
            data["type"] = format!("response.{}", text(data, "type")).into();
            data["sequence_number"] = at.into();
        }
        events
    }

    /// Before the first item an event of its own, then a failed response.
    fn error_event(&self, problem: &Problem, reply: &Reply, number: usize) -> Value {
        let error = self.error(problem)["error"].take();
        let (code, message) = (&error["type"], &error["message"]);
        let mut data = if reply.is(FaultKind::ErrorFirst) {
            json!({ "type": "error", "code": code, "message": message, "param": null })
        } else {
            let mut failed = response(reply, "failed", &[]);
            failed["error"] = json!({ "code": code, "message": message });
            json!({ "type": "response.failed", "response": failed })
        };
        data["sequence_number"] = number.into();
        data
    }
}

fn is_thought(item: &Value) -> bool {
    item["type"] == "reasoning"
}

/// Checks that each reasoning item is unchanged, follows the same conversation, and precedes the
/// item it was made for. Returns what the next one is bound to. Reasoning of earlier turns may be
/// left out as a whole.
fn verify(body: &Value) -> Result<Bound, Problem> {
    let (mut bound, body) = Bound::begin(body, "instructions");
    let text_alone = [body["input"].clone()];
    let items = body["input"]
        .as_array()
        .map_or(&text_alone[..], Vec::as_slice);
    let turn = items
        .iter()
        .rposition(|item| item["role"] == "user")
        .unwrap_or(0);
    let is_kept = items[..turn].iter().any(is_thought);
    let refused = |status, code, what: String| {
        let problem = Problem::about("input", code, what);
        Err(Problem { status, ..problem })
    };
    for (at, item) in items.iter().enumerate() {
        let id = text(item, "id");
        if !is_thought(item) {
            let missing =
                thought_of(item).filter(|id| !items.iter().any(|item| item["id"] == **id));
            if let Some(missing) = missing.filter(|_| at > turn || is_kept) {
                let kind = item["type"].as_str().unwrap_or("message");
                let what = format!(
                    "Item '{id}' of type '{kind}' was provided without its required 'reasoning' \
                     item: '{missing}'."
                );
                return refused(400, None, what);
            }
            bound.add(item);
            continue;
        }
        let sealed = item["encrypted_content"].as_str();
        if sealed.is_none() && body["store"] == false {
            let what = format!(
                "Item with id '{id}' not found. Items are not persisted when `store` is set to \
                 false. Try again with `store` set to true, or remove this item from your input."
            );
            return refused(404, None, what);
        }
        let seal = bound.sign(&item["summary"].to_string());
        let is_bound = id.strip_prefix("rs_") == Some(&*bound.prefix());
        if !is_bound || sealed.is_some_and(|sealed| sealed != seal) {
            let what = format!(
                "The encrypted content for item {id} could not be verified. Reason: Encrypted \
                 content could not be decrypted or parsed."
            );
            return refused(400, Some("invalid_encrypted_content"), what);
        }
        let belongs = |next: &Value| {
            let is_output = next["type"] == "function_call" || next["role"] == "assistant";
            is_output && thought_of(next).is_none_or(|thought| thought == id)
        };
        if !items.get(at + 1).is_some_and(belongs) {
            let what = format!(
                "Item '{id}' of type 'reasoning' was provided without its required following item."
            );
            return refused(400, None, what);
        }
    }
    Ok(bound)
}

/// The id of the reasoning that an item of strict mode belongs to.
fn thought_of(item: &Value) -> Option<String> {
    let hash = text(item, "id").split('_').nth(1);
    let hash = hash.filter(|hash| hash.len() == 32)?;
    Some(format!("rs_{hash}"))
}

fn status(reply: &Reply) -> &'static str {
    match reply.said.stop {
        StopReason::MaxTokens | StopReason::ContentFilter => "incomplete",
        _ => "completed",
    }
}

/// The events of an item.
fn item_events(reply: &Reply, item: &Value, index: Option<usize>) -> Vec<Event> {
    let of_summary = ("summary_index", &item["summary"][0]);
    let parts = [of_summary, ("content_index", &item["content"][0])];
    let part = parts.into_iter().find(|(_, part)| part.is_object());
    let (place, part) = part.unwrap_or(("", item));
    // The names of the events of the text and of its part.
    let (name, of) = match text(part, "type") {
        "summary_text" => ("reasoning_summary_text", "reasoning_summary_part"),
        "reasoning_text" => ("reasoning_text", ""),
        "refusal" => ("refusal", "content_part"),
        "output_text" => ("output_text", "content_part"),
        _ => ("function_call_arguments", ""),
    };
    let mut events = Vec::new();
    let frame = EventKind::Frame;
    let mut send = |kind, name: &str, key: &str, value: Value| {
        let mut data = json!({ "type": name, key: value });
        if let Some(index) = index {
            data["output_index"] = index.into();
        }
        if key != "item" {
            data["item_id"] = item["id"].clone();
            if !place.is_empty() {
                data[place] = 0.into();
            }
        }
        if name.starts_with("output_text") {
            data["logprobs"] = json!([]);
        }
        events.push((kind, data));
    };
    send(frame, "output_item.added", "item", emptied(item));
    if !of.is_empty() {
        send(frame, &format!("{of}.added"), "part", emptied(part));
    }
    let mut keys = ["text", "refusal", "arguments"].into_iter();
    if let Some(key) = keys.find(|key| part[*key].is_string()) {
        let whole = text(part, key);
        let pieces: Vec<&str> = match item["type"] == "message" {
            true => reply.said.text.iter().map(String::as_str).collect(),
            false => halves(whole).collect(),
        };
        for piece in pieces {
            let event = format!("{name}.delta");
            send(EventKind::Content, &event, "delta", piece.into());
        }
        send(frame, &format!("{name}.done"), key, whole.into());
    }
    if !of.is_empty() {
        send(frame, &format!("{of}.done"), "part", part.clone());
    }
    send(frame, "output_item.done", "item", item.clone());
    events
}

fn items(reply: &Reply) -> Vec<Value> {
    let said = reply.said;
    let mut items = Vec::from_iter(said.reasoning.map(|name| thought(reply, name)));
    if reply.has_text() {
        let text = said.text.concat();
        let part = match said.stop {
            StopReason::Refusal => json!({ "type": "refusal", "refusal": text }),
            _ => json!({ "type": "output_text", "text": text, "annotations": [], "logprobs": [] }),
        };
        let phase = match said.calls.is_empty() {
            true => "final_answer",
            false => "commentary",
        };
        items.push(
            json!({ "type": "message", "id": id(reply, "msg"), "status": status(reply),
            "role": "assistant", "phase": phase, "content": [part] }),
        );
    }
    let calls = said.calls.iter().enumerate();
    items.extend(calls.map(|(n, asked)| call(reply, n, asked)));
    items
}

fn thought(reply: &Reply, name: &str) -> Value {
    let asked = reply.asked;
    let text = |kind| json!([{ "type": kind, "text": REASONING }]);
    let mut item =
        json!({ "type": "reasoning", "id": id(reply, "rs"), "summary": [], "content": [] });
    let is_asked = !asked.body["reasoning"]["summary"].is_null();
    if name == "reasoning_content" {
        item["content"] = text("reasoning_text");
    } else if is_asked || asked.bound.is_none() {
        item["summary"] = text("summary_text");
    }
    if list(&asked.body["include"]).contains(&ENCRYPTED.into()) {
        let sign = |bound: &Bound| bound.sign(&item["summary"].to_string());
        let seal = asked.bound.as_ref().map_or_else(|| SEAL.to_owned(), sign);
        item["encrypted_content"] = seal.into();
    }
    item
}

fn call(reply: &Reply, n: usize, call: &Call) -> Value {
    let id = format!("{}_{n}", id(reply, "fc"));
    json!({ "type": "function_call", "id": id, "status": "completed", "call_id": call.id,
        "name": call.name, "arguments": reply.arguments(call, &call.arguments) })
}

/// An id of strict mode names what the reply is bound to.
fn id(reply: &Reply, kind: &str) -> String {
    match &reply.asked.bound {
        Some(bound) => format!("{kind}_{}", bound.prefix()),
        None => reply.id(kind),
    }
}

fn response(reply: &Reply, status: &'static str, items: &[Value]) -> Value {
    let model = reply.asked.model();
    let mut response = json!({
        "object": "response", "id": id(reply, "resp"), "created_at": CREATED, "model": model,
        "output": items, "status": status, "background": false, "completed_at": null, "error": null,
        "frequency_penalty": 0.0, "incomplete_details": null, "instructions": null,
        "max_output_tokens": null, "max_tool_calls": null, "metadata": {},
        "parallel_tool_calls": true, "presence_penalty": 0.0, "previous_response_id": null,
        "prompt_cache_key": null, "reasoning": { "effort": "medium", "summary": null },
        "safety_identifier": null, "service_tier": "default", "store": true, "temperature": 1.0,
        "text": { "format": { "type": "text" }, "verbosity": "medium" }, "tool_choice": "auto",
        "tools": [], "top_logprobs": 0, "top_p": 1.0, "truncation": "disabled", "usage": null,
        "user": null,
    });
    match (status, reply.said.stop) {
        ("completed", _) => response["completed_at"] = CREATED.into(),
        ("incomplete", StopReason::MaxTokens) => {
            response["incomplete_details"] = json!({ "reason": "max_output_tokens" });
        }
        ("incomplete", _) => {
            response["incomplete_details"] = json!({ "reason": "content_filter" });
        }
        _ => return response,
    }
    response["status"] = reply.stop(status).into();
    if !reply.is(FaultKind::NoUsage) {
        response["usage"] = usage(reply);
    }
    response
}

fn usage(reply: &Reply) -> Value {
    let (sent, received) = (reply.asked.tokens, reply.said.tokens());
    let Cached { read, written } = reply.asked.cached.unwrap_or_default();
    let thought = reply.said.reasoning.map_or(0, |_| REASONING.len() / 4);
    json!({
        "input_tokens": sent,
        "input_tokens_details": { "cached_tokens": read, "cache_write_tokens": written },
        "output_tokens": received,
        "output_tokens_details": { "reasoning_tokens": thought },
        "total_tokens": sent + received,
    })
}
