//! Ctrl-C while the program works: a real signal, sent when its output shows that the moment has
//! come.

use std::{
    io::{BufRead, BufReader, Lines, Write},
    process::{Child, ChildStderr, ChildStdout, Command},
};

use serde_json::{Value, json};

use super::Workspace;

const DONE: &str =
    "Fine. <signal type='context_sufficient'><sources_found>1</sources_found></signal>";

const RUNS: &str = "query started";
const RUNS_NOT: &str = "query ended";

/// Maximum number of signals sent to a program that has to end by one.
const MOST: usize = 10_000;

struct Running {
    child: Child,
    out: Lines<BufReader<ChildStdout>>,
    err: Lines<BufReader<ChildStderr>>,
}

impl Running {
    fn start(place: &Workspace, line: &str) -> Self {
        let mut child = place.oracle(line).command().spawn().unwrap();
        let out = BufReader::new(child.stdout.take().unwrap()).lines();
        let err = BufReader::new(child.stderr.take().unwrap()).lines();
        Self { child, out, err }
    }

    fn ask(&mut self, question: &str) {
        let stdin = self.child.stdin.as_mut().unwrap();
        stdin.write_all(format!("{question}\n").as_bytes()).unwrap();
    }

    fn event(&mut self, kind: &str) -> Value {
        let mut events = self.out.by_ref().map(|line| {
            let event: Value = serde_json::from_str(&line.unwrap()).unwrap();
            event
        });
        events.find(|event| event["type"] == kind).unwrap()
    }

    fn next_line(&mut self) -> String {
        self.err.next().unwrap().unwrap()
    }

    fn logged(&mut self, what: &str) {
        while !self.next_line().contains(what) {}
    }

    fn interrupt(&self) {
        let kill = format!("kill -INT {}", self.child.id());
        let killed = Command::new("sh").args(["-c", &kill]).status().unwrap();
        assert!(killed.success());
    }

    fn end(mut self) -> (String, String, Option<i32>) {
        drop(self.child.stdin.take());
        let out: Vec<String> = self.out.by_ref().map(Result::unwrap).collect();
        let err = self.err.by_ref().map(Result::unwrap);
        let err: Vec<String> = err.filter(|line| !line.contains(" INFO ")).collect();
        let status = self.child.wait().unwrap();
        (out.join("\n"), err.join("\n"), status.code())
    }
}

/// A failed test must leave no process behind.
impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn stalling() -> Workspace {
    let turns = json!([
        { "faults": [{ "stall": { "shown": "Let me" } }], "reply": DONE },
        { "reply": DONE },
        { "reply": DONE },
    ]);
    Workspace::new(&[("s.json", &json!({ "turns": turns }).to_string())])
}

#[test]
fn interrupted_question_is_cancelled_and_reported() {
    let place = stalling();
    let mut ask = Running::start(&place, "ask --events --model scripted/s.json hi");
    ask.event("turn.started");
    ask.interrupt();
    let finished = ask.event("query.finished");
    assert_eq!(finished["payload"]["outcome"], "cancelled");
    assert_eq!(ask.end(), (String::new(), String::new(), Some(130)));

    let mut ask = Running::start(&place, "ask -v --model scripted/s.json hi");
    ask.logged(RUNS);
    ask.interrupt();
    let said = "oracle: cancelled".to_owned();
    assert_eq!(ask.end(), (String::new(), said, Some(130)));
}

#[test]
fn conversation_continues_after_an_interrupt() {
    let place = stalling();
    let line = "chat --events --session s --model scripted/s.json";
    let mut chat = Running::start(&place, line);
    let mut outcomes = Vec::new();
    for question in ["one?", "two?", "three?"] {
        chat.ask(question);
        chat.event("turn.started");
        if question == "one?" {
            chat.interrupt();
        }
        let mut finished = chat.event("query.finished");
        outcomes.push((
            finished["query"].take(),
            finished["payload"]["outcome"].take(),
        ));
    }
    let want = [(1, "cancelled"), (2, "answered"), (3, "answered")];
    let want = want.map(|(query, outcome)| (query.into(), outcome.into()));
    assert_eq!(outcomes, want);
    assert_eq!(chat.end(), (String::new(), String::new(), Some(0)));
}

#[test]
fn chat_explains_what_an_interrupt_did() {
    let turns = json!([{ "reply": DONE }, { "faults": [{ "stall": {} }] }]);
    let place = Workspace::new(&[("s.json", &json!({ "turns": turns }).to_string())]);
    let mut chat = Running::start(&place, "chat -v --model scripted/s.json");
    chat.ask("one?");
    assert_eq!(chat.out.next().unwrap().unwrap(), "Fine.");
    chat.interrupt();
    chat.logged("no question is running; press Ctrl-D to exit");
    chat.ask("two?");
    chat.logged(RUNS);
    chat.interrupt();
    let said = "oracle: cancelled".to_owned();
    assert_eq!(chat.end(), (String::new(), said, Some(130)));
}

#[test]
fn second_interrupt_ends_a_program_with_a_blocked_output() {
    let turn = |n| {
        let signal = format!("<signal type='need_turn'><reason>step {n} follows</reason></signal>");
        // More than a pipe holds, and each is printed in full.
        json!({ "reply": format!("{}{signal}", "long ".repeat(2_000)) })
    };
    let turns: Vec<Value> = (0..20).map(turn).collect();
    let place = Workspace::new(&[("s.json", &json!({ "turns": turns }).to_string())]);
    let mut ask = Running::start(&place, "ask -v --events --model scripted/s.json hi");
    ask.logged(RUNS);
    ask.logged(RUNS_NOT);
    // Two pending signals merge into one, so more may be needed.
    let mut signals = 0;
    while ask.child.try_wait().unwrap().is_none() {
        ask.interrupt();
        signals += 1;
        assert!(signals < MOST, "it does not end");
    }
    let (out, said, code) = ask.end();
    assert!(!out.contains("query.finished"), "it was not read");
    assert_eq!((said.as_str(), code), ("", Some(130)));
}
