//! Requests and what they become.

use serde_json::{Value, json};

use super::*;
use crate::{
    kernel::ReturnedResult,
    model::{
        AnswerFormat, AnswerOptions, CallId, ClientToolChoice, Image, ImportedMessage, Parameter,
        Speaker, ToolCall, ToolSpec,
    },
};

mod refused;

fn read(body: &Value) -> Result<Asked, Problem> {
    Asked::of_chat(&serde_json::to_vec(body).unwrap())
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
fn long_message_list_parses_or_fails_at_its_first_invalid_item() {
    let body = json!({ "model": "oracle", "messages": vec![0; 1 << 17] });
    let problem = read(&body).unwrap_err();
    let shown = serde_json::to_value(problem.body()).unwrap();
    assert_eq!(shown["error"]["param"], "messages[0]", "{shown}");
    let parts = json!([{ "type": "text", "text": "a" }, { "type": "text", "text": "b" }]);
    let message = json!({ "role": "user", "content": parts });
    let body = json!({ "model": "oracle", "messages": vec![message; 4_097] });
    let question = read(&body).unwrap().conversation.question;
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
        let problem = Asked::of_chat(body).unwrap_err();
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
    let expected = Asked {
        model: "oracle".into(),
        instructions: Some("Be brief.\n\nBe polite.".into()),
        conversation: Conversation {
            past,
            question: "four\n\nor\nfive?".into(),
            images: vec![image("data:image/webp;base64,AA==", Some("low"))],
            image_field: Some("messages[8]".into()),
            ..Conversation::default()
        },
        options: AnswerOptions::default(),
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
        read(&body).unwrap().conversation
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
    assert_eq!(read.conversation.past, expected);
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
        assert_eq!(chat.options, expected, "{body}");
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
        read(&body).unwrap().options
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

#[test]
fn image_may_precede_the_question_about_it() {
    let image = json!([{ "type": "image_url", "image_url": { "url": "https://a.b/c.png" } }]);
    let body = json!({ "model": "oracle", "messages": [
        { "role": "user", "content": image },
        { "role": "user", "content": "what is it?" },
    ]});
    let chat = Asked::of_chat(&serde_json::to_vec(&body).unwrap()).unwrap();
    let asked = chat.conversation;
    assert_eq!((&*asked.question, asked.images.len()), ("what is it?", 1));
}

#[test]
fn calls_of_a_message_are_bounded() {
    let call = |number: usize| {
        let function = json!({ "name": "a", "arguments": "{}" });
        json!({ "id": number.to_string(), "type": "function", "function": function })
    };
    let calls: Vec<Value> = (0..129).map(call).collect();
    let body = json!({ "model": "oracle", "messages": [
        { "role": "user", "content": "q?" },
        { "role": "assistant", "tool_calls": calls },
    ]});
    let problem = Asked::of_chat(&serde_json::to_vec(&body).unwrap()).unwrap_err();
    let shown = serde_json::to_value(problem.body()).unwrap();
    assert_eq!(shown["error"]["param"], "messages[1]", "{shown}");
}
