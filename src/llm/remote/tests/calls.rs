//! Successful calls and their requests.

use std::sync::Mutex;

use super::{server::Happened, *};
use crate::{
    model::{StopReason, Usage},
    testkit::llm_conformance::Determinism,
};

#[tokio::test]
async fn reply_streams_in_pieces_and_completes_once() {
    for dialect in DIALECTS {
        let server = Server::new(&[Answer::stream(events(dialect))]);
        let got = all(&remote(dialect, &server), Scenario::Question).await;
        let mut said = String::new();
        let (mut done, mut used) = (Vec::new(), Usage::default());
        for item in got {
            match item.unwrap() {
                Delta::Text(text) => said.push_str(&text),
                Delta::Alive => {}
                Delta::Used(usage) => used = usage,
                Delta::Done(reply) => done.push(reply),
                other @ (Delta::Reasoning(_) | Delta::Progress(_) | Delta::Limits(_)) => {
                    panic!("{other:?}")
                }
            }
        }
        assert_eq!(said, "Hello");
        let [reply] = &*done else { panic!("{done:?}") };
        assert_eq!((text(reply), reply.stop), ("Hello", StopReason::EndTurn));
        assert_eq!(
            (reply.usage.input_tokens, reply.usage.output_tokens),
            (9, 3)
        );
        assert_eq!(used, reply.usage, "it was told before the end too");
        assert_eq!(reply.model, "p/model");
    }
}

#[tokio::test]
async fn both_dialects_conform() {
    for dialect in DIALECTS {
        // Keeps the servers alive until the calls have ended.
        let servers = Mutex::new(Vec::new());
        let make = |_| -> Arc<dyn Backend> {
            let server = Server::new(&[Answer::stream(events(dialect))]);
            let backend = Arc::new(remote(dialect, &server));
            servers.lock().unwrap().push(server);
            backend
        };
        let checked = conformance::check(make, Determinism::Deterministic).await;
        assert_eq!(checked, Ok(()), "{dialect:?}");
    }
}

#[tokio::test]
async fn connection_is_reused() {
    for dialect in DIALECTS {
        let server = Server::new(&[Answer::stream(events(dialect))]);
        let remote = remote(dialect, &server);
        for _ in 0..3 {
            end(&remote).await.unwrap();
        }
        let happened = server.happened();
        let connected = happened.iter().filter(|one| **one == Happened::Connected);
        assert_eq!(connected.count(), 1, "{happened:?}");
    }
}

#[tokio::test]
async fn dropping_a_stream_closes_its_connection() {
    for dialect in DIALECTS {
        let begun = Answer::stream(&events(dialect)[..4]).waits();
        let server = Server::new(&[begun]);
        let remote = remote(dialect, &server);
        let mut stream = remote.call(conformance::request(Scenario::Question));
        while !matches!(stream.next().await, Some(Ok(Delta::Text(_)))) {}
        drop(stream);
        // Gives the runtime time to close the connection.
        let left = tokio::task::spawn_blocking(move || server.wait_for(&Happened::Left));
        left.await.unwrap();
    }
}

#[tokio::test]
async fn reply_completes_at_its_end_mark_before_the_connection_closes() {
    let server = Server::new(&[Answer::stream(OPENAI).waits()]);
    let reply = end(&remote(Dialect::OpenAi, &server)).await.unwrap();
    assert_eq!(text(&reply), "Hello");
}

#[tokio::test]
async fn ignorable_events_count_as_alive() {
    let quiet = [
        ": hello\n\n",
        "data: {\"choices\":[{\"delta\":{\"role\":\"assistant\"}}]}\n\n",
        "\n",
    ];
    for chunk in quiet {
        let server = Server::new(&[Answer::stream(&[chunk]).waits()]);
        let remote = remote(Dialect::OpenAi, &server);
        let mut stream = remote.call(conformance::request(Scenario::Question));
        assert_eq!(stream.next().await, Some(Ok(Delta::Alive)), "{chunk:?}");
    }
}

#[tokio::test]
async fn rate_limits_arrive_before_reply_or_fault() {
    let headers = "x-ratelimit-limit-requests: 600\r\nx-ratelimit-remaining-tokens: 7\r\n";
    for status in [200, 429] {
        let server = Server::new(&[Answer::of(status, headers, OPENAI)]);
        let got = all(&remote(Dialect::OpenAi, &server), Scenario::Question).await;
        let Some(Ok(Delta::Limits(limits))) = got.first() else {
            panic!("{got:?}");
        };
        assert_eq!(
            (limits.requests.limit, limits.tokens.remaining),
            (Some(600), Some(7))
        );
        assert_eq!(got.last().unwrap().is_ok(), status == 200);
    }
}

#[tokio::test]
async fn complete_reply_is_accepted_with_or_without_streaming() {
    let openai = r#"{"choices":[{"message":{"content":"Hello"},"finish_reason":"stop"}]}"#;
    let anthropic =
        r#"{"type":"message","content":[{"type":"text","text":"Hello"}],"stop_reason":"end_turn"}"#;
    for (dialect, body) in [(Dialect::OpenAi, openai), (Dialect::Anthropic, anthropic)] {
        for streaming in [Streaming::Always, Streaming::Never] {
            let server = Server::new(&[Answer::of(200, "", &[body])]);
            let settings = ProviderSettings {
                streaming,
                ..settings(dialect, &server.url)
            };
            let reply = end(&Remote::new(settings).unwrap()).await.unwrap();
            assert_eq!(text(&reply), "Hello");
            let (head, body) = server.requests().remove(0);
            let streams = streaming == Streaming::Always;
            assert_eq!(body.contains("\"stream\":true"), streams, "{body}");
            assert_eq!(
                head.contains("accept: text/event-stream"),
                streams,
                "{head}"
            );
        }
    }
}

#[tokio::test]
async fn requests_carry_path_key_and_headers() {
    for (dialect, path, key) in [
        (
            Dialect::OpenAi,
            "POST /chat/completions HTTP/1.1",
            "authorization: Bearer sk-canary",
        ),
        (
            Dialect::Anthropic,
            "POST /v1/messages HTTP/1.1",
            "x-api-key: sk-canary",
        ),
    ] {
        let server = Server::new(&[Answer::stream(events(dialect))]);
        end(&remote(dialect, &server)).await.unwrap();
        let (head, body) = server.requests().remove(0);
        for line in [
            path,
            key,
            "x-team: team-canary",
            "content-type: application/json",
        ] {
            assert!(
                head.lines().any(|other| other == line),
                "{line} is not in {head}"
            );
        }
        assert!(head.contains("user-agent: oracle-agent/"), "{head}");
        assert!(
            serde_json::from_str::<serde_json::Value>(&body).is_ok(),
            "{body}"
        );
        assert!(!body.contains("canary"), "{body}");
    }
}

#[test]
fn settings_override_what_the_host_tells() {
    let model = |name: &str, images| ModelSettings {
        name: name.to_owned(),
        images,
        ..ModelSettings::default()
    };
    for (structured_output, expected) in [(None, false), (Some(true), true)] {
        let remote = Remote::new(ProviderSettings {
            structured_output,
            models: vec![model("seeing", Some(true)), model("other", None)],
            ..settings(Dialect::OpenAi, "http://localhost")
        })
        .unwrap();
        for (name, images) in [("seeing", true), ("other", false), ("unknown", false)] {
            let takes = remote.capabilities(name);
            assert_eq!((takes.images, takes.schemas), (images, expected), "{name}");
        }
        let options = AnswerOptions {
            format: AnswerFormat::Json,
            ..AnswerOptions::default()
        };
        let request = Request {
            options: Some(Arc::new(options)),
            ..conformance::request(Scenario::Question)
        };
        let body = String::from_utf8(remote.0.body(&request, Forms::default()).unwrap()).unwrap();
        assert_eq!(body.contains("response_format"), expected, "{body}");
    }
}

#[tokio::test]
async fn models_are_listed_with_their_limits() {
    let model = |name: &str, context_window, max_output| ModelSettings {
        name: name.to_owned(),
        context_window,
        max_output,
        ..ModelSettings::default()
    };
    let openai = r#"{"object":"list","data":[
        {"id":"a","object":"model"},
        {"id":"b","max_model_len":4096},
        {"id":"c","context_length":8192,"top_provider":{"context_length":4000,"max_completion_tokens":100}},
        {"id":"d","context_length":null,"context_window":"10","top_provider":null},
        null,7,{"id":"e","id":null,"top_provider":[1],"pricing":NaN},
        {"object":"nameless"}]}"#;
    // Some servers send the list alone.
    let alone = &openai[openai.find('[').unwrap()..openai.len() - 1];
    let server = Server::new(&[openai, alone].map(|list| Answer::of(200, "", &[list])));
    let lists = remote(Dialect::OpenAi, &server);
    let listed = lists.list_models().await.unwrap();
    assert_eq!(lists.list_models().await.unwrap(), listed);
    let expected = [
        model("a", None, None),
        model("b", Some(4096), None),
        model("c", Some(4000), Some(100)),
        model("d", Some(10), None),
        model("e", None, None),
    ];
    assert_eq!(listed, expected);
    assert!(
        server.requests()[0]
            .0
            .starts_with("GET /models HTTP/1.1\r\n")
    );

    let anthropic = r#"{"data":[{"type":"model","id":"a","display_name":"A","max_input_tokens":200000}],"has_more":false}"#;
    let server = Server::new(&[Answer::of(200, "", &[anthropic])]);
    let listed = remote(Dialect::Anthropic, &server)
        .list_models()
        .await
        .unwrap();
    assert_eq!(listed, [model("a", Some(200_000), None)]);
    assert!(
        server.requests()[0]
            .0
            .starts_with("GET /v1/models?limit=1000 HTTP/1.1\r\n")
    );
}
