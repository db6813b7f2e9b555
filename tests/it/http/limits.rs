//! Limits of the server, and clients that must not suffer from them.

use std::{convert::Infallible, sync::Arc, task::Poll, time::Duration};

use axum::{
    Extension,
    body::Body,
    http::{Request, StatusCode},
};
use futures_util::{StreamExt as _, future::join_all, poll, stream};
use http_body_util::BodyExt as _;
use oracle_agent::{
    http::Settings,
    journal::Memory,
    llm::Scripted,
    model::{Principal, SessionKey, SessionName, Submission, TenantId},
    testkit::{Obstacle, ObstructedJournal, SilentBackend, TestOracle, TestServer, router},
};
use serde_json::json;
use tokio::{io::AsyncWriteExt as _, net::TcpStream, task::JoinSet};
use tower::ServiceExt as _;

use super::{Raw, client, greeter, problem, with};

const GET: &str = "GET /healthz HTTP/1.1\r\nhost: localhost\r\n\r\n";

#[tokio::test(flavor = "multi_thread")]
async fn oversized_body_is_refused_with_the_limit() {
    let server = TestServer::with(greeter(), |settings| settings.max_body = 1_024);
    let server = server.await.unwrap();
    let fits = "x".repeat(1_024);
    let more = "x".repeat(1_025);
    let in_pieces = |text: &str| {
        let pieces: Vec<_> = text.as_bytes().chunks(100).map(<[u8]>::to_vec).collect();
        let pieces = futures_util::stream::iter(pieces.into_iter().map(Ok::<_, std::io::Error>));
        reqwest::Body::wrap_stream(pieces)
    };
    for (name, body, refused) in [
        ("fits", reqwest::Body::from(fits.clone()), false),
        ("fits, of unknown length", in_pieces(&fits), false),
        ("too large", reqwest::Body::from(more.clone()), true),
        ("too large, of unknown length", in_pieces(&more), true),
    ] {
        let request = client().post(server.url("/nowhere")).body(body);
        let (status, code, message) = problem(request.send().await.unwrap()).await;
        let want = if refused {
            (413, "body_too_large")
        } else {
            (404, "no_such_route")
        };
        assert_eq!((status, code.as_str()), want, "{name}");
        assert_eq!(message.contains("1024 bytes"), refused, "{name}: {message}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn slow_body_times_out() {
    let server = TestServer::with(greeter(), |settings| {
        settings.body_timeout = Duration::from_millis(100);
    });
    let server = server.await.unwrap();
    let mut raw = Raw::to(server.address());
    raw.send("POST /nowhere HTTP/1.1\r\nhost: localhost\r\ncontent-length: 5\r\n\r\nhe");
    let answer = raw.answer();
    assert!(
        answer.starts_with("HTTP/1.1 408") && answer.contains("slow_body"),
        "{answer}"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn slow_header_ends_the_connection() {
    let server = TestServer::with(greeter(), |settings| {
        settings.header_timeout = Duration::from_millis(100);
    });
    let server = server.await.unwrap();
    for (name, said) in [
        ("nothing", ""),
        ("a piece of a head", "GET /healthz HT"),
        (
            "a piece of the other version's preface",
            "PRI * HTTP/2.0\r\n",
        ),
        (
            "that preface and no more",
            "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
        ),
    ] {
        let mut raw = Raw::to(server.address());
        raw.send(said);
        let rest = tokio::task::spawn_blocking(move || {
            let mut bytes = Vec::new();
            let read = std::io::Read::read_to_end(&mut raw.0, &mut bytes);
            read.map(|_| bytes)
        });
        // Either kind of close counts; silence does not.
        let rest = rest.await.unwrap();
        let kind = rest.err().map(|error| error.kind());
        assert!(
            kind.is_none_or(|kind| kind == std::io::ErrorKind::ConnectionReset),
            "{name}: {kind:?}"
        );
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn idle_connection_is_closed() {
    let server = TestServer::with(greeter(), |settings| {
        settings.idle_timeout = Duration::from_millis(100);
    });
    let server = server.await.unwrap();
    let mut raw = Raw::to(server.address());
    assert!(raw.send(GET).answer().starts_with("HTTP/1.1 200"));
    assert_eq!(raw.rest(), "");
}

#[tokio::test(flavor = "multi_thread")]
async fn connections_over_the_cap_are_refused_without_harming_others() {
    let server = TestServer::with(greeter(), |settings| settings.max_connections = 2);
    let server = server.await.unwrap();
    let mut within = [(); 2].map(|()| Raw::to(server.address()));
    for raw in &mut within {
        assert!(raw.send(GET).answer().starts_with("HTTP/1.1 200"));
    }
    let ask = |path: &str| format!("GET {path} HTTP/1.1\r\nhost: localhost\r\n\r\n");
    for _ in 0..20 {
        // Health and metrics stay reachable, everything else is rejected.
        for path in ["/healthz", "/metrics"] {
            let answer = Raw::to(server.address()).send(&ask(path)).rest();
            assert!(answer.starts_with("HTTP/1.1 200"), "{answer}");
        }
        let answer = Raw::to(server.address()).send(&ask("/api/sessions")).rest();
        assert!(answer.starts_with("HTTP/1.1 503"), "{answer}");
        let (head, body) = answer.split_once("\r\n\r\n").unwrap();
        assert!(head.contains("retry-after: 1"), "{head}");
        let body: serde_json::Value = serde_json::from_str(body).unwrap();
        assert_eq!(body["error"]["code"], "overloaded");
        for raw in &mut within {
            assert!(raw.send(GET).answer().starts_with("HTTP/1.1 200"));
        }
    }
    drop(within);
    // The server notices the closed connections at some later time.
    loop {
        let answer = Raw::to(server.address())
            .send(&ask("/api/sessions"))
            .answer();
        if answer.starts_with("HTTP/1.1 200") {
            break;
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn thousand_slow_clients_do_not_delay_others() {
    let server = TestServer::start(greeter()).await.unwrap();
    let address = server.address();
    let dribblers = (0..1_000).map(|_| async move {
        let mut tcp = TcpStream::connect(address).await.unwrap();
        tcp.write_all(b"GET /heal").await.unwrap();
        tcp
    });
    let mut dribblers = join_all(dribblers).await;
    let client = client();
    for byte in b"thz" {
        for tcp in &mut dribblers {
            tcp.write_all(&[*byte]).await.unwrap();
        }
        let answers = (0..20).map(|_| client.get(server.url("/healthz")).send());
        for answer in join_all(answers).await {
            assert_eq!(answer.unwrap().status(), 200);
        }
    }
    // They are served as soon as their requests are complete.
    for tcp in &mut dribblers {
        tcp.write_all(b" HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n\r\n")
            .await
            .unwrap();
    }
    for mut tcp in dribblers {
        let mut answer = String::new();
        tokio::io::AsyncReadExt::read_to_string(&mut tcp, &mut answer)
            .await
            .unwrap();
        assert!(answer.starts_with("HTTP/1.1 200"), "{answer}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn request_over_the_limit_is_refused_with_retry_after() {
    let server = TestServer::with(greeter(), |settings| settings.max_requests = 1);
    let server = server.await.unwrap();
    let mut first = Raw::to(server.address());
    first.send("POST /nowhere HTTP/1.1\r\nhost: localhost\r\ncontent-length: 5\r\n\r\nhe");
    let client = client();
    // Refused as soon as the first request has arrived and is in work.
    let refused = loop {
        let answer = client.get(server.url("/nowhere")).send().await.unwrap();
        if answer.status() != 404 {
            break answer;
        }
    };
    assert_eq!(refused.headers()["retry-after"], "1");
    let (status, code, message) = problem(refused).await;
    assert_eq!((status, code.as_str()), (503, "overloaded"));
    assert!(message.contains("server.max_requests"), "{message}");
    // Health routes have no limit.
    for path in ["/healthz", "/readyz", "/metrics"] {
        let answer = client.get(server.url(path)).send().await.unwrap();
        assert_eq!(answer.status(), 200, "{path}");
    }
    assert!(first.send("llo").answer().starts_with("HTTP/1.1 404"));
    while client
        .get(server.url("/nowhere"))
        .send()
        .await
        .unwrap()
        .status()
        != 404
    {}
}

#[tokio::test(flavor = "multi_thread")]
async fn concurrent_bodies_of_a_tenant_leave_memory_to_the_others() {
    let small = |settings: &mut Settings| settings.max_body = 1_024;
    let server = TestServer::with(greeter(), small).await.unwrap();
    let (routes, _) = router(server.host().clone());
    let mut held = Vec::new();
    let mut counts = Vec::new();
    for (tenant, name) in [("greedy", "a"), ("greedy", "b"), ("other", "c")] {
        let who = Principal {
            name: name.into(),
            tenant: TenantId::new(tenant).unwrap(),
            ..Principal::local()
        };
        let routes = routes.clone().layer(Extension(who));
        let before = held.len();
        let refused = loop {
            // All but one byte of a body.
            let first = stream::iter([Ok::<_, Infallible>("x".repeat(1_023))]);
            let body = Body::from_stream(first.chain(stream::pending()));
            let request = Request::post("/v1/chat/completions").header("host", "localhost");
            let mut response = Box::pin(routes.clone().oneshot(request.body(body).unwrap()));
            match poll!(response.as_mut()) {
                Poll::Pending => held.push(response),
                Poll::Ready(response) => break response.unwrap(),
            }
        };
        counts.push(held.len() - before);
        assert_eq!(refused.status(), StatusCode::SERVICE_UNAVAILABLE);
        let body = refused.into_body().collect().await.unwrap().to_bytes();
        let body = String::from_utf8(body.to_vec()).unwrap();
        assert!(
            body.contains("of your key or your tenant use too much"),
            "{body}"
        );
    }
    assert_eq!(counts, [51, 6, 5]);
}

#[tokio::test(flavor = "multi_thread")]
async fn public_routes_accept_no_body() {
    let server = TestServer::start(greeter()).await.unwrap();
    for (method, path, answer) in [
        ("POST", "/healthz", "HTTP/1.1 405"),
        ("POST", "/readyz", "HTTP/1.1 405"),
        ("GET", "/healthz", "HTTP/1.1 200"),
    ] {
        let mut raw = Raw::to(server.address());
        raw.send(&format!("{method} {path} HTTP/1.1\r\nhost: localhost\r\n"));
        // The rest of the body never comes.
        let answered = raw.send("content-length: 1024\r\n\r\nx").answer();
        assert!(answered.starts_with(answer), "{method} {path}: {answered}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn query_limit_refuses_further_messages() {
    let model = SilentBackend::new(1, Scripted::new().reply("Hello."));
    let server = TestServer::with(TestOracle::new(model), |settings| settings.max_queries = 1);
    let server = server.await.unwrap();
    let reserved = server.host().reserve_query().unwrap();
    let refused = server.host().reserve_query().unwrap_err();
    assert_eq!(refused.status(), 503, "one is being handed in");
    drop(reserved);
    let key = SessionKey::local(SessionName::new("s").unwrap());
    let session = server.oracle().session_by_key(key);
    session.submit(Submission::new("hello")).await.unwrap();
    let refused = server.host().reserve_query().unwrap_err();
    assert_eq!(refused.status(), 503);
    session.cancel(None).await.unwrap();
    assert!(server.host().reserve_query().is_ok());
}

#[tokio::test(flavor = "multi_thread")]
async fn received_body_frees_its_memory_before_the_response() {
    let model = SilentBackend::new(64, Scripted::new().reply("Hello."));
    let server = TestServer::with(TestOracle::new(model), |settings| settings.max_body = 1_024);
    let server = server.await.unwrap();
    let client = client();
    let padding = "x".repeat(900);
    let mut asked = JoinSet::new();
    for session in 0..64 {
        let question =
            json!({"model": "oracle", "messages": [{"role": "user", "content": padding}]});
        let request = client.post(server.url("/v1/chat/completions"));
        let request = request.header("x-oracle-session", format!("s{session}"));
        asked.spawn(with(request, &question).send());
        // One after the other: their bodies together exceed the share of a key.
        while server.oracle().busy() <= session {
            assert!(asked.try_join_next().is_none(), "they are not answered");
            tokio::task::yield_now().await;
        }
    }
    let one = client.post(server.url("/nowhere")).body("x".repeat(1_024));
    assert_eq!(one.send().await.unwrap().status(), 404);
    assert!(asked.try_join_next().is_none(), "they are not answered");
}

#[tokio::test(flavor = "multi_thread")]
async fn disconnected_client_is_counted_as_left() {
    let model = SilentBackend::new(1, Scripted::new().reply("Hello."));
    let server = TestServer::start(TestOracle::new(model)).await.unwrap();
    let question =
        json!({"model": "oracle", "messages": [{"role": "user", "content": "hello"}]}).to_string();
    let mut raw = Raw::to(server.address());
    raw.send("POST /v1/chat/completions HTTP/1.1\r\nhost: localhost\r\n");
    raw.send(&format!(
        "content-type: application/json\r\ncontent-length: {}\r\n\r\n",
        question.len()
    ));
    raw.send(&question);
    while server.oracle().busy() < 1 {
        tokio::task::yield_now().await;
    }
    drop(raw);
    loop {
        let metrics = client().get(server.url("/metrics")).send().await.unwrap();
        let metrics = metrics.text().await.unwrap();
        if metrics.contains("oracle_http_answers_total{status=\"left\"} 1\n") {
            break;
        }
    }
}

/// Short enough to be part of its event instead of a reference.
const LONG: usize = 15_000;

#[tokio::test(flavor = "multi_thread")]
async fn unread_streams_are_cut_after_the_write_timeout() {
    const STREAMS: usize = 20;
    const MESSAGES: usize = 300;
    let model = SilentBackend::new(usize::MAX, Scripted::new());
    let server = TestServer::with(TestOracle::new(model), |settings| {
        settings.write_timeout = Duration::from_millis(300);
    });
    let server = server.await.unwrap();
    let text = "x".repeat(LONG);
    let session = server.session("s").unwrap();
    for number in 0..MESSAGES {
        session
            .submit(Submission::new(format!("{number} {text}")))
            .await
            .unwrap();
        session.cancel(None).await.unwrap();
    }
    let head = "GET /api/sessions/s/events HTTP/1.1\r\nhost: localhost\r\naccept: text/event-stream\r\n\r\n";
    let mut unread = [(); STREAMS].map(|()| Raw::to(server.address()));
    for raw in &mut unread {
        raw.send(head);
    }
    let client = client();
    let figures = async || {
        let answer = client.get(server.url("/metrics")).send().await.unwrap();
        answer.text().await.unwrap()
    };
    let held = |streams: usize| format!("\noracle_http_requests_in_work {streams}\n");
    for streams in [STREAMS, 0] {
        // First all streams are open, then none.
        while !figures().await.contains(&held(streams)) {}
    }
    for mut raw in unread {
        let told = tokio::task::spawn_blocking(move || raw.rest())
            .await
            .unwrap();
        assert!(told.starts_with("HTTP/1.1 200") && told.len() > LONG);
        assert!(
            told.len() < 2 << 20,
            "{} bytes for who reads nothing",
            told.len()
        );
    }
}

/// Returns a raw request to this session for each API.
fn questions(session: &str) -> [String; 2] {
    let native = r#"{"text":"where is it?"}"#.to_owned();
    let chat = r#"{"model":"oracle","messages":[{"role":"user","content":"where is it?"}]}"#;
    let path = format!("/api/sessions/{session}/messages");
    [
        (path.as_str(), native),
        ("/v1/chat/completions", chat.to_owned()),
    ]
    .map(|(path, body)| {
        format!(
            "POST {path} HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/json\r\n\
             x-oracle-session: {session}\r\ncontent-length: {}\r\n\r\n{body}",
            body.len()
        )
    })
}

#[tokio::test(flavor = "multi_thread")]
async fn query_over_the_limit_is_refused_before_it_opens_a_session() {
    let model = SilentBackend::new(usize::MAX, Scripted::new());
    let server = TestServer::with(TestOracle::new(model), |settings| settings.max_queries = 1);
    let server = server.await.unwrap();
    let [first, _] = questions("first");
    let answer = Raw::to(server.address()).send(&first).answer();
    assert!(answer.starts_with("HTTP/1.1 202"), "{answer}");
    for question in questions("second") {
        let answer = Raw::to(server.address()).send(&question).answer();
        assert!(answer.starts_with("HTTP/1.1 503"), "{answer}");
        assert!(
            answer.contains("retry-after: 1") && answer.contains("\"overloaded\""),
            "{answer}"
        );
    }
    let second = SessionKey::local(SessionName::new("second").unwrap());
    assert_eq!(server.journal().find(second).await.unwrap(), None);
}

#[tokio::test(flavor = "multi_thread")]
async fn overloaded_server_refuses_a_message_before_reading_it() {
    let model = SilentBackend::new(usize::MAX, Scripted::new());
    let server = TestServer::with(TestOracle::new(model), |settings| {
        settings.max_queries = 1;
        settings.allowed_origins = vec!["https://page.example".into()];
    });
    let server = server.await.unwrap();
    let post = |path: &str| client().post(server.url(path));
    let broken = || post("/v1/chat/completions").body("no JSON");
    let (status, _, _) = problem(broken().send().await.unwrap()).await;
    assert_eq!(status, 400, "with room it is looked at");
    let message = with(
        post("/api/sessions/first/messages"),
        &json!({"text": "hello"}),
    );
    assert_eq!(message.send().await.unwrap().status(), 202);
    let large = "x".repeat(100_000);
    for (name, request, want) in [
        ("not read", broken(), (503, "overloaded")),
        (
            "its first words",
            post("/api/sessions/s/messages").body("{"),
            (503, "overloaded"),
        ),
        (
            "too large to be thrown away",
            post("/v1/chat/completions").body(large),
            (400, "invalid_json"),
        ),
        (
            "no message",
            post("/api/sessions").body("{"),
            (415, "unsupported_media_type"),
        ),
    ] {
        let answer = request.send().await.unwrap();
        assert!(answer.headers().contains_key("x-request-id"), "{name}");
        let (status, code, _) = problem(answer).await;
        assert_eq!((status, code.as_str()), want, "{name}");
    }
    // A web page may read the rejection.
    let page = post("/v1/chat/completions").header("origin", "https://page.example");
    let chat = json!({"model": "oracle", "messages": [{"role": "user", "content": "hello"}]});
    let answer = with(page, &chat).send().await.unwrap();
    assert_eq!(answer.status(), 503);
    let allowed = &answer.headers()["access-control-allow-origin"];
    assert_eq!(allowed, "https://page.example");
}

#[tokio::test(flavor = "multi_thread")]
async fn stalled_journal_sheds_requests() {
    const MOST: usize = 6;
    let journal = ObstructedJournal::new(Arc::new(Memory::new()));
    let oracle = greeter().journal(Arc::new(journal.clone()));
    let server = TestServer::with(oracle, |settings| settings.max_requests = MOST + 1);
    let server = server.await.unwrap();
    journal.set(Obstacle::SilentAppends);
    let waiting: Vec<_> = (0..MOST / 2)
        .flat_map(|number| questions(&format!("s{number}")))
        .map(|question| {
            let mut raw = Raw::to(server.address());
            raw.send(&question);
            raw
        })
        .collect();
    let client = client();
    let figures = async || {
        let answer = client.get(server.url("/metrics")).send().await.unwrap();
        answer.text().await.unwrap()
    };
    let in_flight = |requests: usize| format!("\noracle_http_requests_in_work {requests}\n");
    while !figures().await.contains(&in_flight(MOST)) {}
    for question in questions("one-too-many") {
        let answer = Raw::to(server.address()).send(&question).answer();
        assert!(answer.starts_with("HTTP/1.1 503"), "{answer}");
        assert!(
            answer.contains("retry-after: 1") && answer.contains("\"overloaded\""),
            "{answer}"
        );
    }
    // Operators' requests are still accepted.
    let verb = with(
        client.post(server.url("/api/control")),
        &json!({"verb": "list"}),
    );
    assert_eq!(verb.send().await.unwrap().status(), 200);
    // A client that disconnects frees its place.
    drop(waiting);
    while !figures().await.contains(&in_flight(0)) {}
}

#[tokio::test(flavor = "multi_thread")]
async fn full_backlog_refuses_messages() {
    let journal = ObstructedJournal::new(Arc::new(Memory::new()));
    let oracle = greeter().journal(Arc::new(journal.clone()));
    let server = TestServer::with(oracle, |settings| settings.max_backlog = 1);
    let server = server.await.unwrap();
    journal.set(Obstacle::SilentAppends);
    let [first, _] = questions("first");
    let mut waits = Raw::to(server.address());
    waits.send(&first);
    while server.oracle().backlog() == 0 {
        tokio::task::yield_now().await;
    }
    for question in questions("second") {
        let answer = Raw::to(server.address()).send(&question).answer();
        assert!(answer.starts_with("HTTP/1.1 503"), "{answer}");
        assert!(
            answer.contains("retry-after: 1") && answer.contains("server.max_backlog"),
            "{answer}"
        );
    }
    // Queries that a model works on are no backlog.
    let model = SilentBackend::new(usize::MAX, Scripted::new());
    let server = TestServer::with(TestOracle::new(model), |settings| settings.max_backlog = 1);
    let server = server.await.unwrap();
    for number in 0..20 {
        let [question, _] = questions(&format!("s{number}"));
        let answer = Raw::to(server.address()).send(&question).answer();
        assert!(answer.starts_with("HTTP/1.1 202"), "{answer}");
        while server.oracle().backlog() > 0 {
            tokio::task::yield_now().await;
        }
    }
}
