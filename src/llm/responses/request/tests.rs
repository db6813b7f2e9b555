use std::sync::Arc;

use super::*;
use crate::{
    llm::{Request, ToolChoice, forms::Forms, json_cache::JsonCache},
    model::{AnswerFormat, AnswerOptions, CallId, OpaquePart, ToolCall, ToolResult, ToolStatus},
    testkit::llm_conformance::{self as conformance, Scenario},
};

fn call(id: &str, arguments: &str) -> Part {
    Part::ToolCall(ToolCall {
        id: CallId::new(id),
        name: "code_search".to_owned(),
        arguments: arguments.to_owned(),
    })
}

fn opaque(model: &str, body: &str) -> Part {
    Part::Opaque(OpaquePart {
        provider: "p".to_owned(),
        model: model.to_owned(),
        body: body.to_owned(),
    })
}

fn sealed(id: &str) -> String {
    format!(r#"{{ "type":"reasoning", "id":"{id}", "encrypted_content":"e\/=", "summary":[]}}"#)
}

/// A conversation with every kind of part.
fn conversation() -> Request {
    let image = Image {
        url: "data:image/png;base64,aGk=".to_owned(),
        detail: Some("low".to_owned()),
    };
    let result = |id: &str, images: Vec<Image>| {
        let result = ToolResult::new(CallId::new(id), ToolStatus::Ok, "src/it.rs:1");
        Part::ToolResult(ToolResult { images, ..result })
    };
    let message = |role, parts| Message { role, parts };
    let messages = vec![
        message(
            Role::User,
            vec![Part::text("Where is \"it\"?"), Part::Image(image.clone())],
        ),
        message(
            Role::Assistant,
            vec![
                opaque("model", &sealed("rs_1")),
                opaque("model", r#"{"type":"message","phase":"commentary"}"#),
                Part::text("Looking."),
                opaque("model", &sealed("rs_2")),
                call("a", r#"{"query": "it" }"#),
                opaque("other", &sealed("rs_3")),
                opaque("model", r#"{"call":"b","extra_content":{}}"#),
                call("b", "{\"broken"),
            ],
        ),
        message(
            Role::Tool,
            vec![result("a", Vec::new()), result("b", vec![image])],
        ),
        Message::text(Role::Guidance, "This is the last turn."),
        message(
            Role::Assistant,
            vec![Part::text("There."), opaque("model", &sealed("rs_4"))],
        ),
        Message::text(Role::User, "And now?"),
    ];
    Request {
        messages: Arc::new(messages.into_iter().map(Arc::new).collect()),
        ..conformance::request(Scenario::NoTools)
    }
}

fn pretty(call: &Outgoing<'_>) -> String {
    let value: Value = serde_json::from_slice(&body(call).unwrap()).unwrap();
    serde_json::to_string_pretty(&value).unwrap()
}

#[test]
fn conversation_is_encoded_with_reasoning_in_its_places() {
    let (request, cache) = (conversation(), JsonCache::default());
    let call = Outgoing::at("api.openai.com", &request, &cache);
    insta::assert_snapshot!("openai", pretty(&call));
}

#[test]
fn servers_that_copy_the_api_get_guidance_as_marked_text() {
    let (request, cache) = (conversation(), JsonCache::default());
    let call = Outgoing {
        stream: false,
        max_output: Some(1000),
        ..Outgoing::at("localhost", &request, &cache)
    };
    insta::assert_snapshot!("others", pretty(&call));
}

#[test]
fn options_of_the_caller_have_their_own_places() {
    let options = AnswerOptions {
        format: AnswerFormat::Schema {
            name: "answer".to_owned(),
            description: None,
            schema: json!({"type": "object"}),
            strict: true,
        },
        single_call: true,
        max_tokens: Some(100),
        parameters: [
            (Parameter::Verbosity, json!("low")),
            (Parameter::ReasoningEffort, json!("high")),
            (Parameter::Temperature, json!(0.5)),
        ]
        .into(),
        ..AnswerOptions::default()
    };
    let cache = JsonCache::default();
    for (choice, expected) in [
        (ToolChoice::Auto, Value::Null),
        (ToolChoice::None, json!("none")),
        (ToolChoice::Required, json!("required")),
        (
            ToolChoice::Named("f".into()),
            json!({"type": "function", "name": "f"}),
        ),
    ] {
        let request = Request {
            options: Some(Arc::new(options.clone())),
            tool_choice: choice,
            ..conformance::request(Scenario::Question)
        };
        let call = Outgoing::at("api.openai.com", &request, &cache);
        let sent: Value = serde_json::from_slice(&body(&call).unwrap()).unwrap();
        assert_eq!(sent["tool_choice"], expected);
        let format = json!({"type": "json_schema", "name": "answer", "schema": {"type": "object"}, "strict": true});
        assert_eq!(sent["text"], json!({"format": format, "verbosity": "low"}));
        assert_eq!(sent["reasoning"], json!({"effort": "high"}));
        assert_eq!(sent["temperature"], json!(0.5));
        assert_eq!(sent["max_output_tokens"], 1124);
        assert_eq!(sent["parallel_tool_calls"], false);
        assert_eq!(sent["store"], false);
        assert_eq!(sent["include"], json!(["reasoning.encrypted_content"]));
        assert_eq!(sent["tools"][0]["strict"], false);
    }
}

#[test]
fn model_without_encrypted_reasoning_is_asked_without() {
    let (request, cache) = (conversation(), JsonCache::default());
    let call = Outgoing {
        forms: Forms {
            no_encrypted_reasoning: true,
            ..Forms::default()
        },
        ..Outgoing::at("api.openai.com", &request, &cache)
    };
    let sent = pretty(&call);
    assert!(
        !sent.contains("include") && !sent.contains("encrypted"),
        "{sent}"
    );
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
    for messages in 2..=6 {
        assert!(
            written(messages).starts_with(&written(messages - 1)),
            "{messages}"
        );
    }
}
