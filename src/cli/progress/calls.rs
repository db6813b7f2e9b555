//! A line for each tool call: its name, its main argument, what came back, and how long it took.

use std::{collections::HashMap, sync::Arc};

use serde_json::Value;

use crate::{
    cli::text::cut,
    model::{CallId, Timestamp, ToolCall, ToolResult, ToolStatus, time::Span},
};

/// The most informative arguments; if a call has none of them, its first one is shown.
const MAIN: [&str; 3] = ["query", "path", "note"];
const ARGUMENT: usize = 40;
const RESULT: usize = 60;

/// The calls in progress, with the times of their requests.
#[derive(Default)]
pub(super) struct Calls(HashMap<CallId, (Arc<ToolCall>, Timestamp)>);

impl Calls {
    pub(super) fn requested(&mut self, call: &Arc<ToolCall>, at: Timestamp) {
        self.0.insert(call.id.clone(), (Arc::clone(call), at));
    }

    /// Describes a call that has ended.
    pub(super) fn finished(&mut self, name: &str, result: &ToolResult, at: Timestamp) -> String {
        let call = self.0.remove(&result.call);
        let took = call.as_ref().map(|(_, from)| Span(at.since(*from)));
        let took = took.map(|took| format!(", {took}")).unwrap_or_default();
        let argument = call.and_then(|(call, _)| main_argument(&call));
        let argument = argument.unwrap_or_default();
        format!("• {name}{argument} → {}{took}", result_size(result))
    }
}

fn main_argument(call: &ToolCall) -> Option<String> {
    let arguments = call.parsed().ok()?;
    let named = MAIN.iter().find_map(|name| arguments.get(name)?.as_str());
    let text = named.or_else(|| arguments.as_object()?.values().find_map(Value::as_str));
    let text = text?.replace('\n', " ");
    Some(format!(" \"{}\"", cut(&text, ARGUMENT)))
}

/// How much came back, by the longest list of objects in the data or the lines of the text.
fn result_size(result: &ToolResult) -> String {
    let first = result.content.lines().next().unwrap_or_default();
    if result.status != ToolStatus::Ok {
        return cut(first, RESULT);
    }
    let lists = result.data.as_ref().and_then(Value::as_object);
    let lists = lists
        .into_iter()
        .flatten()
        .filter_map(|(name, list)| Some((list.as_array()?, name.as_str())))
        .filter(|(list, _)| list.iter().all(Value::is_object))
        .map(|(list, name)| (list.len(), name));
    let lines = || (result.content.lines().count(), "lines");
    let (count, noun) = lists.max().unwrap_or_else(lines);
    let noun = match count {
        1 => noun.trim_end_matches('s'),
        _ => noun,
    };
    format!("{count} {noun}")
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn line_names_the_argument_the_result_and_the_time() {
        for (arguments, status, content, data, line) in [
            (
                r#"{"query": "retry policy", "mode": "words"}"#,
                ToolStatus::Ok,
                "text",
                Some(json!({"absent": ["a", "b", "c"], "missing": [], "places": [{}, {}]})),
                "• find \"retry policy\" → 2 places, 12 ms",
            ),
            ("{}", ToolStatus::Ok, "one", None, "• find → 1 line, 12 ms"),
            (
                "not JSON",
                ToolStatus::Failed,
                "no such file\nat all",
                None,
                "• find → no such file, 12 ms",
            ),
        ] {
            let call = ToolCall {
                id: CallId::new("c"),
                name: "find".into(),
                arguments: arguments.into(),
            };
            let result = ToolResult {
                data,
                ..ToolResult::new(call.id.clone(), status, content)
            };
            let mut calls = Calls::default();
            calls.requested(&Arc::new(call), Timestamp::from_millis(1_000));
            let at = Timestamp::from_millis(1_012);
            assert_eq!(calls.finished("find", &result, at), line);
        }
    }
}
