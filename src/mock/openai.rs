//! OpenAI's chat completions: requests, replies and refusals.

use axum::http::HeaderMap;
use serde::Deserialize;
use serde_json::{Value, json, value::RawValue};

use super::{
    dialect::{CREATED, MockDialect},
    fault::{FaultKind, Problem},
    reply::{Call, Event, EventKind, HOLE, REASONING, Reply, event, halves, pieces},
    request::{Asked, Check, Message, ParsedRequest, RequestTool, Rule, is_blank},
    strict::{Bound, Cached},
};
use crate::model::StopReason;

pub(super) const UNSUPPORTED: Option<&str> = Some("unsupported_parameter");
/// Models that always reason.
const LACKS_NONE: [&str; 1] = ["gpt-6.1-sol"];

pub(super) struct OpenAi;

impl MockDialect for OpenAi {
    fn path(&self) -> &'static str {
        "/v1/chat/completions"
    }

    fn read<'a>(&self, bytes: &'a [u8]) -> Result<ParsedRequest<'a>, serde_json::Error> {
        let body: Body = serde_json::from_slice(bytes)?;
        let mut check = Check::new(unanswered, unasked);
        for (at, message) in (1..).zip(&body.messages) {
            message.check(at, &mut check);
        }
        check.unanswered(body.messages.len() + 1);
        let format = body
            .response_format
            .filter(|format| format["type"] != "text");
        let messages = body.messages.into_iter();
        let tools = body.tools.into_iter().flatten();
        let asked = Asked {
            body: bytes,
            model: body.model,
            stream: body.stream,
            usage: (body.stream_options).and_then(|options| options.include_usage) == Some(true),
            tools: tools.map(|tool| tool.function).collect(),
            tool_choice: body.tool_choice,
            format: format.map(|format| format["json_schema"]["schema"].clone()),
            messages: messages
                .map(|message| Message {
                    role: message.role,
                    content: message.content,
                })
                .collect(),
        };
        Ok(asked.finish(check))
    }

    fn strict(&self, body: &Value, _: &HeaderMap) -> Result<Option<Bound>, Problem> {
        let model = body["model"].as_str().unwrap_or_default();
        let Some(generation) = generation(model) else {
            return Ok(None);
        };
        if !body["max_tokens"].is_null() {
            let what = "Unsupported parameter: 'max_tokens' is not supported with this model. Use \
                        'max_completion_tokens' instead.";
            return Err(Problem::new(400, what).about("max_tokens", UNSUPPORTED));
        }
        let effort = effort(model, &body["reasoning_effort"])?;
        if effort == "none" {
            return Ok(None);
        }
        let is_function = |tool: &Value| tool["type"] == "function";
        let tools = body["tools"].as_array();
        if generation >= (5, 4) && tools.is_some_and(|tools| tools.iter().any(is_function)) {
            let remedy = match generation {
                (5, 4) => "Please use /v1/responses instead.",
                _ if LACKS_NONE.iter().any(|name| model.starts_with(name)) => {
                    "Please use /v1/responses instead."
                }
                _ => "To use function tools, use /v1/responses or set reasoning_effort to 'none'.",
            };
            let what = format!(
                "Function tools with reasoning_effort are not supported for {model} in \
                 /v1/chat/completions. {remedy}"
            );
            return Err(Problem::new(400, what).about("reasoning_effort", None));
        }
        for name in ["temperature", "top_p"] {
            let value = &body[name];
            if !value.is_null() && value.as_f64() != Some(1.0) {
                let what = format!(
                    "Unsupported value: '{name}' does not support {value} with this model. Only the \
                     default (1) value is supported."
                );
                return Err(Problem::new(400, what).about(name, Some("unsupported_value")));
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
    let digits = |text: &str| {
        text.split(|c: char| !c.is_ascii_digit())
            .next()?
            .parse()
            .ok()
    };
    let (major, minor) = match name.strip_prefix("gpt-")?.split_once('.') {
        Some((major, minor)) => (digits(major)?, digits(minor).unwrap_or(0)),
        None => (digits(name.strip_prefix("gpt-")?)?, 0),
    };
    (major >= 5).then_some((major, minor))
}

/// The effort of a reasoning model: from 5.1 to 5.5, none by default.
pub(super) fn effort<'a>(model: &str, asked: &'a Value) -> Result<&'a str, Problem> {
    let asked = asked.as_str();
    if asked == Some("none") && LACKS_NONE.iter().any(|name| model.starts_with(name)) {
        let what = format!(
            "Unsupported value: 'none' is not supported with the '{model}' model. Supported values \
             are: 'low', 'medium', 'high', and 'xhigh'."
        );
        return Err(Problem::new(400, what).about("reasoning_effort", Some("unsupported_value")));
    }
    Ok(asked.unwrap_or(match generation(model) {
        Some((5, 1..=5)) => "none",
        _ => "medium",
    }))
}

fn unanswered(_: usize, id: &str) -> String {
    format!(
        "An assistant message with 'tool_calls' must be followed by tool messages responding to \
         each 'tool_call_id'. The following tool_call_ids did not have response messages: {id}"
    )
}

fn unasked(_: usize, _: &str) -> String {
    "Invalid parameter: messages with role 'tool' must be a response to a preceeding message with \
     'tool_calls'."
        .to_owned()
}

#[derive(Deserialize)]
struct Body<'a> {
    #[serde(default)]
    model: String,
    #[serde(borrow)]
    messages: Vec<ChatMessage<'a>>,
    stream: Option<bool>,
    stream_options: Option<StreamOptions>,
    #[serde(borrow)]
    tools: Option<Vec<Tool<'a>>>,
    #[serde(default)]
    tool_choice: Value,
    response_format: Option<Value>,
}

#[derive(Deserialize)]
struct StreamOptions {
    include_usage: Option<bool>,
}

#[derive(Deserialize)]
struct Tool<'a> {
    #[serde(borrow)]
    function: RequestTool<'a>,
}

#[derive(Deserialize)]
struct ChatMessage<'a> {
    role: String,
    #[serde(borrow)]
    content: Option<&'a RawValue>,
    #[serde(default)]
    tool_calls: Option<Vec<RequestedCall>>,
    #[serde(default)]
    tool_call_id: String,
}

#[derive(Deserialize)]
struct RequestedCall {
    id: String,
    function: CallFunction,
}

#[derive(Deserialize)]
struct CallFunction {
    #[serde(default)]
    name: String,
    arguments: String,
}

impl ChatMessage<'_> {
    fn check(&self, at: usize, check: &mut Check) {
        if self.role != "tool" {
            check.unanswered(at);
        }
        let calls = self.tool_calls.as_deref().unwrap_or_default();
        match &*self.role {
            "system" | "developer" | "user" => {}
            "assistant" => {
                for call in calls {
                    check.short_id(&call.id);
                    check.call(at, &call.id, &call.function.name, &call.function.arguments);
                }
            }
            "tool" => check.result(at, &self.tool_call_id, true),
            role => check.note(Rule::Roles, at, format!("unknown role `{role}`")),
        }
        if is_blank(self.content) && calls.is_empty() {
            check.note(Rule::Empty, at, "it has no content");
        }
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
