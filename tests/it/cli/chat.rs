//! `oracle chat` through a pipe: several questions in one session.

use serde_json::Value;

use super::{
    Workspace,
    ask::{FILES, QUESTION, cited, json_lines, numbered},
    assert_transcript,
};

const NOT_THERE: &str = "where is the zygote capacitor implemented?";
const NOT_UTF_8: &str = "oracle: the line was skipped because it is not UTF-8: convert it to \
                         UTF-8\n";

#[test]
fn piped_questions_share_one_session() {
    let place = Workspace::new(&FILES);
    let lines = format!("\n{QUESTION}\n  \t\r\nand the upload?\r\n\n");
    let output = place
        .oracle("chat --json --session shop-1")
        .stdin(lines.as_bytes())
        .output();
    assert_eq!(String::from_utf8(output.stderr).unwrap(), "");
    let text = String::from_utf8(output.stdout).unwrap();
    let answers: Vec<Value> = text
        .lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect();
    let told: Vec<_> = answers
        .iter()
        .map(|answer| (&answer["session"], &answer["query"]))
        .collect();
    let session = Value::from("shop-1");
    let queries = [Value::from(1), Value::from(2)];
    assert_eq!(told, [(&session, &queries[0]), (&session, &queries[1])]);
    for (answer, file) in answers.iter().zip(["src/parser.rs", "src/retry.rs"]) {
        assert_eq!(cited(&place.path("."), answer)[0], file);
        assert_eq!(answer["outcome"], "answered");
    }
    // Each answer has its own events, and together they have all of them.
    let events = |answer: &Value| answer["events"].as_array().unwrap().clone();
    let all = answers.iter().map(events).collect::<Vec<_>>();
    numbered(all.iter().flatten());
    assert_eq!(all[0][0]["type"], "session.opened");
    assert_eq!(all[1][0]["type"], "query.accepted");
    let keywords = |answer: &Value| {
        let events = answer["events"].as_array().unwrap();
        let classified = events.iter().find(|e| e["type"] == "query.classified");
        classified.unwrap()["payload"]["classification"]["keywords_matched"].clone()
    };
    let followup = Value::from("followup_detected");
    let detected = answers
        .iter()
        .map(|answer| keywords(answer).as_array().unwrap().contains(&followup));
    assert_eq!(detected.collect::<Vec<_>>(), [false, true]);
}

#[test]
fn events_are_lines_and_each_object_follows_its_own() {
    let place = Workspace::new(&FILES);
    let lines = format!("{QUESTION}\ninvoices\n");
    let chat = |line| {
        let output = place.oracle(line).stdin(lines.as_bytes()).output();
        assert_eq!((output.stderr, output.status.code()), (vec![], Some(0)));
        json_lines(&output.stdout)
    };
    let events = chat("chat --events");
    numbered(&events);
    let kinds = ["session.opened", "query.accepted", "query.finished"];
    let count = |kind| events.iter().filter(|event| event["type"] == kind).count();
    assert_eq!(kinds.map(count), [1, 2, 2]);

    let lines = chat("chat --events --json");
    let is_object = |line: &&Value| line["answer"].is_string();
    let (objects, events): (Vec<&Value>, Vec<&Value>) = lines.iter().partition(is_object);
    let told = objects
        .iter()
        .flat_map(|object| object["events"].as_array().unwrap());
    assert_eq!(told.collect::<Vec<_>>(), events);
    let last = [&lines[lines.len() - 1], &lines[lines.len() - 2]];
    assert_eq!(
        (is_object(&last[0]), &last[1]["type"]),
        (true, &"query.finished".into())
    );
}

#[test]
fn the_last_question_gives_the_exit_code() {
    let place = Workspace::new(&FILES);
    let invoices = "invoices";
    for (name, lines, note, code) in [
        ("nothing is asked", vec![], "", 0),
        ("blank lines are not asked", vec!["", " \t"], "", 0),
        ("answered", vec![invoices], "", 0),
        ("stuck", vec![invoices, NOT_THERE], "oracle: stuck: ", 3),
        (
            "stuck before",
            vec![NOT_THERE, invoices],
            "oracle: stuck: ",
            0,
        ),
    ] {
        let lines = lines.join("\n");
        let output = place.oracle("chat").stdin(lines.as_bytes()).output();
        let said = String::from_utf8(output.stderr).unwrap();
        assert!(said.starts_with(note), "{name}: {said}");
        assert_eq!(said.is_empty(), note.is_empty(), "{name}: {said}");
        assert_eq!(output.status.code(), Some(code), "{name}");
    }
}

#[test]
fn a_line_that_is_not_utf_8_is_skipped_with_a_note() {
    let place = Workspace::new(&FILES);
    for (name, lines, code) in [
        ("before a question", &b"why \xff?\ninvoices\n"[..], 0),
        ("as the last", b"invoices\nwhy \xff?\n", 2),
    ] {
        let output = place.oracle("chat").stdin(lines).output();
        let said = String::from_utf8(output.stderr).unwrap();
        assert_eq!(
            (said.as_str(), output.status.code()),
            (NOT_UTF_8, Some(code)),
            "{name}"
        );
        assert!(!output.stdout.is_empty(), "{name}");
    }
}

#[test]
fn oversized_question_is_refused_and_the_next_is_asked() {
    let place = Workspace::new(&FILES);
    let lines = [&b"a".repeat((1 << 20) + 1)[..], b"\ninvoices\n"].concat();
    let output = place.oracle("chat").stdin(&lines).output();
    let said = String::from_utf8(output.stderr).unwrap();
    assert!(
        said.starts_with("oracle: the question has 1048577 bytes, "),
        "{said}"
    );
    assert_eq!((said.lines().count(), output.status.code()), (1, Some(0)));
    assert!(!output.stdout.is_empty());
}

#[test]
fn chat_reports_why_it_cannot_start() {
    let place = Workspace::new(&[]);
    assert_transcript!(
        "chat_refused",
        ["chat --project nowhere", "chat --model nobody/knows"].map(|line| place.oracle(line))
    );
}
