use std::io;

use super::*;

#[tokio::test(start_paused = true)]
async fn incomplete_body_is_refused_in_its_dialect() {
    let body = |what: &str| match what {
        "late" => Body::from_stream(stream::pending::<io::Result<Bytes>>()),
        "too large" => Body::from(vec![b' '; MOST + 1]),
        _ => Body::from_stream(stream::iter([Err::<Bytes, _>(io::Error::other("gone"))])),
    };
    let server = Server::new(Settings::default(), CancellationToken::new());
    for (what, status, openai, anthropic) in [
        (
            "late",
            408,
            "invalid_request_error",
            "invalid_request_error",
        ),
        (
            "too large",
            413,
            "invalid_request_error",
            "request_too_large",
        ),
        (
            "broken off",
            400,
            "invalid_request_error",
            "invalid_request_error",
        ),
    ] {
        for (dialect, kind) in [(Dialect::OpenAi, openai), (Dialect::Anthropic, anthropic)] {
            server.log.reset();
            let request = Request::new(body(what));
            let answer = answer(Arc::clone(&server), dialect, request).await;
            assert_eq!(answer.status(), status, "{what} {dialect:?}");
            let text = Bytes::from_request(Request::new(answer.into_body()), &()).await;
            let text: serde_json::Value = serde_json::from_slice(&text.unwrap()).unwrap();
            assert_eq!(text["error"]["type"], kind, "{what} {dialect:?}: {text}");
            let is_anthropic = text["type"] == "error";
            assert_eq!(is_anthropic, dialect == Dialect::Anthropic, "{text}");
            assert_eq!(server.log.stats().status, [(status, 1)].into(), "{what}");
        }
    }
}

#[tokio::test(start_paused = true)]
async fn mock_delays_are_capped() {
    let stop = CancellationToken::new();
    for (asked, waited) in [
        (Duration::from_secs(3_600), HOLD),
        (Duration::MAX, HOLD),
        (Duration::from_secs(1), Duration::from_secs(1)),
    ] {
        let began = Instant::now();
        assert!(wait(asked, &stop).await.is_ok());
        assert_eq!(began.elapsed(), waited, "{asked:?}");
    }
    stop.cancel();
    assert!(wait(Duration::MAX, &stop).await.is_err());
}
