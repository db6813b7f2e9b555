//! `oracle ask` with the offline model: answers, citations, formats, and refused questions.

use std::{fs, io::Write, path::Path};

use serde_json::Value;

use super::{Workspace, assert_transcript};

const PARSER: &str = "\
//! Parses invoices.

/// Reads one invoice from text (README.md:3).
pub fn parse_invoice(text: &str) -> Option<Invoice> {
    let total = text.trim().parse().ok()?;
    Some(Invoice { total })
}

/// An invoice.
pub struct Invoice {
    pub total: u64,
}
";

/// A small project.
pub(super) const FILES: [(&str, &str); 3] = [
    ("README.md", "# Shop\n\nInvoices are parsed and uploaded.\n"),
    ("src/parser.rs", PARSER),
    (
        "src/retry.rs",
        "/// Waits longer after every failed upload.\npub fn retry_upload(n: u32) -> u64 {\n    100 << n\n}\n",
    ),
];

pub(super) const QUESTION: &str = "where is parse_invoice implemented?";

/// Asserts that every citation of an answer is a place in a project file, and returns the files.
pub(super) fn cited(project: &Path, answer: &Value) -> Vec<String> {
    let citations = answer["citations"].as_array().unwrap();
    let file = |citation: &Value| {
        let path = citation["path"].as_str().unwrap();
        let lines = fs::read_to_string(project.join(path))
            .unwrap()
            .lines()
            .count() as u64;
        let (start, end) = (&citation["start"], &citation["end"]);
        let (start, end) = (start.as_u64().unwrap(), end.as_u64().unwrap());
        assert!(1 <= start && start <= end && end <= lines, "{citation}");
        path.to_owned()
    };
    citations.iter().map(file).collect()
}

pub(super) fn json_lines(bytes: &[u8]) -> Vec<Value> {
    let text = str::from_utf8(bytes).unwrap();
    text.lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect()
}

/// Asserts that events begin a new session, have no gap and end with the query.
fn whole(events: &[Value]) {
    numbered(events);
    assert_eq!(events[0]["type"], "session.opened");
    assert_eq!(events.last().unwrap()["type"], "query.finished");
}

pub(super) fn numbered<'a>(events: impl IntoIterator<Item = &'a Value>) {
    let numbers = events.into_iter().map(|e| e["seq"].as_u64().unwrap());
    let numbers: Vec<_> = numbers.collect();
    assert!(!numbers.is_empty());
    let want: Vec<_> = (1..).take(numbers.len()).collect();
    assert_eq!(numbers, want);
}

#[test]
fn answer_cites_existing_places() {
    let place = Workspace::new(&FILES);
    assert_transcript!("ask", [place.oracle("ask").arg(QUESTION)]);
    let output = place
        .oracle("ask --json --session shop-1")
        .arg(QUESTION)
        .output();
    assert_eq!((output.stderr, output.status.code()), (vec![], Some(0)));
    let [answer] = &json_lines(&output.stdout)[..] else {
        panic!("not one object");
    };
    let got = (&answer["session"], &answer["outcome"], &answer["reason"]);
    let outcome = (&"shop-1".into(), &"answered".into(), &Value::Null);
    assert_eq!(got, outcome);
    // Places within the quoted lines do not count.
    let named = ["src/parser.rs"];
    assert_eq!(cited(&place.path("."), answer), named, "{answer}");
    assert!(answer["turns"].as_u64().unwrap() >= 2);
    assert!(answer["usage"].is_object(), "{answer}");
    whole(answer["events"].as_array().unwrap());
}

#[test]
fn project_option_names_another_folder() {
    let place = Workspace::new(&FILES);
    let shop = place.path(".");
    let elsewhere = Workspace::new(&[]);
    let line = format!("ask --json --project {}", shop.display());
    let output = elsewhere.oracle(&line).arg(QUESTION).output();
    assert_eq!(
        cited(&shop, &json_lines(&output.stdout)[0])[0],
        "src/parser.rs"
    );
}

#[test]
fn events_are_lines_and_the_object_comes_last() {
    let place = Workspace::new(&FILES);
    let output = place.oracle("ask --events").arg(QUESTION).output();
    assert_eq!((output.stderr, output.status.code()), (vec![], Some(0)));
    whole(&json_lines(&output.stdout));

    let output = place.oracle("ask --json --events").arg(QUESTION).output();
    let lines = json_lines(&output.stdout);
    let (answer, events) = lines.split_last().unwrap();
    whole(events);
    assert_eq!(cited(&place.path("."), answer)[0], "src/parser.rs");
    assert_eq!(answer["events"].as_array().unwrap(), events);
}

#[test]
fn ask_finds_the_right_one_of_5000_files() {
    let place = Workspace::new(&[]);
    for folder in 0..50 {
        let path = place.path(&format!("src/part{folder}"));
        fs::create_dir_all(&path).unwrap();
        for n in 0..100 {
            let text = format!("/// Handles an order.\npub fn handle_{folder}_{n}() {{}}\n");
            fs::write(path.join(format!("file{n}.rs")), text).unwrap();
        }
    }
    fs::write(place.path("src/part31/file77.rs"), PARSER).unwrap();
    let output = place.oracle("ask --json").arg(QUESTION).output();
    let answer = &json_lines(&output.stdout)[0];
    let files = cited(&place.path("."), answer);
    assert_eq!(files.first().unwrap(), "src/part31/file77.rs", "{answer}");
    assert_eq!(output.status.code(), Some(0));
}

#[test]
fn ask_about_missing_code_ends_stuck() {
    let place = Workspace::new(&FILES);
    let question = "where is the zygote capacitor implemented?";
    let output = place.oracle("ask --json").arg(question).output();
    let answer = &json_lines(&output.stdout)[0];
    let got = (&answer["outcome"], &answer["citations"]);
    assert_eq!(got, (&"stuck".into(), &Value::Array(vec![])), "{answer}");
    assert_eq!((output.stderr, output.status.code()), (vec![], Some(3)));

    let output = place.oracle("ask").arg(question).output();
    let said = String::from_utf8(output.stderr).unwrap();
    let text = String::from_utf8(output.stdout).unwrap();
    let reason = answer["reason"].as_str().unwrap();
    assert_eq!(said, format!("oracle: stuck: {reason}\n"));
    assert_eq!(text.trim_end(), answer["answer"].as_str().unwrap());
    assert!(
        text.starts_with("Nothing here mentions “zygote” or “capacitor”.")
            && text.contains("--model"),
        "{text}"
    );
}

#[test]
fn question_comes_from_argument_or_stdin() {
    let place = Workspace::new(&FILES);
    let answer = place.oracle("ask").arg(QUESTION).output().stdout;
    assert!(!answer.is_empty());
    let line = format!("{QUESTION}\r\n");
    for run in [
        place.oracle("ask").stdin(QUESTION.as_bytes()),
        place.oracle("ask -").stdin(line.as_bytes()),
    ] {
        assert_eq!(run.output().stdout, answer);
    }
}

#[test]
fn ask_refuses_invalid_input() {
    let place = Workspace::new(&[("file.txt", "not a folder\n")]);
    let long = "a".repeat(10 << 20).into_bytes();
    let hi = "ask hi";
    let lines = [
        "ask --session a/b hi",
        "ask --project nowhere hi",
        "ask --project file.txt hi",
        "ask --model nobody/knows hi",
        "ask --model nonsense hi",
        "ask --max-turns 0 hi",
        "ask --config missing.toml hi",
    ];
    let runs = [
        place.oracle("ask").arg(""),
        place.oracle("ask").arg(" \n\t"),
        place.oracle("ask"),
        place.oracle("ask -").stdin(b"\n"),
        place.oracle("ask").stdin(b"why \xff?"),
        place.oracle("ask").stdin(&long),
        place
            .oracle(hi)
            .env("ORACLE_PROMPT__DIR", "missing-prompts"),
        place.oracle(hi).env("ORACLE_TURN__ON_MISSING_SIGNAL", "no"),
    ];
    assert_transcript!(
        "ask_refused",
        runs.into_iter().chain(lines.map(|line| place.oracle(line)))
    );
}

#[cfg(unix)]
#[test]
fn ask_with_closed_stdin_reports_an_empty_question() {
    use std::process::Command;

    let place = Workspace::new(&[]);
    let script = format!("exec '{}' ask <&-", env!("CARGO_BIN_EXE_oracle"));
    let mut shell = Command::new("sh");
    shell.args(["-c", &script]).current_dir(place.path("."));
    place.isolate(&mut shell);
    let output = shell.output().unwrap();
    let said = String::from_utf8(output.stderr).unwrap();
    let empty = "oracle: the question is empty: enter a question\n";
    assert_eq!((said.as_str(), output.status.code()), (empty, Some(2)));
}

#[test]
fn closed_stdout_is_no_failure() {
    let place = Workspace::new(&FILES);
    for line in ["ask -", "ask --json -", "ask --events -"] {
        let mut child = place.oracle(line).command().spawn().unwrap();
        drop(child.stdout.take());
        let mut stdin = child.stdin.take().unwrap();
        stdin.write_all(QUESTION.as_bytes()).unwrap();
        drop(stdin);
        let output = child.wait_with_output().unwrap();
        let said = String::from_utf8(output.stderr).unwrap();
        assert_eq!(
            (said.as_str(), output.status.code()),
            ("", Some(0)),
            "{line}"
        );
    }
}

#[test]
fn readme_question_is_answered_from_this_repository() {
    let here = Path::new(env!("CARGO_MANIFEST_DIR"));
    let readme = fs::read_to_string(here.join("README.md")).unwrap();
    let asked = readme
        .split_once("ask \"")
        .and_then(|(_, rest)| rest.split_once('"'));
    let question = asked.unwrap().0;
    let place = Workspace::new(&[]);
    let line = format!("ask --json --project {}", here.display());
    let output = place.oracle(&line).arg(question).output();
    let answer = json_lines(&output.stdout).remove(0);
    assert_eq!(answer["outcome"], "answered", "{answer}");
    let cited = cited(here, &answer);
    assert!(
        cited.iter().any(|path| path == "src/core/kernel/retry.rs"),
        "{cited:?}"
    );
}

#[test]
fn question_needs_neither_command_nor_quotes() {
    let place = Workspace::new(&FILES);
    let quoted = place.oracle("ask").arg(QUESTION).output().stdout;
    let alone = place.oracle("").arg(QUESTION).output();
    assert_eq!(
        (alone.stdout, alone.status.code()),
        (quoted.clone(), Some(0))
    );
    let words = place.oracle(&format!("ask {QUESTION}")).output();
    assert_eq!(words.stdout, quoted);
}
