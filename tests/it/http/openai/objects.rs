//! The response objects in full.

use super::*;

/// Replaces what differs from run to run.
fn settled(mut object: Value) -> Value {
    for (field, instead) in [("id", json!("ID")), ("created", json!(0))] {
        if let Some(value) = object.get_mut(field) {
            *value = instead;
        }
    }
    let program = concat!("oracle-", env!("CARGO_PKG_VERSION"));
    if object["system_fingerprint"] == program {
        object["system_fingerprint"] = json!("PROGRAM");
    }
    object
}

#[tokio::test(start_paused = true)]
async fn answer_has_the_openai_completion_shape() {
    let served = Served::start(TestOracle::new(Scripted::new().reply(done("In src.")))).await;
    let got = served
        .post(&[("x-oracle-session", "s")], chat(&["where?"]))
        .await;
    assert_eq!((got.status, got.session().as_str()), (StatusCode::OK, "s"));
    assert_eq!(got.headers["x-oracle-query"], "1");
    let json = got.json();
    let id = json["id"].as_str().unwrap();
    assert!(
        id.starts_with("chatcmpl-") && json["created"].as_u64().unwrap() > 1_700_000_000,
        "{json}"
    );
    let usage = &json["usage"];
    let tokens = |field: &str| usage[field].as_u64().unwrap();
    let (sent, received) = (tokens("prompt_tokens"), tokens("completion_tokens"));
    assert!(sent > 0 && received > 0, "{usage}");
    let expected = json!({
        "id": "ID",
        "object": "chat.completion",
        "created": 0,
        "model": "oracle",
        "system_fingerprint": "PROGRAM",
        "choices": [{
            "index": 0,
            "message": { "role": "assistant", "content": "In src.", "refusal": null, "annotations": [] },
            "logprobs": null,
            "finish_reason": "stop",
        }],
        "usage": {
            "prompt_tokens": sent,
            "completion_tokens": received,
            "total_tokens": sent + received,
            "prompt_tokens_details": { "cached_tokens": 0 },
            "completion_tokens_details": { "reasoning_tokens": 0 },
        },
        "oracle": { "session": "s", "query": 1, "outcome": "answered", "reason": null, "turns": 1 },
    });
    assert_eq!(settled(json), expected);
}

#[tokio::test(start_paused = true)]
async fn stream_has_the_openai_chunk_shape() {
    let script = Scripted::new()
        .reply(more("Looking."))
        .reply(done("In src."));
    let served = Served::start(TestOracle::new(script)).await;
    for (with_usage, name) in [(false, "a"), (true, "b")] {
        let mut body = streamed(chat(&["where?"]));
        body["stream_options"] = json!({ "include_usage": with_usage });
        let got = served.post(&[("x-oracle-session", name)], body).await;
        assert_eq!(
            got.headers["content-type"],
            "text/event-stream; charset=utf-8"
        );
        assert_eq!(got.session(), name);
        let chunk = |delta: Value, finish: Value| {
            let mut chunk = json!({
                "id": "ID",
                "object": "chat.completion.chunk",
                "created": 0,
                "model": "oracle",
                "system_fingerprint": "PROGRAM",
                "choices": [{ "index": 0, "delta": delta, "logprobs": null, "finish_reason": finish }],
            });
            if with_usage {
                chunk["usage"] = Value::Null;
            }
            chunk
        };
        let mut end = chunk(json!({}), json!("stop"));
        end["oracle"] = json!({ "session": name, "query": 1, "outcome": "answered", "reason": null, "turns": 2, "answer_from": 1 });
        let at = |turn: u32, delta: Value, mut details: Value| {
            let mut chunk = chunk(delta, Value::Null);
            details["turn"] = turn.into();
            chunk["oracle"] = details;
            chunk
        };
        let text = |turn, text: &str| at(turn, json!({ "content": text }), json!({}));
        let begin = |turn| at(turn, json!({}), json!({ "event": "turn.started" }));
        let expected = vec![
            chunk(json!({ "role": "assistant", "content": "" }), Value::Null),
            begin(0),
            text(0, "Looking."),
            begin(1),
            text(0, "\n\n"),
            text(1, "In src."),
            end,
        ];
        let (mut events, last) = events(&got.text);
        assert_eq!(last, "[DONE]");
        let ids: std::collections::BTreeSet<_> =
            events.iter().map(|event| event["id"].to_string()).collect();
        assert_eq!(ids.len(), 1, "one answer, one id");
        if with_usage {
            let mut usage = events.pop().unwrap();
            assert!(
                usage["usage"]["total_tokens"].as_u64().unwrap() > 0,
                "{usage}"
            );
            usage["usage"] = Value::Null;
            let mut nothing = chunk(json!({}), Value::Null);
            nothing["choices"] = json!([]);
            assert_eq!(settled(usage), nothing);
        }
        let events: Vec<_> = events.into_iter().map(settled).collect();
        assert_eq!(events, expected);
    }
}

/// Returns a stream's objects and its last data line.
pub(super) fn events(text: &str) -> (Vec<Value>, String) {
    let mut data: Vec<&str> = text
        .split_terminator("\n\n")
        .map(|event| {
            event
                .strip_prefix("data: ")
                .unwrap_or_else(|| panic!("{event}"))
        })
        .collect();
    let last = data.pop().unwrap().to_owned();
    let objects = data
        .iter()
        .map(|event| serde_json::from_str(event).unwrap());
    (objects.collect(), last)
}

#[tokio::test(start_paused = true)]
async fn models_list_the_profiles() {
    let served = Served::start(TestOracle::new(Scripted::new())).await;
    let model =
        |id: &str| json!({ "id": id, "object": "model", "created": 0, "owned_by": "oracle" });
    let listed = served.get("/v1/models").await.json();
    assert_eq!(
        listed,
        json!({ "object": "list", "data": [model("oracle"), model("other")] })
    );
    assert_eq!(served.get("/v1/models/other").await.json(), model("other"));
    let unknown = served.get("/v1/models/gpt-4o").await;
    let error = json!({ "error": {
        "message": "unknown model `gpt-4o`: use `oracle`, `other`",
        "type": "invalid_request_error",
        "param": "model",
        "code": "model_not_found",
    } });
    assert_eq!(
        (unknown.status.as_u16(), unknown.json()),
        (404, error.clone())
    );
    let mut asked = chat(&["q?"]);
    asked["model"] = json!("gpt-4o");
    let unknown = served.post(&[], asked).await;
    assert_eq!((unknown.status.as_u16(), unknown.json()), (404, error));
}

#[tokio::test(start_paused = true)]
async fn each_outcome_has_its_finish_reason_or_its_error() {
    let partial =
        "Some.\n<signal type=\"partial_answer\"><missing>the rest of it</missing></signal>";
    for (name, script, turns, expected) in [
        (
            "answered",
            Scripted::new().reply(done("All.")),
            5,
            Ok(("All.", "stop")),
        ),
        (
            "partial",
            Scripted::new().reply(partial),
            5,
            Ok(("Some.", "stop")),
        ),
        (
            "forced",
            Scripted::new().reply(more("Looking.")),
            1,
            Ok((
                "Looking.\n\nStopped: the turn limit was reached at turn 1, before the answer was complete. \
                 Raise the limit or ask a narrower question.",
                "length",
            )),
        ),
        (
            "failed",
            Scripted::new().fault(oracle_agent::model::Fault::permanent(
                "unauthorized",
                "no such key",
            )),
            5,
            Err((502, "unauthorized")),
        ),
    ] {
        let oracle = TestOracle::new(script).policy(move |policy| policy.limits.max_turns = turns);
        let served = Served::start(oracle).await;
        let got = served
            .post(&[("x-oracle-session", "s")], chat(&["q?"]))
            .await;
        let stream = served
            .post(&[("x-oracle-session", "t")], streamed(chat(&["q?"])))
            .await;
        let (mut events, last) = events(&stream.text);
        match expected {
            Ok((text, reason)) => {
                assert_eq!(got.answer(), text, "{name}");
                assert_eq!(got.json()["choices"][0]["finish_reason"], reason, "{name}");
                assert_eq!(got.json()["oracle"]["outcome"], name);
                assert_eq!(super::streams::text(&events), text, "{name}");
                assert_eq!(
                    events.pop().unwrap()["choices"][0]["finish_reason"],
                    reason,
                    "{name}"
                );
                assert_eq!(last, "[DONE]", "{name}");
            }
            Err((status, code)) => {
                assert_eq!(got.problem(), (status, code.to_owned()), "{name}");
                assert_eq!(
                    got.headers["x-should-retry"], "false",
                    "all that could be tried was tried"
                );
                let error: Value = serde_json::from_str(&last).unwrap();
                assert_eq!(error, got.json(), "{name}: the same at the end of a stream");
            }
        }
    }
}

#[tokio::test(start_paused = true)]
async fn forced_answer_carries_its_explanation() {
    let mut told = String::new();
    for (name, turns) in [("loop", 5), ("turns", 2)] {
        // Always the same reason.
        let script = ["One.", "Two.", "Three."].map(more);
        let script = script.into_iter().fold(Scripted::new(), Scripted::reply);
        let oracle = TestOracle::new(script).policy(move |policy| policy.limits.max_turns = turns);
        let served = Served::start(oracle).await;
        let whole = served.post(&[("x-oracle-session", "s")], chat(&["q?"]));
        let whole = whole.await.json();
        let (message, oracle) = (&whole["choices"][0]["message"], &whole["oracle"]);
        told += &format!("{name}, whole: {}\n{oracle}\n", message["content"]);
        let stream = served.post(&[("x-oracle-session", "t")], streamed(chat(&["q?"])));
        for event in events(&stream.await.text).0 {
            let (choice, oracle) = (&event["choices"][0], &event["oracle"]);
            let (delta, reason) = (&choice["delta"], &choice["finish_reason"]);
            told += &format!("{name}, streamed: {delta} {reason} {oracle}\n");
        }
    }
    insta::assert_snapshot!("forced", told);
}

#[tokio::test(start_paused = true)]
async fn error_has_the_openai_shape() {
    let served = Served::start(TestOracle::new(Scripted::new())).await;
    let mut body = chat(&["q?"]);
    body["n"] = json!(2);
    let got = served.post(&[], body).await;
    let error = json!({ "error": {
        "message": "not supported; a request yields one answer: omit it, and send another request \
                    for another answer",
        "type": "invalid_request_error",
        "param": "n",
        "code": "invalid_value",
    } });
    assert_eq!((got.status.as_u16(), got.json()), (400, error));
    assert!(served.sessions().await.is_empty(), "nothing came of it");
}
