//! Events for people: one line each.

use serde_json::Value;

use crate::model::Event;

/// Longest value of a field, in characters.
const LONGEST: usize = 60;

/// `seq turn type field=value …`, long values cut.
pub(super) fn event_line(event: &Event) -> String {
    let turn = event
        .turn
        .map_or_else(|| "-".to_owned(), |turn| (turn.0 + 1).to_string());
    let mut line = format!("{:>4} {turn:>3} {}", event.seq, event.kind);
    if let Value::Object(fields) = &event.payload {
        // Times differ from run to run and say little here.
        for (name, value) in fields.iter().filter(|(name, _)| *name != "timestamp") {
            if let Some(value) = short(value) {
                line.push_str(&format!(" {name}={value}"));
            }
        }
    }
    line
}

/// Plain values only; what is nested is for those who ask for JSON.
fn short(value: &Value) -> Option<String> {
    let text = match value {
        Value::String(text) => format!("{text:?}"),
        Value::Number(number) => number.to_string(),
        Value::Bool(switch) => switch.to_string(),
        Value::Null | Value::Array(_) | Value::Object(_) => return None,
    };
    if text.chars().count() <= LONGEST {
        return Some(text);
    }
    Some(text.chars().take(LONGEST).chain(['…']).collect())
}
