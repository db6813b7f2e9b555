//! A request for a message, and the rules of that dialect.

use std::borrow::Cow;

use serde::Deserialize;
use serde_json::{Map, Value, value::RawValue};

use crate::mock::{
    asked::{Asked, AskedTool, ending, is_blank, note, unanswered},
    breach::{Breach, Rule},
    demands,
};

#[derive(Deserialize)]
struct Body<'a> {
    #[serde(borrow, default)]
    model: Cow<'a, str>,
    max_tokens: Option<u64>,
    #[serde(borrow)]
    messages: Vec<Message<'a>>,
    stream: Option<bool>,
    #[serde(borrow)]
    tools: Option<Vec<Tool<'a>>>,
    #[serde(borrow)]
    tool_choice: Option<Choice<'a>>,
}

#[derive(Deserialize)]
struct Choice<'a> {
    #[serde(borrow, rename = "type")]
    kind: Cow<'a, str>,
}

#[derive(Deserialize)]
struct Tool<'a> {
    #[serde(borrow)]
    name: Cow<'a, str>,
    #[serde(borrow)]
    input_schema: Option<&'a RawValue>,
}

#[derive(Deserialize)]
struct Message<'a> {
    #[serde(borrow)]
    role: Cow<'a, str>,
    #[serde(borrow)]
    content: Option<&'a RawValue>,
}

#[derive(Deserialize)]
struct Block<'a> {
    #[serde(borrow, rename = "type")]
    kind: Cow<'a, str>,
    #[serde(borrow)]
    text: Option<&'a RawValue>,
    #[serde(borrow, default)]
    id: Cow<'a, str>,
    #[serde(borrow, default)]
    name: Cow<'a, str>,
    #[serde(borrow)]
    input: Option<&'a RawValue>,
    #[serde(borrow, default)]
    tool_use_id: Cow<'a, str>,
}

/// Reads a request.
pub(in crate::mock) fn read(bytes: &[u8]) -> Result<Asked<'_>, serde_json::Error> {
    let body: Body = serde_json::from_slice(bytes)?;
    let listed = body.tools.as_ref().map_or(0, Vec::len);
    let mut breaches = breaches(&body.messages, listed);
    if body.model.is_empty() {
        breaches.push(Rule::Model.broken("no model is named"));
    }
    if body.max_tokens.is_none_or(|most| most == 0) {
        breaches.push(Rule::Form.broken("`max_tokens` is missing"));
    }
    for tool in body.tools.iter().flatten() {
        demands::name(&mut breaches, &tool.name);
    }
    demands::marks(&mut breaches, bytes);
    let role = |role| move |message: &&Message| message.role == role;
    let none = body.tool_choice.is_some_and(|choice| choice.kind == "none");
    let tools = body.tools.filter(|_| !none).unwrap_or_default();
    Ok(Asked {
        model: body.model,
        stream: body.stream == Some(true),
        usage: true,
        tools: tools
            .into_iter()
            .map(|tool| AskedTool {
                name: tool.name,
                schema: tool.input_schema,
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
    // Calls of the message before.
    let mut open: Vec<String> = Vec::new();
    let mut called = false;
    for (at, message) in (1_usize..).zip(messages) {
        let before = at.checked_sub(2).and_then(|at| messages.get(at));
        match (&*message.role, before) {
            ("user" | "assistant", Some(before)) if before.role == message.role => {
                let what = format!("it follows another one of the role `{}`", message.role);
                note(&mut found, Rule::Roles, at, &what);
            }
            ("assistant", None) => note(
                &mut found,
                Rule::Roles,
                at,
                "the first one is not the user's",
            ),
            ("user" | "assistant", _) => {}
            (role, _) => note(
                &mut found,
                Rule::Roles,
                at,
                &format!("there is no role `{role}`"),
            ),
        }
        if is_blank(message.content) {
            note(&mut found, Rule::Empty, at, "its content is empty");
        }
        let asked = blocks(&mut found, at, message, &mut open);
        unanswered(&mut found, at, &mut open);
        called |= !asked.is_empty();
        open = asked;
    }
    unanswered(&mut found, messages.len() + 1, &mut open);
    let last = messages.last().map(|message| &*message.role);
    ending(&mut found, last, messages.len(), called, listed);
    found
}

/// Looks at the blocks of a message: results close calls, calls are given back.
fn blocks(
    found: &mut Vec<Breach>,
    at: usize,
    message: &Message,
    open: &mut Vec<String>,
) -> Vec<String> {
    let mut asked = Vec::new();
    let Some(content) = message
        .content
        .map(RawValue::get)
        .filter(|content| content.starts_with('['))
    else {
        return asked;
    };
    let blocks: Vec<Block> = match serde_json::from_str(content) {
        Ok(blocks) => blocks,
        Err(error) => {
            note(found, Rule::Form, at, &error.to_string());
            return asked;
        }
    };
    let mut other = false;
    for block in &blocks {
        match &*block.kind {
            "tool_result" => {
                let id = &block.tool_use_id;
                match open.iter().position(|call| *call == **id) {
                    Some(call) if message.role == "user" => {
                        open.swap_remove(call);
                    }
                    _ => {
                        let what =
                            format!("the result `{id}` answers no call of the message before it");
                        note(found, Rule::Unasked, at, &what);
                    }
                }
                if other {
                    let what = format!("the result `{id}` does not stand before everything else");
                    note(found, Rule::Roles, at, &what);
                }
            }
            "tool_use" => {
                demands::plain_id(found, &block.id);
                demands::name(found, &block.name);
                let whole = |input: &&RawValue| {
                    serde_json::from_str::<Map<String, Value>>(input.get()).is_ok()
                };
                if block.input.filter(whole).is_none() {
                    let what = format!("the input of the call `{}` is no object", block.id);
                    note(found, Rule::Arguments, at, &what);
                }
                asked.push(block.id.to_string());
            }
            "text" if is_blank(block.text) => note(found, Rule::Empty, at, "a text of it is empty"),
            _ => {}
        }
        other |= block.kind != "tool_result";
    }
    asked
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn broken(mut body: Value) -> Vec<String> {
        for (key, value) in [("model", json!("m")), ("max_tokens", json!(9))] {
            if body.get(key).is_none() {
                body[key] = value;
            }
        }
        let text = body.to_string();
        let asked = read(text.as_bytes()).unwrap();
        asked.breaches.iter().map(ToString::to_string).collect()
    }

    fn user(text: &str) -> Value {
        json!({"role": "user", "content": text})
    }

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
    fn a_conversation_that_keeps_the_rules_breaks_none() {
        let mut with_text = results(&["b", "a"]);
        let text = json!({"type": "text", "text": "and now?"});
        with_text["content"].as_array_mut().unwrap().push(text);
        let messages = json!([
            user("q"),
            calls(&["a", "b"]),
            with_text,
            calls(&["c"]),
            results(&["c"])
        ]);
        let body = json!({"messages": messages, "tools": [{"name": "t", "input_schema": {}}]});
        assert_eq!(broken(body), [""; 0]);
    }

    #[test]
    fn every_rule_that_is_broken_is_named() {
        let late = json!({"role": "user", "content": [{"type": "text", "text": "x"},
            {"type": "tool_result", "tool_use_id": "a"}]});
        for (messages, want) in [
            (json!([]), vec!["form: there are no messages"]),
            (
                json!([calls(&[]), user("q"), user("q"), {"role": "system", "content": "x"}]),
                vec![
                    "roles: message 1: the first one is not the user's",
                    "roles: message 3: it follows another one of the role `user`",
                    "roles: message 4: there is no role `system`",
                ],
            ),
            (
                json!([user(""), {"role": "assistant", "content": [{"type": "text", "text": " "}]}]),
                vec![
                    "empty: message 1: its content is empty",
                    "empty: message 2: a text of it is empty",
                    "ending: message 2: the assistant's is the last one",
                ],
            ),
            (
                json!([user("q"), calls(&["a", "b"]), results(&["a", "c"])]),
                vec![
                    "unasked: message 3: the result `c` answers no call of the message before it",
                    "unanswered: message 3: the call `b` has no result before it",
                ],
            ),
            (
                json!([user("q"), calls(&["a"]), late]),
                vec!["roles: message 3: the result `a` does not stand before everything else"],
            ),
        ] {
            let body = json!({"messages": messages, "tools": [{"name": "t"}]});
            assert_eq!(broken(body), want);
        }
    }

    #[test]
    fn ids_names_and_marks_are_looked_at() {
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
        let broken = broken(body);
        let rules: Vec<&str> = broken
            .iter()
            .filter_map(|told| told.split(':').next())
            .collect();
        assert_eq!(rules, ["ids", "names", "cache"]);
    }

    #[test]
    fn calls_need_tools_and_an_object_and_a_model_and_a_bound() {
        let mut call = calls(&["a"]);
        call["content"][1]["input"] = "{}".into();
        let body =
            json!({"model": "", "max_tokens": 0, "messages": [user("q"), call, results(&["a"])]});
        let want = [
            "arguments: message 2: the input of the call `a` is no object",
            "tools: the history has calls, but no tools are listed",
            "model: no model is named",
            "form: `max_tokens` is missing",
        ];
        assert_eq!(broken(body), want);
    }
}
