//! Graceful shutdown of `oracle serve` under load, over HTTP and as a process.
//!
//! Clients send one message after the other, three a session: the first is answered, the second
//! waits for its model, the third for the second. Other clients hold streams. Then the server gets
//! its signal and restarts with a model that answers. Acknowledged messages must be in the journal
//! under the number that the client was given, and every accepted message must be answered exactly
//! once, including those that a client sent again.

use std::{
    collections::{BTreeMap, BTreeSet},
    fs,
    time::Duration,
};

use oracle_agent::journal::{Entry, Known};
use reqwest::Client;
use serde_json::{Value, json};
use tokio::{sync::mpsc, task::JoinSet};

use super::{
    Workspace,
    serve::{DONE, SERVE, Served, journal, place},
};
use crate::actors::simulation::check::{all_ended, audited, logs};

const CLIENTS: usize = 8;
/// Messages sent before the signal.
const ENOUGH: usize = 100;
/// Streams of events; as many clients hold a stream of an answer.
const STREAMS: usize = 4;
const PATIENCE: Duration = Duration::from_secs(30);

#[derive(Debug, Clone)]
struct Message {
    session: String,
    key: String,
    /// Query and sequence number, if it was acknowledged.
    told: Option<(u64, u64)>,
}

pub(super) fn client() -> Client {
    // An error means that another test has installed it.
    let _ = rustls::crypto::ring::default_provider().install_default();
    Client::builder().no_proxy().build().unwrap()
}

/// Sends a message and returns whether it was acknowledged.
async fn hand_in(client: &Client, address: &str, message: &mut Message) -> bool {
    let url = format!("http://{address}/api/sessions/{}/messages", message.session);
    let asked = client
        .post(url)
        .header("content-type", "application/json")
        .header("idempotency-key", &message.key)
        .body(json!({ "text": format!("where is {}?", message.key) }).to_string());
    let Ok(answer) = asked.send().await else {
        return false;
    };
    let status = answer.status().as_u16();
    let Ok(text) = answer.text().await else {
        return false;
    };
    let body: Value = serde_json::from_str(&text).unwrap();
    if status == 503 {
        assert_eq!(body["error"]["code"], "draining", "{body}");
        return false;
    }
    assert_eq!(
        (status, &body["session"]),
        (202, &json!(message.session)),
        "{body}"
    );
    let number = |field: &str| body[field].as_u64().unwrap();
    message.told = Some((number("query"), number("seq")));
    true
}

/// Sends one message after the other, until one is not acknowledged.
async fn hand_in_many(address: String, own: usize, told: mpsc::UnboundedSender<Message>) {
    let client = client();
    for number in 0.. {
        let mut message = Message {
            session: format!("c{own}-{}", number / 3),
            key: format!("k{own}-{number}"),
            told: None,
        };
        let is_taken = hand_in(&client, &address, &mut message).await;
        told.send(message).unwrap();
        if !is_taken {
            return;
        }
    }
}

/// Asks a question over `/v1` and returns the response as soon as its stream has begun.
async fn chat(address: &str, session: &str) -> reqwest::Response {
    let body = json!({ "model": "oracle", "stream": true,
        "messages": [{ "role": "user", "content": "where is it?" }] });
    let asked = client()
        .post(format!("http://{address}/v1/chat/completions"))
        .header("content-type", "application/json")
        .header("x-oracle-session", session)
        .header("x-oracle-history", "tail")
        .body(body.to_string());
    let answer = asked.send().await.unwrap();
    assert_eq!(answer.status(), 200);
    answer
}

/// Opens streams; each task returns its text, and whether it ended without an error.
async fn hold_streams(address: &str) -> JoinSet<(&'static str, String, bool)> {
    let mut held = JoinSet::new();
    for number in 0..STREAMS {
        let session = format!("v{number}");
        let first = chat(address, &session).await.text().await.unwrap();
        assert!(first.ends_with("data: [DONE]\n\n"), "{first}");
        let events = client()
            .get(format!("http://{address}/api/sessions/{session}/events"))
            .header("accept", "text/event-stream");
        let events = events.send().await.unwrap();
        let second = chat(address, &session).await;
        held.spawn(read("events", events));
        held.spawn(read("answer", second));
    }
    held
}

async fn read(name: &'static str, mut answer: reqwest::Response) -> (&'static str, String, bool) {
    let mut text = Vec::new();
    loop {
        match answer.chunk().await {
            Ok(Some(more)) => text.extend_from_slice(&more),
            ended => return (name, String::from_utf8(text).unwrap(), ended.is_ok()),
        }
    }
}

fn last_of(stream: &str) -> Value {
    let last = stream
        .lines()
        .rev()
        .find_map(|line| line.strip_prefix("data: "));
    serde_json::from_str(last.unwrap_or_else(|| panic!("{stream:?}"))).unwrap()
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum ShutdownSignal {
    Once,
    Twice,
}

/// Shuts the server down under load and returns all messages that were sent.
async fn end_in_the_middle(place: &Workspace, told: ShutdownSignal) -> Vec<Message> {
    let mut server = Served::start(place, &serve());
    let address = server.address.clone();
    let mut held = hold_streams(&address).await;
    let (tell, mut heard) = mpsc::unbounded_channel();
    let mut clients = JoinSet::new();
    for own in 0..CLIENTS {
        clients.spawn(hand_in_many(address.clone(), own, tell.clone()));
    }
    drop(tell);
    let mut messages = Vec::new();
    while messages.len() < ENOUGH {
        messages.push(heard.recv().await.unwrap());
    }
    server.signal("TERM");
    if told == ShutdownSignal::Twice {
        // Waits until the first signal is handled.
        while !server
            .err
            .next()
            .unwrap()
            .unwrap()
            .contains("shutting down: ")
        {}
        server.signal("TERM");
    }
    let ended = tokio::task::spawn_blocking(|| server.end());
    let ended = tokio::time::timeout(PATIENCE, ended).await;
    let (said, code) = ended.expect("it ends in time").unwrap();
    let want = match told {
        ShutdownSignal::Once => (
            Some("oracle: shutting down: waiting for running queries to finish"),
            Some(0),
        ),
        ShutdownSignal::Twice => (Some("oracle: interrupted"), Some(130)),
    };
    assert_eq!((said.last().map(String::as_str), code), want, "{said:?}");
    while let Some(message) = heard.recv().await {
        messages.push(message);
    }
    while let Some(client) = clients.join_next().await {
        client.unwrap();
    }
    let mut streams = 0;
    while let Some(stream) = held.join_next().await {
        let (name, text, in_order) = stream.unwrap();
        if told == ShutdownSignal::Once {
            assert!(in_order, "{name} is cut off: {text}");
            let last = last_of(&text);
            assert_eq!(last["error"]["code"], "draining", "{name}: {text}");
            streams += 1;
        }
    }
    assert!(told == ShutdownSignal::Twice || streams == 2 * STREAMS);
    messages
}

fn serve() -> String {
    format!("{SERVE} --config oracle.toml")
}

/// Checks that each acknowledged message is in the journal under its number.
fn all_there(messages: &[Message], logs: &[(Known, Vec<Entry>)]) {
    for message in messages {
        let Some((query, seq)) = message.told else {
            continue;
        };
        let log = logs
            .iter()
            .find(|(known, _)| known.key.name.as_str() == message.session);
        let (_, log) = log.unwrap_or_else(|| panic!("{message:?} is lost with its session"));
        let entry = log.iter().find(|entry| entry.seq.0 == seq);
        let record = &entry
            .unwrap_or_else(|| panic!("{message:?} is lost"))
            .record;
        let Some(accepted) = record.accepted() else {
            panic!("{message:?} is not there: {record:?}");
        };
        assert_eq!(accepted.idempotency_key.as_ref(), Some(&message.key));
        assert_eq!(record.query.map(|query| u64::from(query.0)), Some(query));
    }
}

async fn told_in_the_middle(told: ShutdownSignal) {
    let turns = [
        json!({ "reply": DONE }),
        json!({ "reply": DONE, "delay_ms": 600_000 }),
    ];
    let place = place(&json!(turns));
    let deadline = match told {
        ShutdownSignal::Once => "2s",
        ShutdownSignal::Twice => "1h",
    };
    let config = format!(
        "[server]\ndrain_deadline = \"{deadline}\"\n[actors]\nmodel_concurrency = 1000\n\
         [supervisor]\nrecovery_concurrency = 100\n"
    );
    fs::write(place.path("oracle.toml"), config).unwrap();
    let mut messages = end_in_the_middle(&place, told).await;

    let before = logs(&journal(&place)).await;
    all_there(&messages, &before);
    let ended_of = |logs: &[(Known, Vec<Entry>)], name: &str| {
        let ended = logs.iter().map(|(known, log)| audited(known, log, name).0);
        ended.flatten().collect::<Vec<_>>()
    };
    let ended_before = ended_of(&before, "after the end").len();
    assert!(ended_before > 0, "some were answered");

    let quick = json!({ "turns": [{ "reply": DONE }, { "reply": DONE }, { "reply": DONE }] });
    fs::write(place.path("script.json"), quick.to_string()).unwrap();
    let server = Served::start(&place, &serve());
    // Clients repeat the messages without an acknowledgement, and some of the others.
    let client = client();
    for (number, message) in messages.iter_mut().enumerate() {
        let before = message.told;
        if before.is_none() || number % 10 == 0 {
            assert!(hand_in(&client, &server.address, message).await);
            assert!(
                before.is_none() || before == message.told,
                "{before:?} became {message:?}"
            );
        }
    }
    let all = messages.len() + 2 * STREAMS - ended_before;
    tokio::task::block_in_place(|| {
        server.comes_to("oracle_queries_total{outcome=\"answered\"}", all);
        server.signal("TERM");
        assert_eq!(server.end().1, Some(0));
    });

    let after = logs(&journal(&place)).await;
    all_there(&messages, &after);
    for (known, log) in &after {
        let (ended, _) = audited(known, log, "at last");
        all_ended(known, log, &ended, "at last");
    }
    let mut keys = BTreeMap::new();
    for ended in ended_of(&after, "at last") {
        assert_eq!(ended.outcome, ("answered".to_owned(), None), "{ended:?}");
        *keys.entry(ended.key).or_insert(0) += 1;
    }
    assert_eq!(
        keys.remove(&None),
        Some(2 * STREAMS),
        "the chats have no keys"
    );
    assert!(keys.values().all(|times| *times == 1), "{keys:?}");
    let handed_in: BTreeSet<_> = messages
        .into_iter()
        .map(|message| Some(message.key))
        .collect();
    assert_eq!(keys.into_keys().collect::<BTreeSet<_>>(), handed_in);
}

#[tokio::test(flavor = "multi_thread")]
async fn drain_keeps_what_it_acknowledged_to_clients() {
    told_in_the_middle(ShutdownSignal::Once).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn forced_shutdown_keeps_what_it_acknowledged_to_clients() {
    told_in_the_middle(ShutdownSignal::Twice).await;
}
