//! OpenAI's chat completions: requests, replies and refusals.

use std::iter;

use axum::http::HeaderMap;
use serde_json::{Value, json};

use super::{
    dialect::{CREATED, Facts, MockDialect},
    fault::{FaultKind, Problem},
    reply::{Call, Event, EventKind, REASONING, Reply, halves},
    request::{Check, Message, Part, list, text},
    strict::{Bound, Cached},
};
use crate::model::StopReason;

pub(super) const INVALID_JSON: &str = "the arguments of the call `{id}` are not valid JSON";
pub(super) const UNSUPPORTED: Option<&str> = Some("unsupported_parameter");
const UNSUPPORTED_VALUE: Option<&str> = Some("unsupported_value");

pub(super) struct OpenAi;

impl MockDialect for OpenAi {
    fn facts(&self) -> &'static Facts {
        &Facts {
            path: "/v1/chat/completions",
            key: "messages",
            roles: &["system", "developer", "user", "assistant", "tool"],
            alternates: false,
            itemized: false,
            filter_refuses: false,
            id: Check::short_id,
            unanswered: "An assistant message with 'tool_calls' must be followed by tool messages \
                         responding to each 'tool_call_id'. The following tool_call_ids did not \
                         have response messages: {id}",
            unasked: "Invalid parameter: messages with role 'tool' must be a response to a \
                      preceeding message with 'tool_calls'.",
            arguments: INVALID_JSON,
        }
    }

    fn message<'a>(&self, item: &'a Value) -> Message<'a> {
        let role = text(item, "role");
        let calls = list(&item["tool_calls"]);
        let parts = match role {
            "assistant" => calls
                .iter()
                .map(|call| Part::call(text(call, "id"), &call["function"]))
                .collect(),
            "tool" => vec![Part::Result(text(item, "tool_call_id"))],
            _ => Vec::new(),
        };
        Message {
            role,
            content: calls.is_empty().then_some(&item["content"]),
            parts,
        }
    }

    fn strict(&self, body: &Value, _: &HeaderMap) -> Result<Option<Bound>, Problem> {
        let model = text(body, "model");
        let Some(generation) = generation(model) else {
            return Ok(None);
        };
        if !body["max_tokens"].is_null() {
            let what = "Unsupported parameter: 'max_tokens' is not supported with this model. Use \
                        'max_completion_tokens' instead.";
            return Err(Problem::about("max_tokens", UNSUPPORTED, what));
        }
        if effort(model, &body["reasoning_effort"])? == "none" {
            return Ok(None);
        }
        let mut tools = list(&body["tools"]).iter();
        if generation >= (5, 4) && tools.any(|tool| tool["type"] == "function") {
            let remedy = match generation == (5, 4) || always_reasons(model) {
                true => "Please use /v1/responses instead.",
                false => {
                    "To use function tools, use /v1/responses or set reasoning_effort to 'none'."
                }
            };
            let what = format!(
                "Function tools with reasoning_effort are not supported for {model} in \
                 /v1/chat/completions. {remedy}"
            );
            return Err(Problem::about("reasoning_effort", None, what));
        }
        for (name, value) in ["temperature", "top_p"].map(|name| (name, &body[name])) {
            if !value.is_null() && value.as_f64() != Some(1.0) {
                let what = format!(
                    "Unsupported value: '{name}' does not support {value} with this model. Only the \
                     default (1) value is supported."
                );
                return Err(Problem::about(name, UNSUPPORTED_VALUE, what));
            }
        }
        Ok(None)
    }

    fn whole(&self, reply: &Reply) -> Value {
        let said = reply.said;
        let mut whole = head(reply, "chat.completion");
        if !reply.is(FaultKind::EmptyChoices) {
            let is_silent = said.text.is_empty() && !said.calls.is_empty();
            let mut message = json!({ "role": "assistant", "content": null, "refusal": null });
            message[key(reply)] = (!is_silent).then(|| said.text.concat()).into();
            if let Some(name) = said.reasoning {
                message[name] = REASONING.into();
            }
            if !said.calls.is_empty() {
                let calls = said.calls.iter();
                let calls = calls.map(|asked| call(reply, asked, &asked.arguments));
                message["tool_calls"] = calls.collect();
            }
            let choice = json!({ "index": 0, "message": message, "logprobs": null });
            whole["choices"] = json!([finished(reply, choice)]);
        }
        if !reply.is(FaultKind::NoUsage) {
            whole["usage"] = usage(reply);
        }
        whole
    }

    fn events(&self, reply: &Reply) -> Vec<Event> {
        let said = reply.said;
        let mark = (EventKind::Mark, "[DONE]".into());
        if reply.is(FaultKind::EmptyChoices) {
            return vec![(EventKind::Frame, chunk(reply, json!([]))), mark];
        }
        let mut deltas = Vec::from_iter(said.reasoning.map(|name| json!({ name: REASONING })));
        let key = key(reply);
        deltas.extend(said.text.iter().map(|piece| json!({ key: piece })));
        for (n, call) in said.calls.iter().enumerate() {
            deltas.extend(call_deltas(reply, n, call));
        }
        let is_last = reply.is(FaultKind::FinishWithLast) && said.calls.is_empty();
        let end = match deltas.pop_if(|_| is_last) {
            Some(last) => (EventKind::Content, last),
            None => (EventKind::End, json!({})),
        };
        let role = json!({ "role": "assistant", "content": "" });
        let contents = deltas.into_iter().map(|delta| (EventKind::Content, delta));
        let contents = iter::once((EventKind::Frame, role)).chain(contents);
        let unfinished = |(kind, delta)| {
            let choice = json!({ "index": 0, "delta": delta, "finish_reason": null });
            (kind, chunk(reply, json!([choice])))
        };
        let mut events: Vec<Event> = contents.map(unfinished).collect();
        let choice = finished(reply, json!({ "index": 0, "delta": end.1 }));
        events.push((end.0, chunk(reply, json!([choice]))));
        if is_counted(reply) && !reply.is(FaultKind::NoUsage) {
            let mut chunk = chunk(reply, json!([]));
            chunk["usage"] = usage(reply);
            events.push((EventKind::End, chunk));
        }
        events.push(mark);
        events
    }
}

/// The generation of a reasoning model: 5.6 of `gpt-5.6-terra`. `o3` is one of 5.0.
pub(super) fn generation(model: &str) -> Option<(u32, u32)> {
    let name = model.rsplit('/').next()?;
    if ["o1", "o3", "o4"].iter().any(|of| name.starts_with(of)) {
        return Some((5, 0));
    }
    let is_of_version = |c: char| c == '.' || c.is_ascii_digit();
    let version = name.strip_prefix("gpt-")?;
    let version = version.split(|c| !is_of_version(c)).next()?;
    let mut numbers = version.split('.').map(str::parse);
    let major = numbers.next()?.ok().filter(|major| *major >= 5)?;
    Some((major, numbers.next().and_then(Result::ok).unwrap_or(0)))
}

fn always_reasons(model: &str) -> bool {
    model.contains("gpt-6.1-sol")
}

/// The effort of a reasoning model: from 5.1 to 5.5, none by default.
pub(super) fn effort<'a>(model: &str, asked: &'a Value) -> Result<&'a str, Problem> {
    let usual = match generation(model) {
        Some((5, 1..=5)) => "none",
        _ => "medium",
    };
    let effort = asked.as_str().unwrap_or(usual);
    if effort == "none" && always_reasons(model) {
        let what = format!(
            "Unsupported value: 'none' is not supported with the '{model}' model. Supported values \
             are: 'low', 'medium', 'high', and 'xhigh'."
        );
        return Err(Problem::about("reasoning_effort", UNSUPPORTED_VALUE, what));
    }
    Ok(effort)
}

/// Name of the text in a message.
fn key(reply: &Reply) -> &'static str {
    match reply.said.stop {
        StopReason::Refusal => "refusal",
        _ => "content",
    }
}

/// Whether the stream has to end with its usage.
fn is_counted(reply: &Reply) -> bool {
    reply.asked.body["stream_options"]["include_usage"] == true
}

fn head(reply: &Reply, object: &str) -> Value {
    json!({
        "id": reply.id("chatcmpl").replace('_', "-"),
        "object": object,
        "created": CREATED,
        "model": reply.asked.model(),
        "choices": [],
    })
}

fn chunk(reply: &Reply, choices: Value) -> Value {
    let mut chunk = head(reply, "chat.completion.chunk");
    chunk["choices"] = choices;
    if is_counted(reply) {
        chunk["usage"] = Value::Null;
    }
    chunk
}

fn call(reply: &Reply, call: &Call, arguments: &str) -> Value {
    let function = json!({ "name": call.name, "arguments": reply.arguments(call, arguments) });
    json!({ "id": call.id, "type": "function", "function": function })
}

/// The first delta has the name, the others the arguments.
fn call_deltas(reply: &Reply, n: usize, asked: &Call) -> impl Iterator<Item = Value> {
    let parts = halves(&asked.arguments).filter(|_| !reply.is(FaultKind::CallObject));
    let parts = parts.map(|part| json!({ "function": { "arguments": part } }));
    let index = reply.index(n);
    iter::once(call(reply, asked, ""))
        .chain(parts)
        .map(move |mut delta| {
            if let Some(index) = index {
                delta["index"] = index.into();
            }
            json!({ "tool_calls": [delta] })
        })
}

fn finished(reply: &Reply, mut choice: Value) -> Value {
    let reason = match reply.said.stop {
        StopReason::EndTurn | StopReason::Paused | StopReason::Refusal => "stop",
        StopReason::ToolCalls => "tool_calls",
        StopReason::MaxTokens => "length",
        StopReason::ContentFilter => "content_filter",
    };
    if let Some(reason) = reply.stop(reason) {
        choice["finish_reason"] = reason.into();
    }
    choice
}

fn usage(reply: &Reply) -> Value {
    let (sent, received) = (reply.asked.tokens, reply.said.tokens());
    let total = sent + received;
    let mut usage =
        json!({ "prompt_tokens": sent, "completion_tokens": received, "total_tokens": total });
    if let Some(Cached { read, written }) = reply.asked.cached {
        usage["prompt_tokens_details"] =
            json!({ "cached_tokens": read, "cache_write_tokens": written });
    }
    usage
}
