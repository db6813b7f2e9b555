//! Several processes over one data directory: a session has one live owner, and its death loses
//! nothing.

use std::{
    fs,
    io::{BufRead, BufReader, Lines},
    process::{Child, ChildStdout, Command},
    thread,
    time::Duration,
};

use serde_json::{Value, json};
use tokio::{task::JoinSet, time::timeout};

use super::{Run, Workspace, draining::client, serve::Served};
use crate::actors::simulation::Dice;

const DONE: &str =
    "Fine. <signal type='context_sufficient'><sources_found>1</sources_found></signal>";

struct Running {
    child: Child,
    out: Lines<BufReader<ChildStdout>>,
}

impl Running {
    fn start(place: &Workspace, line: &str) -> Self {
        Self::of(&place.oracle(line))
    }

    fn of(run: &Run<'_>) -> Self {
        let mut child = run.command().spawn().unwrap();
        drop(child.stdin.take());
        let out = BufReader::new(child.stdout.take().unwrap()).lines();
        Self { child, out }
    }

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

    /// Returns the exit code, unless the process was killed; ignores output, which may be cut.
    fn code(mut self) -> Option<i32> {
        self.out.by_ref().for_each(drop);
        self.child.wait().unwrap().code()
    }

    fn end(mut self) -> (Vec<Value>, Option<i32>) {
        let rest = self.out.by_ref();
        let rest = rest.map(|line| serde_json::from_str(&line.unwrap()));
        let rest = rest.collect::<Result<_, _>>().unwrap();
        (rest, self.child.wait().unwrap().code())
    }
}

/// A failed test leaves no process behind that waits for a model.
impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Sets the delay of the model's first reply, in milliseconds. A process reads `s.json` at its
/// start, so two processes can run different scripts.
fn model_takes(place: &Workspace, delay_ms: u64) {
    let turn = |delay_ms| json!({ "reply": DONE, "delay_ms": delay_ms });
    let mut turns = vec![turn(delay_ms.min(20)); 10];
    turns[0] = turn(delay_ms);
    let script = json!({ "turns": turns });
    fs::write(place.path("s.json"), script.to_string()).unwrap();
}

/// Longer than any test, in milliseconds.
const FOR_EVER: u64 = 600_000;

/// Less than the time after which anything but a death makes a process look for others' queries.
const SOON: Duration = Duration::from_secs(15);

fn place() -> Workspace {
    Workspace::new(&[])
}

/// Starts a question that outlasts any test; later questions are answered at once.
fn start_long_question(place: &Workspace, session: &str) -> Running {
    model_takes(place, FOR_EVER);
    let mut asker = Running::start(place, &ask(session, "one"));
    asker.event("turn.started");
    model_takes(place, 0);
    asker
}

fn ask(session: &str, more: &str) -> String {
    format!("ask --events --model scripted/s.json --session {session} {more}")
}

fn log(place: &Workspace, session: &str) -> Vec<Value> {
    let line = format!("sessions events {session}");
    let output = place.oracle(&line).output();
    let text = String::from_utf8(output.stdout).unwrap();
    let events = text.lines().map(serde_json::from_str);
    events.collect::<Result<_, _>>().unwrap()
}

fn count(log: &[Value], kind: &str) -> usize {
    log.iter().filter(|event| event["type"] == kind).count()
}

fn is_refused(place: &Workspace, line: &str, session: &str, owner: u32) {
    let refused = place.oracle(line).output();
    let said = String::from_utf8(refused.stderr).unwrap();
    assert_eq!(refused.status.code(), Some(5), "{line}: {said}");
    let owned = format!(
        "session `{session}` is open in process {owner}: continue there, or end that process"
    );
    assert!(said.contains(&owned), "{line}: {said}");
}

#[test]
fn session_of_a_live_process_is_refused() {
    let place = place();
    let first = start_long_question(&place, "s");
    let owner = first.child.id();
    is_refused(&place, &ask("s", "two"), "s", owner);
    is_refused(&place, &ask("s", "--busy interrupt two"), "s", owner);
    is_refused(&place, "sessions delete s --yes --force", "s", owner);
    let log = log(&place, "s");
    assert_eq!(
        log.last().unwrap()["type"],
        "turn.started",
        "it is as it was"
    );
    let other = place.oracle(&ask("t", "two")).output();
    assert_eq!(other.status.code(), Some(0), "{other:?}");
    // A stopped process is alive.
    first.signal("STOP");
    is_refused(&place, &ask("s", "two"), "s", owner);
}

#[test]
fn query_of_a_dead_process_continues_in_the_next() {
    let place = place();
    let first = start_long_question(&place, "s");
    first.signal("KILL");
    first.code();
    let (rest, code) = Running::start(&place, &ask("s", "two")).end();
    assert_eq!(code, Some(0), "{rest:#?}");
    let log = log(&place, "s");
    assert_eq!(count(&log, "query.accepted"), 2);
    assert_eq!(count(&log, "query.finished"), 2);
    let deaths = log
        .iter()
        .filter(|event| event["type"] == "supervisor.restarted");
    let causes: Vec<_> = deaths
        .map(|event| event["payload"]["cause"].clone())
        .collect();
    assert_eq!(causes, ["process_death"], "it really died, once");
}

/// Three askers submit questions with idempotency keys to the same three sessions, and retry after
/// their process was killed or refused. A seed decides when.
#[test]
fn processes_that_are_killed_at_random_lose_and_double_nothing() {
    const QUESTIONS: usize = 8;
    let place = &place();
    model_takes(place, 20);
    let ask_until_done = |asker: usize| {
        let mut dice = Dice(asker as u64);
        for number in 0..QUESTIONS {
            let session = ["a", "b", "c"][(asker + number) % 3];
            let key = format!("{asker}-{number}");
            let line = ask(session, &format!("--idempotency-key {key} {key}"));
            // Every second attempt runs undisturbed, which bounds the number of attempts.
            for tries in 0..200 {
                let mut running = Running::start(place, &line);
                if tries % 2 == 0 {
                    match dice.below(3) {
                        0 => drop(running.out.next()),
                        _ => thread::sleep(Duration::from_millis(dice.below(150))),
                    }
                    if dice.below(3) == 0 {
                        running.signal("STOP");
                        thread::sleep(Duration::from_millis(dice.below(50)));
                        running.signal("CONT");
                    }
                    running.signal("KILL");
                }
                match running.code() {
                    Some(0) => break,
                    None | Some(5) => thread::sleep(Duration::from_millis(dice.below(60))),
                    code => panic!("asker {asker}, {key}: {code:?}"),
                }
                assert!(tries < 199, "asker {asker}, {key}");
            }
        }
    };
    thread::scope(|scope| {
        for asker in 0..3 {
            scope.spawn(move || ask_until_done(asker));
        }
    });
    let (mut keys, mut cut_off) = (Vec::new(), 0);
    for session in ["a", "b", "c"] {
        let log = log(place, session);
        cut_off += count(&log, "supervisor.restarted");
        let accepted = log.iter().filter(|event| event["type"] == "query.accepted");
        keys.extend(accepted.map(|event| event["payload"]["idempotency_key"].to_string()));
        assert_eq!(count(&log, "query.accepted"), count(&log, "query.finished"));
    }
    keys.sort();
    let each =
        (0..3).flat_map(|asker| (0..QUESTIONS).map(move |number| format!("\"{asker}-{number}\"")));
    let mut each: Vec<String> = each.collect();
    each.sort();
    assert_eq!(keys, each, "each question was accepted once");
    assert!(cut_off > 0, "no query was cut off");
    let verified = place.oracle("journal verify").output();
    assert_eq!(verified.status.code(), Some(0), "{verified:?}");
}

/// Two servers: the survivor continues what the dead one ran, without a request for it.
#[tokio::test(flavor = "multi_thread")]
async fn survivor_continues_at_once_what_a_killed_server_ran() {
    let place = place();
    let serve = "serve --listen 127.0.0.1:0 --model scripted/s.json";
    model_takes(&place, FOR_EVER);
    let first = Served::start(&place, serve);
    model_takes(&place, 0);
    let second = Served::start(&place, serve);
    let client = client();
    let post = |server: &Served, path: &str, body: Value| {
        let url = format!("http://{}{path}", server.address);
        let request = client.post(url).header("content-type", "application/json");
        let request = request.header("idempotency-key", "k");
        let request = request.header("x-oracle-session", "chat");
        request.body(body.to_string()).send()
    };
    let messages = "/api/sessions/s/messages";
    let accepted = post(&first, messages, json!({ "text": "one" })).await;
    let accepted = accepted.unwrap().text().await.unwrap();
    let message = json!({ "role": "user", "content": "two" });
    let chat = json!({ "model": "oracle", "messages": [message] });
    let mut asked = JoinSet::new();
    asked.spawn(post(&first, "/v1/chat/completions", chat.clone()));
    first.comes_to("oracle_sessions_live{state=\"calling\"}", 2);

    let url = format!("http://{}/api/sessions/s/events", second.address);
    let events = client.get(url).header("accept", "text/event-stream");
    let mut events = events.send().await.unwrap();
    first.signal("KILL");
    assert_eq!(first.end().1, None);
    let answer = asked.join_next().await.unwrap().unwrap();
    assert!(answer.is_err(), "it died before it answered");
    let end = async {
        let mut seen = String::new();
        while !seen.contains("query.finished") {
            let chunk = events.chunk().await.unwrap();
            seen += str::from_utf8(&chunk.unwrap()).unwrap();
        }
    };
    let again = async {
        let answer = post(&second, "/v1/chat/completions", chat).await.unwrap();
        answer.text().await.unwrap()
    };
    let (end, again) = tokio::join!(timeout(SOON, end), timeout(SOON, again));
    end.expect("a follower sees the end");
    let again = again.expect("a repeated request is answered");
    assert!(again.contains("Fine."), "{again}");
    let repeated = post(&second, messages, json!({ "text": "one" })).await;
    let repeated = repeated.unwrap().text().await.unwrap();
    let query = |text: &str| serde_json::from_str::<Value>(text).unwrap()["query"].clone();
    assert_eq!(query(&repeated), query(&accepted));
    for session in ["s", "chat"] {
        let log = log(&place, session);
        assert_eq!(count(&log, "query.accepted"), 1, "{session}");
        assert_eq!(count(&log, "supervisor.restarted"), 1, "{session}");
    }
    // The control channel of the survivor is found too.
    let listed = place.oracle("ctl list").output();
    assert_eq!(listed.status.code(), Some(0), "{listed:?}");
}

/// The calls of a client's tool wait in the journal, and the next process takes their results.
#[tokio::test(flavor = "multi_thread")]
async fn call_of_a_clients_tool_survives_a_kill() {
    let place = place();
    let call = json!({ "name": "weather", "arguments": { "at": "noon" } });
    let script = json!({ "turns": [{ "reply": "", "tool_calls": [call] }, { "reply": DONE }] });
    fs::write(place.path("s.json"), script.to_string()).unwrap();
    let serve = "serve --listen 127.0.0.1:0 --model scripted/s.json";
    let ask = async |server: &Served, body: &Value| {
        let url = format!("http://{}/v1/chat/completions", server.address);
        let request = client()
            .post(url)
            .header("content-type", "application/json");
        let request = request.header("x-oracle-session", "chat");
        let answer = request.body(body.to_string()).send().await.unwrap();
        let answer: Value = serde_json::from_str(&answer.text().await.unwrap()).unwrap();
        answer
    };
    let question = json!({ "role": "user", "content": "how is it?" });
    let tool = json!({ "type": "function", "function": { "name": "weather" } });
    let mut body = json!({ "model": "oracle", "messages": [question], "tools": [tool] });
    let first = Served::start(&place, serve);
    let called = ask(&first, &body).await;
    first.signal("KILL");
    assert_eq!(first.end().1, None);

    let message = called["choices"][0]["message"].clone();
    let id = message["tool_calls"][0]["id"].clone();
    let result = json!({ "role": "tool", "tool_call_id": id, "content": "rain" });
    body["messages"]
        .as_array_mut()
        .unwrap()
        .extend([message, result]);
    let second = Served::start(&place, serve);
    let answer = ask(&second, &body).await;
    assert_eq!(
        answer["choices"][0]["message"]["content"], "Fine.",
        "{answer}"
    );
    assert_eq!(answer["oracle"]["turns"], 2);
    let log = log(&place, "chat");
    for (kind, times) in [
        ("query.accepted", 1),
        ("tool.handed_over", 1),
        ("tool.returned", 1),
        ("supervisor.restarted", 0),
    ] {
        assert_eq!(count(&log, kind), times, "{kind}");
    }
}
