//! Each mistake is refused by its field's name.

use serde_json::{Value, json};

use super::{call, calls, read, result, tool, user};
use crate::model::command::MAX_QUESTION;

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
            messages(&[json!({ "role": "user", "content": [image("https://a")] })]),
            "messages[0].content",
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
            "expected an object",
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
        (with("stop", json!(1)), "stop", "a string or a list"),
        (with("stop", json!([1])), "stop[0]", "a string"),
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
        (with("metadata", json!("x")), "metadata", "an object"),
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
