//! `ask`, `chat` and `ctl` beside running servers, which own sessions of the same data directory.

use std::{
    fs,
    io::{BufRead as _, BufReader},
    path::PathBuf,
    process::Command,
    thread,
    time::Duration,
};

use futures_util::{StreamExt as _, TryStreamExt as _};
use oracle_agent::{
    control::{Client, SessionUpdate, socket},
    journal::sqlite::processes,
    model::{Seq, SessionName, Submission},
};
use serde_json::{Value, json};

use super::{Workspace, ask::json_lines, serve::Served};

const END: &str = "<signal type='context_sufficient'><sources_found>1</sources_found></signal>";

/// Longer than any test, in milliseconds.
const FOR_EVER: u64 = 600_000;

/// A place with scripts for a server and for the other processes.
fn place(turns: &[Value]) -> Workspace {
    let own = json!({ "turns": vec![json!({ "reply": format!("Mine. {END}") }); 10] });
    Workspace::new(&[
        ("server.json", &json!({ "turns": turns }).to_string()),
        ("own.json", &own.to_string()),
        ("o.toml", "[notes]\ndir = \"notes\"\nwrite = true\n"),
        ("notes/index.md", "# Index\n"),
    ])
}

fn reply(text: &str) -> Value {
    json!({ "reply": format!("{text} {END}") })
}

/// Starts a server with a socket, which owns the session.
fn serving(place: &Workspace, session: &str) -> Served {
    let line = "serve --listen 127.0.0.1:0 --config o.toml --model scripted/server.json";
    let server = Served::start(place, line);
    let pid = Some(server.process());
    let socket = loop {
        let all = processes(&place.data.path().join("oracle")).unwrap();
        let this = all.into_iter().find(|owner| owner.pid == pid);
        if let Some(socket) = this.and_then(|this| this.socket) {
            break socket;
        }
        thread::yield_now();
    };
    let runtime = tokio::runtime::Runtime::new().unwrap();
    runtime.block_on(async {
        let client = Client::unix(&socket).await.unwrap();
        let name = SessionName::new(session).unwrap();
        client.submit(&name, &Submission::new("one")).await.unwrap();
        let mut events = client.follow(&name, Seq(0)).await.unwrap();
        loop {
            match events.next().await.unwrap().unwrap() {
                SessionUpdate::Event(event) if event.kind == "query.finished" => break,
                _ => {}
            }
        }
    });
    server
}

fn log(place: &Workspace, session: &str) -> Vec<Value> {
    let line = format!("sessions events {session}");
    json_lines(&place.oracle(&line).output().stdout)
}

fn count(log: &[Value], kind: &str) -> usize {
    log.iter().filter(|event| event["type"] == kind).count()
}

#[test]
fn server_answers_questions_to_its_sessions() {
    let replies = ["One.", "Two.", "Three.", "Four.", "Five."].map(reply);
    let place = place(&replies);
    let _server = serving(&place, "s");
    let own = "--model scripted/own.json";
    let line = format!("ask --session s {own} two");
    let output = place.oracle(&line).output();
    let said = String::from_utf8(output.stdout).unwrap();
    assert_eq!((said.as_str(), output.status.code()), ("Two.\n", Some(0)));
    assert_eq!(output.stderr, b"");

    let line = format!("ask --last --json --idempotency-key k {own} three");
    for _ in 0..2 {
        let output = place.oracle(&line).output();
        let answer = &json_lines(&output.stdout)[0];
        assert_eq!(answer["answer"], "Three.", "{answer:#}");
        assert_eq!(
            (&answer["session"], &answer["query"]),
            (&json!("s"), &json!(3))
        );
        let events = answer["events"].as_array().unwrap();
        assert_eq!(count(events, "query.finished"), 1);
        assert_eq!(output.status.code(), Some(0));
    }
    let line = format!("chat --session s {own}");
    let output = place.oracle(&line).stdin(b"four\nfive\n").output();
    assert_eq!(String::from_utf8(output.stdout).unwrap(), "Four.\nFive.\n");

    let log = log(&place, "s");
    let accepted = count(&log, "query.accepted");
    assert_eq!((accepted, count(&log, "query.finished")), (5, 5));
    let other = place
        .oracle(&format!("ask --session t {own} mine"))
        .output();
    assert_eq!(String::from_utf8(other.stdout).unwrap(), "Mine.\n");
}

#[test]
fn ctrl_c_cancels_a_servers_query_also_while_draining() {
    for drains in [false, true] {
        let slow = json!({ "reply": END, "delay_ms": FOR_EVER });
        let place = place(&[reply("One."), slow]);
        fs::write(place.path("o.toml"), "server.drain_deadline = \"1h\"").unwrap();
        let server = serving(&place, "s");
        let line = "ask --events --session s --model scripted/own.json two";
        let mut child = place.oracle(line).command().spawn().unwrap();
        let mut out = BufReader::new(child.stdout.take().unwrap()).lines();
        let mut event = |kind: &str| {
            let mut events = out
                .by_ref()
                .map(|line| serde_json::from_str(&line.unwrap()));
            let mut events = events.by_ref().map(Result::<Value, _>::unwrap);
            events.find(|event| event["type"] == kind).unwrap()
        };
        event("turn.started");
        if drains {
            has_begun_to_drain(&place, &server);
        }
        let kill = format!("kill -INT {}", child.id());
        assert!(
            Command::new("sh")
                .args(["-c", &kill])
                .status()
                .unwrap()
                .success()
        );
        assert_eq!(event("query.finished")["payload"]["outcome"], "cancelled");
        assert_eq!(child.wait().unwrap().code(), Some(130));
        if drains {
            assert_eq!(server.end().1, Some(0));
        }
    }
}

/// Signals a server to shut down, and returns when its event streams have ended.
fn has_begun_to_drain(place: &Workspace, server: &Served) {
    let runtime = tokio::runtime::Runtime::new().unwrap();
    runtime.block_on(async {
        let client = Client::unix(&socket_of(place)).await.unwrap();
        let name = SessionName::new("s").unwrap();
        let mut events = client.follow(&name, Seq(0)).await.unwrap();
        server.signal("TERM");
        while !matches!(
            events.try_next().await.unwrap(),
            Some(SessionUpdate::End { .. }) | None
        ) {}
    });
}

fn socket_of(place: &Workspace) -> PathBuf {
    place.data.path().join("oracle").join(socket::NAME)
}

/// The server is stopped, and dies before it accepts the question.
#[cfg(target_os = "linux")]
#[test]
fn question_is_asked_locally_when_the_server_dies_before_accepting() {
    let place = place(&[reply("One.")]);
    let server = serving(&place, "s");
    server.signal("STOP");
    let line = "ask --session s --model scripted/own.json two";
    let child = place.oracle(line).command().spawn().unwrap();
    // Connections that are not accepted have no inode: a probe, and one with a request.
    let waiting = format!(" 0 {}", place.data.path().display());
    let connections = || fs::read_to_string("/proc/net/unix").unwrap();
    while connections().matches(&waiting).count() < 2 {
        std::thread::yield_now();
    }
    server.signal("KILL");
    let output = child.wait_with_output().unwrap();
    let said = String::from_utf8(output.stdout).unwrap();
    assert_eq!((said.as_str(), output.status.code()), ("Mine.\n", Some(0)));
    assert_eq!(count(&log(&place, "s"), "query.finished"), 2);
}

#[test]
fn question_continues_locally_when_the_server_dies() {
    let slow = json!({ "reply": END, "delay_ms": FOR_EVER });
    let place = place(&[reply("One."), slow]);
    let server = serving(&place, "s");
    // The reply of this process's model of the same name.
    fs::copy(place.path("own.json"), place.path("server.json")).unwrap();
    let line = "ask --events --json --session s --model scripted/server.json two";
    let mut child = place.oracle(line).command().spawn().unwrap();
    let mut out = BufReader::new(child.stdout.take().unwrap()).lines();
    while !out.next().unwrap().unwrap().contains("turn.started") {}
    server.signal("KILL");
    let rest: Vec<String> = out.map(Result::unwrap).collect();
    let answer: Value = serde_json::from_str(rest.last().unwrap()).unwrap();
    assert_eq!(answer["answer"], "Mine.", "{answer:#}");
    assert_eq!(child.wait().unwrap().code(), Some(0));
    let log = log(&place, "s");
    assert_eq!(count(&log, "supervisor.restarted"), 1);
    assert_eq!(count(&log, "query.finished"), 2);
}

/// A server's operators decide about its calls if the user of `ask` cannot.
#[test]
fn unattended_ask_leaves_a_servers_call_to_its_operators() {
    let call = json!({ "name": "note_write", "arguments": { "note": "n", "text": "# N" } });
    let asks = json!({ "reply": "May I?", "tool_calls": [call] });
    let place = place(&[reply("One."), asks, reply("Two.")]);
    // The session is passivated while it waits.
    let settings =
        fs::read_to_string(place.path("o.toml")).unwrap() + "[session]\nidle_timeout = \"3s\"\n";
    fs::write(place.path("o.toml"), settings).unwrap();
    let _server = serving(&place, "s");
    let mut child = place
        .oracle("ask --session s two")
        .command()
        .spawn()
        .unwrap();
    let mut err = BufReader::new(child.stderr.take().unwrap()).lines();
    let said = err.next().unwrap().unwrap();
    let (_, how) = said.split_once("approval: run `oracle ").unwrap();
    let (line, _) = how.split_once('`').unwrap();
    assert!(line.starts_with("ctl approve s "), "{said}");
    let is_passivated = (0..600).any(|_| {
        thread::sleep(Duration::from_millis(50));
        count(&log(&place, "s"), "session.passivated") > 0
    });
    assert!(is_passivated);
    // Long enough for the client to look at the session, which it must not take from the server.
    thread::sleep(Duration::from_secs(3));
    assert_eq!(count(&log(&place, "s"), "session.revived"), 0);
    assert!(!fs::exists(place.path("notes/n.md")).unwrap());
    assert_eq!(place.oracle(line).output().status.code(), Some(0));
    assert_eq!(child.wait().unwrap().code(), Some(0));
    assert!(fs::exists(place.path("notes/n.md")).unwrap());
}

#[test]
fn ctl_asks_the_owner_of_a_session_or_the_server_with_a_pid() {
    let slow = json!({ "reply": END, "delay_ms": FOR_EVER });
    let place = place(&[reply("One."), slow]);
    let servers = [serving(&place, "a"), serving(&place, "b")];
    let run = |line: &str| {
        let output = place.oracle(line).output();
        let text = |bytes| String::from_utf8(bytes).unwrap();
        let (out, err) = (text(output.stdout), text(output.stderr));
        (output.status.code(), out, err)
    };
    for session in ["a", "b"] {
        let line = format!("ask --events --session {session} two");
        let mut child = place.oracle(&line).command().spawn().unwrap();
        let mut out = BufReader::new(child.stdout.take().unwrap()).lines();
        while !out.next().unwrap().unwrap().contains("turn.started") {}
        child.kill().unwrap();
        child.wait().unwrap();
    }
    let [one, other] = servers.each_ref().map(Served::process);
    for line in [
        "ctl list",
        "ctl approvals",
        "ctl watch",
        "ctl drain",
        "ctl shutdown",
        "ctl reload",
    ] {
        let (code, _, err) = run(line);
        assert_eq!(code, Some(2), "{line}: {err}");
        let pids = format!(
            "(process ids {}, {}): choose one with --pid",
            one.min(other),
            one.max(other)
        );
        assert!(err.contains(&pids), "{line}: {err}");
    }
    let states = |line: &str| {
        let (code, out, err) = run(line);
        assert_eq!(code, Some(0), "{line}: {err}");
        let state = |line: &str| line.split('\t').take(2).collect::<Vec<_>>().join(" ");
        out.lines().map(state).collect::<Vec<_>>().join(", ")
    };
    for (pid, own) in [(one, "a"), (other, "b")] {
        let running = states(&format!("ctl --pid {pid} list --state running"));
        assert_eq!(running, format!("{own} calling"));
        // Only the owner has it.
        let (code, out, err) = run(&format!("ctl inspect {own}"));
        assert_eq!((code, err.as_str()), (Some(0), ""));
        assert!(out.contains("calling"), "{out}");
        let watch = format!("ctl watch --json {own} --type control.");
        let mut watch = place.oracle(&watch).command().spawn().unwrap();
        let mut seen = BufReader::new(watch.stdout.take().unwrap()).lines();
        // Until it listens and receives a record.
        let told = thread::scope(|scope| {
            let told = scope.spawn(|| seen.next().unwrap().unwrap());
            while !told.is_finished() {
                assert_eq!(run(&format!("ctl pause {own}")).0, Some(0));
                assert_eq!(run(&format!("ctl resume {own}")).0, Some(0));
            }
            told.join().unwrap()
        });
        assert!(told.contains(&format!("\"{own}\"")), "{told}");
        watch.kill().unwrap();
        watch.wait().unwrap();
    }
    let [first, second] = servers;
    let (code, _, err) = run(&format!("ctl --pid {} shutdown", first.process()));
    assert_eq!((code, err.as_str()), (Some(0), ""));
    assert_eq!(first.end().1, Some(0));
    // The other server may already have taken over what the first one left.
    let running = states("ctl list --state running");
    assert!(running.ends_with("b calling"), "{running}");
    assert_eq!(run("ctl reload").0, Some(0));
    assert_eq!(run("ctl --pid 1 reload").0, Some(1));
    drop(second);
}
