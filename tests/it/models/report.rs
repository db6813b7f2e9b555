//! Signals by a tool, against a strict server in each dialect.

use std::time::Duration;

use oracle_agent::llm::Dialect;
use serde_json::{Value, json};

use super::play::{looking, strict_server};

fn calls(text: &str, tools: &[(&str, Value)]) -> Value {
    let call = |(name, arguments): &(&str, Value)| json!({"name": name, "arguments": arguments});
    json!({"reply": text, "tool_calls": tools.iter().map(call).collect::<Vec<_>>()})
}

fn question(turns: &[Value]) -> String {
    let script = json!({ "turns": turns });
    format!("mock: {script} Where is the parser implemented in this repository?")
}

#[tokio::test]
async fn a_silent_model_can_report_its_status_in_every_dialect() {
    let look = ("look", json!({"at": "a"}));
    let need = json!({"type": "need_turn", "reason": "to read it", "confidence": 0.9});
    let done = json!({"type": "context_sufficient", "sources_found": 1, "confidence": 0.9});
    let silent = [
        calls("", std::slice::from_ref(&look)),
        json!({"reply": "In a."}),
        json!({"reply": ""}),
    ];
    let reporting = [
        calls("", &[look, ("report_status", need)]),
        calls("In a.", &[("report_status", done)]),
    ];
    for dialect in Dialect::ALL {
        let mock = strict_server().await;
        let oracle = looking(dialect, &mock, "a").start().await.unwrap();
        let session = oracle.session("s").unwrap();
        for (query, turns) in [&silent[..], &silent, &reporting, &reporting]
            .into_iter()
            .enumerate()
        {
            let answer = session.ask(&question(turns)).await.unwrap();
            let end = (answer.outcome.name(), &*answer.text, answer.turns as usize);
            assert_eq!(
                end,
                ("answered", "In a.", turns.len()),
                "{dialect:?} {query}"
            );
            assert!(!answer.unverified, "{dialect:?} {query}");
            let sent = mock.requests().last().unwrap().json().to_string();
            assert_eq!(
                sent.contains("report_status"),
                query > 1,
                "{dialect:?} {query}"
            );
        }
        assert_eq!(mock.requests().last().unwrap().status, 200, "{dialect:?}");
        oracle.shut_down(Duration::from_secs(5)).await;
    }
}
