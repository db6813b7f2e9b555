//! Tables of requests: each mistake is refused by its field's name, and valid requests are
//! interpreted.

use serde_json::{Value, json};

use super::{messages::without_reasoning, *};
use crate::{
    kernel::ReturnedResult,
    model::{
        AnswerFormat, AnswerOptions, CallId, ClientToolChoice, Image, ImportedMessage, Parameter,
        Speaker, ToolCall, ToolSpec, command::MAX_QUESTION,
    },
};

fn read(body: &Value) -> Result<ParsedChat, Problem> {
    ParsedChat::read(&serde_json::to_vec(body).unwrap())
}

fn user(text: &str) -> Value {
    json!({ "role": "user", "content": text })
}

fn assistant(text: &str) -> Value {
    json!({ "role": "assistant", "content": text })
}

fn tool(name: &str) -> Value {
    json!({ "type": "function", "function": { "name": name } })
}

fn call(id: &str) -> Value {
    json!({ "id": id, "type": "function", "function": { "name": "look", "arguments": "{}" } })
}

fn calls(ids: &[&str]) -> Value {
    let calls: Vec<_> = ids.iter().map(|id| call(id)).collect();
    json!({ "role": "assistant", "content": null, "tool_calls": calls })
}

fn result(id: &str, text: &str) -> Value {
    json!({ "role": "tool", "tool_call_id": id, "content": text })
}

fn spoken(speaker: Speaker, text: &str) -> ImportedMessage {
    ImportedMessage::new(speaker, text)
}

fn called(text: &str, ids: &[&str]) -> ImportedMessage {
    let call = |id: &&str| ToolCall {
        id: CallId::new(id),
        name: "look".into(),
        arguments: "{}".into(),
    };
    ImportedMessage {
        calls: ids.iter().map(call).collect(),
        ..spoken(Speaker::Assistant, text)
    }
}

fn answered(id: &str, text: &str) -> ImportedMessage {
    ImportedMessage {
        call: Some(CallId::new(id)),
        ..spoken(Speaker::Tool, text)
    }
}

#[test]
fn invalid_field_is_refused_by_name() {
    let with = |field: &str, value: Value| {
        let mut body = json!({ "model": "oracle", "messages": [user("q?")] });
        body[field] = value;
        body
    };
    let message = |message: Value| with("messages", json!([user("q?"), message]));
    let part = |part: Value| {
        message(json!({ "role": "user", "content": [{ "type": "text", "text": "a" }, part] }))
    };
    let messages = |messages: &[Value]| with("messages", json!(messages));
    let image = |url: &str| json!({ "type": "image_url", "image_url": { "url": url } });
    let schema = |schema: Value| {
        with(
            "response_format",
            json!({ "type": "json_schema", "json_schema": schema }),
        )
    };
    let many = (0..129).map(|number| tool(&format!("t{number}")));
    for (body, param, says) in [
        (json!([]), "body", "a JSON object"),
        (
            json!({ "messages": [user("q?")] }),
            "model",
            "missing field",
        ),
        (with("model", json!(7)), "model", "a string"),
        (json!({ "model": "oracle" }), "messages", "missing field"),
        (with("messages", json!([])), "messages", "at least one"),
        (with("messages", json!("hello")), "messages", "an array"),
        (
            with("messages", json!(["hello"])),
            "messages[0]",
            "an object",
        ),
        (
            message(json!({ "content": "x" })),
            "messages[1].role",
            "missing field",
        ),
        (
            message(json!({ "role": 1 })),
            "messages[1].role",
            "invalid `messages[1].role`",
        ),
        (
            message(json!({ "role": "robot", "content": "x" })),
            "messages[1].role",
            "unknown variant `robot`, expected one of `system`",
        ),
        (
            message(json!({ "role": "function", "content": "x" })),
            "messages[1].role",
            "unknown variant `function`",
        ),
        (
            message(json!({ "role": "assistant", "content": "x" })),
            "messages[1].role",
            "the last message",
        ),
        (
            messages(&[json!({ "role": "system", "content": "x" })]),
            "messages",
            "the last message",
        ),
        (message(user(" \n")), "messages[1].content", "is empty"),
        (
            message(json!({ "role": "user" })),
            "messages[1].content",
            "is empty",
        ),
        (
            message(json!({ "role": "user", "content": [] })),
            "messages[1].content",
            "is empty",
        ),
        (
            message(json!({ "role": "user", "content": 1 })),
            "messages[1].content",
            "a string or a list",
        ),
        (part(json!("x")), "messages[1].content[1]", "an object"),
        (
            part(json!({ "text": "x" })),
            "messages[1].content[1].type",
            "missing field",
        ),
        (
            part(json!({ "type": "text" })),
            "messages[1].content[1].text",
            "missing field",
        ),
        (
            part(json!({ "type": "input_audio" })),
            "messages[1].content[1].type",
            "unknown variant `input_audio`, expected one of `text`, `image_url`",
        ),
        (
            part(json!({ "type": "text", "text": "x", "cache_control": {} })),
            "messages[1].content[1].cache_control",
            "unknown field",
        ),
        (
            part(json!({ "type": "image_url" })),
            "messages[1].content[1].image_url",
            "missing field",
        ),
        (
            part(json!({ "type": "text", "text": "x", "refusal": "x" })),
            "messages[1].content[1].refusal",
            "does not belong",
        ),
        (
            part(json!({ "type": "refusal", "refusal": "x" })),
            "messages[1].content[1].type",
            "a message of this role",
        ),
        (
            part(image("http://example.org/a.png")),
            "messages[1].content[1].image_url.url",
            "must begin with `https://`",
        ),
        (
            part(image("data:image/bmp;base64,AAAA")),
            "messages[1].content[1].image_url.url",
            "must begin with",
        ),
        (
            part(image("data:image/png;base64,<>")),
            "messages[1].content[1].image_url.url",
            "must begin with",
        ),
        (
            part(json!({ "type": "image_url", "image_url": "https://example.org/a.png" })),
            "messages[1].content[1].image_url",
            "an object with `url`",
        ),
        (
            part(
                json!({ "type": "image_url", "image_url": { "url": "https://a", "detail": "x" } }),
            ),
            "messages[1].content[1].image_url.detail",
            "unknown variant `x`",
        ),
        (
            message(json!({ "role": "user", "content": [image("https://a")] })),
            "messages[1].content",
            "the message has no text",
        ),
        (
            message(json!({ "role": "assistant", "tool_calls": [{ "id": "1" }] })),
            "messages[1].tool_calls[0].type",
            "missing field",
        ),
        (
            message(json!({ "role": "user", "content": "x", "tool_calls": [call("1")] })),
            "messages[1].tool_calls",
            "only a message of the role `assistant`",
        ),
        (
            message(json!({ "role": "user", "content": "x", "tool_call_id": "1" })),
            "messages[1].tool_call_id",
            "only a message of the role `tool`",
        ),
        (
            message(json!({ "role": "user", "content": "x", "refusal": "x" })),
            "messages[1].refusal",
            "only a message of the role `assistant`",
        ),
        (
            message(json!({ "role": "assistant", "audio": { "id": "a" } })),
            "messages[1].audio",
            "send text",
        ),
        (
            message(json!({ "role": "assistant", "function_call": {} })),
            "messages[1].function_call",
            "use `tool_calls`",
        ),
        (
            message(json!({ "role": "user", "content": "x", "weight": 1 })),
            "messages[1].weight",
            "unknown field",
        ),
        (
            message(json!({ "role": "tool", "content": "x" })),
            "messages[1].tool_call_id",
            "missing",
        ),
        (message(result("1", "x")), "messages[1]", "no open call `1`"),
        (
            message(json!({ "role": "assistant", "tool_calls": [call("1"), call("1")] })),
            "messages[1]",
            "two calls have the id `1`",
        ),
        (
            message(json!({ "role": "assistant", "tool_calls": [call("1")] })),
            "messages[1]",
            "the call `1` has no result",
        ),
        (
            messages(&[user("q?"), calls(&["1", "2"]), result("1", "x")]),
            "messages[2]",
            "the call `2` has no result",
        ),
        (
            messages(&[
                user("q?"),
                calls(&["1"]),
                result("1", "x"),
                result("1", "y"),
            ]),
            "messages[3]",
            "no open call `1`",
        ),
        (
            messages(&[user("q?"), calls(&["1"]), user("and?")]),
            "messages[2]",
            "the call `1` before it has no result",
        ),
        (
            messages(&[user("q?"), calls(&["1"]), json!({ "role": "assistant" })]),
            "messages[2]",
            "the call `1` before it has no result",
        ),
        (
            messages(&[calls(&["1"]), result("1", "x")]),
            "messages[1].role",
            "the last message must be the question",
        ),
        (
            message(user(&"x".repeat(MAX_QUESTION + 1))),
            "messages[1].content",
            "the maximum is",
        ),
        (with("stream", json!("yes")), "stream", "a boolean"),
        (
            with("stream_options", json!(true)),
            "stream_options",
            "an object",
        ),
        (
            with("stream_options", json!({ "include_usage": 1 })),
            "stream_options.include_usage",
            "a boolean",
        ),
        (with("store", json!("x")), "store", "a boolean"),
        (
            with("stream_options", json!({ "oracle": "all" })),
            "stream_options.oracle",
            "expected `turns` or `answer`",
        ),
        (
            with("stream_options", json!({ "include_obfuscation": true })),
            "stream_options.include_obfuscation",
            "unknown field",
        ),
        (
            with("unheard", json!({})),
            "unheard",
            "unknown field `unheard`: omit it",
        ),
        (
            with("tools", json!([{ "type": "function" }])),
            "tools[0].function",
            "missing field",
        ),
        (
            with("tools", json!([{ "type": "web_search" }])),
            "tools[0].type",
            "unknown variant `web_search`",
        ),
        (
            with(
                "tools",
                json!([tool("look"), { "type": "function", "function": {}, "x": 1 }]),
            ),
            "tools[1].function.name",
            "missing field",
        ),
        (
            with(
                "tools",
                json!([{ "type": "function", "function": { "name": "a", "x": 1 } }]),
            ),
            "tools[0].function.x",
            "unknown field",
        ),
        (with("tools", json!({})), "tools", "an array"),
        (
            with("tools", json!([tool("look"), tool("look")])),
            "tools[1].function.name",
            "two tools have the name `look`",
        ),
        (
            with("tools", json!([tool("look up")])),
            "tools[0].function.name",
            "ASCII letters",
        ),
        (
            with("tools", json!([tool(&"x".repeat(65))])),
            "tools[0].function.name",
            "1 to 64",
        ),
        (
            with(
                "tools",
                json!([{ "type": "function", "function": { "name": "a", "parameters": { "type": "string" } } }]),
            ),
            "tools[0].function.parameters",
            "of the type `object`",
        ),
        (
            with("tools", Value::Array(many.collect())),
            "tools",
            "the limit of 128",
        ),
        (
            with("tool_choice", json!("some")),
            "tool_choice",
            "must be `none`",
        ),
        (
            with("tool_choice", json!("required")),
            "tool_choice",
            "no `tools`",
        ),
        (
            with(
                "tool_choice",
                json!({ "type": "function", "function": { "name": "x" } }),
            ),
            "tool_choice.function.name",
            "none of `tools`",
        ),
        (
            with("parallel_tool_calls", json!(1)),
            "parallel_tool_calls",
            "a boolean",
        ),
        (
            with("functions", json!([{ "name": "f" }])),
            "functions",
            "use `tools`",
        ),
        (
            with("function_call", json!("auto")),
            "function_call",
            "with `tools`",
        ),
        (with("n", json!(2)), "n", "a request yields one answer"),
        (with("n", json!(0)), "n", "a request yields one answer"),
        (with("n", json!("1")), "n", "expected a number"),
        (
            with("response_format", json!({ "type": "grammar" })),
            "response_format.type",
            "unknown variant `grammar`",
        ),
        (
            with("response_format", json!({ "type": "text", "schema": {} })),
            "response_format.schema",
            "unknown field",
        ),
        (
            with("response_format", json!({ "type": "json_schema" })),
            "response_format.json_schema",
            "missing",
        ),
        (
            with(
                "response_format",
                json!({ "type": "json_object", "json_schema": { "name": "x" } }),
            ),
            "response_format.json_schema",
            "only the type `json_schema`",
        ),
        (
            schema(json!({ "schema": {} })),
            "response_format.json_schema.name",
            "missing field",
        ),
        (
            schema(json!({ "name": "a b", "schema": {} })),
            "response_format.json_schema.name",
            "ASCII letters",
        ),
        (
            schema(json!({ "name": "a", "schema": { "type": "thing" } })),
            "response_format.json_schema.schema",
            "cannot be used",
        ),
        (
            schema(json!({ "name": "a", "schema": { "description": "x".repeat(64 << 10) } })),
            "response_format.json_schema.schema",
            "the maximum is 65536",
        ),
        (
            schema(json!({ "name": "a", "schema": true })),
            "response_format.json_schema.schema",
            "expected a map",
        ),
        (
            schema(json!({ "name": "a", "schema": {}, "x": 1 })),
            "response_format.json_schema.x",
            "unknown field",
        ),
        (
            with("response_format", json!("text")),
            "response_format",
            "an object",
        ),
        (
            with("modalities", json!(["audio"])),
            "modalities",
            "answers are text",
        ),
        (with("modalities", json!("text")), "modalities", "an array"),
        (with("audio", json!({})), "audio", "answers are text"),
        (with("prediction", json!({})), "prediction", "not supported"),
        (
            with("web_search_options", json!({})),
            "web_search_options",
            "tools of its own",
        ),
        (with("logprobs", json!(true)), "logprobs", "not available"),
        (
            with("top_logprobs", json!(0)),
            "top_logprobs",
            "not available",
        ),
        (with("stop", json!("")), "stop", "none of them empty"),
        (with("stop", json!(["a", ""])), "stop", "none of them empty"),
        (
            with("stop", json!(["a", "b", "c", "d", "e"])),
            "stop",
            "up to 4",
        ),
        (with("stop", json!(1)), "stop", "up to 4"),
        (with("seed", json!(0.5)), "seed", "seed"),
        (
            with("logit_bias", json!({ "7": 101 })),
            "logit_bias",
            "from -100 to 100",
        ),
        (
            with("logit_bias", json!({ "x": 1 })),
            "logit_bias",
            "token ids",
        ),
        (
            with("reasoning_effort", json!("")),
            "reasoning_effort",
            "a word",
        ),
        (
            with("reasoning_effort", json!("Very high")),
            "reasoning_effort",
            "a word",
        ),
        (
            with("verbosity", json!("loud")),
            "verbosity",
            "unknown variant `loud`",
        ),
        (with("user", json!(1)), "user", "a string"),
        (with("metadata", json!("x")), "metadata", "a map"),
        (with("max_tokens", json!(0)), "max_tokens", "from 1"),
        (
            with("max_completion_tokens", json!(-1)),
            "max_completion_tokens",
            "from 1",
        ),
        (
            with("temperature", json!("hot")),
            "temperature",
            "expected a number",
        ),
        (
            with("temperature", json!(2.1)),
            "temperature",
            "from 0 to 2",
        ),
        (with("top_p", json!(1.1)), "top_p", "from 0 to 1"),
        (
            with("presence_penalty", json!(-3)),
            "presence_penalty",
            "from -2 to 2",
        ),
        (
            with("frequency_penalty", json!(true)),
            "frequency_penalty",
            "expected a number",
        ),
    ] {
        let problem = read(&body).expect_err(param);
        let shown = serde_json::to_value(problem.body()).unwrap();
        assert_eq!(shown["error"]["param"], param, "{shown}");
        assert_eq!(problem.status(), 400, "{shown}");
        let text = shown["error"]["message"].as_str().unwrap();
        assert!(text.contains(says), "{param}: {text}");
    }
}

#[test]
fn long_message_list_parses_or_fails_at_its_first_invalid_item() {
    let body = json!({ "model": "oracle", "messages": vec![0; 1 << 17] });
    let problem = read(&body).unwrap_err();
    let shown = serde_json::to_value(problem.body()).unwrap();
    assert_eq!(shown["error"]["param"], "messages[0]", "{shown}");
    let parts = json!([{ "type": "text", "text": "a" }, { "type": "text", "text": "b" }]);
    let message = json!({ "role": "user", "content": parts });
    let body = json!({ "model": "oracle", "messages": vec![message; 4_097] });
    let question = read(&body).unwrap().asked.conversation.question;
    assert_eq!(question.matches("a\nb").count(), 4_097);
}

#[test]
fn malformed_json_is_refused() {
    for body in [
        &b""[..],
        b"{",
        b"\xff\xfe",
        b"{\"model\":\"a\",\"model\":\"b\"}",
        b"null",
    ] {
        let problem = ParsedChat::read(body).unwrap_err();
        assert_eq!(problem.status(), 400, "{body:?}");
    }
}

#[test]
fn conversation_is_parsed_into_past_and_question() {
    let body = json!({
        "model": "oracle",
        "messages": [
            { "role": "system", "content": "Be brief." },
            assistant("Hello, what can I do?"),
            user("one?"),
            assistant("<think>Hm.</think>1"),
            { "role": "assistant", "content": [{ "type": "text", "text": "and more" }] },
            user("two?"),
            { "role": "developer", "content": [{ "type": "text", "text": "Be polite." }] },
            { "role": "system", "content": "" },
            { "role": "user", "name": "Ada", "content": [
                { "type": "text", "text": "three?" },
                { "type": "image_url", "image_url": { "url": "https://a/b.png", "detail": null } },
            ] },
            { "role": "assistant", "content": null, "tool_calls": [] },
            { "role": "assistant", "refusal": "No." },
            user("four"),
            { "role": "user", "content": [
                { "type": "text", "text": "or" }, { "type": "text", "text": "five?" },
                { "type": "image_url", "image_url": {
                    "url": "data:image/webp;base64,AA==", "detail": "low",
                } },
            ] },
        ],
        "stream": true,
        "stream_options": { "include_usage": true, "oracle": "answer" },
    });
    let image = |url: &str, detail: Option<&str>| Image {
        url: url.into(),
        detail: detail.map(Into::into),
    };
    let past = vec![
        spoken(Speaker::User, "one?"),
        spoken(Speaker::Assistant, "1\n\nand more"),
        spoken(Speaker::User, "two?"),
        ImportedMessage {
            images: vec![image("https://a/b.png", None)],
            ..spoken(Speaker::User, "three?")
        },
        spoken(Speaker::Assistant, "No."),
    ];
    let expected = ParsedChat {
        model: "oracle".into(),
        asked: Asked {
            instructions: Some("Be brief.\n\nBe polite.".into()),
            conversation: Conversation {
                past,
                question: "four\n\nor\nfive?".into(),
                images: vec![image("data:image/webp;base64,AA==", Some("low"))],
                image_field: Some("messages[8]".into()),
                ..Conversation::default()
            },
            options: AnswerOptions::default(),
        },
        store: false,
        stream: true,
        include_usage: true,
        stream_text: Some(StreamText::Answer),
    };
    assert_eq!(read(&body).unwrap(), expected);
}

#[test]
fn calls_and_results_are_parsed() {
    let conversation = |messages: &[Value]| {
        let body = json!({ "model": "oracle", "messages": messages });
        read(&body).unwrap().asked.conversation
    };
    let returned = |call: &str, content: &str| ReturnedResult {
        call: CallId::new(call),
        content: content.into(),
    };
    let ends_with_results = conversation(&[
        user("zero?"),
        assistant("0"),
        user("one?"),
        calls(&["1"]),
        result("1", "x"),
        calls(&["2", "3"]),
        result("3", "z"),
        json!({ "role": "system", "content": "Hurry." }),
        json!({ "role": "tool", "tool_call_id": "2", "content": [
            { "type": "text", "text": "y" }, { "type": "text", "text": "and more" },
        ] }),
    ]);
    let expected = Conversation {
        past: vec![
            spoken(Speaker::User, "zero?"),
            spoken(Speaker::Assistant, "0"),
        ],
        question: "one?".into(),
        exchanged: vec![
            called("", &["1"]),
            answered("1", "x"),
            called("", &["2", "3"]),
            answered("3", "z"),
            answered("2", "y\nand more"),
        ],
        results: vec![returned("3", "z"), returned("2", "y\nand more")],
        ..Conversation::default()
    };
    assert_eq!(ends_with_results, expected);

    let goes_on = conversation(&[
        user("one?"),
        calls(&["1"]),
        result("1", "x"),
        assistant("1"),
        calls(&["2"]),
        result("2", ""),
        user("two?"),
    ]);
    let expected = Conversation {
        past: vec![
            spoken(Speaker::User, "one?"),
            called("", &["1"]),
            answered("1", "x"),
            called("1", &["2"]),
            answered("2", ""),
        ],
        question: "two?".into(),
        left: vec![CallId::new("2")],
        ..Conversation::default()
    };
    assert_eq!(goes_on, expected);
}

/// What `message.model_dump()` of OpenAI's Python library returns for a received message.
#[test]
fn message_that_a_library_sends_back_is_accepted() {
    let dumped = json!({
        "content": "Let me look.", "refusal": null, "role": "assistant", "annotations": [],
        "audio": null, "function_call": null, "reasoning_content": "Turn 1.", "parsed": null,
        "tool_calls": [{
            "id": "1", "type": "function", "index": 0,
            "function": { "name": "look", "arguments": "{}", "parsed_arguments": {} },
        }],
    });
    let plain = json!({
        "content": "Hello.", "refusal": null, "role": "assistant", "annotations": null,
        "audio": null, "function_call": null, "tool_calls": null, "tool_call_id": null, "name": null,
    });
    let messages = [user("one?"), dumped, result("1", "x"), plain, user("two?")];
    let read = read(&json!({ "model": "oracle", "messages": messages })).unwrap();
    let expected = [
        spoken(Speaker::User, "one?"),
        called("Let me look.", &["1"]),
        answered("1", "x"),
        spoken(Speaker::Assistant, "Hello."),
    ];
    assert_eq!(read.asked.conversation.past, expected);
}

#[test]
fn accepted_fields_become_options() {
    let none = AnswerOptions::default;
    let parameter = |parameter: Parameter, value: Value| AnswerOptions {
        parameters: [(parameter, value)].into(),
        ..none()
    };
    let schema = json!({ "type": "object", "properties": { "a": { "type": "string" } } });
    let empty = json!({ "type": "object", "properties": {} });
    let look = || ToolSpec::new("look", "", empty.clone());
    let tools = |tools: &[ToolSpec]| AnswerOptions {
        tools: tools.into(),
        ..none()
    };
    let one = json!([tool("look")]);
    let limit = |tokens: u64| AnswerOptions {
        max_tokens: Some(tokens),
        ..none()
    };
    let stop = |stops: &[&str]| AnswerOptions {
        stop: stops.iter().map(|stop| (*stop).to_owned()).collect(),
        ..none()
    };
    for (fields, expected) in [
        (json!({}), none()),
        (
            json!({ "tools": [], "tool_choice": "auto", "parallel_tool_calls": false }),
            none(),
        ),
        (json!({ "tools": one }), tools(&[look()])),
        (
            json!({ "tools": one, "tool_choice": "auto", "parallel_tool_calls": true }),
            tools(&[look()]),
        ),
        (json!({ "tools": one, "tool_choice": "none" }), none()),
        (
            json!({ "tools": one, "tool_choice": "required", "parallel_tool_calls": false }),
            AnswerOptions {
                tool_choice: ClientToolChoice::Required,
                single_call: true,
                ..tools(&[look()])
            },
        ),
        (
            json!({ "tools": one, "tool_choice": { "type": "function", "function": { "name": "look" } } }),
            AnswerOptions {
                tool_choice: ClientToolChoice::Named("look".into()),
                ..tools(&[look()])
            },
        ),
        (
            json!({ "tools": [{ "type": "function", "function": {
                "name": "find", "description": "Finds.", "parameters": schema, "strict": true,
            } }] }),
            tools(&[ToolSpec::new("find", "Finds.", schema.clone())]),
        ),
        (
            json!({ "tools": [{ "type": "function", "function": { "name": "look", "parameters": {} } }] }),
            tools(&[look()]),
        ),
        (json!({ "response_format": { "type": "text" } }), none()),
        (
            json!({ "response_format": { "type": "json_object" } }),
            AnswerOptions {
                format: AnswerFormat::Json,
                ..none()
            },
        ),
        (
            json!({ "response_format": { "type": "json_schema", "json_schema": {
                "name": "city", "description": "A city.", "schema": schema, "strict": true,
            } } }),
            AnswerOptions {
                format: AnswerFormat::Schema {
                    name: "city".into(),
                    description: Some("A city.".into()),
                    schema: schema.clone(),
                    strict: true,
                },
                ..none()
            },
        ),
        (json!({ "stop": "END" }), stop(&["END"])),
        (
            json!({ "stop": ["a", "b", "c", "d"] }),
            stop(&["a", "b", "c", "d"]),
        ),
        (json!({ "stop": [] }), none()),
        (json!({ "max_tokens": 16 }), limit(16)),
        (json!({ "max_completion_tokens": 16.0 }), limit(16)),
        (
            json!({ "max_tokens": 20, "max_completion_tokens": 10 }),
            limit(10),
        ),
        (
            json!({ "max_tokens": 10, "max_completion_tokens": 1e30 }),
            limit(10),
        ),
        (
            json!({ "temperature": 0.5 }),
            parameter(Parameter::Temperature, json!(0.5)),
        ),
        (json!({ "top_p": 1 }), parameter(Parameter::TopP, json!(1))),
        (
            json!({ "presence_penalty": -2 }),
            parameter(Parameter::PresencePenalty, json!(-2)),
        ),
        (
            json!({ "frequency_penalty": 0 }),
            parameter(Parameter::FrequencyPenalty, json!(0)),
        ),
        (json!({ "seed": -7 }), parameter(Parameter::Seed, json!(-7))),
        (
            json!({ "logit_bias": { "50256": -100, "7": 0.5 } }),
            parameter(Parameter::LogitBias, json!({ "50256": -100, "7": 0.5 })),
        ),
        (
            json!({ "reasoning_effort": "low" }),
            parameter(Parameter::ReasoningEffort, json!("low")),
        ),
        (
            json!({ "verbosity": "high" }),
            parameter(Parameter::Verbosity, json!("high")),
        ),
        (
            json!({
                "user": "u", "safety_identifier": "u", "metadata": { "session_id": "s", "other": 1 },
                "prompt_cache_key": "k", "prompt_cache_retention": "24h", "service_tier": "auto",
                "store": false, "n": 1, "modalities": ["text"], "logprobs": false,
            }),
            none(),
        ),
        (
            json!({
                "tools": null, "tool_choice": null, "parallel_tool_calls": null, "functions": null,
                "function_call": null, "response_format": null, "stop": null, "max_tokens": null,
                "max_completion_tokens": null, "temperature": null, "top_p": null, "seed": null,
                "presence_penalty": null, "frequency_penalty": null, "logit_bias": null,
                "reasoning_effort": null, "verbosity": null, "n": null, "modalities": null,
                "logprobs": null, "top_logprobs": null, "audio": null, "prediction": null,
                "web_search_options": null, "user": null, "metadata": null, "store": null,
                "stream": null, "stream_options": null, "service_tier": null,
            }),
            none(),
        ),
    ] {
        let mut body = json!({ "model": "oracle", "messages": [user("q?")] });
        let fields = fields.as_object().unwrap();
        body.as_object_mut().unwrap().extend(fields.clone());
        let chat = read(&body).unwrap_or_else(|problem| panic!("{body}: {problem:?}"));
        assert_eq!(chat.asked.options, expected, "{body}");
    }
}

#[test]
fn chat_page_background_tasks_are_recognized() {
    let ask = |text: &str| {
        let messages = [user("one?"), user(text)];
        let format = json!({ "type": "json_object" });
        let body = json!({
            "model": "m", "messages": messages, "tools": [tool("look")], "response_format": format,
        });
        read(&body).unwrap().asked.options
    };
    for (text, is_task) in [
        ("### Task:\nGenerate a concise title", true),
        ("\n### Task: tags", true),
        ("what does `### Task:` mean?", false),
        ("## Task: x", false),
    ] {
        let options = ask(text);
        assert_eq!(options.is_task, is_task, "{text}");
        assert_eq!(options.tools.is_empty(), is_task, "{text}");
        assert_eq!(options.format, AnswerFormat::Json);
    }
}

#[test]
fn reasoning_in_assistant_messages_is_stripped() {
    let page = "<details type=\"reasoning\" done=\"true\">\nHm.\n</details>\nThere.";
    for (answer, spoken_) in [
        ("There.", "There."),
        ("<think>Hm.</think>There.", "There."),
        (page, "\nThere."),
        ("<think>It is", "<think>It is"),
    ] {
        assert_eq!(without_reasoning(answer), spoken_);
    }
}
