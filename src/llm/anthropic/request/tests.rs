use std::sync::Arc;

use super::*;
use crate::{
    llm::{Request, json_cache::JsonCache},
    model::{AnswerOptions, CallId, Capabilities, OpaquePart, ToolCall},
    testkit::llm_conformance::{self as conformance, Scenario},
};

fn call(id: &str, name: &str, arguments: &str) -> Part {
    Part::ToolCall(ToolCall {
        id: CallId::new(id),
        name: name.to_owned(),
        arguments: arguments.to_owned(),
    })
}

fn result(id: &str, status: ToolStatus, content: &str) -> Part {
    Part::ToolResult(ToolResult::new(CallId::new(id), status, content))
}

fn opaque(provider: &str, body: &str) -> Part {
    Part::Opaque(OpaquePart {
        provider: provider.to_owned(),
        model: String::new(),
        body: body.to_owned(),
    })
}

fn message(role: Role, parts: Vec<Part>) -> Message {
    Message { role, parts }
}

/// A conversation with every kind of part.
fn conversation() -> Request {
    let signature = r#"{"type":"thinking","thinking":"h  m","signature":"c2ln\/"}"#;
    let messages = vec![
        Message::text(Role::User, "Where is \"it\"?\nHere — ü?"),
        message(
            Role::Assistant,
            vec![
                opaque("p", signature),
                opaque("other", r#"{"type":"thinking"}"#),
                Part::text("Looking. "),
                Part::text(" \n"),
                call("a", "code_search", r#"{"query": "it" }"#),
                call("b", "functions.search", "{\"broken"),
                call("functions.f:0", "", ""),
            ],
        ),
        message(
            Role::Tool,
            vec![
                result("a", ToolStatus::Ok, "src/it.rs:1"),
                result("b", ToolStatus::Refused, "broken arguments"),
                result("functions.f:0", ToolStatus::Failed, ""),
            ],
        ),
        Message::text(Role::Guidance, "This is the last turn."),
        message(
            Role::Assistant,
            vec![opaque("p", signature), Part::text("")],
        ),
        Message::text(Role::User, "And now?"),
        Message::text(Role::Guidance, "Continue."),
    ];
    Request {
        messages: Arc::new(messages.into_iter().map(Arc::new).collect()),
        ..conformance::request(Scenario::NoTools)
    }
}

fn takes(images: bool) -> Capabilities {
    Capabilities {
        images,
        ..Capabilities::NONE
    }
}

fn written(request: &Request, max_output: Option<u64>, stream: bool) -> String {
    let body = body(&Outgoing {
        takes: takes(true),
        max_output,
        stream,
        ..Outgoing::at("localhost", request, &JsonCache::default())
    });
    String::from_utf8(body.unwrap()).unwrap()
}

fn pretty(request: &Request) -> String {
    let value: Value = serde_json::from_str(&written(request, Some(1000), true)).unwrap();
    serde_json::to_string_pretty(&value).unwrap()
}

fn with(messages: Vec<Message>) -> Request {
    Request {
        messages: Arc::new(messages.into_iter().map(Arc::new).collect()),
        ..conformance::request(Scenario::Question)
    }
}

#[test]
fn anthropic_request_encodes_a_conversation() {
    insta::assert_snapshot!("anthropic", pretty(&conversation()));
}

#[test]
fn thinking_blocks_are_replayed_byte_for_byte() {
    let body = written(&conversation(), None, true);
    let thought = r#"{"role":"assistant","content":[{"type":"thinking","thinking":"h  m","signature":"c2ln\/"},"#;
    assert!(body.contains(thought), "{body}");
}

#[test]
fn minimal_anthropic_request_omits_optional_fields() {
    let request = Request {
        system: "".into(),
        tools: [].into(),
        ..conformance::request(Scenario::NoTools)
    };
    let expected = r#"{"model":"model","max_tokens":32000,"stream":false,"messages":[{"role":"user","content":[{"type":"text","text":"Where is the session cache emptied?","cache_control":{"type":"ephemeral"}}]}]}"#;
    assert_eq!(written(&request, None, false), expected);
}

/// Role and kinds of blocks of each message; `*` after those with a cache mark.
fn outline(request: &Request) -> String {
    let body: Value = serde_json::from_str(&written(request, None, true)).unwrap();
    let turns = body["messages"].as_array().unwrap().iter().map(|turn| {
        let blocks = turn["content"].as_array().unwrap().iter().map(|block| {
            let kind = match (block["type"].as_str(), block["text"].as_str()) {
                (_, Some(text)) if text.starts_with("<guidance>") => "guidance",
                (Some("tool_result"), _) => "result",
                (Some("tool_use"), _) => "call",
                (kind, _) => kind.unwrap(),
            };
            let is_marked = block.get("cache_control").is_some();
            format!("{kind}{}", if is_marked { "*" } else { "" })
        });
        let blocks = blocks.collect::<Vec<_>>().join(" ");
        format!("{}: {blocks}", turn["role"].as_str().unwrap())
    });
    turns.collect::<Vec<_>>().join("; ")
}

#[test]
fn roles_alternate_and_cache_marks_are_at_the_ends_of_requests() {
    let user = || Message::text(Role::User, "u");
    let model = || Message::text(Role::Assistant, "a");
    let guidance = || Message::text(Role::Guidance, "g");
    let asks = || message(Role::Assistant, vec![call("a", "f", "{}")]);
    let results = || message(Role::Tool, vec![result("a", ToolStatus::Ok, "r")]);
    for (name, messages, expected) in [
        ("a question", vec![user()], "user: text*"),
        ("two in a row", vec![user(), user()], "user: text text*"),
        (
            "guidance last",
            vec![user(), guidance()],
            "user: text guidance*",
        ),
        (
            "results first",
            vec![user(), asks(), user(), results(), guidance()],
            "user: text*; assistant: call; user: result text guidance*",
        ),
        (
            "two replies",
            vec![user(), model(), asks(), results()],
            "user: text*; assistant: text call; user: result*",
        ),
        (
            "the model first",
            vec![model(), user()],
            "user: text*; assistant: text; user: text*",
        ),
        (
            "a third request",
            vec![user(), asks(), results(), asks(), results()],
            "user: text; assistant: call; user: result*; assistant: call; user: result*",
        ),
        (
            "a second question",
            vec![user(), asks(), results(), model(), user()],
            "user: text; assistant: call; user: result*; assistant: text; user: text*",
        ),
        (
            "a reply before guidance",
            vec![user(), model(), guidance(), model(), guidance()],
            "user: text; assistant: text; user: guidance*; assistant: text; user: guidance*",
        ),
        ("nobody", vec![], "user: text*"),
        (
            "an empty reply",
            vec![user(), Message::text(Role::Assistant, " "), guidance()],
            "user: text guidance*",
        ),
    ] {
        assert_eq!(outline(&with(messages)), expected, "{name}");
    }
}

#[test]
fn options_of_the_caller_are_sent() {
    let none = AnswerOptions::default;
    let single = || AnswerOptions {
        single_call: true,
        ..none()
    };
    let limited = |tokens| AnswerOptions {
        max_tokens: Some(tokens),
        ..none()
    };
    for (name, tool_choice, options, max_output, expected) in [
        (
            "nothing",
            ToolChoice::Auto,
            none(),
            None,
            json!({"max_tokens": 32000}),
        ),
        (
            "parameters",
            ToolChoice::Auto,
            AnswerOptions {
                parameters: [
                    (Parameter::Temperature, json!(0.5)),
                    (Parameter::TopP, json!(1)),
                    (Parameter::Seed, json!(7)),
                ]
                .into(),
                ..none()
            },
            None,
            json!({"max_tokens": 32000, "temperature": 0.5, "top_p": 1}),
        ),
        (
            "a required call",
            ToolChoice::Required,
            none(),
            None,
            json!({"max_tokens": 32000, "tool_choice": {"type": "any"}}),
        ),
        (
            "a call of one tool, alone",
            ToolChoice::Named("code_search".into()),
            single(),
            None,
            json!({"max_tokens": 32000, "tool_choice":
                {"type": "tool", "name": "code_search", "disable_parallel_tool_use": true}}),
        ),
        (
            "at most one call",
            ToolChoice::Auto,
            single(),
            None,
            json!({"max_tokens": 32000, "tool_choice":
                {"type": "auto", "disable_parallel_tool_use": true}}),
        ),
        (
            "no call",
            ToolChoice::None,
            single(),
            None,
            json!({"max_tokens": 32000, "tool_choice": {"type": "none"}}),
        ),
        (
            "a limit",
            ToolChoice::Auto,
            limited(100),
            None,
            json!({"max_tokens": 1124}),
        ),
        (
            "a limit above the usual one",
            ToolChoice::Auto,
            limited(u64::MAX),
            None,
            json!({"max_tokens": 32000}),
        ),
        (
            "a limit above the model's",
            ToolChoice::Auto,
            limited(9000),
            Some(9000),
            json!({"max_tokens": 9000}),
        ),
    ] {
        let mut request = Request {
            tool_choice,
            options: Some(Arc::new(options)),
            ..conformance::request(Scenario::Question)
        };
        let body = written(&request, max_output, false);
        let mut body: Value = serde_json::from_str(&body).unwrap();
        let keys = body.as_object_mut().unwrap();
        for key in ["model", "messages", "tools", "stream", "system"] {
            keys.remove(key);
        }
        assert_eq!(body, expected, "{name}");
        request.tools = [].into();
        assert!(
            !written(&request, None, false).contains("tool_choice"),
            "{name}"
        );
    }
}

#[test]
fn images_are_blocks() {
    let image = |url: &str| {
        Part::Image(Image {
            url: url.to_owned(),
            detail: None,
        })
    };
    let parts = vec![
        Part::text(""),
        image("data:image/png;base64,AA=="),
        image("https://h/a.png"),
    ];
    let request = with(vec![message(Role::User, parts)]);
    let body: Value = serde_json::from_str(&written(&request, None, false)).unwrap();
    let expected = json!([
        {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": "AA=="}},
        {"type": "image", "source": {"type": "url", "url": "https://h/a.png"},
            "cache_control": {"type": "ephemeral"}},
    ]);
    assert_eq!(body["messages"][0]["content"], expected);
}

#[test]
fn images_of_results_are_blocks_of_them() {
    let mut shown = ToolResult::new(CallId::new("a"), ToolStatus::Ok, "a plot");
    shown.images = vec![Image {
        url: "data:image/png;base64,aGk=".into(),
        detail: None,
    }];
    let request = Request {
        messages: Arc::new(vec![
            Message::text(Role::User, "Plot it.").into(),
            message(Role::Assistant, vec![call("a", "plot", "{}")]).into(),
            message(Role::Tool, vec![Part::ToolResult(shown)]).into(),
        ]),
        ..conformance::request(Scenario::NoTools)
    };
    for (images, expected) in [
        (
            true,
            json!([
                {"type": "text", "text": "a plot"},
                {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": "aGk="}},
            ]),
        ),
        (false, json!("a plot\n[images that you cannot see: 1]")),
    ] {
        let body = body(&Outgoing {
            takes: takes(images),
            ..Outgoing::at("localhost", &request, &JsonCache::default())
        })
        .unwrap();
        let body: Value = serde_json::from_slice(&body).unwrap();
        assert_eq!(body["messages"][2]["content"][0]["content"], expected);
    }
}
