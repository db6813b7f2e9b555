//! Events as lines for snapshots: `seq kind key=value…`. They leave out values that vary by run,
//! prompt wording or training.

use serde_json::{Map, Value};

use crate::model::Event;

const LEFT_OUT: [&str; 7] = [
    "at",
    "timestamp",
    "not_before",
    "hash",
    "token_estimate",
    "warnings",
    "usage",
];

const TRAINED: [&str; 2] = ["confidence", "keywords_matched"];

/// Formats events, one per line.
pub fn lines(events: &[Event]) -> String {
    events.iter().map(line).collect::<Vec<_>>().join("\n")
}

/// Formats an event as one line.
pub fn line(event: &Event) -> String {
    let mut payload = event.payload.clone();
    leave_out(&mut payload);
    let fields = match payload {
        Value::Object(fields) => fields,
        Value::Null => Map::new(),
        other => Map::from_iter([("payload".to_owned(), other)]),
    };
    let turn = event.turn.map(|turn| format!(" turn={turn}"));
    let query = event.query.map(|query| format!(" query={query}"));
    let mut line = format!("{} {}", event.seq, event.kind);
    let row = event.row.map(|row| format!(" row={row}"));
    line.extend(query.into_iter().chain(turn).chain(row));
    let fields = fields.iter();
    line.extend(fields.map(|(name, value)| format!(" {name}={value}")));
    line
}

fn leave_out(value: &mut Value) {
    match value {
        Value::Object(fields) => {
            fields.retain(|name, _| !LEFT_OUT.contains(&name.as_str()));
            if fields.contains_key("query_type") {
                fields.retain(|name, _| !TRAINED.contains(&name.as_str()));
            }
            fields.values_mut().for_each(leave_out);
        }
        Value::Array(items) => items.iter_mut().for_each(leave_out),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::{QueryId, Seq, SessionName, Severity, Source, Timestamp, Turn};

    #[test]
    fn event_line_omits_fields_that_vary_between_runs() {
        let event = Event {
            seq: Seq(7),
            session: SessionName::new("s").unwrap(),
            query: Some(QueryId(2)),
            turn: Some(Turn(0)),
            row: Some(9),
            at: Timestamp::from_millis(1),
            kind: "llm.retried".into(),
            source: Source::Gateway,
            severity: Severity::Warning,
            payload: serde_json::json!({
                "attempt": 1, "not_before": "2026-01-01T00:00:00.000Z",
                "fault": { "code": "stall", "at": 5 }, "usage": {},
            }),
        };
        assert_eq!(
            line(&event),
            r#"7 llm.retried query=2 turn=0 row=9 attempt=1 fault={"code":"stall"}"#
        );
    }
}
