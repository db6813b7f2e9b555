//! `oracle ask --jsonl`: many questions in one run.

use std::collections::BTreeMap;

use serde_json::{Value, json};

use super::{
    Workspace,
    ask::{FILES, QUESTION, json_lines, numbered},
    assert_transcript,
};

const NOT_THERE: &str = "where is the zygote capacitor implemented?";

fn lines(items: &[Value]) -> Vec<u8> {
    let lines = items.iter().map(|item| format!("{item}\n"));
    lines.collect::<String>().into_bytes()
}

/// Returns the objects among the lines, by the number of the input line that they answer.
fn objects(lines: &[Value]) -> BTreeMap<u64, &Value> {
    let objects = lines.iter().filter(|line| line["type"].is_null());
    objects
        .map(|object| (object["line"].as_u64().unwrap(), object))
        .collect()
}

#[test]
fn each_line_gets_its_object_and_sessions_keep_their_order() {
    let place = Workspace::new(&FILES);
    let asked = [
        json!({"session": "a", "question": QUESTION}),
        json!({"session": "b", "question": "invoices"}),
        json!({"session": "a", "question": "and retry_upload?"}),
        json!("invoices"),
    ];
    let stdin = [&b"\n"[..], &lines(&asked), b" \r\n"].concat();
    let output = place.oracle("ask --jsonl").stdin(&stdin).output();
    assert_eq!((output.stderr, output.status.code()), (vec![], Some(0)));
    let told = json_lines(&output.stdout);
    let objects = objects(&told);
    assert_eq!(told.len(), 4);
    let of = |line: u64| {
        let object = objects[&line];
        (object["session"].as_str().unwrap(), &object["query"])
    };
    // The first line is blank.
    assert_eq!(of(2), ("a", &json!(1)));
    assert_eq!(of(3), ("b", &json!(1)));
    assert_eq!(of(4), ("a", &json!(2)));
    assert!(!["a", "b"].contains(&of(5).0), "a session of its own");
    for (line, object) in objects {
        assert_eq!(object["outcome"], "answered", "line {line}");
        assert!(object["citations"].is_array(), "line {line}");
    }
}

#[test]
fn every_session_is_answered_at_any_parallelism() {
    let place = Workspace::new(&FILES);
    let asked = (0..40).map(|n| json!({"session": format!("s{}", n % 10), "question": "invoices"}));
    let asked = lines(&asked.collect::<Vec<_>>());
    for (line, queries) in [
        ("ask --jsonl --parallel 1", 1..=4),
        ("ask --jsonl --parallel 64", 5..=8),
    ] {
        let output = place.oracle(line).stdin(&asked).output();
        assert_eq!((output.stderr, output.status.code()), (vec![], Some(0)));
        let told = json_lines(&output.stdout);
        let mut by_session = BTreeMap::<_, Vec<u64>>::new();
        for object in &told {
            let queries = by_session.entry(object["session"].as_str().unwrap());
            let query = object["query"].as_u64().unwrap();
            queries.or_default().push(query);
        }
        assert_eq!(by_session.len(), 10, "{line}");
        let queries: Vec<u64> = queries.collect();
        assert!(by_session.values().all(|got| *got == queries), "{line}");
    }
}

#[test]
fn events_are_lines_between_the_objects() {
    let place = Workspace::new(&FILES);
    let asked = lines(&[
        json!({"session": "a", "question": QUESTION}),
        json!({"session": "b", "question": "invoices"}),
    ]);
    let output = place.oracle("ask --jsonl --events").stdin(&asked).output();
    assert_eq!((output.stderr, output.status.code()), (vec![], Some(0)));
    let told = json_lines(&output.stdout);
    for (session, object) in ["a", "b"].iter().zip(objects(&told).values()) {
        let of_session = |event: &&Value| event["session"] == *session && !event["type"].is_null();
        let events: Vec<&Value> = told.iter().filter(of_session).collect();
        numbered(events.iter().copied());
        let in_object: Vec<&Value> = object["events"].as_array().unwrap().iter().collect();
        assert_eq!(events, in_object, "{session}");
    }
}

#[test]
fn worst_outcome_gives_the_exit_code() {
    let place = Workspace::new(&FILES);
    let key = |session: &str, question: &str| json!({"session": session, "question": question, "idempotency_key": "k"});
    let invoices = json!("invoices");
    let reused =
        "line 2, session `r`: the idempotency key `k` was already used for another message";
    for (name, asked, note, code) in [
        ("nothing", vec![], "", 0),
        ("answered", vec![invoices.clone(), invoices.clone()], "", 0),
        ("stuck", vec![json!(NOT_THERE), invoices.clone()], "", 3),
        (
            "same key",
            vec![key("s", "invoices"), key("s", "invoices")],
            "",
            0,
        ),
        (
            "key reused",
            vec![key("r", "invoices"), key("r", "ho"), json!(NOT_THERE)],
            reused,
            1,
        ),
    ] {
        let asked_lines = lines(&asked);
        let output = place.oracle("ask --jsonl").stdin(&asked_lines).output();
        let said = String::from_utf8(output.stderr).unwrap();
        assert_eq!(said.is_empty(), note.is_empty(), "{name}: {said}");
        assert!(said.contains(note), "{name}: {said}");
        assert_eq!(output.status.code(), Some(code), "{name}");
        let told = json_lines(&output.stdout);
        assert_eq!(objects(&told).len(), asked.len(), "{name}");
    }
    let told = place
        .oracle("ask --jsonl")
        .stdin(b"{\"session\":\"r\",\"question\":\"ho\",\"idempotency_key\":\"k\"}")
        .output();
    let object = &json_lines(&told.stdout)[0];
    assert_eq!(
        (&object["outcome"], &object["session"]),
        (&Value::Null, &json!("r"))
    );
    let error = object["error"].as_str().unwrap();
    assert!(
        error.contains("`k` was already used for another message"),
        "{error}"
    );
}

#[test]
fn invalid_line_is_reported_before_any_question_is_asked() {
    let place = Workspace::new(&[]);
    let bad: [&[u8]; 9] = [
        b"{\"question\": \"invoices\"}\n\n{\"question\": }\n",
        b"invoices\n",
        b"[\"invoices\"]\n",
        b"{}\n",
        b"{\"question\": \"invoices\", \"sesion\": \"a\"}\n",
        b"{\"question\": \"invoices\", \"session\": \"a/b\"}\n",
        b"\"invoices\"\n\" \"\n",
        b"{\"question\": \"invoices\", \"idempotency_key\": \"k\"}\n",
        b"\"invoices\"\n\"\xff\"\n",
    ];
    let runs = bad.map(|stdin| place.oracle("ask --jsonl").stdin(stdin));
    let lines = [
        "ask --jsonl why",
        "ask --parallel 4 why",
        "ask --jsonl --parallel 0",
        "ask --jsonl --idempotency-key k",
        "ask --idempotency-key k why",
        "ask --busy never why",
    ];
    assert_transcript!(
        "batch_refused",
        runs.into_iter().chain(lines.map(|line| place.oracle(line)))
    );
    assert!(!place.data.path().join("oracle").exists());
}
