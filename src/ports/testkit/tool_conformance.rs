//! Conformance of a [`Tool`], checked by its schema and one working call. Each function panics at a
//! violation.

#[cfg(test)]
mod tests;

use std::time::Duration;

use serde_json::{Map, Number, Value, json};

use super::tool_context;
use crate::{
    model::splitmix,
    tool::{Tool, ToolError, ToolOutput, registry::is_name},
};

/// Longest time of a cancelled call.
const PROMPTLY: Duration = Duration::from_secs(2);

/// A tool and its expectations.
pub struct Subject<'a> {
    /// The tool.
    pub tool: &'a dyn Tool,
    /// Arguments of a working call, with the largest result.
    pub works: Value,
    /// A path on the host that no result may show.
    pub host_path: &'a str,
    /// Most bytes of a result or error.
    pub max_output: usize,
}

/// Runs all checks.
///
/// # Panics
/// If the tool does not conform.
pub async fn conforms(subject: &Subject<'_>) {
    declares_itself(subject);
    answers_within_bounds(subject).await;
    tells_what_is_wrong_with_arguments(subject).await;
    ends_when_cancelled(subject).await;
    survives_any_arguments(subject, 200).await;
}

/// Checks that the declaration is stable and complete.
///
/// # Panics
/// If it is not.
pub fn declares_itself(subject: &Subject<'_>) {
    let spec = subject.tool.spec();
    assert_eq!(spec, subject.tool.spec(), "the spec changes");
    assert!(is_name(&spec.name), "bad name {:?}", spec.name);
    let first = spec.first_sentence();
    let is_sentence = first.ends_with('.') && first.len() > 10;
    assert!(is_sentence, "no first sentence: {first:?}");
    let schema = &spec.schema;
    assert_eq!(schema["type"], "object", "the schema is no object schema");
    assert_eq!(
        schema["additionalProperties"], false,
        "unknown arguments are let in"
    );
    for (name, property) in properties(subject) {
        let words = property["description"].as_str().unwrap_or_default();
        let is_documented = !words.trim().is_empty();
        assert!(is_documented, "the argument {name} is not documented");
        let has_type = property.get("type").is_some();
        assert!(has_type, "the argument {name} has no type");
    }
    for name in required(subject) {
        let property = schema["properties"].get(name);
        assert!(property.is_some(), "{name} is required but not declared");
    }
}

/// Checks that the working call succeeds, twice with the same result and within bounds.
///
/// # Panics
/// If it does not.
pub async fn answers_within_bounds(subject: &Subject<'_>) {
    let first = call(subject, subject.works.clone()).await;
    assert!(first.is_ok(), "the call that works does not: {first:?}");
    let second = call(subject, subject.works.clone()).await;
    assert_eq!(first, second, "the same call gives another result");
}

/// Checks that unknown, missing and mistyped fields are reported to the model.
///
/// # Panics
/// If they are not.
pub async fn tells_what_is_wrong_with_arguments(subject: &Subject<'_>) {
    let mut wrong = vec![with(subject, "no_such_argument", json!(1))];
    for (name, property) in properties(subject) {
        let declared = &property["type"];
        for (kind, value) in [
            ("string", json!("words")),
            ("integer", json!(3)),
            ("number", json!(3.5)),
            ("boolean", json!(true)),
            ("array", json!([1, "a"])),
            ("object", json!({"a": 1})),
        ] {
            let fits = declared == kind || (declared == "number" && kind == "integer");
            if !fits {
                wrong.push(with(subject, &name, value));
            }
        }
    }
    for name in required(subject) {
        let mut fields = works(subject);
        fields.remove(name);
        wrong.push(Value::Object(fields));
    }
    wrong.extend([json!(null), json!([]), json!("words"), json!(7)]);
    for arguments in wrong {
        let result = call(subject, arguments.clone()).await;
        let is_told = matches!(result, Err(ToolError::ForModel(_)));
        assert!(is_told, "{arguments}: {result:?}");
    }
}

/// Checks that a call ends when cancelled, before its start or while it runs.
///
/// # Panics
/// If it does not.
pub async fn ends_when_cancelled(subject: &Subject<'_>) {
    let context = tool_context();
    let mut running = subject.tool.call(subject.works.clone(), context.clone());
    let begun = futures_util::poll!(&mut running);
    context.cancelled.cancel();
    if begun.is_pending() {
        let ended = tokio::time::timeout(PROMPTLY, running).await;
        assert!(ended.is_ok(), "a cancelled call goes on");
    }
    let never_begun = subject.tool.call(subject.works.clone(), context);
    let ended = tokio::time::timeout(PROMPTLY, never_begun).await;
    let is_refused = matches!(ended, Ok(Err(_)));
    assert!(is_refused, "a call cancelled before it began: {ended:?}");
}

/// Checks that odd arguments, the same in each run, break neither tool nor bounds.
///
/// # Panics
/// If they do.
pub async fn survives_any_arguments(subject: &Subject<'_>, rounds: u32) {
    let names: Vec<String> = properties(subject).map(|(name, _)| name).collect();
    let mut dice = ArgumentGenerator(1);
    for _ in 0..rounds {
        let mut fields = works(subject);
        for name in &names {
            match dice.below(4) {
                0 => drop(fields.remove(name)),
                1 => drop(fields.insert(name.clone(), dice.value())),
                2 => drop(fields.insert(name.clone(), dice.text().into())),
                _ => {}
            }
        }
        call(subject, Value::Object(fields)).await.ok();
    }
}

async fn call(subject: &Subject<'_>, arguments: Value) -> Result<ToolOutput, ToolError> {
    let result = subject.tool.call(arguments.clone(), tool_context()).await;
    let broken = matches!(result, Err(ToolError::Internal(_)));
    assert!(!broken, "{arguments} broke the tool: {result:?}");
    let said = result
        .as_ref()
        .map_or_else(ToString::to_string, |output| output.text.clone());
    assert!(!said.trim().is_empty(), "{arguments}: nothing was said");
    let bytes = said.len();
    assert!(bytes <= subject.max_output, "{arguments}: {bytes} bytes");
    let shows_host = said.contains(subject.host_path);
    assert!(!shows_host, "{arguments}: shows the host: {said}");
    result
}

fn properties(subject: &Subject<'_>) -> impl Iterator<Item = (String, Value)> {
    let properties = subject.tool.spec().schema["properties"]
        .as_object()
        .cloned();
    properties.unwrap_or_default().into_iter()
}

fn required<'a>(subject: &Subject<'a>) -> impl Iterator<Item = &'a str> {
    let required = subject.tool.spec().schema["required"].as_array();
    let required = required.into_iter().flatten();
    required.map(|name| name.as_str().unwrap_or_default())
}

fn works(subject: &Subject<'_>) -> Map<String, Value> {
    subject.works.as_object().cloned().unwrap_or_default()
}

fn with(subject: &Subject<'_>, name: &str, value: Value) -> Value {
    let mut fields = works(subject);
    fields.insert(name.to_owned(), value);
    Value::Object(fields)
}

/// Deterministic numbers (xorshift).
struct ArgumentGenerator(u64);

impl ArgumentGenerator {
    fn next(&mut self) -> u64 {
        self.0 = splitmix(self.0);
        self.0
    }

    fn below(&mut self, end: u64) -> u64 {
        self.next() % end
    }

    fn value(&mut self) -> Value {
        match self.below(8) {
            0 => Value::Null,
            1 => Value::Bool(self.below(2) == 0),
            2 => self.below(500).into(),
            3 => self.next().into(),
            4 => (-1).into(),
            5 => Number::from_f64(1.5e300).into(),
            6 => json!([self.text(), null]),
            _ => json!({ "a": self.text() }),
        }
    }

    fn text(&mut self) -> String {
        const PIECES: [&str; 20] = [
            "a", "fn ", "..", "/", "\\", "*", "[", "(", "{9}", "\0", "\n", "é", "会话", "🦀",
            "\u{202e}", "~", "$", "C:", "./", "words",
        ];
        let length = self.below(6);
        (0..length)
            .map(|_| PIECES[self.below(PIECES.len() as u64) as usize])
            .collect()
    }
}
