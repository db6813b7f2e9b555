//! `thread_search` in the program: a session finds the answer of another one.

use serde_json::{Value, json};

use super::{Workspace, ask::json_lines};

const DONE: &str = "<signal type='context_sufficient'><sources_found>1</sources_found></signal>";

fn script(turns: &Value) -> String {
    json!({ "turns": turns }).to_string()
}

fn results(answer: &Value) -> Vec<&str> {
    let events = answer["events"].as_array().unwrap().iter();
    let finished = events.filter(|event| event["type"] == "tool.finished");
    finished
        .map(|event| event["payload"]["content"].as_str().unwrap())
        .collect()
}

#[test]
fn session_finds_messages_of_another_session() {
    let said = format!("The deploy window is Tuesday. {DONE}");
    let find = json!({ "name": "find_tools", "arguments": { "query": "earlier conversations" } });
    let search = json!({ "name": "thread_search", "arguments": { "query": "deploy WINDOW" } });
    let other = json!({ "name": "thread_search",
        "arguments": { "query": "deploy window", "session": "b" } });
    let place = Workspace::new(&[
        ("a.json", &script(&json!([{ "reply": said }]))),
        (
            "b.json",
            &script(&json!([
                { "reply": "I look for a way.", "tool_calls": [find] },
                { "reply": "I look it up.", "tool_calls": [search] },
                { "reply": "And here?", "tool_calls": [other] },
                { "reply": format!("Tuesday. {DONE}") },
            ])),
        ),
    ]);
    let told = place
        .oracle("ask --session a --model scripted/a.json")
        .arg("When is the deploy window?")
        .output();
    assert_eq!((told.stderr, told.status.code()), (vec![], Some(0)));
    let output = place
        .oracle("ask --json --session b --model scripted/b.json")
        .arg("When was the deploy window again?")
        .output();
    assert_eq!((output.stderr, output.status.code()), (vec![], Some(0)));
    let answer = &json_lines(&output.stdout)[0];
    assert_eq!(answer["answer"], "Tuesday.");
    let [found, all, own] = results(answer)[..] else {
        panic!("{answer}");
    };
    assert!(found.contains("\n- thread_search: "), "{found}");
    let lines: Vec<&str> = all.lines().collect();
    let [answered, asked, "", "all found: 2 places, the latest first"] = lines[..] else {
        panic!("{all}");
    };
    for (line, end) in [
        (answered, "Oracle answered: The deploy window is Tuesday."),
        (asked, "the user asked: When is the deploy window?"),
    ] {
        assert!(
            line.starts_with("a, event ") && line.ends_with(end),
            "{line}"
        );
    }
    let nobody = "No message has all words of `deploy window` in the session b.";
    assert!(own.starts_with(nobody), "{own}");
}
