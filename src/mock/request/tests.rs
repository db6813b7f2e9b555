use serde_json::json;

use super::*;
use crate::{
    llm::Dialect,
    mock::{dialect::row, request},
};

fn broken(dialect: Dialect, mut body: Value) -> Vec<String> {
    for (key, value) in [("model", json!("m")), ("max_tokens", json!(9))] {
        if body.get(key).is_none() {
            body[key] = value;
        }
    }
    let text = body.to_string();
    let asked = read(row(dialect), text.as_bytes()).unwrap();
    asked.breaches.iter().map(ToString::to_string).collect()
}

fn user(text: &str) -> Value {
    json!({"role": "user", "content": text})
}

#[test]
fn arguments_fit_the_schema() {
    let schema = r#"{"required": ["query", "limit", "kind", "all", "paths", "deep", "x"],
        "properties": {"query": {"type": "string"}, "limit": {"type": "integer", "minimum": 3},
        "kind": {"enum": ["a", "b"]}, "all": {"type": "boolean"}, "deep": {"type": ["object", "null"]},
        "paths": {"type": "array", "items": {"type": "string"}}, "free": {"type": "string"}}}"#;
    let want =
        r#"{"all":true,"deep":{},"kind":"a","limit":3,"paths":["mock"],"query":"mock","x":"mock"}"#;
    let schema = serde_json::from_str(schema).unwrap();
    let made: Value = serde_json::from_str(&fitting(&schema)).unwrap();
    assert_eq!(made, serde_json::from_str::<Value>(want).unwrap());
    assert_eq!(fitting(&Value::Null), "{}");
}

#[test]
fn blank_content_is_recognized() {
    for (text, blank) in [
        (json!(""), true),
        (json!(" \n"), true),
        (json!([]), true),
        (json!(null), true),
        (json!("a"), false),
        (json!([{"type": "text", "text": "a"}]), false),
    ] {
        assert_eq!(is_blank(&text), blank, "{text}");
    }
    assert_eq!(
        text_of(&json!([{"text": "a"}, {"x": 1}, {"text": "b"}])),
        "a\nb"
    );
}

#[test]
fn violated_requirements_are_recorded() {
    let long = "x".repeat(41);
    for (name_of, check, breaks) in [
        (
            "a short id",
            (|f, t| f.short_id(t)) as fn(&mut Check, &str),
            "a.b:0",
        ),
        ("a plain id", |f, t| f.plain_id(t), &*long),
        ("a name", |f, t| f.name(t), "code_search"),
    ] {
        let mut found = Check::default();
        check(&mut found, breaks);
        assert_eq!(found.found, [], "{name_of}");
    }
    let mut found = Check::default();
    found.short_id(&long);
    found.plain_id("a.b:0");
    for wrong in ["", "a.b", &"x".repeat(65)] {
        found.name(wrong);
    }
    let rules: Vec<&str> = found
        .found
        .iter()
        .map(|breach| breach.rule.as_str())
        .collect();
    assert_eq!(rules, ["ids", "ids", "names", "names", "names"]);
}

mod openai {
    use super::*;

    fn calls(ids: &[&str]) -> Value {
        let call = |id| json!({"id": id, "type": "function", "function": {"name": "t", "arguments": "{}"}});
        let calls: Vec<Value> = ids.iter().map(call).collect();
        json!({"role": "assistant", "content": null, "tool_calls": calls})
    }

    fn result(id: &str) -> Value {
        json!({"role": "tool", "tool_call_id": id, "content": "r"})
    }

    #[test]
    fn valid_conversation_breaks_no_rule() {
        let tools = json!([{"type": "function", "function": {"name": "t"}}]);
        let messages = json!([
            {"role": "system", "content": "s"}, user("q"), calls(&["a", "b"]), result("b"), result("a"),
            {"role": "system", "content": "hint"}, {"role": "assistant", "content": "x"}, user("q"), user("q"),
        ]);
        assert_eq!(
            broken(
                Dialect::OpenAi,
                json!({"messages": messages, "tools": tools})
            ),
            [""; 0]
        );
    }

    #[test]
    fn each_broken_rule_is_named() {
        let tools = json!([{"type": "function", "function": {"name": "t"}}]);
        for (messages, want) in [
            (json!([]), vec!["form: the request has no messages"]),
            (
                json!([user("q"), {"role": "assistant", "content": "x"}]),
                vec!["ending: message 2: the last message is the assistant's"],
            ),
            (
                json!([user("q"), calls(&["a", "b"]), result("a"), user("q")]),
                vec![
                    "unanswered: An assistant message with 'tool_calls' must be followed by tool \
                     messages responding to each 'tool_call_id'. The following tool_call_ids did \
                     not have response messages: b",
                ],
            ),
            (
                json!([user("q"), calls(&["a"])]),
                vec![
                    "unanswered: An assistant message with 'tool_calls' must be followed by tool \
                     messages responding to each 'tool_call_id'. The following tool_call_ids did \
                     not have response messages: a",
                    "ending: message 2: the last message is the assistant's",
                ],
            ),
            (
                json!([user("q"), calls(&["a"]), result("a"), result("a")]),
                vec![
                    "unasked: Invalid parameter: messages with role 'tool' must be a response to a \
                     preceeding message with 'tool_calls'.",
                ],
            ),
            (
                json!([user(" "), {"role": "critic", "content": "x"}]),
                vec![
                    "empty: message 1: it has no content",
                    "roles: message 2: unknown role `critic`",
                ],
            ),
        ] {
            assert_eq!(
                broken(
                    Dialect::OpenAi,
                    json!({"messages": messages, "tools": tools})
                ),
                want
            );
        }
    }

    #[test]
    fn openai_calls_need_tools_valid_arguments_and_a_model() {
        let mut cut = calls(&["a"]);
        cut["tool_calls"][0]["function"]["arguments"] = "{\"q\":".into();
        let body = json!({"model": "", "messages": [user("q"), cut, result("a")]});
        let want = [
            "arguments: message 2: the arguments of the call `a` are not valid JSON",
            "tools: the history has tool calls, but `tools` is empty",
            "model: `model` is missing",
        ];
        assert_eq!(broken(Dialect::OpenAi, body), want);
    }

    #[test]
    fn openai_ids_names_and_surrogates_are_checked() {
        let long = "x".repeat(41);
        let mut call = calls(&[&long]);
        let function = &mut call["tool_calls"][0]["function"];
        function["arguments"] = r#"{"q":"\ud83d"}"#.into();
        function["name"] = "a.b".into();
        let tools = json!([{"type": "function", "function": {"name": ""}}]);
        let body = json!({"messages": [user("q"), call, result(&long)], "tools": tools});
        let broken = broken(Dialect::OpenAi, body);
        let rules: Vec<&str> = broken
            .iter()
            .filter_map(|told| told.split(':').next())
            .collect();
        assert_eq!(rules, ["ids", "names", "arguments", "names"]);
    }

    #[test]
    fn request_fields_that_shape_the_reply_are_parsed() {
        let body = json!({"model": "m", "stream": true, "stream_options": {"include_usage": true},
            "tools": [{"type": "function", "function": {"name": "t", "parameters": {"a": 1}}}],
            "messages": [user("one"), {"role": "assistant", "content": "x"}, user("two"),
                {"role": "system", "content": "hint"}]})
        .to_string();
        let asked = read(row(Dialect::OpenAi), body.as_bytes()).unwrap();
        assert!(asked.is_stream());
        assert_eq!((asked.replies, asked.tools.len()), (1, 1));
        assert_eq!(asked.user, "two");
        let none = body.replace("\"stream\":true", "\"tool_choice\":\"none\"");
        let asked = read(row(Dialect::OpenAi), none.as_bytes()).unwrap();
        assert!(asked.tools.is_empty() && !asked.is_stream());
    }
}

mod anthropic {
    use super::*;

    fn calls(ids: &[&str]) -> Value {
        let call = |id| json!({"type": "tool_use", "id": id, "name": "t", "input": {}});
        let mut blocks = vec![json!({"type": "text", "text": "Looking."})];
        blocks.extend(ids.iter().map(call));
        json!({"role": "assistant", "content": blocks})
    }

    fn results(ids: &[&str]) -> Value {
        let result = |id| json!({"type": "tool_result", "tool_use_id": id, "content": "r"});
        json!({"role": "user", "content": ids.iter().map(result).collect::<Vec<_>>()})
    }

    #[test]
    fn valid_conversation_breaks_no_rule() {
        let mut with_text = results(&["b", "a"]);
        let text = json!({"type": "text", "text": "and now?"});
        with_text["content"].as_array_mut().unwrap().push(text);
        let messages = json!([
            user("q"),
            calls(&["a", "b"]),
            with_text,
            calls(&["c"]),
            results(&["c"]),
            {"role": "system", "content": "hint"}
        ]);
        let body = json!({"messages": messages, "tools": [{"name": "t", "input_schema": {}}]});
        assert_eq!(broken(Dialect::Anthropic, body), [""; 0]);
    }

    #[test]
    fn each_broken_rule_is_named() {
        let late = json!({"role": "user", "content": [{"type": "text", "text": "x"},
            {"type": "tool_result", "tool_use_id": "a"}]});
        for (messages, want) in [
            (json!([]), vec!["form: the request has no messages"]),
            (
                json!([calls(&[]), user("q"), user("q"), {"role": "critic", "content": "x"}]),
                vec![
                    "roles: message 1: the first message is not the user's",
                    "roles: message 3: it follows another message of the role `user`",
                    "roles: message 4: unknown role `critic`",
                ],
            ),
            (
                json!([user(""), {"role": "assistant", "content": [{"type": "text", "text": " "}]}]),
                vec![
                    "empty: message 1: it has no content",
                    "empty: message 2: it has an empty text",
                    "ending: message 2: the last message is the assistant's",
                ],
            ),
            (
                json!([user("q"), calls(&["a", "b"]), results(&["a", "c"])]),
                vec![
                    "unasked: messages.2: unexpected `tool_use_id` found in `tool_result` blocks: \
                     c. Each `tool_result` block must have a corresponding `tool_use` block in the \
                     previous message.",
                    "unanswered: messages.1: `tool_use` ids were found without `tool_result` blocks \
                     immediately after: b. Each `tool_use` block must have a corresponding \
                     `tool_result` block in the next message.",
                ],
            ),
            (
                json!([user("q"), calls(&["a"]), late]),
                vec!["roles: message 3: the result `a` is not before all other content"],
            ),
        ] {
            let body = json!({"messages": messages, "tools": [{"name": "t"}]});
            assert_eq!(broken(Dialect::Anthropic, body), want);
        }
    }

    #[test]
    fn anthropic_ids_names_and_cache_marks_are_checked() {
        let mut call = calls(&["a.b"]);
        call["content"][1]["name"] = "c.d".into();
        let marked = json!({"type": "text", "text": "x", "cache_control": {"type": "ephemeral"}});
        let mut results = results(&["a.b"]);
        for _ in 0..5 {
            results["content"]
                .as_array_mut()
                .unwrap()
                .push(marked.clone());
        }
        let body = json!({"messages": [user("q"), call, results], "tools": [{"name": "t"}]});
        let broken = broken(Dialect::Anthropic, body);
        let rules: Vec<&str> = broken
            .iter()
            .filter_map(|told| told.split(':').next())
            .collect();
        assert_eq!(rules, ["ids", "names", "cache"]);
    }

    #[test]
    fn a_mark_within_a_text_does_not_count() {
        let mark = json!({"type": "text", "text": "\"cache_control\":", "cache_control": {}});
        let content = vec![mark; 4];
        let body = json!({"messages": [{"role": "user", "content": content}]});
        assert_eq!(broken(Dialect::Anthropic, body), [""; 0]);
    }

    #[test]
    fn anthropic_calls_need_tools_arguments_model_and_max_tokens() {
        let mut call = calls(&["a"]);
        call["content"][1]["input"] = "{}".into();
        let body =
            json!({"model": "", "max_tokens": 0, "messages": [user("q"), call, results(&["a"])]});
        let want = [
            "arguments: message 2: the input of the call `a` is not an object",
            "form: max_tokens: Field required",
            "tools: the history has tool calls, but `tools` is empty",
            "model: `model` is missing",
        ];
        assert_eq!(broken(Dialect::Anthropic, body), want);
    }
}

mod responses {
    use super::*;

    fn call(id: &str) -> Value {
        json!({"type": "function_call", "id": "fc_1", "call_id": id, "name": "t", "arguments": "{}"})
    }

    fn output(id: &str) -> Value {
        json!({"type": "function_call_output", "call_id": id, "output": "r"})
    }

    fn read(input: &Value, more: &Value) -> (Vec<String>, usize, String, usize, bool) {
        let mut body = json!({"model": "m", "input": input,
            "tools": [{"type": "function", "name": "t", "parameters": {}}, {"type": "web_search"}]});
        for (key, value) in more.as_object().unwrap() {
            body[key] = value.clone();
        }
        let text = body.to_string();
        let asked = request::read(row(Dialect::Responses), text.as_bytes()).unwrap();
        let broken = asked.breaches.iter().map(ToString::to_string).collect();
        (
            broken,
            asked.replies,
            asked.user,
            asked.tools.len(),
            asked.must_call,
        )
    }

    #[test]
    fn items_of_a_reply_are_one_message() {
        let parts = json!([{"type": "input_text", "text": "one"}]);
        let said = json!({"type": "message", "role": "assistant",
            "content": [{"type": "output_text", "text": "x"}]});
        let thought = json!({"type": "reasoning", "id": "rs_1", "summary": []});
        let input = json!([
            {"role": "developer", "content": "d"}, {"role": "user", "content": parts},
            thought, said, call("a"), call("b"), output("b"), output("a"), thought, call("c"),
            output("c"), {"type": "message", "role": "user", "content": "two"},
        ]);
        let read_back = read(&input, &json!({}));
        assert_eq!(read_back, (vec![], 2, "two".into(), 1, false));
        let plain = read(&json!("q"), &json!({"tool_choice": "required"}));
        assert_eq!(plain, (vec![], 0, "q".into(), 1, true));
    }

    #[test]
    fn each_broken_rule_is_named() {
        for (input, want) in [
            (json!([]), "form: the request has no messages"),
            (
                json!([user("q"), call("a"), user("q")]),
                "unanswered: No tool output found for function call a.",
            ),
            (
                json!([user("q"), output("a")]),
                "unasked: No tool call found for function call output with call_id a.",
            ),
            (
                json!([{"role": "tool", "content": "x"}]),
                "roles: message 1: unknown role `tool`",
            ),
            (json!([user("")]), "empty: message 1: it has no content"),
        ] {
            assert_eq!(read(&input, &json!({})).0, [want], "{input}");
        }
    }

    #[test]
    fn tools_may_be_chosen_in_each_form() {
        for (choice, tools, must_call) in [
            (json!("auto"), 1, false),
            (json!("none"), 0, false),
            (json!({"type": "function", "name": "t"}), 1, true),
            (
                json!({"type": "allowed_tools", "mode": "required",
                    "tools": [{"type": "function", "name": "t"}]}),
                1,
                true,
            ),
            (
                json!({"type": "allowed_tools", "mode": "auto",
                    "tools": [{"type": "function", "name": "u"}]}),
                0,
                false,
            ),
        ] {
            let (_, _, _, offered, forced) = read(&json!("q"), &json!({"tool_choice": choice}));
            assert_eq!((offered, forced), (tools, must_call), "{choice}");
        }
    }
}
