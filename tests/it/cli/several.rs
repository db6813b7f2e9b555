//! Several processes over one data directory: what is asked of a session goes to the process that has it.

use std::{
    fs,
    io::{BufRead, BufReader, Lines},
    process::{Child, ChildStdout, Command},
};

use serde_json::{Value, json};

use super::{
    Place, Run,
    server::{KEY, Manner, Server},
};

const DONE: &str =
    "Fine. <signal type='context_sufficient'><sources_found>1</sources_found></signal>";

/// A program that runs, and the events that it tells.
struct Running {
    child: Child,
    out: Lines<BufReader<ChildStdout>>,
}

impl Running {
    fn start(place: &Place, line: &str) -> Self {
        Self::of(&place.oracle(line))
    }

    fn of(run: &Run<'_>) -> Self {
        let mut child = run.command().spawn().unwrap();
        drop(child.stdin.take());
        let out = BufReader::new(child.stdout.take().unwrap()).lines();
        Self { child, out }
    }

    /// The next event of this type.
    fn event(&mut self, kind: &str) -> Value {
        let mut events = self.out.by_ref().map(|line| {
            let event: Value = serde_json::from_str(&line.unwrap()).unwrap();
            event
        });
        events.find(|event| event["type"] == kind).unwrap()
    }

    fn signal(&self, name: &str) {
        let kill = format!("kill -{name} {}", self.child.id());
        let killed = Command::new("sh").args(["-c", &kill]).status().unwrap();
        assert!(killed.success());
    }

    /// The rest of what it tells, and its exit code.
    fn end(mut self) -> (Vec<Value>, Option<i32>) {
        let rest = self.out.by_ref();
        let rest = rest.map(|line| serde_json::from_str(&line.unwrap()));
        let rest = rest.collect::<Result<_, _>>().unwrap();
        (rest, self.child.wait().unwrap().code())
    }
}

/// A test that fails leaves nobody behind who waits for a model.
impl Drop for Running {
    fn drop(&mut self) {
        // It may have ended by itself.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// A script is read when a process starts, so that two processes may play different ones by one name: in
/// `s.json` the model takes this long for its first reply, in milliseconds.
fn model_takes(place: &Place, delay_ms: u64) {
    let turn = |delay_ms| json!({ "reply": DONE, "delay_ms": delay_ms });
    let script = json!({ "turns": [turn(delay_ms), turn(0), turn(0), turn(0)] });
    fs::write(place.path("s.json"), script.to_string()).unwrap();
}

/// Longer than any test.
const FOR_EVER: u64 = 600_000;

fn place() -> Place {
    Place::new(&[])
}

/// Asks something that takes the model longer than any test; what is asked after that does not.
fn asked(place: &Place, session: &str) -> Running {
    model_takes(place, FOR_EVER);
    let mut asker = Running::start(place, &ask(session, "one"));
    asker.event("turn.started");
    model_takes(place, 0);
    asker
}

fn ask(session: &str, more: &str) -> String {
    format!("ask --events --model scripted/s.json --session {session} {more}")
}

/// Asks something that the model answers when the test releases it.
fn held(place: &Place, server: &Server, session: &str) -> Running {
    server.hold();
    let mut asker = at(place, server, session, "one");
    asker.event("turn.started");
    asker
}

/// Asks the model at this server.
fn at(place: &Place, server: &Server, session: &str, more: &str) -> Running {
    let line = format!("ask --events --model openai/small --session {session} {more}");
    let run = place.oracle(&line).env("OPENAI_API_KEY", KEY);
    Running::of(&run.env("OPENAI_BASE_URL", &server.url))
}

/// A process that has the journal, if it is to be another than the asker.
fn owner(place: &Place) -> Running {
    asked(place, "o")
}

fn log(place: &Place, session: &str) -> Vec<Value> {
    let line = format!("sessions events {session}");
    let output = place.oracle(&line).output();
    let text = String::from_utf8(output.stdout).unwrap();
    let events = text.lines().map(serde_json::from_str);
    events.collect::<Result<_, _>>().unwrap()
}

fn count(log: &[Value], kind: &str) -> usize {
    log.iter().filter(|event| event["type"] == kind).count()
}

/// Whoever has the session has the journal too, and then both have it from a third.
fn arrangements(place: &Place, mut check: impl FnMut(&str, &Place)) {
    check("s", place);
    let owner = owner(place);
    check("t", place);
    owner.signal("KILL");
    owner.end();
}

#[test]
fn a_message_waits_for_the_query_that_runs_in_another_process() {
    arrangements(&place(), |session, place| {
        let server = Server::start(Manner::Good);
        let first = held(place, &server, session);
        let mut second = at(place, &server, session, "two");
        assert_eq!(second.event("query.accepted")["query"], 2);
        server.release();
        let (rest, code) = second.end();
        assert_eq!(code, Some(0), "{rest:#?}");
        assert_eq!(count(&rest, "query.finished"), 1, "{rest:#?}");
        assert_eq!(first.end().1, Some(0));
        let log = log(place, session);
        assert_eq!(count(&log, "query.accepted"), 2);
        assert_eq!(count(&log, "query.finished"), 2);
        // The first process may have left before the second question was answered: in order.
        assert_eq!(count(&log, "supervisor.restarted"), 0, "{log:#?}");
        let at = |kind, query| {
            let is_it = |event: &Value| event["type"] == kind && event["query"] == query;
            log.iter().position(is_it).unwrap()
        };
        assert!(at("query.accepted", 2) < at("query.finished", 1));
        assert!(at("query.finished", 1) < at("turn.started", 2));
    });
}

#[test]
fn a_busy_session_of_another_process_refuses_who_does_not_want_to_wait() {
    arrangements(&place(), |session, place| {
        let first = asked(place, session);
        let refused = place
            .oracle(&ask(session, "--busy reject --idempotency-key k two"))
            .output();
        assert_eq!(refused.status.code(), Some(5), "{refused:?}");
        let stays = place
            .oracle(&format!("sessions delete {session} --yes"))
            .output();
        assert_eq!(stays.status.code(), Some(5));
        let log = log(place, session);
        assert_eq!(
            log.last().unwrap()["type"],
            "turn.started",
            "nobody took it"
        );
        first.signal("KILL");
        first.end();
    });
}

#[test]
fn words_reach_the_query_that_runs_in_another_process() {
    arrangements(&place(), |session, place| {
        let server = Server::start(Manner::Good);
        let first = held(place, &server, session);
        let mut steering = at(place, &server, session, "--busy steer two");
        steering.event("control.steered");
        server.release();
        let (rest, code) = steering.end();
        assert_eq!(code, Some(0), "{rest:#?}");
        assert_eq!(first.end().1, Some(0));
        let log = log(place, session);
        assert_eq!(count(&log, "control.steered"), 1, "{log:#?}");
        assert_eq!(count(&log, "supervisor.restarted"), 0, "{log:#?}");
    });
}

#[test]
fn a_query_in_another_process_is_cancelled_by_who_interrupts_it() {
    arrangements(&place(), |session, place| {
        let mut first = asked(place, session);
        let second = place.oracle(&ask(session, "--busy interrupt two")).output();
        assert_eq!(second.status.code(), Some(0), "{second:?}");
        let finished = first.event("query.finished");
        assert_eq!(finished["payload"]["outcome"], "cancelled");
        assert_eq!(first.end().1, Some(130));
        let log = log(place, session);
        assert_eq!(count(&log, "query.finished"), 2);
        assert_eq!(count(&log, "supervisor.restarted"), 0, "{log:#?}");
    });
}

#[test]
fn a_query_whose_process_dies_goes_on_where_somebody_follows_it() {
    arrangements(&place(), |session, place| {
        let first = asked(place, session);
        let mut second = Running::start(place, &ask(session, "two"));
        let accepted = second.event("query.accepted");
        assert_eq!(accepted["query"], 2);
        first.signal("KILL");
        first.end();
        let (rest, code) = second.end();
        assert_eq!(code, Some(0), "{rest:#?}");
        let log = log(place, session);
        assert_eq!(count(&log, "query.accepted"), 2);
        assert_eq!(count(&log, "query.finished"), 2);
        let deaths = log
            .iter()
            .filter(|event| event["type"] == "supervisor.restarted");
        let causes: Vec<_> = deaths
            .map(|event| event["payload"]["cause"].clone())
            .collect();
        assert_eq!(causes, ["process_death"], "it really died, once");
    });
}

#[test]
fn while_the_owner_is_killed_nothing_is_lost_or_doubled() {
    let place = place();
    let owner = owner(&place);
    let server = Server::start(Manner::Good);
    let askers = ["a", "b", "c"].map(|session| held(&place, &server, session));
    // One whose letter is under way while the journal changes hands.
    let queued = at(&place, &server, "a", "two");
    owner.signal("KILL");
    owner.end();
    server.release();
    for asker in askers.into_iter().chain([queued]) {
        let (rest, code) = asker.end();
        assert_eq!(code, Some(0), "{rest:#?}");
    }
    for (session, queries) in [("a", 2), ("b", 1), ("c", 1)] {
        let log = log(&place, session);
        assert_eq!(count(&log, "query.accepted"), queries, "{log:#?}");
        assert_eq!(count(&log, "query.finished"), queries, "{log:#?}");
        assert_eq!(count(&log, "supervisor.restarted"), 0, "{log:#?}");
    }
    let verified = place.oracle("journal verify").output();
    assert_eq!(verified.status.code(), Some(0));
}

#[test]
fn a_stopped_owner_is_named_with_what_to_do() {
    let place = place();
    let owner = owner(&place);
    owner.signal("STOP");
    let refused = place.oracle("ask hi").output();
    let said = String::from_utf8(refused.stderr).unwrap();
    owner.signal("KILL");
    let pid = owner.child.id();
    owner.end();
    assert_eq!(refused.status.code(), Some(1));
    let told = format!("in use by process {pid}, which does not answer");
    assert!(said.contains(&told), "{said}");
    assert!(said.contains(&format!("`kill -CONT {pid}`")), "{said}");
}
