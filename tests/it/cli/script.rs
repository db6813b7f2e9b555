//! `--model scripted/FILE`: scripts that run the real tools, and scripts that are refused.

use serde_json::{Value, json};

use super::{
    Workspace,
    ask::{FILES, QUESTION, json_lines},
    assert_transcript,
};

const MORE: &str = "Looking. <signal type='need_turn'><reason>more to see</reason></signal>";
const DONE: &str = "In src/parser.rs:4. <signal type='context_sufficient'><sources_found>1</sources_found></signal>";

/// One search, whose result comes from the real tool, and two answers.
fn script() -> String {
    let search = json!({ "name": "code_search", "arguments": { "query": "parse_invoice" },
        "success": false, "result": "not from here" });
    let turns = json!([
        { "reply": MORE, "tool_calls": [search] },
        { "chunks": DONE.split_inclusive(' ').collect::<Vec<_>>(), "delay_ms": 1 },
        { "reply": DONE.replace("In", "Again in") },
    ]);
    json!({ "turns": turns }).to_string()
}

fn place() -> Workspace {
    let place = Workspace::new(&FILES);
    std::fs::create_dir(place.path("my scripts")).unwrap();
    std::fs::write(place.path("my scripts/größe.json"), script()).unwrap();
    place
}

#[test]
fn script_runs_the_real_tools() {
    let place = place();
    let relative = "my scripts/größe.json".to_owned();
    let absolute = place.path(&relative).to_str().unwrap().to_owned();
    for path in [relative, absolute] {
        let model = format!("--model=scripted/{path}");
        let run = place.oracle("ask --json hi").arg(&model);
        let output = run.output();
        assert_eq!((output.stderr, output.status.code()), (vec![], Some(0)));
        let answer = &json_lines(&output.stdout)[0];
        assert_eq!(answer["answer"], "In src/parser.rs:4.", "{path}");
        assert_eq!(answer["citations"][0]["path"], "src/parser.rs", "{path}");
        let events = answer["events"].as_array().unwrap();
        let finished = |event: &&Value| event["type"] == "tool.finished";
        let found = &events.iter().find(finished).unwrap()["payload"]["content"];
        assert!(
            found.as_str().unwrap().contains("src/parser.rs:4"),
            "{found}"
        );
    }
}

#[test]
fn answer_without_evidence_is_unverified() {
    for (skipped, unverified) in [(1, json!(true)), (0, Value::Null)] {
        let place = Workspace::new(&FILES);
        let script: Value = serde_json::from_str(&script()).unwrap();
        let turns = &script["turns"].as_array().unwrap()[skipped..];
        std::fs::write(place.path("s.json"), json!({ "turns": turns }).to_string()).unwrap();
        let ask = place
            .oracle("ask --json --model scripted/s.json")
            .arg(QUESTION);
        let answer = &json_lines(&ask.output().stdout)[0];
        assert_eq!(answer["outcome"], "answered");
        assert_eq!(answer["unverified"], unverified, "{answer}");
        let end = answer["events"].as_array().unwrap().last().unwrap();
        assert_eq!(end["payload"]["unverified"], unverified, "{end}");
    }
}

#[test]
fn conversation_continues_at_its_position_in_the_script() {
    let place = place();
    let chain = "model.toml";
    let toml = "[model]\nchain = [\"scripted/my scripts/größe.json\"]\n";
    std::fs::write(place.path(chain), toml).unwrap();
    let lines = format!("{QUESTION}\nand again?\nand again?\n");
    let output = place
        .oracle("chat --json --config model.toml")
        .stdin(lines.as_bytes())
        .output();
    let answers = json_lines(&output.stdout);
    let told = answers
        .iter()
        .map(|answer| [&answer["outcome"], &answer["reason"], &answer["answer"]]);
    let exhausted: [Value; 3] = ["failed".into(), "script exhausted".into(), "".into()];
    let want = [
        ["answered".into(), Value::Null, "In src/parser.rs:4.".into()],
        [
            "answered".into(),
            Value::Null,
            "Again in src/parser.rs:4.".into(),
        ],
        exhausted,
    ];
    let told: Vec<[Value; 3]> = told.map(|told| told.map(Value::clone)).collect();
    assert_eq!(told, want);
    assert_eq!(output.status.code(), Some(1));
}

#[test]
fn failing_script_fails_over_to_the_next_model() {
    let broken = r#"{"turns": [{"faults": [{"fault": {"code": "gone", "permanent": true}}]}]}"#;
    let fine = json!({ "turns": [{ "reply": DONE }] }).to_string();
    let place = Workspace::new(&[("broken.json", broken), ("fine.json", &fine)]);
    let output = place
        .oracle("ask --model scripted/broken.json,scripted/fine.json hi")
        .output();
    let said = String::from_utf8(output.stdout).unwrap();
    assert_eq!(said, "In src/parser.rs:4.\n");
    let told = String::from_utf8(output.stderr).unwrap();
    let line = "oracle: scripted/broken.json failed (gone); went on with scripted/fine.json\n";
    assert_eq!((&*told, output.status.code()), (line, Some(0)));
}

#[test]
fn example_script_plays() {
    let example = concat!(env!("CARGO_MANIFEST_DIR"), "/examples/script.json");
    let place = Workspace::new(&[]);
    let model = format!("--model=scripted/{example}");
    let output = place.oracle("ask hi").arg(&model).output();
    let said = String::from_utf8(output.stdout).unwrap();
    assert!(said.contains("src/core/kernel/retry.rs"), "{said}");
    assert_eq!((output.stderr, output.status.code()), (vec![], Some(0)));
}

#[test]
fn invalid_script_stops_the_start() {
    let place = Workspace::new(&[
        ("empty.json", ""),
        ("cut.json", "{\n  \"turns\": [\n"),
        ("no-turns.json", "{}"),
        ("unknown.json", "{\"turns\": [\n  {\"replies\": \"no\"}\n]}"),
        (
            "both.json",
            "{\"turns\": [\n  {},\n  {\"reply\": \"a\", \"chunks\": [\"b\"]}\n]}",
        ),
        (
            "fault.json",
            "{\"turns\": [{\"faults\": [\n  {\"fault\": {\"detail\": \"no code\"}}\n]}]}",
        ),
        ("folder/in.json", "{}"),
    ]);
    let lines = [
        "ask --model scripted/missing.json hi",
        "ask --model scripted/folder hi",
        "ask --model scripted/empty.json hi",
        "ask --model scripted/cut.json hi",
        "ask --model scripted/no-turns.json hi",
        "ask --model scripted/unknown.json hi",
        "ask --model scripted/both.json hi",
        "ask --model scripted/fault.json hi",
        "chat --model offline,scripted/missing.json",
        "ask --model scripted hi",
        "config check --model scripted/unknown.json",
    ];
    assert_transcript!("script_refused", lines.map(|line| place.oracle(line)));
}
