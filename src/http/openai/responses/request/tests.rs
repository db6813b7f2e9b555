//! Tables of requests: each mistake is refused by its field's name, and valid requests are
//! interpreted.

use serde_json::json;
use uuid::Uuid;

use super::*;
use crate::{
    http::openai::answering::streams,
    kernel::ReturnedResult,
    model::{CallId, ClientToolChoice, Image, ImportedMessage, Seq, ToolCall},
};

fn read(body: &Value) -> Result<ParsedResponse, Problem> {
    ParsedResponse::read(&serde_json::to_vec(body).unwrap())
}

fn asking(field: &str, value: Value) -> Value {
    let mut body = json!({ "model": "oracle", "input": "q?" });
    body[field] = value;
    body
}

fn id() -> ResponseId {
    let session = super::super::id::session_of_responses(Uuid::from_u128(7));
    ResponseId::new(&session, Seq(2))
}

fn continuing(input: Value) -> Value {
    let mut body = asking("input", input);
    body["previous_response_id"] = id().to_string().into();
    body
}

fn user(text: &str) -> Value {
    json!({ "role": "user", "content": text })
}

fn call(id: &str) -> Value {
    json!({ "type": "function_call", "call_id": id, "name": "look", "arguments": "{}" })
}

fn output(id: &str) -> Value {
    json!({ "type": "function_call_output", "call_id": id, "output": "found" })
}

fn reference(id: &str) -> Value {
    json!({ "type": "item_reference", "id": id })
}

fn function(name: &str) -> Value {
    json!({ "type": "function", "name": name })
}

#[test]
fn invalid_field_is_refused_by_name() {
    let input = |items: Value| asking("input", items);
    let item = |field: &str, value: Value| {
        let mut item = user("q?");
        item[field] = value;
        input(json!([user("a"), item]))
    };
    let part = |part: Value| item("content", json!([part]));
    let format = |format: Value| asking("text", json!({ "format": format }));
    let schema = |name: &str, schema: Value| {
        format(json!({ "type": "json_schema", "name": name, "schema": schema }))
    };
    let both = json!({
        "model": "oracle", "input": "q?", "conversation": "conv_1", "previous_response_id": "resp_1",
    });
    let bare = json!({ "type": "function_call", "call_id": "c", "arguments": "{}" });
    let many: Vec<Value> = (0..129)
        .map(|number| function(&number.to_string()))
        .collect();
    for (body, param, says) in [
        (json!([]), "body", "a JSON object"),
        (json!({ "input": "q?" }), "model", "missing field"),
        (json!({ "model": "oracle" }), "input", "missing field"),
        (asking("messages", json!([])), "messages", "unknown field"),
        (input(json!(7)), "input", "a string or a list"),
        (input(json!([])), "input", "must be a question"),
        (input(json!(" ")), "input[0].content", "is empty"),
        (input(json!(["q?"])), "input[0]", "an object"),
        (
            input(json!([{ "type": "web_search_call" }])),
            "input[0].type",
            "expected one of `message`",
        ),
        (
            input(json!([{ "role": "user" }])),
            "input[0].content",
            "missing",
        ),
        (
            input(json!([{ "content": "q?" }])),
            "input[0].role",
            "missing",
        ),
        (
            item("role", json!("tool")),
            "input[1].role",
            "unknown variant",
        ),
        (
            item("call_id", json!("c")),
            "input[1].call_id",
            "does not belong",
        ),
        (item("phase", json!("x")), "input[1].phase", "unknown field"),
        (
            item("output", json!("x")),
            "input[1].output",
            "does not belong",
        ),
        (
            item("content", json!({})),
            "input[1].content",
            "a string or a list",
        ),
        (
            part(json!({ "type": "input_file" })),
            "input[1].content[0].type",
            "expected one of `input_text`",
        ),
        (
            part(json!({ "type": "input_text" })),
            "input[1].content[0].text",
            "missing",
        ),
        (
            part(json!({ "type": "input_text", "text": "a", "image_url": "b" })),
            "input[1].content[0].image_url",
            "does not belong",
        ),
        (
            part(json!({ "type": "input_image", "image_url": "ftp://a" })),
            "input[1].content[0].image_url",
            "https",
        ),
        (
            input(json!([
                user("a"),
                { "role": "assistant", "content": [{ "type": "input_image", "image_url": "https://a.b" }] },
                user("b"),
            ])),
            "input[1].content[0].type",
            "only a message of the user",
        ),
        (input(json!([user("a"), bare])), "input[1].name", "missing"),
        (
            input(json!([user("a"), call("c")])),
            "input[1]",
            "`c` has no result",
        ),
        (
            input(json!([user("a"), call("c"), output("d")])),
            "input[2]",
            "no open call `d`",
        ),
        (
            input(json!([user("a"), { "role": "assistant", "content": "b" }])),
            "input[1].role",
            "must be the question",
        ),
        (
            input(json!([user("a"), reference("msg_elsewhere")])),
            "input[1].id",
            "send the item itself",
        ),
        (
            input(json!([{ "type": "item_reference" }])),
            "input[0].id",
            "send the item itself",
        ),
        (
            continuing(json!([{ "role": "assistant", "content": "b" }, user("a")])),
            "input[0]",
            "has it already",
        ),
        (
            continuing(json!([call("c"), output("c")])),
            "input[0]",
            "has it already",
        ),
        (
            continuing(json!([output("c"), user("a")])),
            "input[1]",
            "results continue",
        ),
        (both, "previous_response_id", "not both"),
        (
            asking("conversation", json!(7)),
            "conversation",
            "the id of a conversation",
        ),
        (
            asking("background", json!(true)),
            "background",
            "not supported",
        ),
        (
            asking("max_tool_calls", json!(3)),
            "max_tool_calls",
            "not supported",
        ),
        (
            asking("top_logprobs", json!(3)),
            "top_logprobs",
            "not supported",
        ),
        (
            asking("prompt", json!({ "id": "p" })),
            "prompt",
            "not supported",
        ),
        (
            asking("include", json!(["message.output_text.logprobs"])),
            "include[0]",
            "unknown variant",
        ),
        (
            asking("truncation", json!("middle")),
            "truncation",
            "unknown variant",
        ),
        (
            asking("metadata", json!({ "a": 1 })),
            "metadata.a",
            "a string",
        ),
        (
            asking("stream_options", json!({ "oracle": "all" })),
            "stream_options.oracle",
            "unknown variant",
        ),
        (
            asking("tools", json!([{ "type": "web_search", "name": "w" }])),
            "tools[0].type",
            "unknown variant",
        ),
        (
            asking("tools", json!([function("a b")])),
            "tools[0].name",
            "ASCII letters",
        ),
        (
            asking("tools", json!([function("a"), function("a")])),
            "tools[1].name",
            "two tools",
        ),
        (asking("tools", json!(many)), "tools", "129 tools"),
        (
            asking(
                "tools",
                json!([{ "type": "function", "name": "a", "parameters": { "type": "string" } }]),
            ),
            "tools[0].parameters",
            "of the type `object`",
        ),
        (
            asking("tool_choice", json!("required")),
            "tool_choice",
            "no `tools`",
        ),
        (
            asking("tool_choice", json!(function("a"))),
            "tool_choice.name",
            "none of `tools`",
        ),
        (
            asking("tool_choice", json!(["a"])),
            "tool_choice",
            "`none`, `auto`",
        ),
        (
            format(json!({ "type": "grammar" })),
            "text.format.type",
            "unknown variant",
        ),
        (
            schema("a b", json!({})),
            "text.format.name",
            "ASCII letters",
        ),
        (
            schema("a", json!({ "type": "nothing" })),
            "text.format.schema",
            "cannot be used",
        ),
        (
            asking("text", json!({ "verbosity": "none" })),
            "text.verbosity",
            "unknown variant",
        ),
        (
            asking("max_output_tokens", json!(0)),
            "max_output_tokens",
            "a whole number",
        ),
        (
            asking("max_output_tokens", json!(1.5)),
            "max_output_tokens",
            "a whole number",
        ),
        (
            asking("temperature", json!(3)),
            "temperature",
            "from 0 to 2",
        ),
        (asking("top_p", json!(-1)), "top_p", "from 0 to 1"),
        (
            asking("reasoning", json!({ "effort": "Very high" })),
            "reasoning.effort",
            "a word",
        ),
    ] {
        let problem = read(&body).expect_err(&body.to_string());
        let shown = serde_json::to_value(problem.body()).unwrap();
        let message = shown["error"]["message"].as_str().unwrap();
        assert_eq!(shown["error"]["param"], param, "{body}: {message}");
        assert!(message.contains(says), "{body}: {message}");
        assert_eq!(problem.status().as_u16(), 400, "{body}");
    }
}

#[test]
fn id_that_names_nothing_is_not_found() {
    for (field, value) in [
        ("previous_response_id", json!("resp_68a1")),
        ("previous_response_id", json!("")),
    ] {
        let problem = read(&asking(field, value)).unwrap_err();
        let shown = serde_json::to_value(problem.body()).unwrap();
        assert_eq!(
            (problem.status().as_u16(), &shown["error"]["param"]),
            (404, &json!(field))
        );
    }
}

#[test]
fn input_becomes_a_conversation() {
    let said = |speaker, text: &str| ImportedMessage::new(speaker, text);
    let user_said = |text: &str| said(Speaker::User, text);
    let looks = |id: &str| ToolCall {
        id: CallId::new(id),
        name: "look".into(),
        arguments: "{}".into(),
    };
    let called = ImportedMessage {
        calls: vec![looks("c")],
        ..said(Speaker::Assistant, "")
    };
    let found = |id: &str| ImportedMessage {
        call: Some(CallId::new(id)),
        ..said(Speaker::Tool, "found")
    };
    let result = |id: &str| ReturnedResult {
        call: CallId::new(id),
        content: "found".into(),
    };
    let asks = |question: &str| Conversation {
        question: question.into(),
        ..Conversation::default()
    };
    let answered = json!({
        "type": "message", "id": "msg_1", "role": "assistant", "status": "completed",
        "content": [{ "type": "output_text", "text": "b", "annotations": [], "logprobs": [] }],
    });
    let refused = json!({
        "role": "assistant", "content": [{ "type": "refusal", "refusal": "no" }],
    });
    let parts = json!([{ "role": "user", "content": [
        { "type": "input_text", "text": "a" },
        { "type": "input_image", "image_url": "https://a.b/c.png", "detail": "low" },
        { "type": "input_text", "text": "b" },
    ] }]);
    let sees = Conversation {
        images: vec![Image {
            url: "https://a.b/c.png".into(),
            detail: Some("low".into()),
        }],
        image_field: Some("input[0]".into()),
        ..asks("a\nb")
    };
    for (input, expected) in [
        (json!("q?"), asks("q?")),
        (json!([user("a"), user("b")]), asks("a\n\nb")),
        (parts, sees),
        (
            json!([user("a"), answered, refused, user("c")]),
            Conversation {
                past: vec![user_said("a"), said(Speaker::Assistant, "b\n\nno")],
                ..asks("c")
            },
        ),
        (
            json!([
                user("a"),
                answered,
                call("c"),
                call("d"),
                output("d"),
                output("c")
            ]),
            Conversation {
                exchanged: vec![
                    ImportedMessage {
                        text: "b".into(),
                        calls: vec![looks("c"), looks("d")],
                        ..called.clone()
                    },
                    found("d"),
                    found("c"),
                ],
                results: vec![result("d"), result("c")],
                ..asks("a")
            },
        ),
        (
            json!([user("a"), call("c"), output("c")]),
            Conversation {
                exchanged: vec![called.clone(), found("c")],
                results: vec![result("c")],
                ..asks("a")
            },
        ),
        (
            json!([user("a"), call("c"), output("c"), user("b")]),
            Conversation {
                past: vec![user_said("a"), called, found("c")],
                left: vec![CallId::new("c")],
                ..asks("b")
            },
        ),
    ] {
        let parsed = read(&asking("input", input)).unwrap();
        assert_eq!(parsed.asked.conversation, expected);
        assert_eq!(
            (parsed.continues, parsed.field),
            (Continues::Nothing, "input")
        );
        assert_eq!(parsed.asked.instructions, None);
        assert!(parsed.asked.store && !parsed.asked.stream);
    }

    let results = || Conversation {
        results: vec![result("c")],
        ..Conversation::default()
    };
    let (item, answer) = (id().item("fc", 1), id().item("msg", 0));
    let old = reference("msg_elsewhere");
    for (body, field, instructions, expected) in [
        (
            continuing(json!("q?")),
            "previous_response_id",
            "",
            asks("q?"),
        ),
        (
            continuing(json!([output("c")])),
            "previous_response_id",
            "",
            results(),
        ),
        (
            asking("input", json!([user("a"), reference(&answer), user("b")])),
            "input",
            "",
            asks("b"),
        ),
        (
            asking(
                "input",
                json!([
                    { "role": "system", "content": "Be brief." }, user("a"), old, reference(&item), output("c"),
                ]),
            ),
            "input",
            "Be brief.",
            results(),
        ),
    ] {
        let parsed = read(&body).unwrap();
        assert_eq!(parsed.asked.conversation, expected, "{body}");
        assert_eq!(
            (parsed.continues, parsed.field),
            (Continues::Response(id()), field)
        );
        assert_eq!(
            parsed.asked.instructions.as_deref(),
            Some(instructions),
            "{body}"
        );
    }
    for conversation in [json!("conv_7"), json!({ "id": "conv_7" })] {
        let parsed = read(&asking("conversation", conversation)).unwrap();
        assert_eq!(
            parsed.continues,
            Continues::Conversation("conv_7".to_owned())
        );
        assert_eq!(parsed.field, "conversation");
    }
}

#[test]
fn instructions_precede_those_of_the_input() {
    let mut body = asking(
        "input",
        json!([
            { "role": "developer", "content": "Two." }, { "role": "system", "content": " " }, user("q?"),
        ]),
    );
    body["instructions"] = "One.".into();
    let parsed = read(&body).unwrap();
    assert_eq!(parsed.asked.instructions.as_deref(), Some("One.\n\nTwo."));
}

#[test]
fn options_are_interpreted() {
    let tool = json!({
        "type": "function", "name": "look", "description": "Looks.", "strict": true,
        "parameters": { "type": "object", "properties": {} },
    });
    let with = |more: Value| {
        let mut body = asking("tools", json!([tool]));
        body.as_object_mut()
            .unwrap()
            .extend(more.as_object().unwrap().clone());
        read(&body).unwrap().asked.options
    };
    let options = with(json!({}));
    assert_eq!(
        (&*options.tools[0].name, &*options.tools[0].description),
        ("look", "Looks.")
    );
    assert_eq!(
        (&options.tool_choice, options.single_call),
        (&ClientToolChoice::Auto, false)
    );
    for (choice, expected, tools) in [
        (json!("auto"), ClientToolChoice::Auto, 1),
        (json!("none"), ClientToolChoice::Auto, 0),
        (json!("required"), ClientToolChoice::Required, 1),
        (function("look"), ClientToolChoice::Named("look".into()), 1),
    ] {
        let options = with(json!({ "tool_choice": choice }));
        assert_eq!(
            (options.tool_choice, options.tools.len()),
            (expected, tools)
        );
    }
    assert!(with(json!({ "parallel_tool_calls": false })).single_call);

    let schema = json!({ "type": "object" });
    let given = json!({
        "type": "json_schema", "name": "s", "description": "d", "schema": schema, "strict": true,
    });
    let built = AnswerFormat::Schema {
        name: "s".into(),
        description: Some("d".into()),
        schema,
        strict: true,
    };
    for (format, expected) in [
        (Value::Null, AnswerFormat::Text),
        (json!({ "type": "text" }), AnswerFormat::Text),
        (json!({ "type": "json_object" }), AnswerFormat::Json),
        (given, built),
    ] {
        let parsed = read(&asking("text", json!({ "format": format }))).unwrap();
        let is_text = expected == AnswerFormat::Text;
        assert_eq!(parsed.asked.options.format, expected);
        assert_eq!(parsed.asked.options.format.is_text(), is_text);
        for enforced in [false, true] {
            let streamed = streams(StreamText::Turns, is_text, enforced);
            assert_eq!(streamed == StreamText::Turns, is_text || enforced);
        }
    }
    let options = with(json!({
        "max_output_tokens": 100.0, "temperature": 1, "top_p": 0.5, "reasoning": { "effort": "low" },
        "text": { "verbosity": "high" },
    }));
    assert_eq!(options.max_tokens, Some(100));
    let parameters: Vec<_> = options
        .parameters
        .into_iter()
        .map(|(parameter, value)| (field_of(parameter), value))
        .collect();
    for expected in [
        ("temperature", json!(1)),
        ("top_p", json!(0.5)),
        ("reasoning.effort", json!("low")),
        ("text.verbosity", json!("high")),
    ] {
        assert!(
            parameters.contains(&expected),
            "{expected:?} in {parameters:?}"
        );
    }
    assert_eq!(parameters.len(), 4);
}

#[test]
fn fields_without_effect_are_accepted() {
    let plain = read(&asking("input", json!("q?"))).unwrap();
    for (field, value) in [
        ("include", json!(["reasoning.encrypted_content"])),
        ("include", json!([])),
        ("truncation", json!("auto")),
        ("user", json!("u")),
        ("safety_identifier", json!("s")),
        ("prompt_cache_key", json!("p")),
        ("prompt_cache_retention", json!("24h")),
        ("service_tier", json!("auto")),
        ("background", json!(false)),
        ("max_tool_calls", Value::Null),
        ("reasoning", json!({ "summary": "auto" })),
        ("stream_options", json!({ "include_obfuscation": false })),
    ] {
        let parsed = read(&asking(field, value));
        assert_eq!(parsed.as_ref(), Ok(&plain), "{field}");
    }
    let parsed = read(&json!({
        "model": "oracle", "input": "q?", "store": false, "stream": true,
        "stream_options": { "oracle": "answer" }, "metadata": { "a": "b" },
    }));
    let parsed = parsed.unwrap();
    assert!(!parsed.asked.store && parsed.asked.stream);
    assert_eq!(parsed.asked.stream_text, Some(StreamText::Answer));
    assert_eq!(parsed.metadata["a"], "b");
}
