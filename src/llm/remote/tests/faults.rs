//! Calls that fail, at every stage.

use std::{io::Read, net::TcpListener};

use super::{server::Happened, *};
use crate::model::FaultClass;

async fn code(remote: &Remote) -> String {
    end(remote).await.map_or_else(
        |fault| fault.code.to_string(),
        |reply| format!("a reply: {reply:?}"),
    )
}

fn is_retryable(fault: &Fault) -> bool {
    matches!(fault.class, FaultClass::Retryable { .. })
}

#[tokio::test]
async fn unreachable_server_is_a_connect_or_dns_fault() {
    let closed = {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        format!("http://{}", listener.local_addr().unwrap())
    };
    let fault = end(&Remote::new(settings(Dialect::OpenAi, &closed)).unwrap())
        .await
        .unwrap_err();
    assert_eq!(fault.code.as_str(), "connect");
    assert!(fault.is_outage(), "{fault:?}");
    let begin = format!("cannot reach {closed}: ");
    assert!(fault.detail.starts_with(&begin), "{fault}");

    let nowhere = settings(Dialect::OpenAi, "http://name.invalid/v1");
    let fault = end(&Remote::new(nowhere).unwrap()).await.unwrap_err();
    assert_eq!(fault.code.as_str(), "dns", "{fault}");
    assert!(fault.is_outage(), "{fault:?}");
}

#[tokio::test]
async fn plain_text_server_is_a_tls_fault() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let plain = listener.local_addr().unwrap();
    std::thread::spawn(move || {
        let (mut connection, _) = listener.accept().unwrap();
        let _ = connection.read(&mut [0; 16]);
        let _ = std::io::Write::write_all(&mut connection, b"HTTP/1.1 400 Bad Request\r\n\r\n");
    });
    let settings = settings(Dialect::OpenAi, &format!("https://{plain}"));
    let fault = end(&Remote::new(settings).unwrap()).await.unwrap_err();
    assert_eq!(fault.code.as_str(), "tls", "{fault}");
    assert_eq!(fault.class, FaultClass::Permanent);
}

#[tokio::test]
async fn unknown_route_beneath_a_base_url_without_a_version_names_it() {
    let answer = || Answer::of(404, "", &["no such route"]);
    let server = Server::new(&[answer(), answer()]);
    for (path, is_named) in [("", true), ("/v1", false)] {
        let settings = settings(Dialect::OpenAi, &format!("{}{path}", server.url));
        let fault = end(&Remote::new(settings).unwrap()).await.unwrap_err();
        let names = fault.detail.contains("the base URL has no `/v1`");
        assert_eq!(names, is_named, "{path}: {fault}");
    }
}

/// A whole reply of OpenAI's dialect.
const HELLO_AS_GZIP: &[u8] = b"\
    \x1f\x8b\x08\x00\x00\x00\x00\x00\x02\x03\x0d\xc9\xc1\x0d\x80\x30\x08\x05\xd0\x5d\xfe\
    \xd9\x09\x3a\x81\x3b\x18\x63\x1a\x82\x96\xa4\x82\x11\x6e\x84\xdd\xf5\x5d\x5f\x82\x86\
    \x09\xb1\xa3\x6d\x89\x9b\xdd\xfb\xc5\x68\x09\x32\x0d\xd6\x40\xc3\xca\x73\x1a\x6a\xc1\
    \x29\x2a\x3e\x8e\x97\xbb\x9b\xfe\xe1\x61\x0f\x6a\xaf\x0f\x63\xd5\x39\xa4\x44\x00\x00\
    \x00";

#[tokio::test]
async fn encoding_that_was_not_requested_is_read_or_named() {
    for (encoding, body, named) in [
        ("content-encoding: br\r\n", b"x" as &[u8], "`br`"),
        ("content-encoding: zstd\r\n", b"x", "`zstd`"),
        ("", b"\x28\xb5\x2f\xfd\x00", "`zstd`"),
        ("", HELLO_AS_GZIP, "`gzip`"),
        ("content-encoding: gzip\r\n", b"no gzip", "gzip"),
    ] {
        for dialect in DIALECTS {
            let server = Server::new(&[Answer::bytes(encoding, body)]);
            let fault = end(&remote(dialect, &server)).await.unwrap_err();
            assert!(fault.detail.contains(named), "{encoding}: {fault}");
            let asked = &server.requests()[0].0;
            let accepted = "\r\naccept-encoding: identity\r\n";
            assert!(asked.contains(accepted), "{asked}");
        }
    }
    let gzip = Answer::bytes("content-encoding: gzip\r\n", HELLO_AS_GZIP);
    let reply = end(&remote(Dialect::OpenAi, &Server::new(&[gzip]))).await;
    assert_eq!(text(&reply.unwrap()), "Hello");
}

#[tokio::test]
async fn a_request_larger_than_the_limit_does_not_wait() {
    for (limit, code) in [(9, "context"), (90_000, "rate_limited")] {
        let headers = format!("x-ratelimit-limit-tokens: {limit}\r\n");
        let server = Server::new(&[Answer::of(429, &headers, &["slow down"])]);
        let fault = end(&remote(Dialect::OpenAi, &server)).await.unwrap_err();
        assert_eq!(fault.code.as_str(), code, "{fault}");
        assert_eq!(
            fault.detail.contains("more than the limit of 9"),
            limit == 9,
            "{fault}"
        );
    }
    // A limit on what is received says nothing about what is sent.
    let headers = "anthropic-ratelimit-output-tokens-limit: 9\r\n";
    let server = Server::new(&[Answer::of(429, headers, &["slow down"])]);
    let fault = end(&remote(Dialect::Anthropic, &server)).await;
    assert_eq!(fault.unwrap_err().code.as_str(), "rate_limited");
}

#[tokio::test]
async fn each_response_status_maps_to_a_fault() {
    for (status, code, retry) in [
        (307, "bad_request", false),
        (400, "bad_request", false),
        (401, "unauthorized", false),
        (403, "forbidden", false),
        (404, "wrong_route", false),
        (408, "request_timeout", true),
        (409, "conflict", true),
        (413, "too_large", false),
        (429, "rate_limited", true),
        (500, "server_error", true),
        (502, "overloaded", true),
        (503, "overloaded", true),
        (504, "overloaded", true),
        (529, "overloaded", true),
    ] {
        for dialect in DIALECTS {
            let body = r#"{"type":"error","error":{"message":"because","type":"x"}}"#;
            let headers = "retry-after: 7\r\nlocation: http://127.0.0.1:1/\r\n";
            let server = Server::new(&[Answer::of(status, headers, &[body])]);
            let settings = settings(dialect, &format!("{}/v1", server.url));
            let got = all(&Remote::new(settings).unwrap(), Scenario::Question).await;
            let [Err(fault)] = &*got else {
                panic!("{status}: {got:?}")
            };
            let after_ms = Some(7000);
            let class = match (retry, status) {
                (true, 429 | 502..=504 | 529) => FaultClass::Unavailable { after_ms },
                (true, _) => FaultClass::Retryable { after_ms },
                (false, _) => FaultClass::Permanent,
            };
            assert_eq!(
                (fault.code.as_str(), fault.class),
                (code, class),
                "{status}"
            );
            let detail = format!("p responded with status {status}: because (x)");
            assert_eq!(fault.detail, detail);
            // A server without the route may have the other one.
            let has_other = dialect != Dialect::Anthropic;
            let tries = 1 + usize::from(status == 404 && has_other);
            assert_eq!(server.requests().len(), tries, "{status}: {dialect:?}");
        }
    }
}

#[tokio::test]
async fn truncated_response_is_cut_unless_finished() {
    for dialect in DIALECTS {
        let events = events(dialect);
        let ends = ["\"stop\"", "end_turn", "response.completed"];
        let ends = |event: &&str| ends.iter().any(|end| event.contains(end));
        let finish = events.iter().position(ends);
        let finish = finish.unwrap();
        for length in 0..=events.len() {
            // A connection that breaks between chunks, and a clean but early end.
            for answer in [
                Answer::stream(&events[..length]).breaks_off(),
                Answer::stream(&events[..length]),
            ] {
                let server = Server::new(&[answer]);
                let ended = end(&remote(dialect, &server)).await;
                if length > finish {
                    assert_eq!(text(&ended.unwrap()), "Hello", "{dialect:?} {length}");
                } else {
                    let fault = ended.unwrap_err();
                    assert_eq!(fault.code.as_str(), "cut", "{dialect:?} {length}");
                    assert!(is_retryable(&fault));
                }
            }
        }
    }
}

#[tokio::test]
async fn closed_connection_before_the_response_is_a_hang_up() {
    let server = Server::new(&[Answer::nothing().breaks_off()]);
    assert_eq!(code(&remote(Dialect::OpenAi, &server)).await, "hung_up");
}

#[tokio::test]
async fn silent_server_times_out() {
    let server = Server::new(&[Answer::nothing()]);
    let remote = remote(Dialect::OpenAi, &server);
    // The paused clock advances when all tasks wait.
    tokio::time::pause();
    let listed = remote.list_models().await.unwrap_err();
    assert_eq!(
        (listed.code.as_str(), listed.class),
        ("headers_timeout", FaultClass::Permanent)
    );
    let fault = end(&remote).await.unwrap_err();
    assert_eq!(
        (fault.code.as_str(), fault.class),
        ("headers_timeout", FaultClass::Permanent)
    );
}

#[tokio::test]
async fn error_body_is_awaited_only_briefly() {
    let answer = Answer::of(429, "retry-after: 7\r\n", &["{\"error\":"]).waits();
    let server = Server::new(&[answer]);
    let remote = remote(Dialect::OpenAi, &server);
    // The blocking task keeps the clock still until the answer has begun.
    tokio::time::pause();
    let begun = tokio::task::spawn_blocking(move || {
        server.wait_for(&Happened::Begun);
        server
    });
    let began = tokio::time::Instant::now();
    let (ended, server) = tokio::join!(end(&remote), begun);
    let fault = ended.unwrap_err();
    let after_ms = Some(7_000);
    assert_eq!(fault.code.as_str(), "rate_limited");
    assert_eq!(fault.class, FaultClass::Unavailable { after_ms });
    let took = began.elapsed();
    assert!(took <= Duration::from_secs(10), "{took:?}");
    drop(server);
}

#[tokio::test]
async fn error_events_in_a_stream_become_faults() {
    let openai = "data: {\"error\":{\"message\":\"no\",\"type\":\"server_error\"}}\n\n";
    let anthropic =
        "event: error\ndata: {\"type\":\"error\",\"error\":{\"type\":\"overloaded_error\"}}\n\n";
    for (dialect, error, expected) in [
        (Dialect::OpenAi, openai, "server_error"),
        (Dialect::Anthropic, anthropic, "overloaded"),
    ] {
        for before in [0, 4] {
            let mut events = events(dialect)[..before].to_vec();
            events.retain(|event| !event.contains("stop"));
            events.push(error);
            let server = Server::new(&[Answer::stream(&events)]);
            let got = all(&remote(dialect, &server), Scenario::Question).await;
            let texts = got
                .iter()
                .filter(|item| matches!(item, Ok(Delta::Text(_))))
                .count();
            assert_eq!(texts > 0, before > 0, "{got:?}");
            let Some(Err(fault)) = got.last() else {
                panic!("{got:?}")
            };
            assert_eq!(fault.code.as_str(), expected);
        }
    }
}

#[tokio::test]
async fn html_response_is_a_bad_stream() {
    let server = Server::new(&[Answer::of(
        200,
        "content-type: text/html\r\n",
        &["<!doctype html>"],
    )]);
    let fault = end(&remote(Dialect::OpenAi, &server)).await.unwrap_err();
    assert_eq!(
        (fault.code.as_str(), fault.class),
        ("bad_stream", FaultClass::Permanent)
    );
}

#[tokio::test]
async fn faults_never_leak_keys_or_header_values() {
    let echo = "you sent sk-canary and team-canary, user:pass-canary";
    let json = format!(r#"{{"error":{{"message":"{echo}","type":"sk-canary"}}}}"#);
    let event = format!("data: {json}\n\n");
    let answers = [
        Answer::of(401, "", &[&json]),
        Answer::of(500, "", &[echo]),
        Answer::stream(&[&event]),
        Answer::stream(&["data: sk-canary\n\n"]),
        Answer::nothing().breaks_off(),
        Answer::stream(&[]).breaks_off(),
    ];
    for answer in answers {
        for dialect in DIALECTS {
            let server = Server::new(std::slice::from_ref(&answer));
            let url = server.url.replace("http://", "http://user:pass-canary@");
            let settings = settings(dialect, &format!("{url}/?key=query-canary"));
            let remote = Remote::new(settings).unwrap();
            let fault = end(&remote).await.unwrap_err();
            let listed = remote
                .list_models()
                .await
                .map_err(|fault| format!("{fault:?} {fault}"));
            for shown in [
                format!("{fault:?} {fault}"),
                format!("{remote:?}"),
                format!("{listed:?}"),
            ] {
                assert!(!shown.contains("canary"), "{shown}");
            }
        }
    }
    let unreachable = settings(
        Dialect::OpenAi,
        "http://user:pass-canary@127.0.0.1:1/?key=query-canary",
    );
    let fault = end(&Remote::new(unreachable).unwrap()).await.unwrap_err();
    assert!(!format!("{fault:?}").contains("canary"), "{fault:?}");
}
