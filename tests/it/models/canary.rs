//! API keys and header values with servers that repeat them in their errors: they must not appear
//! in events, journal files or anything printable.

use std::{
    fs,
    io::{BufRead, BufReader, Read, Write},
    net::{TcpListener, TcpStream},
    path::Path,
    sync::Arc,
    thread,
    time::Duration,
};

use oracle_agent::{
    journal::Sqlite,
    llm::{Dialect, ProviderSettings, Remote, Streaming},
    model::Seq,
    testkit::TestOracle,
};
use serde_json::json;

const CANARY: &str = "canary";

/// The way in which the server fails.
#[derive(Debug, Clone, Copy)]
enum No {
    /// Always with this status.
    Status(u16),
    /// With a stream whose text ends in an error.
    Stream(&'static str),
    /// With a stream that is no JSON.
    Nonsense,
}

/// Answers one request with the failure and returns its head.
fn say(no: No, mut stream: TcpStream) -> Option<String> {
    let mut reader = BufReader::new(stream.try_clone().ok()?);
    let mut head = String::new();
    while !head.ends_with("\r\n\r\n") {
        if reader.read_line(&mut head).ok()? == 0 {
            return None;
        }
    }
    let lines = || head.lines().filter_map(|line| line.split_once(": "));
    let length = lines()
        .find(|(name, _)| name.eq_ignore_ascii_case("content-length"))?
        .1;
    reader
        .take(length.parse().ok()?)
        .read_to_end(&mut Vec::new())
        .ok()?;
    // A server may repeat `x` alone of `Bearer x`.
    let last = |(_, value): (_, &str)| value.trim().rsplit(' ').next().map(str::to_owned);
    let values: Vec<_> = lines().filter_map(last).collect();
    let message = format!("you sent {head}, so {}", values.join(" and "));
    let error =
        json!({ "type": "error", "error": { "message": message, "type": values.join(" ") } });
    let (status, kind, body) = match no {
        No::Status(status) => (status, "application/json", error.to_string()),
        No::Stream(before) => (
            200,
            "text/event-stream",
            format!("{before}data: {error}\n\n"),
        ),
        No::Nonsense => (200, "text/event-stream", format!("data: {head:?}\n\n")),
    };
    let length = body.len();
    write!(
        stream,
        "HTTP/1.1 {status} No\r\ncontent-type: {kind}\r\nconnection: close\r\n\
         content-length: {length}\r\n\r\n{body}"
    )
    .ok()?;
    Some(head)
}

fn is_kept(folder: &Path) -> bool {
    fs::read_dir(folder).unwrap().any(|entry| {
        let path = entry.unwrap().path();
        if path.is_dir() {
            return is_kept(&path);
        }
        let bytes = fs::read(path).unwrap();
        bytes
            .windows(CANARY.len())
            .any(|window| window == CANARY.as_bytes())
    })
}

async fn check(dialect: Dialect, no: No) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    let (heard, hears) = std::sync::mpsc::channel();
    thread::spawn(move || {
        for stream in listener.incoming().flatten() {
            let _ = say(no, stream).map(|head| heard.send(head));
        }
    });
    let settings = ProviderSettings {
        name: "p".into(),
        dialect,
        base_url: format!("http://{address}/v1"),
        key: Some(format!("sk-{CANARY}-key").into()),
        headers: vec![("x-team".into(), format!("Bearer {CANARY}-team").into())],
        authorities: None,
        streaming: Streaming::Always,
        structured_output: None,
        models: Vec::new(),
        connect: Duration::from_secs(60),
        first_byte: Duration::from_secs(60),
    };
    let mut said = format!("{settings:?}");
    let remote = Remote::new(settings).unwrap();
    said += &format!("{remote:?}");
    let folder = tempfile::tempdir().unwrap();
    let journal = Sqlite::open(folder.path(), Box::new(|_| ())).unwrap();
    let oracle = TestOracle::new(remote)
        .models(&["p/m"])
        .journal(Arc::new(journal));
    let oracle = oracle.policy(|policy| policy.retry.base = Duration::from_millis(1));
    let oracle = oracle.start().await.unwrap();
    let session = oracle.session("s").unwrap();
    let answer = session.ask("how?").await.unwrap();
    assert_eq!(answer.outcome.name(), "failed", "{dialect:?}, {no:?}");
    said += &format!("{answer:?} {:?}", session.view().await);
    for event in session.events(Seq(0)).await.unwrap() {
        said += &format!("{event:?} {}", serde_json::to_string(&event).unwrap());
    }
    said += &format!("{:?}", oracle.oracle().providers());
    oracle.shut_down(Duration::from_secs(60)).await;
    assert!(!said.contains(CANARY), "{dialect:?}, {no:?}: {said}");
    assert!(!is_kept(folder.path()), "{dialect:?}, {no:?}: in a file");
    let heard = hears.recv().unwrap();
    assert_eq!(heard.matches(CANARY).count(), 2, "{heard}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn key_echoed_by_a_server_reaches_no_event_or_file() {
    let openai = "data: {\"choices\":[{\"index\":0,\"delta\":{\"content\":\"Half\"}}]}\n\n";
    for no in [
        No::Status(400),
        No::Status(401),
        No::Status(500),
        No::Stream(""),
        No::Stream(openai),
        No::Nonsense,
    ] {
        for dialect in [Dialect::OpenAi, Dialect::Anthropic] {
            check(dialect, no).await;
        }
    }
}
