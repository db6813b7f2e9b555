//! `oracle replay`: scenarios with their expected results, and scenarios that are refused.
//!
//! The tables are in `scenarios/`: each row has a name, a scenario as the program reads it, and
//! expectations. A turn is written as its signal (`-` for none), `consecutive_same_reason` and
//! `turns_without_signal`, and the cause, action and confidence of its fallback, if it had one.
//! Hints and guidance are compared by substrings, everything else as a whole.

use std::collections::BTreeMap;

use serde::Deserialize;
use serde_json::{Value, json};

use super::{Workspace, assert_transcript};

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Row {
    name: String,
    scenario: Value,
    expect: Expected,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Expected {
    code: i32,
    outcome: String,
    reason: Option<String>,
    answer: String,
    turns: Vec<String>,
    /// Each is part of some turn's hint.
    #[serde(default)]
    hints: Vec<String>,
    /// Number of events by type.
    #[serde(default)]
    events: BTreeMap<String, usize>,
    /// Payload of the first event by type.
    #[serde(default)]
    payloads: BTreeMap<String, Value>,
    /// The modes of started turns.
    modes: Option<Vec<String>>,
    /// By turn: each is part of one guidance, in this order, and there are no others.
    #[serde(default)]
    guidance: BTreeMap<usize, Vec<String>>,
}

fn rows(json: &str) {
    let rows: Vec<Row> = serde_json::from_str(json).unwrap();
    for Row {
        name,
        scenario,
        expect,
    } in rows
    {
        let (report, code) = play(&scenario, "replay --json -");
        expect.check(&name, &report, code);
    }
}

fn play(scenario: &Value, line: &str) -> (Value, i32) {
    let place = Workspace::new(&[]);
    let scenario = scenario.to_string();
    let output = place.oracle(line).stdin(scenario.as_bytes()).output();
    let said = String::from_utf8(output.stderr).unwrap();
    assert_eq!(said, "", "{scenario}");
    let report = serde_json::from_slice(&output.stdout).unwrap();
    (report, output.status.code().unwrap())
}

impl Expected {
    fn check(&self, name: &str, report: &Value, code: i32) {
        let turns = report["turns"].as_array().unwrap();
        let got = json!([
            code,
            report["outcome"],
            report["reason"],
            report["answer"],
            turns.iter().map(in_short).collect::<Vec<_>>(),
        ]);
        let want = json!([
            self.code,
            self.outcome,
            self.reason,
            self.answer,
            self.turns
        ]);
        assert_eq!(got, want, "{name}");
        let numbers = turns.iter().map(|turn| turn["turn"].as_u64().unwrap());
        assert!(numbers.eq(1..=turns.len() as u64), "{name}: {turns:?}");

        let hints: Vec<_> = turns
            .iter()
            .filter_map(|turn| turn["fallback"]["hint"].as_str())
            .collect();
        for part in &self.hints {
            let found = hints.iter().any(|hint| hint.contains(part));
            assert!(found, "{name}: {part:?} is in none of {hints:?}");
        }
        self.check_events(name, report["events"].as_array().unwrap());
    }

    fn check_events(&self, name: &str, events: &[Value]) {
        for (kind, count) in &self.events {
            assert_eq!(of(events, kind).count(), *count, "{name}: {kind}");
        }
        for (kind, payload) in &self.payloads {
            let first = of(events, kind).next().map(|event| &event["payload"]);
            assert_eq!(first, Some(payload), "{name}: {kind}");
        }
        let started: Vec<_> = of(events, "turn.started")
            .map(|event| &event["payload"])
            .collect();
        if let Some(modes) = &self.modes {
            let got: Vec<_> = started.iter().map(|turn| turn["mode"].clone()).collect();
            assert_eq!(got, json!(modes).as_array().unwrap().clone(), "{name}");
        }
        for (turn, parts) in &self.guidance {
            let notes = started[turn - 1]["guidance"].as_array().unwrap();
            let fits = |(note, part): (&Value, &String)| note.as_str().unwrap().contains(part);
            assert!(
                notes.len() == parts.len() && notes.iter().zip(parts).all(fits),
                "{name}: turn {turn} is told {notes:?}, not {parts:?}"
            );
        }
    }
}

fn of<'a>(events: &'a [Value], kind: &'a str) -> impl Iterator<Item = &'a Value> {
    events.iter().filter(move |event| event["type"] == kind)
}

fn in_short(turn: &Value) -> String {
    let mut text = format!(
        "{} {} {}",
        turn["signal"]["type"].as_str().unwrap_or("-"),
        turn["consecutive_same_reason"],
        turn["turns_without_signal"],
    );
    if let Value::Object(fallback) = &turn["fallback"] {
        for name in ["cause", "action"] {
            text += &format!(" {}", fallback[name].as_str().unwrap());
        }
        text += &format!(" {}", fallback["confidence"]);
    }
    text
}

#[test]
fn endings() {
    rows(include_str!("scenarios/endings.json"));
}

#[test]
fn continuations() {
    rows(include_str!("scenarios/continuations.json"));
}

#[test]
fn budgets() {
    rows(include_str!("scenarios/budgets.json"));
}

#[test]
fn loops() {
    rows(include_str!("scenarios/loops.json"));
}

#[test]
fn fallbacks() {
    rows(include_str!("scenarios/fallbacks.json"));
}

const MORE: &str = "One. <signal type='need_turn'><reason>more to see</reason></signal>";
const DONE: &str =
    "Two. <signal type='context_sufficient'><sources_found>1</sources_found></signal>";

#[test]
fn command_line_overrides_scenario_overrides_file() {
    let place = Workspace::new(&[("mine.toml", "[oracle]\nmax_turns = 1\n")]);
    let turns = json!([{ "reply": MORE }, { "reply": DONE }]);
    let scenario = |config: Value| json!({ "query": "why?", "config": config, "turns": turns });
    let rows = [
        ("nobody says", "", json!({}), "answered"),
        ("the file", " --config mine.toml", json!({}), "forced"),
        (
            "the scenario over the file",
            " --config mine.toml",
            json!({ "max_turns": 9 }),
            "answered",
        ),
        (
            "the scenario over the file, key with its section",
            " --config mine.toml",
            json!({ "oracle.max_turns": 9 }),
            "answered",
        ),
        (
            "a session's budget, which needs no section either",
            "",
            json!({ "session_max_tokens": 1 }),
            "forced",
        ),
        (
            "the command line over the scenario",
            " --max-turns 1",
            json!({ "max_turns": 9 }),
            "forced",
        ),
    ];
    for (name, options, config, outcome) in rows {
        let line = format!("replay --json -{options}");
        let scenario = scenario(config).to_string();
        let output = place.oracle(&line).stdin(scenario.as_bytes()).output();
        let report: Value = serde_json::from_slice(&output.stdout).unwrap();
        assert_eq!(report["outcome"], outcome, "{name}");
    }
}

#[test]
fn null_fields_equal_absent_ones() {
    let bare = json!({ "query": "why?", "turns": [
        { "reply": MORE, "tool_calls": [{ "name": "search", "success": true }] },
        { "reply": DONE },
    ]});
    let nulls = json!({ "name": null, "description": null, "query": "why?", "config": null, "turns": [
        { "reply": MORE, "tool_calls": [
            { "name": "search", "arguments": null, "success": true, "result": null }
        ]},
        { "reply": DONE, "tool_calls": null },
    ]});
    let part = |scenario| {
        let (report, code) = play(&scenario, "replay --json -");
        (report["outcome"].clone(), report["turns"].clone(), code)
    };
    let (outcome, turns, code) = part(bare);
    assert_eq!((&outcome, code), (&json!("answered"), 0));
    assert_eq!(part(nulls), (outcome, turns, code));
}

#[test]
fn replay_refuses_invalid_scenarios() {
    let files = [
        ("empty.json", ""),
        ("cut.json", r#"{"query": "why?", "turns": ["#),
        ("no-query.json", r#"{"turns": []}"#),
        ("no-turns.json", r#"{"query": "why?"}"#),
        ("blank-query.json", r#"{"query": " ", "turns": []}"#),
        (
            "unknown-field.json",
            r#"{"query": "why?", "turns": [], "turn": 1}"#,
        ),
        (
            "unknown-field-of-a-turn.json",
            r#"{"query": "why?", "turns": [{"replies": "no"}]}"#,
        ),
        (
            "unknown-field-of-a-call.json",
            r#"{"query": "why?", "turns": [{"tool_calls": [{"tool": "search"}]}]}"#,
        ),
        (
            "unknown-key.json",
            r#"{"query": "why?", "turns": [], "config": {"max_turn": 3}}"#,
        ),
        (
            "bad-value.json",
            r#"{"query": "why?", "turns": [], "config": {"max_turns": 0}}"#,
        ),
        (
            "list-as-value.json",
            r#"{"query": "why?", "turns": [], "config": {"max_turns": [3]}}"#,
        ),
    ];
    let place = Workspace::new(&files);
    let names = files.map(|(name, _)| name).into_iter();
    let plays = names
        .chain(["missing.json"])
        .map(|name| place.oracle("replay").arg(name));
    assert_transcript!("replay_refused", plays);
}

#[test]
fn text_output_prints_one_line_per_event() {
    let scenario = json!({ "query": "where is the parser?", "config": { "max_turns": 3 }, "turns": [
        { "reply": MORE, "tool_calls": [
            { "name": "search", "arguments": { "q": "parse" }, "success": true, "result": "src/a.rs:1" }
        ]},
        { "reply": "In a.rs." },
        { "reply": "It is in src/a.rs. <signal type='partial_answer'><missing>the tests</missing></signal>" },
    ]});
    let place = Workspace::new(&[("scenario.json", &scenario.to_string())]);
    let shown = place.oracle("replay scenario.json").transcript();
    insta::assert_snapshot!("replay_text", without_times(&shown));
}

fn without_times(text: &str) -> String {
    let mut parts = text.split("timestamp=\"");
    let mut shown = parts.next().unwrap().to_owned();
    for part in parts {
        let (_, rest) = part.split_once('"').unwrap();
        shown += "timestamp=[TIME]";
        shown += rest;
    }
    shown
}
