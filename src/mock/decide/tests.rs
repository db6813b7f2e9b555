use std::{fmt::Write as _, num::NonZeroU32};

use serde_json::{Value, json};
use tokio_util::sync::CancellationToken;

use super::*;
use crate::{
    llm::Dialect,
    mock::{Settings, dialect::row, fault::FaultKind},
};

/// Further steps are counted but not shown.
const SHOWN: usize = 24;
/// Bytes shown of a step.
const MOST: usize = 3_000;

/// A server with short replies.
fn server(settings: Settings) -> std::sync::Arc<Server> {
    let settings = Settings {
        turns: NonZeroU32::new(2).unwrap(),
        size: 4,
        chunks: NonZeroU32::new(3).unwrap(),
        ..settings
    };
    Server::new(settings, CancellationToken::new())
}

fn body(dialect: Dialect, stream: bool) -> Value {
    let schema = json!({"required": ["query"], "properties": {"query": {"type": "string"}}});
    let mut body =
        json!({"model": "m", "messages": [{"role": "user", "content": "q"}], "stream": stream});
    match dialect {
        Dialect::OpenAi => {
            body["tools"] =
                json!([{"type": "function", "function": {"name": "find", "parameters": schema}}]);
            body["stream_options"] = json!({"include_usage": true});
        }
        Dialect::Anthropic => {
            body["tools"] = json!([{"name": "find", "input_schema": schema}]);
            body["max_tokens"] = 100.into();
        }
        Dialect::Responses => {
            body["input"] = body["messages"].take();
            body["tools"] = json!([{"type": "function", "name": "find", "parameters": schema}]);
            body["store"] = false.into();
            body["include"] = json!(["reasoning.encrypted_content"]);
        }
    }
    body
}

fn decide(server: &Server, dialect: Dialect, body: &str, fault: Option<&str>) -> Answer {
    let mut headers = HeaderMap::new();
    if let Some(fault) = fault {
        headers.insert(FAULT, fault.parse().unwrap());
    }
    let call = MockRequest {
        dialect: row(dialect),
        number: 1,
        in_flight: 1,
        headers: &headers,
        body: &Bytes::copy_from_slice(body.as_bytes()),
        now: Instant::now(),
        date: SystemTime::UNIX_EPOCH + Duration::from_secs(1_700_000_000),
    };
    call.decide(server)
}

/// A readable answer: escapes control characters and cuts long texts.
fn render(answer: &Answer) -> String {
    let mut text = format!("{} {}", answer.status, answer.kind);
    for (name, value) in &answer.headers {
        let _ = write!(text, " | {name}: {value}");
    }
    if !answer.wait.is_zero() {
        let _ = write!(text, " | after {:?}", answer.wait);
    }
    text.push('\n');
    let steps = match &answer.body {
        Sent::Whole(bytes) => vec![Step::Send(bytes.clone())],
        Sent::Steps(steps) => steps.clone(),
    };
    for step in steps.iter().take(SHOWN) {
        let _ = match step {
            Step::Send(bytes) => writeln!(text, "> {}", visible(bytes)),
            Step::Repeat(bytes, time) => {
                writeln!(text, "> {} again and again, after {time:?}", visible(bytes))
            }
            other => writeln!(text, "- {other:?}"),
        };
    }
    if steps.len() > SHOWN {
        let _ = writeln!(text, "… {} steps in all", steps.len());
    }
    text
}

fn visible(bytes: &[u8]) -> String {
    let mut text = String::new();
    for chunk in bytes.utf8_chunks() {
        text += &chunk
            .valid()
            .replace('\r', "\\r")
            .replace('\n', "\\n")
            .replace('\u{feff}', "\\u{feff}");
        for byte in chunk.invalid() {
            let _ = write!(text, "\\x{byte:02x}");
        }
    }
    if text.len() > MOST {
        let cut = text.floor_char_boundary(MOST);
        text.truncate(cut);
        let _ = write!(text, "… ({} bytes)", bytes.len());
    }
    text
}

fn name(kind: FaultKind) -> &'static str {
    match kind {
        // The default is long.
        FaultKind::HugeLine => "huge-line=300",
        kind => kind.name(),
    }
}

fn all(dialect: Dialect, stream: bool) -> String {
    let server = server(Settings::default());
    let body = body(dialect, stream).to_string();
    let mut text = String::from("== no fault\n");
    text += &render(&decide(&server, dialect, &body, None));
    for kind in FaultKind::ALL {
        let name = name(*kind);
        let _ = write!(
            text,
            "\n== {name}\n{}",
            render(&decide(&server, dialect, &body, Some(name)))
        );
    }
    text
}

#[test]
fn each_fault_shapes_the_openai_stream() {
    insta::assert_snapshot!("openai_stream", all(Dialect::OpenAi, true));
}

#[test]
fn each_fault_shapes_the_anthropic_stream() {
    insta::assert_snapshot!("anthropic_stream", all(Dialect::Anthropic, true));
}

#[test]
fn each_fault_shapes_the_openai_reply() {
    insta::assert_snapshot!("openai_whole", all(Dialect::OpenAi, false));
}

#[test]
fn each_fault_shapes_the_anthropic_reply() {
    insta::assert_snapshot!("anthropic_whole", all(Dialect::Anthropic, false));
}

#[test]
fn each_fault_shapes_the_responses_stream() {
    insta::assert_snapshot!("responses_stream", all(Dialect::Responses, true));
}

#[test]
fn each_fault_shapes_the_responses_reply() {
    insta::assert_snapshot!("responses_whole", all(Dialect::Responses, false));
}

#[test]
fn mock_replies_are_json_unless_the_fault_breaks_it() {
    let server = server(Settings::default());
    for dialect in Dialect::ALL {
        for (stream, kind) in [true, false]
            .iter()
            .flat_map(|stream| FaultKind::ALL.iter().map(move |kind| (*stream, *kind)))
        {
            let answer = decide(
                &server,
                dialect,
                &body(dialect, stream).to_string(),
                Some(name(kind)),
            );
            let bytes: Vec<u8> = match &answer.body {
                Sent::Whole(bytes) => bytes.to_vec(),
                Sent::Steps(steps) => steps
                    .iter()
                    .filter_map(|step| match step {
                        Step::Send(bytes) => Some(&bytes[..]),
                        _ => None,
                    })
                    .flatten()
                    .copied()
                    .collect(),
            };
            let text = String::from_utf8(bytes).unwrap();
            let objects: Vec<&str> = if answer.is_stream() {
                let lines = text.lines().filter_map(|line| line.strip_prefix("data: "));
                lines.filter(|data| *data != "[DONE]").collect()
            } else {
                vec![text.trim_start_matches('\u{feff}')]
            };
            let broken = !answer.is_stream()
                && matches!(
                    kind,
                    FaultKind::Html
                        | FaultKind::HangUp
                        | FaultKind::StallHeaders
                        | FaultKind::Cut
                        | FaultKind::Stall
                        | FaultKind::NoEnd
                        | FaultKind::CommentsOnly
                );
            for object in objects {
                let read = serde_json::from_str::<Value>(object);
                assert_eq!(
                    read.is_err(),
                    broken,
                    "{dialect:?} {stream} {}: {object}",
                    kind.name()
                );
            }
        }
    }
}

#[test]
fn a_stream_can_be_cut_at_every_event() {
    let server = server(Settings::default());
    for dialect in Dialect::ALL {
        let body = body(dialect, true).to_string();
        let sent = |answer: &Answer| match &answer.body {
            Sent::Steps(steps) => steps
                .iter()
                .filter(|step| matches!(step, Step::Send(_)))
                .count(),
            Sent::Whole(_) => 0,
        };
        let events = sent(&decide(&server, dialect, &body, Some("cut=1000")));
        assert!(events > 5);
        for n in 0..=events {
            let answer = decide(&server, dialect, &body, Some(&format!("cut={n}")));
            assert_eq!(sent(&answer), n);
            let Sent::Steps(steps) = answer.body else {
                panic!("{n}: not by steps")
            };
            assert_eq!(steps.last(), Some(&Step::Cut));
        }
    }
}

#[test]
fn pauses_between_events_follow_from_the_seed() {
    let server = server(Settings {
        gap: "1ms..9ms".parse().unwrap(),
        latency: "20ms..30ms".parse().unwrap(),
        ..Settings::default()
    });
    let body = body(Dialect::OpenAi, true).to_string();
    let times = || {
        let answer = decide(&server, Dialect::OpenAi, &body, None);
        let Sent::Steps(steps) = answer.body else {
            panic!("not by steps")
        };
        let pauses = steps.iter().filter_map(|step| match step {
            Step::Pause(time) => Some(*time),
            _ => None,
        });
        (answer.wait, pauses.collect::<Vec<_>>(), steps.len())
    };
    let (wait, pauses, steps) = times();
    assert_eq!(pauses.len() * 2 + 1, steps);
    assert!(
        pauses
            .iter()
            .all(|time| (1..=9).contains(&time.as_millis()))
    );
    assert!(pauses.iter().any(|time| *time != pauses[0]));
    assert!((20..=30).contains(&wait.as_millis()));
    assert_eq!(times(), (wait, pauses, steps));
}

#[test]
fn mock_refusals_follow_a_fixed_order() {
    let settings = Settings {
        key: Some("k".into()),
        strict: true,
        models: vec!["m".into()],
        requests_per_minute: NonZeroU32::new(1),
        ..Settings::default()
    };
    let server = server(settings);
    let good = body(Dialect::OpenAi, false).to_string();
    let refused = |body: &str, key: Option<&'static str>, fault: Option<&'static str>| {
        let mut headers = HeaderMap::new();
        for (name, value) in [("authorization", key), (FAULT, fault)] {
            if let Some(value) = value {
                headers.insert(name, value.parse().unwrap());
            }
        }
        let answer = MockRequest {
            dialect: row(Dialect::OpenAi),
            number: 1,
            in_flight: 1,
            headers: &headers,
            body: &Bytes::copy_from_slice(body.as_bytes()),
            now: server_start(),
            date: SystemTime::UNIX_EPOCH,
        }
        .decide(&server);
        let rules: Vec<_> = answer
            .breaches
            .iter()
            .map(|breach| breach.rule.as_str())
            .collect();
        (answer.status, rules.join(" "))
    };
    let key = Some("Bearer k");
    let other = good.replace("\"m\"", "\"n\"");
    let broken = good.replace("\"q\"", "\"\"");
    for (name, got, want) in [
        ("no key", refused(&good, None, Some("500")), (401, "key")),
        (
            "another key",
            refused(&good, Some("Bearer kk"), None),
            (401, "key"),
        ),
        ("no such fault", refused(&good, key, Some("x")), (400, "")),
        ("no JSON", refused("{", key, Some("500")), (400, "form")),
        (
            "a broken rule",
            refused(&broken, key, Some("500")),
            (400, "empty"),
        ),
        (
            "no such model",
            refused(&other, key, Some("500")),
            (404, ""),
        ),
        ("a fault", refused(&good, key, Some("500")), (500, "")),
        (
            "the limit of a minute",
            refused(&good, key, Some("500")),
            (429, "limits"),
        ),
    ] {
        assert_eq!(got, (want.0, want.1.to_owned()), "{name}");
    }
}

/// A fixed time for all calls, so that no limit refills.
fn server_start() -> Instant {
    static START: std::sync::OnceLock<Instant> = std::sync::OnceLock::new();
    *START.get_or_init(Instant::now)
}
