//! Tables of requests: each mistake is refused by its field's name, and valid requests are
//! interpreted.

use serde_json::{Value, json};

use super::*;

fn read(body: &Value) -> Result<ParsedChat, Problem> {
    ParsedChat::read(&serde_json::to_vec(body).unwrap())
}

fn user(text: &str) -> Value {
    json!({ "role": "user", "content": text })
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
            message(json!({ "role": "tool", "content": "x" })),
            "messages[1].role",
            "unknown variant `tool`",
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
            message(json!({ "role": "system", "content": "x" })),
            "messages[1].role",
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
            part(json!({ "type": "image_url" })),
            "messages[1].content[1].type",
            "unknown variant `image_url`, expected `text`",
        ),
        (
            message(json!({ "role": "assistant", "tool_calls": [{ "id": "1" }] })),
            "messages[1].tool_calls",
            "not supported",
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
            with("tools", json!([{ "type": "function" }])),
            "tools",
            "its own, configured tools",
        ),
        (with("tools", json!({})), "tools", "an array"),
        (
            with("functions", json!([{ "name": "f" }])),
            "functions",
            "its own, configured tools",
        ),
        (with("n", json!(2)), "n", "a request yields one answer"),
        (with("n", json!(0)), "n", "a request yields one answer"),
        (with("n", json!("1")), "n", "expected a number"),
        (
            with("response_format", json!({ "type": "json_object" })),
            "response_format",
            "answers are text",
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
    let question = read(&body).unwrap().question;
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
fn conversation_is_parsed_into_questions_and_answers() {
    let body = json!({
        "model": "oracle",
        "messages": [
            { "role": "system", "content": "Be brief." },
            { "role": "assistant", "content": "Hello, what can I do?" },
            user("one?"),
            { "role": "assistant", "content": "1" },
            { "role": "assistant", "content": [{ "type": "text", "text": "and more" }] },
            user("two?"),
            { "role": "developer", "content": [{ "type": "text", "text": "Be polite." }] },
            { "role": "system", "content": "" },
            user("three?"),
            { "role": "assistant", "content": null, "tool_calls": [] },
            { "role": "user", "content": [{ "type": "text", "text": "four" }, { "type": "text", "text": "?" }] },
        ],
        "stream": true,
        "stream_options": { "include_usage": true, "oracle": "answer" },
        "metadata": { "session_id": "s", "other": 1 },
        "tools": [], "functions": null, "n": 1, "response_format": { "type": "text" }, "modalities": ["text"],
        "temperature": 0.5, "top_p": 1, "max_tokens": 16, "seed": 7, "stop": ["x"], "user": "u", "unheard": {},
    });
    let exchange = |question: &str, answer: Option<&str>| Exchange {
        question: question.into(),
        answer: answer.map(Into::into),
    };
    let expected = ParsedChat {
        model: "oracle".into(),
        instructions: Some("Be brief.\n\nBe polite.".into()),
        past: vec![
            exchange("one?", Some("1\n\nand more")),
            exchange("two?", None),
            exchange("three?", Some("")),
        ],
        question: "four\n?".into(),
        is_task: false,
        store: false,
        stream: true,
        include_usage: true,
        stream_text: Some(StreamText::Answer),
    };
    assert_eq!(read(&body).unwrap(), expected);
}

#[test]
fn chat_page_background_tasks_are_recognized() {
    let ask = |text: &str| {
        let messages = [user("one?"), user(text)];
        read(&json!({ "model": "m", "messages": messages })).unwrap()
    };
    for (text, is_task) in [
        ("### Task:\nGenerate a concise title", true),
        ("\n### Task: tags", true),
        ("what does `### Task:` mean?", false),
        ("## Task: x", false),
    ] {
        assert_eq!(ask(text).is_task, is_task, "{text}");
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
