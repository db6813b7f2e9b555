//! The control socket: access, stale files, capacity, and its client.

use std::{os::unix::fs::PermissionsExt as _, path::Path};

use futures_util::StreamExt as _;
use oracle_agent::{
    control::{
        Answer, Client, ClientError, SessionUpdate, Verb, Watching,
        socket::{NAME, Socket, SocketError},
    },
    http::LocalServer,
    model::{Seq, SessionName, Submission},
};
use serde_json::Value;
use tempfile::TempDir;

use super::{system, ways::host};

fn verb(text: &str) -> Verb {
    Verb::from_json(text.as_bytes()).unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn unknown_verb_is_refused_and_the_connection_stays_open() {
    let system = system().await;
    let folder = TempDir::new().unwrap();
    let path = folder.path().join(NAME);
    let socket = Socket::bind(&path).await.unwrap();
    let _server = LocalServer::start(socket, host(&system));
    // An error means that another test has installed it.
    let _ = rustls::crypto::ring::default_provider().install_default();
    let client = reqwest::Client::builder().unix_socket(path.as_path());
    let client = client.build().unwrap();
    for (body, says) in [
        ("", "EOF"),
        ("pause", "expected value"),
        ("[]", "object"),
        ("{}", "`verb`"),
        (r#"{"verb":"fly"}"#, "`fly`"),
        (r#"{"verb":19}"#, "`verb`"),
        (r#"["drain"]"#, "object"),
        (r#"{"verb":"pause"}"#, "`session`"),
        (
            r#"{"verb":"pause","session":"a b"}"#,
            "contains the character",
        ),
        (r#"{"verb":"pause","session":"s","query":1}"#, "`query`"),
        (r#"{"verb":"drain","now":true}"#, "`now`"),
        (r#"{"verb":"list","limit":-1}"#, "`limit`"),
        (
            r#"{"verb":"set_budget","session":"s","limits":{"max_turns":30,"max_token":1}}"#,
            "max_token",
        ),
    ] {
        let request = client.post("http://localhost/api/control");
        let request = request.header("content-type", "application/json");
        let answer = request.body(body).send().await.unwrap();
        assert_eq!(answer.status(), 400, "{body}");
        let answer: Value = serde_json::from_slice(&answer.bytes().await.unwrap()).unwrap();
        let message = answer["error"]["message"].as_str().unwrap();
        assert!(message.contains(says), "{body}: {message}");
    }
    let watch = "http://localhost/api/control/watch?sessions=s";
    let answer = client.get(watch).send().await.unwrap();
    assert_eq!(answer.status(), 400);
}

#[tokio::test(flavor = "multi_thread")]
async fn socket_is_private_and_exclusive() {
    let system = system().await;
    // Longer than a socket's address may be.
    let folder = TempDir::new().unwrap();
    let deep = folder.path().join("d".repeat(120));
    std::fs::create_dir(&deep).unwrap();
    let path = deep.join(NAME);
    // Left by a process that died.
    std::fs::write(&path, "").unwrap();
    let socket = Socket::bind(&path).await.unwrap();
    let server = LocalServer::start(socket, host(&system));
    let mode = std::fs::symlink_metadata(&path)
        .unwrap()
        .permissions()
        .mode();
    assert_eq!(mode & 0o777, 0o600);
    assert_eq!(file_names(&deep), ["control.lock", NAME]);
    let taken = Socket::bind(&path).await;
    assert!(matches!(taken, Err(SocketError::Taken { .. })));
    let beside = Socket::within(&deep).await.unwrap();
    assert_eq!(beside.path(), deep.join("control-2.sock"));
    drop(beside);
    let client = Client::unix(&path).await.unwrap();
    let Answer::Sessions(page) = client.carry_out(&verb(r#"{"verb":"list"}"#)).await.unwrap()
    else {
        panic!("no list")
    };
    assert_eq!(page.sessions.len(), 3);
    server.close().await;
    assert_eq!(file_names(&deep), ["control-2.lock", "control.lock"]);
    let gone = client.carry_out(&verb(r#"{"verb":"list"}"#)).await;
    assert!(matches!(gone, Err(ClientError::Broken { .. })), "{gone:?}");
}

fn file_names(folder: &Path) -> Vec<String> {
    let files = std::fs::read_dir(folder).unwrap();
    let name =
        |file: std::io::Result<std::fs::DirEntry>| file.unwrap().file_name().into_string().unwrap();
    let mut names: Vec<String> = files.map(name).collect();
    names.sort();
    names
}

#[tokio::test(flavor = "multi_thread")]
async fn concurrent_starts_do_not_both_bind_the_socket() {
    let folder = TempDir::new().unwrap();
    let path = folder.path().join(NAME);
    // The other process has just started and does not listen yet.
    let other = std::fs::File::create(folder.path().join("control.lock")).unwrap();
    other.try_lock().unwrap();
    let taken = Socket::bind(&path).await;
    assert!(matches!(taken, Err(SocketError::Taken { .. })));
    drop(other);
    Socket::bind(&path).await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn watchers_leave_connections_for_verbs() {
    let system = system().await;
    let folder = TempDir::new().unwrap();
    let path = folder.path().join(NAME);
    let socket = Socket::bind(&path).await.unwrap();
    let _server = LocalServer::start(socket, host(&system));
    let mut watching = Vec::new();
    let refused = loop {
        let client = Client::unix(&path).await.unwrap();
        match client.watch(&Watching::default()).await {
            Ok(watched) => watching.push((client, watched)),
            Err(ClientError::Refused(refused)) => break refused,
            Err(other) => panic!("{other}"),
        }
        assert!(watching.len() < 100);
    };
    assert_eq!((watching.len(), refused.code.as_str()), (48, "overloaded"));
    assert!(refused.retry_after_ms.is_some(), "{refused:?}");
    // Also with all connections taken.
    let mut idle = Vec::new();
    for _ in 0..20 {
        idle.push(tokio::net::UnixStream::connect(&path).await.unwrap());
    }
    let client = Client::unix(&path).await.unwrap();
    let inspect = verb(r#"{"verb":"inspect","session":"s"}"#);
    client.carry_out(&inspect).await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn client_submits_a_message_and_follows_it() {
    let system = system().await;
    let folder = TempDir::new().unwrap();
    let path = folder.path().join(NAME);
    let socket = Socket::bind(&path).await.unwrap();
    let _server = LocalServer::start(socket, host(&system));
    let client = Client::unix(&path).await.unwrap();
    let session = SessionName::new("s").unwrap();
    let accepted = client
        .submit(&session, &Submission::new("second"))
        .await
        .unwrap();
    assert_eq!(accepted.query.0, 2);
    let from = Seq(accepted.seq.unwrap().0 - 1);
    let mut told = client.follow(&session, from).await.unwrap();
    let mut events = Vec::new();
    loop {
        match told.next().await.unwrap().unwrap() {
            SessionUpdate::Event(event) => events.push(event),
            // A slow follower gets no frames.
            SessionUpdate::Frame(_) => continue,
            other => panic!("{other:?}"),
        }
        if events[events.len() - 1].kind == "query.finished" {
            break;
        }
    }
    assert_eq!(events[0].kind, "query.accepted");
    let finished = &events[events.len() - 1].payload;
    assert_eq!(finished["answer"], "It is written.");
}
