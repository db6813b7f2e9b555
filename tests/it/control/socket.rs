//! The socket itself: for whom it is, what it takes, and what is left of it.

use std::{os::unix::fs::PermissionsExt as _, path::Path};

use oracle_agent::control::{
    Controller, Watching,
    socket::{Client, NAME, ServeError, Server},
};
use serde_json::Value;
use tempfile::TempDir;

use super::system;

async fn exchange(client: &mut Client, line: &str) -> Value {
    let answer = client.exchange(line.to_owned()).await.unwrap();
    serde_json::from_str(&answer).unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_no_verb_is_refused_and_the_line_stands() {
    let system = system().await;
    let folder = TempDir::new().unwrap();
    let path = folder.path().join(NAME);
    let server = Server::listen(&path, Controller::new(system.oracle().clone()));
    let _server = server.await.unwrap();
    let mut client = Client::connect(&path).await.unwrap();
    for (line, says) in [
        ("", "EOF"),
        ("pause", "expected value"),
        ("[]", "expected"),
        ("{}", "missing field `verb`"),
        (r#"{"verb":"fly"}"#, "unknown variant `fly`"),
        (r#"{"verb":19}"#, "`verb` has to be its name"),
        (r#"["drain"]"#, "expected a map"),
        (r#"{"verb":"pause"}"#, "missing field `session`"),
        (r#"{"verb":"pause","session":"a b"}"#, "has the character"),
        (
            r#"{"verb":"pause","session":"s","query":1}"#,
            "unknown field `query`",
        ),
        (r#"{"verb":"drain","now":true}"#, "unknown field `now`"),
        (r#"{"verb":"list","limit":-1}"#, "u32"),
        (
            r#"{"verb":"set_budget","session":"s","limits":{"max_turns":30,"max_token":1}}"#,
            "unknown field `max_token`",
        ),
        (r#"{"watch":{"sessions":"s"}}"#, "unknown field `sessions`"),
    ] {
        let answer = exchange(&mut client, line).await;
        assert_eq!(
            answer["refused"]["code"], "invalid_value",
            "{line}: {answer}"
        );
        let message = answer["refused"]["message"].as_str().unwrap();
        assert!(message.contains(says), "{line}: {message}");
    }
    let answer = exchange(&mut client, r#"{"verb":"inspect","session":"s"}"#).await;
    assert_eq!(answer["ok"]["answer"], "session");
    let long = format!(
        r#"{{"verb":"steer","session":"s","text":"{}"}}"#,
        "x".repeat(8 << 20)
    );
    let answer = exchange(&mut client, &long).await;
    assert_eq!(answer["refused"]["code"], "too_long", "{answer}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_socket_is_for_its_owner_and_there_is_one() {
    let system = system().await;
    // Longer than a socket's address may be.
    let folder = TempDir::new().unwrap();
    let deep = folder.path().join("d".repeat(120));
    std::fs::create_dir(&deep).unwrap();
    let path = deep.join(NAME);
    // Left of a process that died.
    std::fs::write(&path, "").unwrap();
    let controller = Controller::new(system.oracle().clone());
    let server = Server::listen(&path, controller.clone()).await.unwrap();
    let mode = std::fs::symlink_metadata(&path)
        .unwrap()
        .permissions()
        .mode();
    assert_eq!(mode & 0o777, 0o600);
    assert_eq!(there(&deep), [NAME]);
    let taken = Server::listen(&path, controller.clone()).await;
    assert!(matches!(taken, Err(ServeError::Taken { .. })));
    let mut client = Client::connect(&path).await.unwrap();
    let answer = exchange(&mut client, r#"{"verb":"list"}"#).await;
    assert_eq!(answer["ok"]["sessions"].as_array().unwrap().len(), 3);
    server.close().await;
    assert_eq!(there(&deep), [""; 0]);
    assert!(client.exchange("{}".to_owned()).await.is_err());
}

fn there(folder: &Path) -> Vec<String> {
    let files = std::fs::read_dir(folder).unwrap();
    let name =
        |file: std::io::Result<std::fs::DirEntry>| file.unwrap().file_name().into_string().unwrap();
    files.map(name).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn two_that_begin_at_once_do_not_both_have_the_channel() {
    let system = system().await;
    let folder = TempDir::new().unwrap();
    let path = folder.path().join(NAME);
    // The other one has only just begun: nobody listens yet.
    let other = std::fs::File::open(folder.path()).unwrap();
    other.try_lock().unwrap();
    let controller = Controller::new(system.oracle().clone());
    let taken = Server::listen(&path, controller.clone()).await;
    assert!(matches!(taken, Err(ServeError::Taken { .. })));
    drop(other);
    let _server = Server::listen(&path, controller).await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn those_who_watch_leave_room_for_verbs_and_who_finds_none_is_told() {
    let system = system().await;
    let folder = TempDir::new().unwrap();
    let path = folder.path().join(NAME);
    let server = Server::listen(&path, Controller::new(system.oracle().clone()));
    let _server = server.await.unwrap();
    let mut watching = Vec::new();
    let refused = loop {
        let client = Client::connect(&path).await.unwrap();
        match client.watch(Watching::default()).await.unwrap() {
            Ok(watched) => watching.push(watched),
            Err(refused) => break refused,
        }
    };
    assert_eq!((watching.len(), refused.code.as_str()), (48, "overloaded"));
    let mut asking = Vec::new();
    let refused = loop {
        let mut client = Client::connect(&path).await.unwrap();
        let answer = exchange(&mut client, r#"{"verb":"inspect","session":"s"}"#).await;
        if answer["ok"].is_null() {
            break answer;
        }
        asking.push(client);
    };
    assert_eq!(refused["refused"]["code"], "overloaded");
    assert!(refused["refused"]["retry_after_ms"].is_u64(), "{refused}");
    // The one that was refused a watch may be on its way out.
    assert!((15..=16).contains(&asking.len()), "{}", asking.len());
}
