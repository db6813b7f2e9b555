//! Status lines, record by record.

use serde_json::{Value, json};

use super::*;
use crate::{
    model::{
        CallId, QueryClassification, QueryId, QueryType, SessionKey, SessionName, Timestamp,
        record::codec,
    },
    tool::CallStep,
};

/// A record with these fields; the others have usual values.
fn record(kind: &str, fields: &Value) -> Record {
    let mut payload = json!({
        "text": "why?", "limits": { "max_turns": 5 }, "model": "p/m",
        "classification": QueryClassification::new(QueryType::Code, 0.9, Vec::new()),
        "prompt": { "hash": "h", "segments_included": [], "token_estimate": 1 },
        "attempt": 1, "mode": "normal", "cause": "recovery", "call": "c", "name": "n",
        "id": "c", "status": "ok", "content": "x", "child": "s.1.1", "scope": "all",
        "max_tokens": null, "ending": "cancelled", "number": 1, "part": "history",
        "messages": { "from": 0, "to": 2 }, "summary": "s", "usage": {}, "before": 1,
        "fault": { "class": "permanent", "code": "cut", "detail": "no" },
        "from": "p/m", "to": "p/m", "not_before": "1970-01-01T00:00:04Z",
    });
    for (name, value) in fields.as_object().into_iter().flatten() {
        payload[name] = value.clone();
    }
    let line = json!({
        "v": codec::VERSION, "query": 1, "turn": 2, "payload": payload,
    });
    let line = line.to_string();
    let encoded = codec::Encoded::read(&line).unwrap();
    encoded.decode(Timestamp::default(), kind, None).unwrap()
}

#[test]
fn status_line_describes_each_event() {
    let before = json!({ "used": 91_000, "limit": 1_128_000 });
    let model = json!({ "model": "p/m" });
    let named = |name: &str| json!({ "name": name });
    let retried = |class: &str, code: &str| {
        let fault = json!({ "class": class, "code": code, "detail": "no" });
        let not_before = "1970-01-01T00:00:04Z";
        json!({ "attempt": 1, "model": "openai/m", "fault": fault, "not_before": not_before })
    };
    for (kind, payload, said) in [
        (
            "query.accepted",
            Value::Null,
            Some("classifying the question"),
        ),
        ("query.classified", Value::Null, Some("question type: code")),
        (
            "turn.started",
            model.clone(),
            Some("asking p/m · turn 3 of 5"),
        ),
        (
            "turn.restarted",
            model,
            Some("asking p/m again · turn 3 of 5"),
        ),
        (
            "tool.started",
            named("file_read"),
            Some("reading files · turn 3 of 5"),
        ),
        (
            "tool.started",
            named("repo_map"),
            Some("mapping the project · turn 3 of 5"),
        ),
        (
            "tool.started",
            named("history_search"),
            Some("searching the history · turn 3 of 5"),
        ),
        (
            "tool.started",
            named("note_search"),
            Some("searching the notes · turn 3 of 5"),
        ),
        (
            "tool.started",
            named("note_read"),
            Some("reading notes · turn 3 of 5"),
        ),
        (
            "tool.started",
            named("note_write"),
            Some("writing a note · turn 3 of 5"),
        ),
        (
            "tool.started",
            named("weather"),
            Some("running weather · turn 3 of 5"),
        ),
        (
            "approval.requested",
            named("weather"),
            Some("waiting for approval of weather · turn 3 of 5"),
        ),
        (
            "budget.context.compacting",
            json!({ "before": before }),
            Some("compacting the conversation (≈ 91,000 of 1,128,000 tokens) · turn 3 of 5"),
        ),
        (
            "budget.context.compacted",
            json!({ "after": 912 }),
            Some("the conversation was compacted to ≈ 912 tokens · turn 3 of 5"),
        ),
        (
            "budget.context.compacted",
            json!({ "after": 912, "cut": { "class": "permanent", "code": "cut", "detail": "no" } }),
            Some("the oldest messages were removed: ≈ 912 tokens are left · turn 3 of 5"),
        ),
        (
            "budget.context.compaction_failed",
            Value::Null,
            Some("the conversation could not be compacted · turn 3 of 5"),
        ),
        (
            "llm.waiting",
            json!({ "attempt": 1, "model": "openai/m", "reason": "rate_limit",
                    "until": "1970-01-01T00:00:02.500Z" }),
            Some("waiting for openai: rate limit, 3 s · turn 3 of 5"),
        ),
        (
            "llm.waiting",
            json!({ "attempt": 1, "model": "openai/m", "reason": "other_calls" }),
            Some("waiting for openai: other calls · turn 3 of 5"),
        ),
        (
            "llm.retried",
            retried("unavailable", "connect"),
            Some("waiting for openai: server unavailable, 4 s · turn 3 of 5"),
        ),
        (
            "llm.retried",
            retried("unavailable", "rate_limited"),
            Some("waiting for openai: rate limit, 4 s · turn 3 of 5"),
        ),
        (
            "llm.retried",
            retried("retryable", "cut"),
            Some("waiting to retry · turn 3 of 5"),
        ),
        (
            "llm.admitted",
            json!({ "attempt": 1, "waited_ms": 3_000 }),
            Some("asking · turn 3 of 5"),
        ),
        (
            "llm.failed_over",
            json!({ "to": "p/other" }),
            Some("asking p/other instead · turn 3 of 5"),
        ),
        ("tool.finished", named("file_read"), None),
    ] {
        let status = status(&record(kind, &payload), Some(5));
        assert_eq!(
            status.map(|status| status.to_string()).as_deref(),
            said,
            "{kind}"
        );
    }
    let unlimited = status(&record("llm.retried", &Value::Null), None);
    assert_eq!(unlimited.unwrap().to_string(), "waiting to retry · turn 3");
}

#[test]
fn step_of_a_call_is_shown_with_what_is_known() {
    for (done, total, message, said) in [
        (3.0, None, None, "running s__t: 3"),
        (0.5, Some(2.0), None, "running s__t: 0.5 of 2"),
        (
            7.0,
            Some(90.0),
            Some("reading"),
            "running s__t: 7 of 90, reading",
        ),
    ] {
        let call = CallProgressed {
            session: SessionKey::local(SessionName::new("s").unwrap()),
            query: QueryId(1),
            call: CallId::new("c"),
            name: "s__t".to_owned(),
            step: CallStep {
                done,
                total,
                message: message.map(str::to_owned),
            },
        };
        assert_eq!(step(&call).to_string(), said);
    }
}
