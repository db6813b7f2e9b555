//! Several `oracle serve` over one database: any takes any request, and a killed one loses nothing.
//! Passes without a test where PostgreSQL is not installed.

use std::{fs, net::TcpListener, sync::Arc, time::Duration};

use bytes::Bytes;
use futures_util::{Stream, StreamExt as _};
use oracle_agent::{
    http::ClusterKey,
    journal::{Postgres, postgres::Settings},
    testkit::postgres::Cluster,
};
use reqwest::{Client, Response, StatusCode};
use serde_json::{Value, json};
use tokio::time::{Instant, sleep, timeout};

use super::{
    Workspace,
    draining::client,
    serve::{DONE, Served, place},
};

mod chaos;

const KEY: &str = "0123456789abcdef0123456789abcdef";
/// Shorter than the time after which a follower looks into the journal without being told.
const AT_ONCE: Duration = Duration::from_secs(10);
const SOON: Duration = Duration::from_secs(60);

/// Where a node has its files and its address.
#[derive(Clone)]
struct NodePlace {
    place: Arc<Workspace>,
    address: String,
}

impl NodePlace {
    /// A node whose model takes this many milliseconds for each reply of a conversation.
    fn new(database: &str, delays: &[u64]) -> Self {
        let turns = delays.iter();
        let turns = turns.map(|delay| json!({ "reply": DONE, "delay_ms": delay }));
        let place = place(&turns.collect());
        // Bound and left at once: nothing else takes it so soon.
        let free = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = free.local_addr().unwrap().to_string();
        let config = format!(
            "journal.url = {database:?}\n\
             cluster.url = \"http://{address}\"\n\
             cluster.key_env = \"CLUSTER_KEY\"\n"
        );
        fs::write(place.path("node.toml"), config).unwrap();
        let place = Arc::new(place);
        Self { place, address }
    }

    fn start(&self) -> Served {
        let address = &self.address;
        let line = format!("serve --listen {address} --model scripted/script.json");
        let run = self.place.oracle(&line).env("CLUSTER_KEY", KEY);
        let mut command = run.command();
        command.args(["--config", "node.toml"]);
        Served::of(command).0
    }
}

struct Node {
    server: Served,
    place: NodePlace,
}

impl Node {
    /// Starts a node whose model takes this many milliseconds for its first reply.
    fn start(database: &str, delay_ms: u64) -> Self {
        Self::with_delays(database, &[delay_ms])
    }

    /// Starts a node whose model takes this many milliseconds for each of its first replies.
    fn with_delays(database: &str, first: &[u64]) -> Self {
        let mut delays = [0; 20];
        delays[..first.len()].copy_from_slice(first);
        let place = NodePlace::new(database, &delays);
        Self {
            server: place.start(),
            place,
        }
    }

    /// Waits until the query of a session has ended.
    async fn finishes(&self, client: &Client, session: &str) {
        let since = Instant::now();
        loop {
            let url = self.url(&format!("/api/sessions/{session}/events?limit=500"));
            let page = client.get(url).send().await.unwrap();
            if page.status() == StatusCode::OK {
                let page: Value = serde_json::from_slice(&page.bytes().await.unwrap()).unwrap();
                let events = page["events"].as_array().unwrap();
                if count(events, "query.finished") == 1 {
                    assert_eq!(count(events, "query.accepted"), 1);
                    return;
                }
            }
            assert!(since.elapsed() < SOON);
            sleep(Duration::from_millis(100)).await;
        }
    }

    fn url(&self, path: &str) -> String {
        format!("http://{}{path}", self.server.address)
    }

    async fn ask(&self, client: &Client, session: &str, text: &str) -> Response {
        let body = json!({
            "model": "oracle",
            "messages": [{ "role": "user", "content": text }],
        });
        let request = client
            .post(self.url("/v1/chat/completions"))
            .header("content-type", "application/json")
            .header("x-oracle-session", session)
            .body(body.to_string());
        request.send().await.unwrap()
    }

    /// Begins a query and waits until it calls the model.
    async fn begin(&self, client: &Client, session: &str) {
        let url = self.url(&format!("/api/sessions/{session}/messages"));
        let message = client.post(url).header("content-type", "application/json");
        let message = message.body(json!({ "text": "where is it?" }).to_string());
        assert_eq!(message.send().await.unwrap().status(), 202);
        self.server
            .comes_to("oracle_sessions_live{state=\"calling\"}", 1);
    }

    /// Sends a message over MCP; the response may be a stream.
    async fn mcp(&self, client: &Client, message: Value) -> Response {
        let request = client
            .post(self.url("/mcp"))
            .header("accept", "application/json, text/event-stream")
            .header("content-type", "application/json")
            .header("mcp-session-id", "0")
            .body(message.to_string());
        request.send().await.unwrap()
    }

    async fn events(&self, client: &Client, session: &str) -> Vec<Value> {
        let url = self.url(&format!("/api/sessions/{session}/events?limit=500"));
        let page = client.get(url).send().await.unwrap();
        let page: Value = serde_json::from_slice(&page.bytes().await.unwrap()).unwrap();
        page["events"].as_array().unwrap().clone()
    }
}

/// A tool call over MCP.
fn ask_talk() -> Value {
    let params = json!({"name": "ask", "arguments": {"question": "really?", "session": "talk"}});
    json!({"jsonrpc": "2.0", "id": 7, "method": "tools/call", "params": params})
}

/// A node that accepts connections and says nothing.
async fn silent_node(database: &str) -> TcpListener {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    let row = ClusterKey::new(&KEY.into()).proven(&url);
    let node = format!("INSERT INTO node (id, url) VALUES (1, '{row}')");
    let settings = Settings::new(database.to_owned());
    Postgres::execute(&settings, &node).await.unwrap();
    listener
}

/// Reads a stream until it has had this text so often.
async fn until_in(
    stream: &mut (impl Stream<Item = reqwest::Result<Bytes>> + Unpin),
    wanted: &str,
    times: usize,
) -> String {
    let mut text = String::new();
    let arrives = async {
        while text.matches(wanted).count() < times {
            let piece = stream.next().await.unwrap().unwrap();
            text.push_str(&String::from_utf8_lossy(&piece));
        }
    };
    assert!(timeout(AT_ONCE, arrives).await.is_ok(), "{text}");
    text
}

fn count(events: &[Value], kind: &str) -> usize {
    let of_kind = events.iter().filter(|event| event["type"] == kind);
    of_kind.count()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn any_node_takes_any_request() {
    let Some(cluster) = Cluster::shared() else {
        return;
    };
    let database = cluster.schema().await.unwrap();
    let (one, other) = (Node::start(&database, 0), Node::start(&database, 0));
    let client = client();
    for node in [&one, &other, &one, &other] {
        let answer = node.ask(&client, "talk", "where is it?").await;
        assert_eq!(answer.status(), StatusCode::OK);
        let answer: Value = serde_json::from_slice(&answer.bytes().await.unwrap()).unwrap();
        assert_eq!(answer["choices"][0]["message"]["content"], "Fine.");
    }
    let events = one.events(&client, "talk").await;
    assert_eq!(count(&events, "query.finished"), 4);
    assert_eq!(count(&events, "session.revived"), 0, "it stays where it is");
    assert_eq!(other.events(&client, "talk").await, events);
    // The table of sessions is that of all nodes.
    for node in [&one, &other] {
        let table = client.get(node.url("/api/activity")).send().await.unwrap();
        let table: Value = serde_json::from_slice(&table.bytes().await.unwrap()).unwrap();
        let seen = &table["sessions"][0];
        assert_eq!(
            (&seen["session"], &seen["outcome"]),
            (&json!("talk"), &json!("answered"))
        );
    }

    // A stream at the other node shows what happens at the owner's at once.
    let url = other.url("/api/sessions/talk/events?after=4");
    let stream = client.get(url).header("accept", "text/event-stream");
    let mut stream = stream.send().await.unwrap().bytes_stream();
    let asked = one.ask(&client, "talk", "and then?").await;
    assert_eq!(asked.status(), StatusCode::OK);
    until_in(&mut stream, "event: query.finished", 5).await;

    // A tool call over MCP too.
    let told = other.mcp(&client, ask_talk()).await.text().await.unwrap();
    assert!(told.contains("Fine."), "{told}");
    let events = one.events(&client, "talk").await;
    assert_eq!(count(&events, "session.revived"), 0, "it stays where it is");

    // Without a signature, a request keeps its own identity, here and at the owner.
    let caller = r#"{"name":"x","tenant":"acme","role":"admin","profiles":[]}"#;
    for node in [&one, &other] {
        let forged = client.get(node.url("/api/sessions/talk"));
        let forged = forged.header("x-oracle-caller", caller);
        let seen = forged.send().await.unwrap();
        assert_eq!(seen.status(), StatusCode::OK);
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn cancellation_over_mcp_reaches_the_node_that_has_the_call() {
    let Some(cluster) = Cluster::shared() else {
        return;
    };
    let database = cluster.schema().await.unwrap();
    let one = Node::with_delays(&database, &[0, 600_000, 600_000]);
    let other = Node::start(&database, 0);
    let client = client();
    // Holds no cancellation up.
    let _silent = silent_node(&database).await;
    one.server.comes_to("oracle_nodes", 3);
    one.ask(&client, "talk", "where is it?").await;
    for (number, node) in [&other, &one].into_iter().enumerate() {
        let waiting = node.mcp(&client, ask_talk()).await;
        one.server
            .comes_to("oracle_sessions_live{state=\"calling\"}", 1);
        // The client disconnects first, as the session's name lets the question go on.
        drop(waiting);
        let params = json!({"requestId": 7});
        let cancel =
            json!({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": params});
        assert_eq!(node.mcp(&client, cancel).await.status(), 202);
        one.server
            .comes_to("oracle_queries_total{outcome=\"cancelled\"}", number + 1);
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn watch_of_all_sessions_has_those_of_all_nodes() {
    let Some(cluster) = Cluster::shared() else {
        return;
    };
    let database = cluster.schema().await.unwrap();
    let (one, other) = (Node::start(&database, 0), Node::start(&database, 0));
    let client = client();
    let url = one.url("/api/control/watch?types=query.finished");
    let key = fs::read_to_string(one.place.place.data.path().join("oracle/admin.key")).unwrap();
    let watch = client.get(url).bearer_auth(key.trim()).send().await;
    let mut watch = watch.unwrap().bytes_stream();
    let _silent = silent_node(&database).await;
    one.server.comes_to("oracle_nodes", 3);
    for _ in 0..10 {
        one.ask(&client, "here", "where is it?").await;
    }
    until_in(&mut watch, "event: query.finished", 10).await;
    // Each sees the other with a heartbeat.
    let (mut here, mut there) = (0, 0);
    let both = async {
        while here == 0 || there == 0 {
            one.ask(&client, "here", "where is it?").await;
            other.ask(&client, "there", "where is it?").await;
            let text = until_in(&mut watch, "event: query.finished", 1).await;
            here += text.matches("\"session\":\"here\"").count();
            there += text.matches("\"session\":\"there\"").count();
        }
    };
    timeout(SOON, both).await.unwrap();
    other.server.signal("KILL");
    until_in(&mut watch, "event: lost", 1).await;
    one.ask(&client, "later", "where is it?").await;
    until_in(&mut watch, "\"session\":\"later\"", 1).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn idle_sessions_move_when_a_node_begins_to_drain() {
    let Some(cluster) = Cluster::shared() else {
        return;
    };
    let database = cluster.schema().await.unwrap();
    let (drained, other) = (
        Node::with_delays(&database, &[0, 600_000]),
        Node::start(&database, 0),
    );
    let client = client();
    for session in ["idle", "busy"] {
        let asked = drained.ask(&client, session, "where is it?").await;
        assert_eq!(asked.status(), StatusCode::OK);
    }
    drained.begin(&client, "busy").await;
    drained.server.signal("TERM");
    let moves = async {
        while other.ask(&client, "idle", "and then?").await.status() != StatusCode::OK {
            sleep(Duration::from_millis(100)).await;
        }
    };
    timeout(AT_ONCE, moves).await.unwrap();
    // Meanwhile it waits for its query, and others reach it.
    let readiness = drained.server.get("/readyz");
    assert!(readiness.contains("\"draining\":true"), "{readiness}");
    let events = other.events(&client, "busy").await;
    assert_eq!(count(&events, "turn.started"), 2);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn requests_follow_a_session_that_has_moved() {
    let Some(cluster) = Cluster::shared() else {
        return;
    };
    let database = cluster.schema().await.unwrap();
    let (mut first, other) = (Node::start(&database, 0), Node::start(&database, 0));
    let client = client();
    for node in [&first, &other] {
        let answer = node.ask(&client, "talk", "where is it?").await;
        assert_eq!(answer.status(), StatusCode::OK);
    }
    // The other node remembers the owner, which restarts without the session.
    first.server.signal("TERM");
    other.server.comes_to("oracle_nodes", 1);
    first.server = first.place.start();
    other.server.comes_to("oracle_nodes", 2);
    let answer = other.ask(&client, "talk", "and then?").await;
    assert_eq!(answer.status(), StatusCode::OK);
    // Wherever the session is, both nodes show at once what happens there.
    for node in [&first, &other] {
        let seen = node.events(&client, "talk").await.len();
        let url = node.url(&format!("/api/sessions/talk/events?after={seen}"));
        let stream = client.get(url).header("accept", "text/event-stream");
        let mut stream = stream.send().await.unwrap().bytes_stream();
        let answer = other.ask(&client, "talk", "really?").await;
        assert_eq!(answer.status(), StatusCode::OK);
        until_in(&mut stream, "event: query.finished", 1).await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn drain_waits_for_the_answers_of_other_nodes() {
    let Some(cluster) = Cluster::shared() else {
        return;
    };
    let database = cluster.schema().await.unwrap();
    let (owner, drained) = (
        Node::with_delays(&database, &[0, 3_000]),
        Node::start(&database, 0),
    );
    let client = client();
    let first = owner.ask(&client, "slow", "where is it?").await;
    assert_eq!(first.status(), StatusCode::OK);
    let calls = async {
        owner
            .server
            .comes_to("oracle_sessions_live{state=\"calling\"}", 1);
        drained.server.signal("TERM");
    };
    let asked = drained.ask(&client, "slow", "and then?");
    let (answer, ()) = tokio::join!(asked, async {
        sleep(Duration::from_millis(500)).await;
        calls.await;
    });
    assert_eq!(answer.status(), StatusCode::OK);
    let answer = answer.text().await.unwrap();
    assert!(answer.contains("Fine."), "{answer}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn node_that_was_declared_dead_gives_its_sessions_up() {
    let Some(cluster) = Cluster::shared() else {
        return;
    };
    let database = cluster.schema().await.unwrap();
    let (stopped, other) = (Node::start(&database, 600_000), Node::start(&database, 0));
    let client = client();
    stopped.begin(&client, "moved").await;
    let url = stopped.url("/api/sessions/moved/events");
    let stream = client.get(url).header("accept", "text/event-stream");
    let mut stream = stream.send().await.unwrap().bytes_stream();
    stopped.server.signal("STOP");
    other.finishes(&client, "moved").await;
    stopped.server.signal("CONT");
    until_in(&mut stream, "event: query.finished", 1).await;
    stopped
        .server
        .comes_to("oracle_sessions_live{state=\"calling\"}", 0);
    let asked = stopped.ask(&client, "moved", "and then?").await;
    assert_eq!(asked.status(), StatusCode::OK, "from the other node");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn query_of_a_killed_node_continues_on_another() {
    let Some(cluster) = Cluster::shared() else {
        return;
    };
    let database = cluster.schema().await.unwrap();
    let doomed = Node::start(&database, 600_000);
    let survivor = Node::start(&database, 0);
    let client = client();
    doomed.begin(&client, "cut-off").await;
    let begun = survivor.events(&client, "cut-off").await;
    assert_eq!(count(&begun, "turn.started"), 1);
    doomed.server.signal("KILL");
    survivor.finishes(&client, "cut-off").await;
}
