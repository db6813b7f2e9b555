//! The server over real connections.

use std::num::NonZeroU32;

use serde_json::{Value, json};
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::TcpStream,
};

use super::*;

const BODY: &str = r#"{"model":"m","messages":[{"role":"user","content":"q"}],"stream":true}"#;
const CHAT: &str = "POST /v1/chat/completions";

/// Sends a request on a new connection.
async fn ask(mock: &Mock, line: &str, headers: &[&str], body: &str) -> TcpStream {
    let address = mock.url().strip_prefix("http://").unwrap();
    let mut stream = TcpStream::connect(address).await.unwrap();
    let mut request = format!("{line} HTTP/1.1\r\nhost: m\r\nconnection: close\r\n");
    for header in headers {
        request += header;
        request += "\r\n";
    }
    request += &format!("content-length: {}\r\n\r\n{body}", body.len());
    stream.write_all(request.as_bytes()).await.unwrap();
    stream
}

/// The rest of the answer, until the connection ends.
async fn rest(mut stream: TcpStream) -> String {
    let mut bytes = Vec::new();
    // A broken connection may end in an error after the bytes sent.
    let _ = stream.read_to_end(&mut bytes).await;
    String::from_utf8(bytes).unwrap()
}

async fn get(mock: &Mock, line: &str, headers: &[&str], body: &str) -> String {
    rest(ask(mock, line, headers, body).await).await
}

fn json_of(answer: &str) -> Value {
    serde_json::from_str(answer.split_once("\r\n\r\n").unwrap().1).unwrap()
}

async fn with(settings: Settings) -> Mock {
    Mock::start(settings).await.unwrap()
}

#[tokio::test]
async fn mock_stream_follows_its_dialect() {
    let mock = with(Settings::default()).await;
    let chat = get(&mock, CHAT, &[], BODY).await;
    assert!(
        chat.starts_with("HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\n"),
        "{chat}"
    );
    assert!(chat.ends_with("data: [DONE]\n\n\r\n0\r\n\r\n"), "{chat}");
    let body = BODY.replace("{\"model", "{\"max_tokens\":9,\"model");
    let message = get(&mock, "POST /v1/messages", &[], &body).await;
    assert!(message.contains("event: message_start\n"), "{message}");
    assert!(
        message.ends_with("data: {\"type\":\"message_stop\"}\n\n\r\n0\r\n\r\n"),
        "{message}"
    );
    assert_eq!(mock.stats().breaches, [].into());
}

#[tokio::test]
async fn connection_breaks_only_where_the_fault_says() {
    let mock = with(Settings::default()).await;
    for (fault, events, end) in [
        ("no-end", 21, "\r\n0\r\n\r\n"),
        ("no-mark", 22, "\r\n0\r\n\r\n"),
        ("cut=3", 3, "\r\n"),
        ("cut=0", 0, "\r\n\r\n"),
    ] {
        let answer = get(&mock, CHAT, &[&format!("x-mock-fault: {fault}")], BODY).await;
        assert_eq!(
            answer.matches("data: ").count(),
            events,
            "{fault}: {answer}"
        );
        assert!(answer.ends_with(end), "{fault}: {answer}");
        assert_eq!(
            answer.ends_with("\r\n0\r\n\r\n"),
            fault.starts_with("no-"),
            "{fault}"
        );
    }
    let nothing = get(&mock, CHAT, &["x-mock-fault: hang-up"], BODY).await;
    assert_eq!(nothing, "");
    assert_eq!(mock.stats().status, [(0, 1), (200, 4)].into());
}

#[tokio::test]
async fn huge_fault_numbers_are_survived() {
    let mock = with(Settings::default()).await;
    // These never end, or only after a GiB.
    let long = [
        FaultKind::Stall,
        FaultKind::CommentsOnly,
        FaultKind::Slow,
        FaultKind::HugeLine,
    ];
    let numbered = FaultKind::ALL.iter().filter(|kind| kind.number().is_some());
    for fault in numbered.filter(|kind| !long.contains(kind)) {
        for number in [300_000_000_000, u64::MAX - 1] {
            let header = format!("x-mock-fault: {}={number}", fault.name());
            let answer = get(&mock, CHAT, &[&header], BODY).await;
            assert!(answer.starts_with("HTTP/1.1 "), "{header}: {answer:?}");
        }
    }
}

#[tokio::test]
async fn stalled_streams_end_at_shutdown() {
    let mock = with(Settings::default()).await;
    let silent = ask(&mock, CHAT, &["x-mock-fault: stall-headers"], BODY).await;
    let mut stalled = ask(&mock, CHAT, &["x-mock-fault: stall=1"], BODY).await;
    let mut seen = Vec::new();
    while !seen.windows(6).any(|six| six == b"data: ") {
        assert!(stalled.read_buf(&mut seen).await.unwrap() > 0);
    }
    while mock.stats().in_flight < 2 {
        tokio::task::yield_now().await;
    }
    mock.shut_down().await;
    let silent = rest(silent).await;
    assert!(!silent.contains("0\r\n\r\n"), "{silent}");
    assert!(!rest(stalled).await.contains("0\r\n\r\n"));
}

#[tokio::test]
async fn slow_and_comment_faults_pace_their_output() {
    let mock = with(Settings::default()).await;
    for (fault, wanted) in [
        ("comments-only=1", ": keep-alive\n\n"),
        ("slow=1", "d\r\n1\r\na\r\n1\r\nt\r\n"),
    ] {
        let mut stream = ask(&mock, CHAT, &[&format!("x-mock-fault: {fault}")], BODY).await;
        let mut seen = Vec::new();
        while !String::from_utf8_lossy(&seen).contains(wanted) {
            assert!(stream.read_buf(&mut seen).await.unwrap() > 0, "{fault}");
        }
    }
    // A disconnect ends the request.
    while mock.stats().in_flight > 0 {
        tokio::task::yield_now().await;
    }
}

#[tokio::test]
async fn mock_records_requests_without_keys() {
    let mock = with(Settings {
        faults: vec!["429@2".parse().unwrap()],
        keep: 2,
        ..Settings::default()
    })
    .await;
    let secret = [
        "authorization: Bearer canary",
        "x-api-key: canary",
        "cookie: canary",
        "x-password: canary",
        "x-credential: canary",
        "x-other: seen",
    ];
    for body in ["{\"model\":\"first\",\"messages\":[]}", BODY, "no JSON"] {
        get(&mock, CHAT, &secret, body).await;
    }
    let kept = mock.requests();
    let seen: Vec<_> = kept
        .iter()
        .map(|request| {
            (
                request.number,
                request.status,
                request.fault.clone(),
                request.json()["model"].clone(),
            )
        })
        .collect();
    let want = [
        (2, 429, Some("429".to_owned()), json!("m")),
        (3, 400, None, Value::Null),
    ];
    assert_eq!(seen, want);
    assert_eq!(
        kept[0].headers.get("x-other").map(String::as_str),
        Some("seen")
    );
    assert_eq!(kept[1].body, "no JSON");

    let lines = get(&mock, "GET /requests", &[], "").await;
    assert!(
        lines.contains("no JSON") && !lines.contains("canary"),
        "{lines}"
    );
    let stats = json_of(&get(&mock, "GET /stats", &[], "").await);
    let want = json!({"requests": 3, "streamed": 0, "in_flight": 0, "in_flight_max": 1,
        "status": {"200": 1, "400": 1, "429": 1}, "faults": {"429": 1}, "breaches": {"form": 2}});
    assert_eq!(stats, want);
    get(&mock, "POST /reset", &[], "").await;
    assert_eq!((mock.stats(), mock.requests()), (Stats::default(), vec![]));
}

#[tokio::test]
async fn mock_enforces_and_reports_its_limits() {
    let mock = with(Settings {
        requests_per_minute: NonZeroU32::new(1),
        ..Settings::default()
    })
    .await;
    let first = get(&mock, CHAT, &[], BODY).await;
    assert!(
        first.contains("x-ratelimit-remaining-requests: 0\r\n"),
        "{first}"
    );
    let second = get(&mock, CHAT, &[], BODY).await;
    assert!(second.starts_with("HTTP/1.1 429 "), "{second}");
    for header in [
        "retry-after: 60\r\n",
        "retry-after-ms: ",
        "x-ratelimit-limit-requests: 1\r\n",
    ] {
        assert!(second.contains(header), "{header}: {second}");
    }
    assert_eq!(mock.stats().breaches, [("limits", 1)].into());
}

#[tokio::test]
async fn mock_refuses_requests_beyond_its_concurrency() {
    let mock = with(Settings {
        concurrency: NonZeroU32::new(1),
        ..Settings::default()
    })
    .await;
    let first = ask(&mock, CHAT, &["x-mock-fault: stall"], BODY).await;
    while mock.stats().faults.is_empty() {
        tokio::task::yield_now().await;
    }
    assert!(
        get(&mock, CHAT, &[], BODY)
            .await
            .starts_with("HTTP/1.1 429 ")
    );
    drop(first);
    while mock.stats().in_flight > 0 {
        tokio::task::yield_now().await;
    }
    assert!(
        get(&mock, CHAT, &[], BODY)
            .await
            .starts_with("HTTP/1.1 200 ")
    );
}

#[tokio::test]
async fn mock_lists_models_in_both_dialects_and_requires_the_key() {
    let mock = with(Settings {
        models: vec!["a".into(), "b".into()],
        key: Some("k".into()),
        ..Settings::default()
    })
    .await;
    let openai = json_of(&get(&mock, "GET /v1/models", &["authorization: Bearer k"], "").await);
    let anthropic = ["anthropic-version: 2023-06-01", "x-api-key: k"];
    let anthropic = json_of(&get(&mock, "GET /v1/models", &anthropic, "").await);
    for list in [&openai, &anthropic] {
        let ids: Vec<_> = list["data"]
            .as_array()
            .unwrap()
            .iter()
            .map(|model| &model["id"])
            .collect();
        assert_eq!(ids, ["a", "b"]);
    }
    assert_eq!(
        (&openai["object"], &anthropic["has_more"]),
        (&json!("list"), &json!(false))
    );
    let refused = get(&mock, "GET /v1/models", &[], "").await;
    assert!(refused.starts_with("HTTP/1.1 401 "), "{refused}");
    let nowhere = get(&mock, "GET /v2", &[], "").await;
    assert!(nowhere.starts_with("HTTP/1.1 404 "), "{nowhere}");
}
