use std::{num::NonZeroU32, sync::Arc, time::SystemTime};

use axum::http::HeaderMap;
use bytes::Bytes;
use serde_json::json;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use super::*;
use crate::{
    llm::Dialect,
    mock::{
        Settings,
        decide::{MockRequest, Sent},
        dialect::row,
        server::Server,
    },
};

fn server() -> Arc<Server> {
    let settings = Settings {
        strict: true,
        tools: true,
        turns: NonZeroU32::new(4).unwrap(),
        size: 4,
        ..Settings::default()
    };
    Server::new(settings, CancellationToken::new())
}

fn send(server: &Server, dialect: Dialect, body: &Value, version: bool) -> (u16, Value) {
    let mut headers = HeaderMap::new();
    if version {
        headers.insert("anthropic-version", "2023-06-01".parse().unwrap());
    }
    let request = MockRequest {
        dialect: row(dialect),
        number: 1,
        in_flight: 1,
        headers: &headers,
        body: &Bytes::from(body.to_string()),
        now: Instant::now(),
        date: SystemTime::UNIX_EPOCH,
    };
    let answer = request.decide(server);
    let Sent::Whole(bytes) = answer.body else {
        panic!("not whole")
    };
    (answer.status, serde_json::from_slice(&bytes).unwrap())
}

/// The answer of another server than the one before: nothing that matters is kept.
fn ask(dialect: Dialect, body: &Value) -> (u16, Value) {
    send(&server(), dialect, body, true)
}

/// The message of a refusal; nothing if the server replies.
fn refusal(dialect: Dialect, body: &Value) -> String {
    let (status, answer) = ask(dialect, body);
    assert_eq!(status == 200, answer["error"].is_null(), "{answer}");
    answer["error"]["message"]
        .as_str()
        .unwrap_or_default()
        .to_owned()
}

fn push(body: &mut Value, key: &str, items: impl IntoIterator<Item = Value>) {
    body[key].as_array_mut().unwrap().extend(items);
}

/// A table of changes to a request, with the beginning of the refusal that each causes.
type Changes<'a> = &'a [(&'a str, &'a dyn Fn(&mut Value), &'a str)];

fn check(dialect: Dialect, body: &Value, changes: Changes) {
    for (name, change, want) in changes {
        let mut body = body.clone();
        change(&mut body);
        let got = refusal(dialect, &body);
        let fits = match want.is_empty() {
            true => got.is_empty(),
            false => got.starts_with(want),
        };
        assert!(fits, "{name}: {got:?} instead of {want:?}");
    }
}

fn schema() -> Value {
    json!({"type": "object", "properties": {"query": {"type": "string"}}, "required": ["query"]})
}

fn anthropic() -> Value {
    json!({"model": "claude-opus-5-5", "max_tokens": 1000, "system": "Be brief.",
        "tools": [{"name": "find", "input_schema": schema()}],
        "messages": [{"role": "user", "content": "q"}]})
}

/// Three replies, the first with a call.
fn anthropic_conversation() -> Value {
    let mut body = anthropic();
    for turn in 0..3 {
        let (status, reply) = ask(Dialect::Anthropic, &body);
        assert_eq!(status, 200, "{reply}");
        let content = &reply["content"];
        let thinking = (&content[0]["type"], &content[0]["thinking"]);
        assert_eq!(thinking, (&json!("thinking"), &json!("")));
        let next = match turn {
            0 => json!([{"type": "tool_result", "tool_use_id": content[2]["id"], "content": "r"}]),
            _ => json!("and then?"),
        };
        push(
            &mut body,
            "messages",
            [
                json!({"role": "assistant", "content": content}),
                json!({"role": "user", "content": next}),
            ],
        );
    }
    body
}

#[test]
fn thinking_is_bound_to_what_is_before_it() {
    let body = anthropic_conversation();
    let unthink = |body: &mut Value, at: usize| {
        body["messages"][at]["content"]
            .as_array_mut()
            .unwrap()
            .remove(0);
    };
    let first = "messages.1.content.0: Invalid `signature` in `thinking` block. The block is bound \
                 to a different conversation.";
    let last = "messages.5.content.0: Invalid `signature` in `thinking` block. The block is bound";
    check(
        Dialect::Anthropic,
        &body,
        &[
            ("unchanged", &|_| {}, ""),
            (
                "another prompt",
                &|body| body["system"] = "Be long.".into(),
                first,
            ),
            (
                "another tool",
                &|body| body["tools"][0]["description"] = "x".into(),
                first,
            ),
            (
                "another question",
                &|body| body["messages"][0]["content"] = "p".into(),
                first,
            ),
            (
                "another result",
                &|body| body["messages"][2]["content"][0]["content"] = "s".into(),
                "messages.3.content.0: Invalid `signature` in `thinking` block. The block is bound",
            ),
            (
                "another thought",
                &|body| body["messages"][1]["content"][0]["thinking"] = "I".into(),
                first,
            ),
            (
                "no signature",
                &|body| body["messages"][1]["content"][0]["signature"] = "x".into(),
                "messages.1.content.0: Invalid `signature` in `thinking` block",
            ),
            (
                "a mark for the cache",
                &|body| {
                    body["messages"][2]["content"][0]["cache_control"] =
                        json!({"type": "ephemeral"});
                },
                "",
            ),
            (
                "a message without its first thought",
                &|body| unthink(body, 1),
                "",
            ),
            (
                "a missing thought between others",
                &|body| unthink(body, 3),
                last,
            ),
            (
                "no thoughts",
                &|body| [1, 3, 5].into_iter().for_each(|at| unthink(body, at)),
                "",
            ),
            (
                "a changed prefix whose thoughts may be dropped",
                &|body| {
                    body["system"] = "Be long.".into();
                    body["thinking"] =
                        json!({"block_binding": {"prefix_mismatch_behavior": "drop_block"}});
                },
                "",
            ),
            (
                "another model, which cannot read them",
                &|body| {
                    body["model"] = "claude-fable-5-1".into();
                    body["system"] = "Be long.".into();
                },
                "",
            ),
        ],
    );
    let mut open = body.clone();
    open["messages"].as_array_mut().unwrap().truncate(3);
    check(
        Dialect::Anthropic,
        &open,
        &[
            ("unchanged", &|_| {}, ""),
            (
                "a turn with a call, without any thought",
                &|body| unthink(body, 1),
                "",
            ),
            (
                "the last turn with a call lacks its thought",
                &|body| {
                    let thought = json!({"type": "redacted_thinking", "data": "x"});
                    unthink(body, 1);
                    push(
                        body,
                        "messages",
                        [
                            json!({"role": "assistant", "content": [thought, {"type": "text", "text": "x"}]}),
                            json!({"role": "user", "content": "q"}),
                            json!({"role": "assistant", "content":
                        [{"type": "tool_use", "id": "b", "name": "find", "input": {}}]}),
                            json!({"role": "user", "content":
                        [{"type": "tool_result", "tool_use_id": "b", "content": "r"}]}),
                        ],
                    );
                },
                "messages.5.content.0.type: Expected `thinking` or `redacted_thinking`, but found \
             `tool_use`.",
            ),
        ],
    );
    let mut shown = anthropic();
    shown["thinking"] = json!({"type": "adaptive", "display": "summarized"});
    let (_, reply) = ask(Dialect::Anthropic, &shown);
    assert_ne!(reply["content"][0]["thinking"], "", "{reply}");
}

#[test]
fn anthropic_refuses_as_its_servers_do() {
    let (status, answer) = send(&server(), Dialect::Anthropic, &anthropic(), false);
    let told = (status, &answer["error"]["message"]);
    assert_eq!(told, (400, &json!("anthropic-version: header is required")));
    let forced = "Thinking may not be enabled when tool_choice forces tool use.";
    check(
        Dialect::Anthropic,
        &anthropic(),
        &[
            ("nothing wrong", &|_| {}, ""),
            (
                "no limit",
                &|body| body["max_tokens"] = Value::Null,
                "max_tokens: Field required",
            ),
            (
                "too much",
                &|body| body["max_tokens"] = 128_001.into(),
                "max_tokens: 128001 > 128000,",
            ),
            ("the most", &|body| body["max_tokens"] = 128_000.into(), ""),
            (
                "a temperature",
                &|body| body["temperature"] = 0.5.into(),
                "`temperature` is deprecated for this model.",
            ),
            (
                "the usual temperature",
                &|body| body["temperature"] = 1.into(),
                "",
            ),
            (
                "top_p",
                &|body| body["top_p"] = 0.9.into(),
                "`top_p` is deprecated for this model.",
            ),
            (
                "any tool",
                &|body| body["tool_choice"] = json!({"type": "any"}),
                forced,
            ),
            (
                "one tool",
                &|body| body["tool_choice"] = json!({"type": "tool", "name": "find"}),
                forced,
            ),
            (
                "no tool",
                &|body| body["tool_choice"] = json!({"type": "none"}),
                "",
            ),
            (
                "no thinking",
                &|body| body["thinking"] = json!({"type": "disabled"}),
                "\"thinking.type.disabled\" is not supported for this model.",
            ),
            (
                "an older model",
                &|body| {
                    body["model"] = "claude-sonnet-4-5".into();
                    body["temperature"] = 0.5.into();
                    body["tool_choice"] = json!({"type": "any"});
                },
                "",
            ),
            (
                "an instruction in the middle",
                &|body| {
                    push(
                        body,
                        "messages",
                        [json!({"role": "system", "content": "Hurry."})],
                    )
                },
                "",
            ),
            (
                "a result of no call",
                &|body| {
                    body["messages"][0]["content"] =
                        json!([{"type": "tool_result", "tool_use_id": "a", "content": "r"}]);
                },
                "messages.0: unexpected `tool_use_id` found in `tool_result` blocks: a.",
            ),
        ],
    );
}

fn chat(model: &str) -> Value {
    json!({"model": model, "messages": [{"role": "user", "content": "q"}],
        "tools": [{"type": "function", "function": {"name": "find", "parameters": schema()}}]})
}

#[test]
fn chat_completions_refuse_as_openai_does() {
    let refused = "Function tools with reasoning_effort are not supported for ";
    for (model, want) in [
        ("gpt-5.4", ""),
        ("gpt-5.6-terra", refused),
        ("gpt-6-astra", refused),
        ("gpt-6.1-sol", refused),
        ("openai/gpt-5.6", refused),
        ("gpt-5.2", ""),
        ("gpt-5", ""),
        ("gpt-4.1", ""),
        ("gpt-4o-mini", ""),
        ("mistral-large", ""),
    ] {
        check(Dialect::OpenAi, &chat(model), &[(model, &|_| {}, want)]);
    }
    check(
        Dialect::OpenAi,
        &chat("gpt-5.6-terra"),
        &[
            ("no tools", &|body| body["tools"] = Value::Null, ""),
            (
                "no effort",
                &|body| body["reasoning_effort"] = "none".into(),
                "",
            ),
            (
                "no effort of a model that always reasons",
                &|body| {
                    body["model"] = "gpt-6.1-sol".into();
                    body["reasoning_effort"] = "none".into();
                },
                "Unsupported value: 'none' is not supported with the 'gpt-6.1-sol' model.",
            ),
            (
                "effort of a model without it by default",
                &|body| {
                    body["model"] = "gpt-5.4".into();
                    body["reasoning_effort"] = "low".into();
                },
                "Function tools with reasoning_effort are not supported for gpt-5.4 in \
             /v1/chat/completions. Please use /v1/responses instead.",
            ),
            (
                "max_tokens",
                &|body| body["max_tokens"] = 9.into(),
                "Unsupported parameter: 'max_tokens' is not supported with this model. Use \
             'max_completion_tokens' instead.",
            ),
            (
                "a temperature",
                &|body| {
                    body["tools"] = Value::Null;
                    body["temperature"] = 0.5.into();
                },
                "Unsupported value: 'temperature' does not support 0.5 with this model.",
            ),
        ],
    );
    let (_, answer) = ask(Dialect::OpenAi, &chat("gpt-6"));
    let error = &answer["error"];
    let told = (&error["type"], &error["param"]);
    assert_eq!(
        told,
        (&json!("invalid_request_error"), &json!("reasoning_effort"))
    );
}

fn responses() -> Value {
    json!({"model": "gpt-6.1-sol", "store": false, "include": ["reasoning.encrypted_content"],
        "instructions": "Be brief.", "input": [{"role": "user", "content": "q"}],
        "tools": [{"type": "function", "name": "find", "parameters": schema()}]})
}

/// Two replies, the first with a call, and the number of items.
fn responses_conversation() -> Value {
    let mut body = responses();
    for turn in 0..2 {
        let (status, reply) = ask(Dialect::Responses, &body);
        assert_eq!(status, 200, "{reply}");
        push(
            &mut body,
            "input",
            reply["output"].as_array().unwrap().iter().cloned(),
        );
        let next = match turn {
            0 => json!({"type": "function_call_output", "output": "r",
                "call_id": reply["output"][2]["call_id"]}),
            _ => json!({"role": "user", "content": "and then?"}),
        };
        push(&mut body, "input", [next]);
    }
    let kinds: Vec<&str> = body["input"]
        .as_array()
        .unwrap()
        .iter()
        .filter_map(|item| item["type"].as_str())
        .collect();
    let replies = "reasoning message function_call function_call_output reasoning message";
    assert_eq!(kinds.join(" "), replies);
    body
}

fn take(body: &mut Value, at: usize) -> Value {
    body["input"].as_array_mut().unwrap().remove(at)
}

#[test]
fn reasoning_items_are_bound_to_their_places() {
    let body = responses_conversation();
    let unverified = "The encrypted content for item rs_";
    let unreasoned = "Item 'msg_";
    check(
        Dialect::Responses,
        &body,
        &[
            ("unchanged", &|_| {}, ""),
            (
                "other instructions",
                &|body| body["instructions"] = "Be long.".into(),
                unverified,
            ),
            (
                "another tool",
                &|body| body["tools"][0]["description"] = "x".into(),
                unverified,
            ),
            (
                "another question",
                &|body| body["input"][0]["content"] = "p".into(),
                unverified,
            ),
            (
                "another result",
                &|body| body["input"][4]["output"] = "s".into(),
                unverified,
            ),
            (
                "another seal",
                &|body| body["input"][1]["encrypted_content"] = "x".into(),
                unverified,
            ),
            (
                "another summary",
                &|body| {
                    body["input"][1]["summary"] = json!([{"type": "summary_text", "text": "x"}])
                },
                unverified,
            ),
            (
                "no seal",
                &|body| body["input"][1]["encrypted_content"] = Value::Null,
                "Item with id 'rs_",
            ),
            (
                "one of an earlier turn dropped",
                &|body| drop(take(body, 1)),
                unreasoned,
            ),
            (
                "all of earlier turns dropped",
                &|body| [5, 1].into_iter().for_each(|at| drop(take(body, at))),
                "",
            ),
            (
                "one in another place",
                &|body| {
                    let thought = take(body, 1);
                    body["input"].as_array_mut().unwrap().insert(4, thought);
                },
                unverified,
            ),
            (
                "one without what follows",
                &|body| [4, 3, 2].into_iter().for_each(|at| drop(take(body, at))),
                "Item 'rs_",
            ),
        ],
    );
    let mut open = body.clone();
    open["input"].as_array_mut().unwrap().truncate(5);
    let (_, told) = ask(Dialect::Responses, &{
        let mut body = open.clone();
        take(&mut body, 1);
        take(&mut body, 1);
        body
    });
    let told = told["error"]["message"].as_str().unwrap();
    assert!(
        told.starts_with("Item 'fc_")
            && told.contains(
                "' of type 'function_call' was provided without its required 'reasoning' item: 'rs_"
            ),
        "{told}"
    );
    check(
        Dialect::Responses,
        &open,
        &[
            ("unchanged", &|_| {}, ""),
            (
                "items without ids and reasoning",
                &|body| {
                    take(body, 1);
                    for at in [1, 2] {
                        body["input"][at].as_object_mut().unwrap().remove("id");
                    }
                },
                "",
            ),
            (
                "no call",
                &|body| drop(take(body, 3)),
                "No tool call found for function call output with call_id call_0_0.",
            ),
            (
                "no result",
                &|body| drop(take(body, 4)),
                "No tool output found for function call call_0_0.",
            ),
        ],
    );
    let mut open = responses();
    open["include"] = Value::Null;
    let (_, reply) = ask(Dialect::Responses, &open);
    assert_eq!(reply["output"][0]["type"], "reasoning");
    assert!(reply["output"][0]["encrypted_content"].is_null(), "{reply}");
}

#[test]
fn responses_refuse_as_openai_does() {
    check(
        Dialect::Responses,
        &responses(),
        &[
            ("nothing wrong", &|_| {}, ""),
            ("a plain question", &|body| body["input"] = "q".into(), ""),
            (
                "max_tokens",
                &|body| body["max_tokens"] = 9.into(),
                "Unknown parameter: 'max_tokens'.",
            ),
            (
                "messages",
                &|body| body["messages"] = json!([]),
                "Unknown parameter: 'messages'.",
            ),
            (
                "a temperature",
                &|body| body["temperature"] = 0.5.into(),
                "Unsupported parameter: 'temperature' is not supported with this model.",
            ),
            (
                "a temperature of an older model",
                &|body| {
                    body["model"] = "gpt-4.1".into();
                    body["temperature"] = 0.5.into();
                },
                "",
            ),
            (
                "a choice as in chat completions",
                &|body| {
                    body["tool_choice"] = json!({"type": "function", "function": {"name": "find"}});
                },
                "Missing required parameter: 'tool_choice.name'.",
            ),
            (
                "a choice of Anthropic's",
                &|body| body["tool_choice"] = "any".into(),
                "Invalid value: \"any\".",
            ),
            (
                "a named tool",
                &|body| body["tool_choice"] = json!({"type": "function", "name": "find"}),
                "",
            ),
            (
                "an earlier response",
                &|body| body["previous_response_id"] = "resp_1".into(),
                "Previous response with id 'resp_1' not found.",
            ),
        ],
    );
    let mut quick = responses();
    quick["model"] = "gpt-5.6-terra".into();
    quick["reasoning"] = json!({"effort": "none"});
    let (_, reply) = ask(Dialect::Responses, &quick);
    assert_eq!(reply["output"][0]["type"], "message", "{reply}");
}

#[test]
fn cached_tokens_are_counted_as_vendors_do() {
    let text = |kilobytes: usize| "x".repeat(kilobytes << 10);
    let mut cache = Cache::default();
    for (name, question, want) in [
        ("too short", text(1), (0, 0)),
        ("new", text(5), (0, 1_280)),
        ("the same", text(5), (1_280, 0)),
        ("longer", text(6), (1_280, 256)),
        ("longer, known", text(6) + "y", (1_536, 0)),
        (
            "shares too little",
            text(3) + &"y".repeat(2 << 10),
            (0, 1_280),
        ),
    ] {
        let body = json!({"model": "m", "messages": [question]});
        let Cached { read, written } = cache.implicit(&body);
        assert_eq!((read, written), want, "{name}");
    }
    let mut cache = Cache::default();
    for (name, sizes, marks, want) in [
        ("too short", &[1, 1][..], &[1][..], (0, 0)),
        ("no mark", &[8, 8], &[], (0, 0)),
        ("new", &[8, 8], &[0, 1], (0, 4)),
        ("the same", &[8, 8], &[1], (4, 0)),
        ("longer", &[8, 8, 4], &[2], (4, 1)),
        ("a shorter one that was marked", &[8, 4], &[0], (2, 0)),
        ("one that was not marked", &[8, 8, 2], &[2], (4, 0)),
    ] {
        let block = |(at, size): (usize, &usize)| {
            let mut block = json!({"text": text(*size)});
            if marks.contains(&at) {
                block["cache_control"] = json!({"type": "ephemeral"});
            }
            block
        };
        let cached = cache.marked("m", sizes.iter().enumerate().map(block));
        // In thousands, because the form of a block counts too.
        let got = (cached.read / 1_000, cached.written / 1_000);
        assert_eq!(got, want, "{name}");
    }
    let mut body = anthropic();
    body["system"] =
        json!([{"type": "text", "text": text(5), "cache_control": {"type": "ephemeral"}}]);
    let server = server();
    let usages = [(); 2].map(|()| send(&server, Dialect::Anthropic, &body, true).1["usage"].take());
    let [first, second] = &usages;
    assert_eq!(
        first["cache_creation_input_tokens"],
        second["cache_read_input_tokens"]
    );
    assert!(
        second["cache_read_input_tokens"].as_u64() > Some(1_280),
        "{second}"
    );
    assert_eq!(second["cache_creation_input_tokens"], 0);
}
