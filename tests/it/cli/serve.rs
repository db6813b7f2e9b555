//! `oracle serve` as a process: its output, its end, and the state that it leaves.

use std::{
    io::{BufRead, BufReader, Lines, Read, Write},
    net::TcpStream,
    process::{Child, ChildStderr, Command},
    sync::Arc,
    time::Duration,
};

use oracle_agent::{
    journal::{ALL, Journal, Sqlite},
    llm::Scripted,
    model::Submission,
    testkit::{SilentBackend, TestOracle},
};
use serde_json::json;

use super::Workspace;

pub(super) const DONE: &str =
    "Fine. <signal type='context_sufficient'><sources_found>1</sources_found></signal>";

const CALLING: &str = "oracle_sessions_live{state=\"calling\"}";

const LOOKS: usize = 20_000;

/// A running server, killed on drop.
pub(super) struct Served {
    pub(super) child: Child,
    pub(super) err: Lines<BufReader<ChildStderr>>,
    pub(super) address: String,
}

impl Served {
    pub(super) fn start(place: &Workspace, line: &str) -> Self {
        let (server, before) = Self::of(place.oracle(line).command());
        assert!(before.is_empty(), "{before:?}");
        server
    }

    /// Starts a server by a command; returns it with its output before it listens.
    pub(super) fn of(command: Command) -> (Self, Vec<String>) {
        let (server, before) = Self::dead_or_alive(command);
        assert!(!server.address.is_empty(), "it ended: {before:?}");
        (server, before)
    }

    /// Starts a server that may end before it listens; it then has no address.
    pub(super) fn dead_or_alive(mut command: Command) -> (Self, Vec<String>) {
        let mut child = command.spawn().unwrap();
        let mut err = BufReader::new(child.stderr.take().unwrap()).lines();
        let mut before = Vec::new();
        let address = err.by_ref().map(Result::unwrap).find_map(|line| {
            let address = line.strip_prefix("oracle: listening on http://");
            let address = address.map(str::to_owned);
            before.extend(address.is_none().then_some(line));
            address
        });
        let server = Self {
            child,
            err,
            address: address.unwrap_or_default(),
        };
        (server, before)
    }

    pub(super) fn process(&self) -> u32 {
        self.child.id()
    }

    pub(super) fn get(&self, path: &str) -> String {
        let mut tcp = TcpStream::connect(&self.address).unwrap();
        // A stopped server must fail its test, not hang it.
        tcp.set_read_timeout(Some(Duration::from_secs(120)))
            .unwrap();
        let host = &self.address;
        let head = format!("GET {path} HTTP/1.1\r\nhost: {host}\r\nconnection: close\r\n\r\n");
        tcp.write_all(head.as_bytes()).unwrap();
        let mut text = String::new();
        tcp.read_to_string(&mut text).unwrap();
        text
    }

    fn figure(&self, name: &str) -> u64 {
        let text = self.get("/metrics");
        let line = text.lines().find_map(|line| line.strip_prefix(name));
        line.unwrap_or_else(|| panic!("no {name}"))
            .trim()
            .parse()
            .unwrap()
    }

    pub(super) fn comes_to(&self, name: &str, wanted: usize) {
        let mut tries = 0..LOOKS;
        assert!(
            tries.any(|_| self.figure(name) == wanted as u64),
            "{name} is not {wanted}\n{}",
            self.get("/metrics")
        );
    }

    pub(super) fn signal(&self, name: &str) {
        let kill = format!("kill -{name} {}", self.child.id());
        let killed = Command::new("sh").args(["-c", &kill]).status().unwrap();
        assert!(killed.success());
    }

    pub(super) fn end(mut self) -> (Vec<String>, Option<i32>) {
        let err = self.err.by_ref().map(Result::unwrap).collect();
        (err, self.child.wait().unwrap().code())
    }
}

impl Drop for Served {
    fn drop(&mut self) {
        // The process may have ended.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

pub(super) fn place(turns: &serde_json::Value) -> Workspace {
    let script = json!({ "turns": turns }).to_string();
    Workspace::new(&[("script.json", &script)])
}

pub(super) const SERVE: &str = "serve --listen 127.0.0.1:0 --model scripted/script.json";

#[test]
fn serve_prints_its_address_and_shuts_down_gracefully() {
    for signal in ["TERM", "INT"] {
        let place = place(&json!([{ "reply": DONE }]));
        let mut server = Served::start(&place, SERVE);
        let asks = server.err.next().unwrap().unwrap();
        assert_eq!(
            asks,
            "oracle: using scripted/script.json, by option --model"
        );
        let keeps = server.err.next().unwrap().unwrap();
        let data = place.data.path().join("oracle");
        let want = format!("oracle: data directory: {}", data.display());
        assert_eq!(keeps, want);
        let keys = "oracle: requests need no key; run `oracle keys create` to require keys";
        assert_eq!(server.err.next().unwrap().unwrap(), keys);
        // Only a terminal gets the link with the key.
        let page = format!(
            "oracle: supervision page: http://{}/; sign in with the key in admin.key in the data directory",
            server.address
        );
        assert_eq!(server.err.next().unwrap().unwrap(), page);
        assert!(server.get("/readyz").starts_with("HTTP/1.1 200"));
        server.signal(signal);
        let (said, code) = server.end();
        assert_eq!(
            said,
            ["oracle: shutting down: waiting for running queries to finish"]
        );
        assert_eq!(code, Some(0), "{signal}");
    }
}

#[test]
fn serve_does_not_start_where_it_cannot_listen() {
    let place = place(&json!([{ "reply": DONE }]));
    let server = Served::start(&place, SERVE);
    let taken = format!("serve --listen {}", server.address);
    for (line, code, what) in [
        (taken.as_str(), 1, "is already in use"),
        ("serve --listen 0.0.0.0:0", 2, "there are no keys"),
        ("serve --listen 192.0.2.1:1", 2, "there are no keys"),
        (
            "serve --listen here",
            2,
            "expected an IP address and a port",
        ),
    ] {
        let output = place.oracle(line).output();
        let said = String::from_utf8(output.stderr).unwrap();
        assert!(said.contains(what), "{line}: {said}");
        assert_eq!(output.status.code(), Some(code), "{line}: {said}");
    }
    server.signal("TERM");
    assert_eq!(server.end().1, Some(0));
}

#[test]
fn blocked_log_delays_no_request_and_is_complete_at_the_end() {
    let place = place(&json!([{ "reply": DONE }]));
    let (server, _) = Served::of(place.oracle(&format!("{SERVE} -v")).command());
    // Far more in total than a pipe holds.
    let path = |number: usize| format!("/{}{number:03}", "x".repeat(4_000));
    for number in 0..100 {
        let told = server.get(&path(number));
        assert!(told.starts_with("HTTP/1.1 404"), "{told}");
    }
    assert!(server.get("/healthz").starts_with("HTTP/1.1 200"));
    server.signal("TERM");
    let (said, code) = server.end();
    assert_eq!(code, Some(0));
    let lines = said.iter().filter(|line| line.contains("oracle::access"));
    let logged: Vec<&String> = lines.filter(|line| line.contains("xxx")).collect();
    assert_eq!(logged.len(), 100);
    for (number, line) in logged.iter().enumerate() {
        assert!(line.contains(&path(number)), "{number}: {line}");
    }
}

/// Number of sessions with an accepted query that was cut off.
const ACCEPTED: usize = 40;

/// Makes a system accept queries and die before it answers them.
#[tokio::main(flavor = "current_thread")]
async fn accept(place: &Workspace) {
    let model = SilentBackend::new(usize::MAX, Scripted::new());
    let oracle = TestOracle::new(model).journal(journal(place));
    // The model that the program will call afterwards.
    let oracle = oracle.models(&["scripted/script.json"]);
    let system = oracle.start().await.unwrap();
    for number in 0..ACCEPTED {
        let session = system.session(&format!("s{number}")).unwrap();
        session
            .submit(Submission::new("where is it?"))
            .await
            .unwrap();
    }
    system.die().await;
}

pub(super) fn journal(place: &Workspace) -> Arc<dyn Journal> {
    let folder = place.data.path().join("oracle");
    let journal = Sqlite::open(&folder, Box::new(|why| panic!("{why}")));
    Arc::new(journal.unwrap())
}

#[tokio::main(flavor = "current_thread")]
async fn unfinished(place: &Workspace) -> usize {
    let unfinished = journal(place).unfinished(None, ALL, 10 * ACCEPTED).await;
    unfinished.unwrap().len()
}

#[test]
fn drain_under_load_loses_nothing_acknowledged() {
    let slow = place(&json!([{ "reply": DONE, "delay_ms": 600_000 }]));
    accept(&slow);
    assert_eq!(unfinished(&slow), ACCEPTED);
    let config = "[server]\ndrain_deadline = \"2s\"\n[supervisor]\nrecovery_concurrency = 100\n";
    std::fs::write(slow.path("oracle.toml"), config).unwrap();
    let serve = format!("{SERVE} --config oracle.toml");

    let server = Served::start(&slow, &serve);
    // All of them are recovered and wait for their model.
    server.comes_to(CALLING, ACCEPTED);
    server.signal("TERM");
    assert_eq!(server.end().1, Some(0));
    assert_eq!(unfinished(&slow), ACCEPTED, "what did not end goes on");

    let quick = json!({ "turns": [{ "reply": DONE }] }).to_string();
    std::fs::write(slow.path("script.json"), quick).unwrap();
    let server = Served::start(&slow, &serve);
    server.comes_to("oracle_queries_total{outcome=\"answered\"}", ACCEPTED);
    server.signal("TERM");
    assert_eq!(server.end().1, Some(0));
    assert_eq!(unfinished(&slow), 0);
}

#[test]
fn second_signal_ends_the_server_at_once_without_loss() {
    let place = place(&json!([{ "reply": DONE, "delay_ms": 600_000 }]));
    accept(&place);
    let config = "[server]\ndrain_deadline = \"1h\"\n[supervisor]\nrecovery_concurrency = 100\n";
    std::fs::write(place.path("oracle.toml"), config).unwrap();
    let mut server = Served::start(&place, &format!("{SERVE} --config oracle.toml"));
    server.comes_to(CALLING, ACCEPTED);
    server.signal("TERM");
    while !server
        .err
        .next()
        .unwrap()
        .unwrap()
        .contains("shutting down: ")
    {}
    server.signal("TERM");
    let (said, code) = server.end();
    assert_eq!(
        (said.last().map(String::as_str), code),
        (Some("oracle: interrupted"), Some(130))
    );
    assert_eq!(unfinished(&place), ACCEPTED);
}
