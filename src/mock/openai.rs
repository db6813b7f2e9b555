//! OpenAI's chat completions: requests, replies and refusals.

use axum::http::HeaderMap;
use serde::de::Error as _;
use serde_json::{Value, json};

use super::{
    dialect::{CREATED, MockDialect},
    fault::{FaultKind, Problem},
    reply::{Call, Event, EventKind, HOLE, REASONING, Reply, event, halves, pieces},
    request::{Body, Check, Message, ParsedRequest, RequestedCall, Rule, is_blank},
    strict::{Bound, Cached},
};
use crate::model::StopReason;

pub(super) const UNSUPPORTED: Option<&str> = Some("unsupported_parameter");
const UNSUPPORTED_VALUE: Option<&str> = Some("unsupported_value");
const WORDS: [&str; 2] = [
    "An assistant message with 'tool_calls' must be followed by tool messages responding to each \
     'tool_call_id'. The following tool_call_ids did not have response messages: {id}",
    "Invalid parameter: messages with role 'tool' must be a response to a preceeding message with \
     'tool_calls'.",
];

pub(super) struct OpenAi;

impl MockDialect for OpenAi {
    fn path(&self) -> &'static str {
        "/v1/chat/completions"
    }

    fn read<'a>(&self, bytes: &'a [u8]) -> Result<ParsedRequest<'a>, serde_json::Error> {
        let mut body: Body = serde_json::from_slice(bytes)?;
        let mut check = Check::new(WORDS);
        let missing = || serde_json::Error::missing_field("messages");
        let messages = body.messages.as_ref().ok_or_else(missing)?;
        for (at, message) in (1..).zip(messages) {
            check_message(&mut check, at, message);
        }
        check.unanswered(messages.len() + 1);
        let format = &body.response_format;
        let is_json = !format.is_null() && format["type"] != "text";
        let format = is_json.then(|| format["json_schema"]["schema"].clone());
        let usage = body.stream_options["include_usage"] == true;
        let tools = body.tools()?;
        Ok(body.finish(bytes, tools, format, usage, check))
    }

    fn strict(&self, body: &Value, _: &HeaderMap) -> Result<Option<Bound>, Problem> {
        let model = body["model"].as_str().unwrap_or_default();
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
        let mut tools = body["tools"].as_array().into_iter().flatten();
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

    fn whole(&self, reply: Reply) -> Value {
        Chat(reply).whole()
    }

    fn events(&self, reply: Reply) -> Vec<Event> {
        Chat(reply).events()
    }
}

/// The generation of a reasoning model: 5.6 of `gpt-5.6-terra`. `o3` is one of 5.0.
pub(super) fn generation(model: &str) -> Option<(u32, u32)> {
    let name = model.rsplit('/').next().unwrap_or_default();
    if ["o1", "o3", "o4"].iter().any(|of| name.starts_with(of)) {
        return Some((5, 0));
    }
    let mut numbers = name
        .strip_prefix("gpt-")?
        .split(|c: char| !c.is_ascii_digit());
    let major = numbers
        .next()?
        .parse()
        .ok()
        .filter(|major: &u32| *major >= 5)?;
    let minor = numbers.next().filter(|_| name.contains('.'));
    Some((
        major,
        minor.and_then(|minor| minor.parse().ok()).unwrap_or(0),
    ))
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

fn check_message(check: &mut Check, at: usize, message: &Message) {
    if message.role != "tool" {
        check.unanswered(at);
    }
    let calls = message.tool_calls.as_deref().unwrap_or_default();
    match &*message.role {
        "system" | "developer" | "user" => {}
        "assistant" => {
            for RequestedCall { id, function } in calls {
                check.short_id(id);
                check.call(at, id, &function.name, &function.arguments);
            }
        }
        "tool" => check.result(at, &message.tool_call_id, true),
        role => check.note(Rule::Roles, at, format!("unknown role `{role}`")),
    }
    if is_blank(message.content) && calls.is_empty() {
        check.note(Rule::Empty, at, "it has no content");
    }
}

struct Chat<'a>(Reply<'a>);

impl Chat<'_> {
    fn whole(&self) -> Value {
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

    fn events(&self) -> Vec<Event> {
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
        let mut usage = json!({ "prompt_tokens": sent, "completion_tokens": received,
            "total_tokens": total });
        if let Some(Cached { read, written }) = self.0.asked.cached() {
            usage["prompt_tokens_details"] =
                json!({ "cached_tokens": read, "cache_write_tokens": written });
        }
        usage
    }
}
