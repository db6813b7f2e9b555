//! A request as far as the mock model looks into it, the same for both dialects.

use std::borrow::Cow;

use serde_json::{Value, value::RawValue};

use super::breach::{Breach, Rule};

/// What was asked.
#[derive(Debug, Default)]
pub(super) struct Asked<'a> {
    pub(super) model: Cow<'a, str>,
    pub(super) stream: bool,
    /// Whether a stream ends with what was used.
    pub(super) usage: bool,
    /// The tools that may be called.
    pub(super) tools: Vec<AskedTool<'a>>,
    /// How many replies stand in the conversation.
    pub(super) replies: usize,
    /// The content of the user's last message.
    pub(super) user: Option<&'a RawValue>,
    /// The rules that it breaks.
    pub(super) breaches: Vec<Breach>,
    /// What it counts for, estimated.
    pub(super) tokens: u64,
}

/// A tool of the request's list.
#[derive(Debug, Clone)]
pub(super) struct AskedTool<'a> {
    pub(super) name: Cow<'a, str>,
    /// What its arguments look like.
    pub(super) schema: Option<&'a RawValue>,
}

/// Whether a content says nothing.
pub(super) fn is_blank(content: Option<&RawValue>) -> bool {
    let Some(content) = content else { return true };
    let text = content.get();
    match text
        .strip_prefix('"')
        .and_then(|text| text.strip_suffix('"'))
    {
        // What white space there is in JSON's own notation does not make it something.
        Some(text) => text.replace("\\n", "").replace("\\t", "").trim().is_empty(),
        None => matches!(text, "null" | "[]"),
    }
}

/// The text of a content, whether it stands by itself or in parts.
pub(super) fn text_of(content: &RawValue) -> String {
    match serde_json::from_str(content.get()) {
        Ok(Value::String(text)) => text,
        Ok(Value::Array(parts)) => {
            let texts = parts.iter().filter_map(|part| part["text"].as_str());
            texts.collect::<Vec<_>>().join("\n")
        }
        _ => String::new(),
    }
}

/// Arguments that a tool may accept: something for each of those that it demands.
pub(super) fn arguments(schema: Option<&RawValue>) -> String {
    let schema = schema.and_then(|schema| serde_json::from_str::<Value>(schema.get()).ok());
    let schema = schema.unwrap_or_default();
    let demanded = schema["required"].as_array().into_iter().flatten();
    let made = demanded.filter_map(Value::as_str).map(|name| {
        let property = &schema["properties"][name];
        (name.to_owned(), example(property))
    });
    Value::Object(made.collect()).to_string()
}

fn example(property: &Value) -> Value {
    if let Some(first) = property["enum"].as_array().and_then(|all| all.first()) {
        return first.clone();
    }
    let kind = match &property["type"] {
        Value::Array(kinds) => kinds.first().and_then(Value::as_str),
        kind => kind.as_str(),
    };
    match kind {
        Some("integer" | "number") => property.get("minimum").cloned().unwrap_or_else(|| 1.into()),
        Some("boolean") => true.into(),
        Some("array") => Value::Array(vec![example(&property["items"])]),
        Some("object") => Value::Object(serde_json::Map::new()),
        _ => "mock".into(),
    }
}

/// Notes a rule that a message breaks.
pub(super) fn note(breaches: &mut Vec<Breach>, rule: Rule, at: usize, what: &str) {
    breaches.push(rule.broken(format!("message {at}: {what}")));
}

/// Notes calls that have no result before this message.
pub(super) fn unanswered(
    breaches: &mut Vec<Breach>,
    at: usize,
    open: &mut Vec<impl std::fmt::Display>,
) {
    for id in open.drain(..) {
        let what = format!("the call `{id}` has no result before it");
        note(breaches, Rule::Unanswered, at, &what);
    }
}

/// Notes what is wrong with a conversation as a whole: the role of its last message, how many messages there
/// are, whether it has calls, and how many tools are listed.
pub(super) fn ending(
    breaches: &mut Vec<Breach>,
    last: Option<&str>,
    count: usize,
    called: bool,
    listed: usize,
) {
    match last {
        None => breaches.push(Rule::Form.broken("there are no messages")),
        Some("assistant") => {
            let what = "the assistant's is the last one";
            note(breaches, Rule::Ending, count, what);
        }
        Some(_) => {}
    }
    if called && listed == 0 {
        breaches.push(Rule::Tools.broken("the history has calls, but no tools are listed"));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn raw(text: &str) -> Box<RawValue> {
        RawValue::from_string(text.to_owned()).unwrap()
    }

    #[test]
    fn arguments_fit_the_schema() {
        let schema = r#"{"required": ["query", "limit", "kind", "all", "paths", "deep", "x"],
            "properties": {"query": {"type": "string"}, "limit": {"type": "integer", "minimum": 3},
            "kind": {"enum": ["a", "b"]}, "all": {"type": "boolean"}, "deep": {"type": ["object", "null"]},
            "paths": {"type": "array", "items": {"type": "string"}}, "free": {"type": "string"}}}"#;
        let want = r#"{"all":true,"deep":{},"kind":"a","limit":3,"paths":["mock"],"query":"mock","x":"mock"}"#;
        let made: Value = serde_json::from_str(&arguments(Some(&raw(schema)))).unwrap();
        assert_eq!(made, serde_json::from_str::<Value>(want).unwrap());
        assert_eq!(arguments(None), "{}");
    }

    #[test]
    fn a_content_without_a_word_is_blank() {
        for (text, blank) in [
            (r#""""#, true),
            (r#"" \n""#, true),
            ("[]", true),
            (r#""a""#, false),
            (r#"[{"type":"text","text":"a"}]"#, false),
        ] {
            assert_eq!(is_blank(Some(&raw(text))), blank, "{text}");
        }
        assert!(is_blank(None));
        assert_eq!(
            text_of(&raw(r#"[{"text":"a"},{"x":1},{"text":"b"}]"#)),
            "a\nb"
        );
    }
}
