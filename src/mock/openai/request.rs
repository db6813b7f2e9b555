//! A request for chat completions, and the rules of that dialect.

use std::borrow::Cow;

use serde::Deserialize;
use serde_json::{Value, value::RawValue};

use crate::mock::{
    asked::{Asked, AskedTool, ending, is_blank, note, unanswered},
    breach::{Breach, Rule},
    demands,
};

#[derive(Deserialize)]
struct Body<'a> {
    #[serde(borrow, default)]
    model: Cow<'a, str>,
    #[serde(borrow)]
    messages: Vec<Message<'a>>,
    stream: Option<bool>,
    stream_options: Option<StreamOptions>,
    #[serde(borrow)]
    tools: Option<Vec<Tool<'a>>>,
    #[serde(borrow)]
    tool_choice: Option<&'a RawValue>,
}

#[derive(Deserialize)]
struct StreamOptions {
    include_usage: Option<bool>,
}

#[derive(Deserialize)]
struct Tool<'a> {
    #[serde(borrow)]
    function: ToolFunction<'a>,
}

#[derive(Deserialize)]
struct ToolFunction<'a> {
    #[serde(borrow)]
    name: Cow<'a, str>,
    #[serde(borrow)]
    parameters: Option<&'a RawValue>,
}

#[derive(Deserialize)]
struct Message<'a> {
    #[serde(borrow)]
    role: Cow<'a, str>,
    #[serde(borrow)]
    content: Option<&'a RawValue>,
    #[serde(borrow)]
    tool_calls: Option<Vec<Call<'a>>>,
    #[serde(borrow, default)]
    tool_call_id: Cow<'a, str>,
}

impl Message<'_> {
    fn calls(&self) -> &[Call<'_>] {
        self.tool_calls.as_deref().unwrap_or_default()
    }
}

#[derive(Deserialize)]
struct Call<'a> {
    #[serde(borrow)]
    id: Cow<'a, str>,
    #[serde(borrow)]
    function: CallFunction<'a>,
}

#[derive(Deserialize)]
struct CallFunction<'a> {
    #[serde(borrow, default)]
    name: Cow<'a, str>,
    #[serde(borrow)]
    arguments: Cow<'a, str>,
}

/// Reads a request.
pub(in crate::mock) fn read(bytes: &[u8]) -> Result<Asked<'_>, serde_json::Error> {
    let body: Body = serde_json::from_slice(bytes)?;
    let listed = body.tools.as_ref().map_or(0, Vec::len);
    let mut breaches = breaches(&body.messages, listed);
    if body.model.is_empty() {
        breaches.push(Rule::Model.broken("no model is named"));
    }
    for tool in body.tools.iter().flatten() {
        demands::name(&mut breaches, &tool.function.name);
    }
    let role = |role| move |message: &&Message| message.role == role;
    let none = body
        .tool_choice
        .is_some_and(|choice| choice.get() == r#""none""#);
    let tools = body.tools.filter(|_| !none).unwrap_or_default();
    Ok(Asked {
        model: body.model,
        stream: body.stream == Some(true),
        usage: body
            .stream_options
            .and_then(|options| options.include_usage)
            == Some(true),
        tools: tools
            .into_iter()
            .map(|tool| AskedTool {
                name: tool.function.name,
                schema: tool.function.parameters,
            })
            .collect(),
        replies: body.messages.iter().filter(role("assistant")).count(),
        user: body
            .messages
            .iter()
            .rev()
            .find(role("user"))
            .and_then(|message| message.content),
        breaches,
        tokens: bytes.len() as u64 / 4,
    })
}

/// The rules that a conversation breaks, messages counted from 1.
fn breaches(messages: &[Message], listed: usize) -> Vec<Breach> {
    let mut found = Vec::new();
    // Calls that wait for their results.
    let mut open: Vec<&str> = Vec::new();
    let mut called = false;
    for (at, message) in (1..).zip(messages) {
        if message.role != "tool" {
            unanswered(&mut found, at, &mut open);
        }
        match &*message.role {
            "system" | "developer" | "user" => {}
            "assistant" => {
                for call in message.calls() {
                    called = true;
                    open.push(&call.id);
                    demands::short_id(&mut found, &call.id);
                    demands::name(&mut found, &call.function.name);
                    if serde_json::from_str::<Value>(&call.function.arguments).is_err() {
                        let what = format!("the arguments of the call `{}` are no JSON", call.id);
                        note(&mut found, Rule::Arguments, at, &what);
                    }
                }
            }
            "tool" => match open.iter().position(|id| *id == message.tool_call_id) {
                Some(call) => {
                    open.swap_remove(call);
                }
                None => {
                    let id = &message.tool_call_id;
                    let what =
                        format!("the result `{id}` answers no call of the message before it");
                    note(&mut found, Rule::Unasked, at, &what);
                }
            },
            role => note(
                &mut found,
                Rule::Roles,
                at,
                &format!("there is no role `{role}`"),
            ),
        }
        if is_blank(message.content) && message.calls().is_empty() {
            note(&mut found, Rule::Empty, at, "its content is empty");
        }
    }
    unanswered(&mut found, messages.len() + 1, &mut open);
    let last = messages.last().map(|message| &*message.role);
    ending(&mut found, last, messages.len(), called, listed);
    found
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn broken(mut body: Value) -> Vec<String> {
        if body.get("model").is_none() {
            body["model"] = "m".into();
        }
        let text = body.to_string();
        let asked = read(text.as_bytes()).unwrap();
        asked.breaches.iter().map(ToString::to_string).collect()
    }

    fn user(text: &str) -> Value {
        json!({"role": "user", "content": text})
    }

    fn calls(ids: &[&str]) -> Value {
        let call = |id| json!({"id": id, "type": "function", "function": {"name": "t", "arguments": "{}"}});
        let calls: Vec<Value> = ids.iter().map(call).collect();
        json!({"role": "assistant", "content": null, "tool_calls": calls})
    }

    fn result(id: &str) -> Value {
        json!({"role": "tool", "tool_call_id": id, "content": "r"})
    }

    #[test]
    fn a_conversation_that_keeps_the_rules_breaks_none() {
        let tools = json!([{"type": "function", "function": {"name": "t"}}]);
        let messages = json!([
            {"role": "system", "content": "s"}, user("q"), calls(&["a", "b"]), result("b"), result("a"),
            {"role": "system", "content": "hint"}, {"role": "assistant", "content": "x"}, user("q"), user("q"),
        ]);
        assert_eq!(
            broken(json!({"messages": messages, "tools": tools})),
            [""; 0]
        );
    }

    #[test]
    fn every_rule_that_is_broken_is_named() {
        let tools = json!([{"type": "function", "function": {"name": "t"}}]);
        for (messages, want) in [
            (json!([]), vec!["form: there are no messages"]),
            (
                json!([user("q"), {"role": "assistant", "content": "x"}]),
                vec!["ending: message 2: the assistant's is the last one"],
            ),
            (
                json!([user("q"), calls(&["a", "b"]), result("a"), user("q")]),
                vec!["unanswered: message 4: the call `b` has no result before it"],
            ),
            (
                json!([user("q"), calls(&["a"])]),
                vec![
                    "unanswered: message 3: the call `a` has no result before it",
                    "ending: message 2: the assistant's is the last one",
                ],
            ),
            (
                json!([user("q"), calls(&["a"]), result("a"), result("a")]),
                vec!["unasked: message 4: the result `a` answers no call of the message before it"],
            ),
            (
                json!([user(" "), {"role": "critic", "content": "x"}]),
                vec![
                    "empty: message 1: its content is empty",
                    "roles: message 2: there is no role `critic`",
                ],
            ),
        ] {
            assert_eq!(broken(json!({"messages": messages, "tools": tools})), want);
        }
    }

    #[test]
    fn calls_need_tools_and_arguments_in_order_and_a_model() {
        let mut cut = calls(&["a"]);
        cut["tool_calls"][0]["function"]["arguments"] = "{\"q\":".into();
        let body = json!({"model": "", "messages": [user("q"), cut, result("a")]});
        let want = [
            "arguments: message 2: the arguments of the call `a` are no JSON",
            "tools: the history has calls, but no tools are listed",
            "model: no model is named",
        ];
        assert_eq!(broken(body), want);
    }

    #[test]
    fn ids_names_and_half_characters_are_looked_at() {
        let long = "x".repeat(41);
        let mut call = calls(&[&long]);
        let function = &mut call["tool_calls"][0]["function"];
        function["arguments"] = r#"{"q":"\ud83d"}"#.into();
        function["name"] = "a.b".into();
        let tools = json!([{"type": "function", "function": {"name": ""}}]);
        let body = json!({"messages": [user("q"), call, result(&long)], "tools": tools});
        let broken = broken(body);
        let rules: Vec<&str> = broken
            .iter()
            .filter_map(|told| told.split(':').next())
            .collect();
        assert_eq!(rules, ["ids", "names", "arguments", "names"]);
    }

    #[test]
    fn what_a_reply_depends_on_is_read() {
        let body = json!({"model": "m", "stream": true, "stream_options": {"include_usage": true},
            "tools": [{"type": "function", "function": {"name": "t", "parameters": {"a": 1}}}],
            "messages": [user("one"), {"role": "assistant", "content": "x"}, user("two"),
                {"role": "system", "content": "hint"}]})
        .to_string();
        let asked = read(body.as_bytes()).unwrap();
        assert!(asked.stream && asked.usage);
        assert_eq!((asked.replies, asked.tools.len()), (1, 1));
        assert_eq!(asked.user.map(RawValue::get), Some("\"two\""));
        let none = body.replace("\"stream\":true", "\"tool_choice\":\"none\"");
        let asked = read(none.as_bytes()).unwrap();
        assert!(asked.tools.is_empty() && !asked.stream);
    }
}
