use std::sync::Arc;

use super::*;
use crate::{
    llm::{Request, json_cache::JsonCache},
    model::{AnswerOptions, CallId, OpaquePart, Parameter, ToolCall, ToolResult, ToolStatus},
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
    let signature = r#"{"call":"b","extra_content":{"google":{"thought_signature":"s"}}}"#;
    let messages = vec![
        Message::text(Role::User, "Where is \"it\"?\nHere — ü?"),
        message(
            Role::Assistant,
            vec![
                opaque("other", r#"{"type":"thinking"}"#),
                Part::text("Looking. "),
                Part::text("<signal …>"),
                call("a", "code_search", r#"{"query": "it" }"#),
                call("b", "functions.search", "{\"broken"),
                opaque("p", signature),
                call("c", "", ""),
            ],
        ),
        message(
            Role::Tool,
            vec![
                result("a", ToolStatus::Ok, "src/it.rs:1"),
                result("b", ToolStatus::Refused, "broken arguments"),
                result("c", ToolStatus::Failed, ""),
            ],
        ),
        Message::text(Role::Guidance, "This is the last turn."),
        message(Role::Assistant, vec![opaque("p", "{}"), Part::text("")]),
        Message::text(Role::User, "And now?"),
        Message::text(Role::Guidance, "Continue."),
    ];
    Request {
        messages: Arc::new(messages.into_iter().map(Arc::new).collect()),
        ..conformance::request(Scenario::NoTools)
    }
}

fn pretty(request: &Request, host: &str, max_output: Option<u64>, stream: bool) -> String {
    let body = body(&Outgoing {
        max_output,
        stream,
        ..Outgoing::at(host, request, &JsonCache::default())
    })
    .unwrap();
    let value: Value = serde_json::from_slice(&body).unwrap();
    serde_json::to_string_pretty(&value).unwrap()
}

#[test]
fn openai_request_encodes_a_conversation() {
    let body = pretty(&conversation(), "api.openai.com", Some(1000), true);
    insta::assert_snapshot!("openai", body);
}

#[test]
fn compatible_server_request_encodes_a_conversation() {
    let body = pretty(&conversation(), "localhost", Some(1000), true);
    insta::assert_snapshot!("others", body);
}

#[test]
fn minimal_openai_request_omits_optional_fields() {
    let request = Request {
        system: "".into(),
        tools: [].into(),
        ..conformance::request(Scenario::NoTools)
    };
    let body = body(&Outgoing {
        stream: false,
        ..Outgoing::at("localhost", &request, &JsonCache::default())
    })
    .unwrap();
    let expected = r#"{"model":"model","stream":false,"messages":[{"role":"user","content":"Where is the session cache emptied?"}]}"#;
    assert_eq!(String::from_utf8(body).unwrap(), expected);
}

#[test]
fn stream_usage_is_requested_only_where_supported() {
    let request = conformance::request(Scenario::Question);
    for (host, stream, asked) in [
        ("localhost", true, true),
        ("localhost", false, false),
        ("api.mistral.ai", true, false),
    ] {
        let body = pretty(&request, host, None, stream);
        assert_eq!(body.contains("stream_options"), asked, "{host} {stream}");
    }
}

#[test]
fn reasoning_is_replayed_only_to_its_own_model() {
    let details = r#"[{ "type":"reasoning.encrypted", "data":"a\/=" ,"index":0}]"#;
    let kept = format!(r#"{{"model":"thinker","reasoning_details":{details}}}"#);
    let sent = |provider: &str, model: &str| {
        let said = vec![opaque("p", &kept), Part::text("So.")];
        let messages = vec![
            Message::text(Role::User, "Why?"),
            message(Role::Assistant, said),
            Message::text(Role::User, "And?"),
        ];
        let request = Request {
            model: model.into(),
            messages: Arc::new(messages.into_iter().map(Arc::new).collect()),
            ..conformance::request(Scenario::NoTools)
        };
        let body = body(&Outgoing {
            provider,
            ..Outgoing::at("openrouter.ai", &request, &JsonCache::default())
        })
        .unwrap();
        String::from_utf8(body).unwrap()
    };
    let back = format!(r#"{{"role":"assistant","content":"So.","reasoning_details":{details}}}"#);
    assert!(sent("p", "thinker").contains(&back));
    for (provider, model) in [("other", "thinker"), ("p", "other")] {
        let sent = sent(provider, model);
        assert!(
            sent.contains(r#"{"role":"assistant","content":"So."}"#) && !sent.contains("reasoning"),
            "{sent}"
        );
    }
}

#[test]
fn earlier_messages_stay_a_prefix_of_later_requests() {
    let written = |messages: usize| {
        let mut request = conversation();
        let all = request.messages.iter().take(messages).cloned().collect();
        request.messages = Arc::new(all);
        let cache = JsonCache::default();
        let body = body(&Outgoing::at("api.openai.com", &request, &cache)).unwrap();
        let text = String::from_utf8(body).unwrap();
        text.strip_suffix("]}").unwrap().to_owned()
    };
    for messages in 2..=7 {
        assert!(
            written(messages).starts_with(&written(messages - 1)),
            "{messages}"
        );
    }
}

#[test]
fn tool_call_and_result_share_an_accepted_id() {
    let long = format!("chatcmpl-tool-{}", "0123456789abcdef".repeat(2));
    let messages = vec![
        Message::text(Role::User, "q"),
        message(
            Role::Assistant,
            vec![
                call(&long, "f", r#"{"q":"\ud83d"}"#),
                opaque("p", &format!(r#"{{"call":"{long}","extra_content":7}}"#)),
                call("b", "f", "{}"),
            ],
        ),
        message(
            Role::Tool,
            vec![
                result(&long, ToolStatus::Ok, "r"),
                result("b", ToolStatus::Ok, "r"),
            ],
        ),
    ];
    let request = Request {
        messages: Arc::new(messages.into_iter().map(Arc::new).collect()),
        ..conformance::request(Scenario::Results)
    };
    for (host, most, same) in [
        ("api.openai.com", 40, true),
        ("localhost", 40, true),
        ("api.mistral.ai", 9, false),
    ] {
        let body: Value = serde_json::from_str(&pretty(&request, host, None, false)).unwrap();
        let messages = body["messages"].as_array().unwrap();
        let [asked, first, second] = &messages[messages.len() - 3..] else {
            panic!("{body}")
        };
        for (at, result) in [first, second].into_iter().enumerate() {
            let id = &asked["tool_calls"][at]["id"];
            assert_eq!(*id, result["tool_call_id"], "{host}");
            assert!(id.as_str().unwrap().len() <= most, "{host}: {id}");
        }
        assert_eq!(second["tool_call_id"] == "b", same, "{host}");
        assert_eq!(asked["tool_calls"][0]["extra_content"], 7, "{host}");
        let arguments = asked["tool_calls"][0]["function"]["arguments"].as_str();
        assert!(serde_json::from_str::<Value>(arguments.unwrap()).is_ok());
    }
}

#[test]
fn key_of_the_cache_is_sent_to_its_vendor_alone() {
    for (host, is_sent) in [
        ("api.openai.com", true),
        ("x.openai.azure.com", true),
        ("api.mistral.ai", false),
        ("localhost", false),
    ] {
        let body = pretty(&conversation(), host, None, false);
        assert_eq!(body.contains("\"prompt_cache_key\""), is_sent, "{host}");
    }
}

/// The request's keys besides those that every request has.
fn asked(request: &Request, host: &str, max_output: Option<u64>) -> Value {
    let mut body: Value = serde_json::from_str(&pretty(request, host, max_output, false)).unwrap();
    let keys = body.as_object_mut().unwrap();
    for key in ["model", "messages", "prompt_cache_key", "tools", "stream"] {
        keys.remove(key);
    }
    body
}

#[test]
fn options_of_the_caller_are_sent() {
    let (openai, mistral, other) = ("api.openai.com", "api.mistral.ai", "localhost");
    let schema = AnswerFormat::Schema {
        name: "city".into(),
        description: None,
        schema: json!({"type": "object"}),
        strict: true,
    };
    let schema_sent = json!({"response_format": {"type": "json_schema", "json_schema":
        {"name": "city", "schema": {"type": "object"}, "strict": true}}});
    let of_format = |format: &AnswerFormat| AnswerOptions {
        format: format.clone(),
        ..AnswerOptions::default()
    };
    let json_sent = json!({"response_format": {"type": "json_object"}});
    let limited = || AnswerOptions {
        max_tokens: Some(100),
        ..AnswerOptions::default()
    };
    let none = AnswerOptions::default;
    for (name, host, tool_choice, options, max_output, expected) in [
        ("nothing", other, ToolChoice::Auto, none(), None, json!({})),
        (
            "parameters",
            other,
            ToolChoice::Auto,
            AnswerOptions {
                parameters: [
                    (Parameter::Temperature, json!(0.5)),
                    (Parameter::LogitBias, json!({"5": -100})),
                    (Parameter::ReasoningEffort, json!("low")),
                ]
                .into(),
                ..none()
            },
            None,
            json!({"temperature": 0.5, "logit_bias": {"5": -100}, "reasoning_effort": "low"}),
        ),
        (
            "a required call",
            other,
            ToolChoice::Required,
            none(),
            None,
            json!({"tool_choice": "required"}),
        ),
        (
            "a call of one tool, alone",
            other,
            ToolChoice::Named("code_search".into()),
            AnswerOptions {
                single_call: true,
                ..none()
            },
            None,
            json!({"tool_choice": {"type": "function", "function": {"name": "code_search"}},
                "parallel_tool_calls": false}),
        ),
        (
            "JSON",
            mistral,
            ToolChoice::Auto,
            of_format(&AnswerFormat::Json),
            None,
            json_sent,
        ),
        (
            "a schema",
            openai,
            ToolChoice::Auto,
            of_format(&schema),
            None,
            schema_sent,
        ),
        (
            "a schema elsewhere",
            other,
            ToolChoice::Auto,
            of_format(&schema),
            None,
            json!({}),
        ),
        (
            "a limit",
            openai,
            ToolChoice::Auto,
            limited(),
            None,
            json!({"max_completion_tokens": 1124}),
        ),
        (
            "a limit below the model's",
            other,
            ToolChoice::Auto,
            limited(),
            Some(2000),
            json!({"max_tokens": 1124}),
        ),
        (
            "a limit above the model's",
            other,
            ToolChoice::Auto,
            limited(),
            Some(1000),
            json!({"max_tokens": 1000}),
        ),
    ] {
        let mut request = Request {
            tool_choice,
            options: Some(Arc::new(options)),
            ..conformance::request(Scenario::Question)
        };
        assert_eq!(asked(&request, host, max_output), expected, "{name}");
        request.tools = [].into();
        let without = asked(&request, host, max_output);
        for key in ["tool_choice", "parallel_tool_calls"] {
            assert_eq!(without.get(key), None, "{name}");
        }
    }
}

#[test]
fn images_make_the_content_a_list() {
    let image = |detail: Option<&str>| {
        Part::Image(Image {
            url: "data:image/png;base64,AA==".to_owned(),
            detail: detail.map(str::to_owned),
        })
    };
    let sent = json!({"type": "image_url", "image_url": {"url": "data:image/png;base64,AA=="}});
    let mut low = sent.clone();
    low["image_url"]["detail"] = "low".into();
    let text = |text: &str| json!({"type": "text", "text": text});
    for (name, parts, expected) in [
        (
            "text",
            vec![Part::text("a"), Part::text("b")],
            json!("a\n\nb\n\n<guidance>\ng\n</guidance>"),
        ),
        (
            "text and images",
            vec![Part::text("a"), image(Some("low")), image(None)],
            json!([text("a"), low, sent, text("<guidance>\ng\n</guidance>")]),
        ),
        (
            "an image alone",
            vec![Part::text(""), image(None)],
            json!([sent, text("<guidance>\ng\n</guidance>")]),
        ),
    ] {
        let messages = vec![
            message(Role::User, parts),
            Message::text(Role::Guidance, "g"),
            Message::text(Role::Assistant, "x"),
            Message::text(Role::User, "next"),
        ];
        let request = Request {
            system: "".into(),
            messages: Arc::new(messages.into_iter().map(Arc::new).collect()),
            ..conformance::request(Scenario::Question)
        };
        let body: Value =
            serde_json::from_str(&pretty(&request, "localhost", None, false)).unwrap();
        assert_eq!(body["messages"][0]["content"], expected, "{name}");
        assert_eq!(body["messages"][2]["content"], "next", "{name}");
    }
}

fn seen() -> Request {
    let image = |url: &str| Image {
        url: url.into(),
        detail: None,
    };
    let mut shown = ToolResult::new(CallId::new("a"), ToolStatus::Ok, "a plot");
    shown.images = vec![image("data:image/png;base64,aGk=")];
    let messages = [
        Message::text(Role::User, "Plot it."),
        message(
            Role::Assistant,
            vec![call("a", "plot", "{}"), call("b", "plot", "{}")],
        ),
        message(
            Role::Tool,
            vec![
                Part::ToolResult(shown),
                result("b", ToolStatus::Ok, "nothing"),
            ],
        ),
    ];
    Request {
        messages: Arc::new(messages.map(Arc::new).into()),
        ..conformance::request(Scenario::NoTools)
    }
}

#[test]
fn images_of_results_follow_them_if_the_model_takes_images() {
    for (host, text, image) in [
        ("api.openai.com", "a plot", true),
        (
            "localhost",
            "a plot\n[images that you cannot see: 1]",
            false,
        ),
    ] {
        let body: Value = serde_json::from_str(&pretty(&seen(), host, None, false)).unwrap();
        let messages = body["messages"].as_array().unwrap();
        let roles: Vec<_> = messages
            .iter()
            .skip(1)
            .map(|said| said["role"].as_str())
            .collect();
        let mut expected = vec!["user", "assistant", "tool", "tool"];
        expected.extend(image.then_some("user"));
        assert_eq!(
            roles,
            expected.into_iter().map(Some).collect::<Vec<_>>(),
            "{host}"
        );
        assert_eq!(messages[3]["content"], text, "{host}");
        if image {
            let part =
                json!({"type": "image_url", "image_url": {"url": "data:image/png;base64,aGk="}});
            assert_eq!(messages[5]["content"], json!([part]));
        }
    }
}
