//! The content of streams, and queries whose client disconnects.

use std::time::Duration;

use oracle_agent::{llm::scripted::ScriptedReply, model::Fault, testkit::TestTool};

use super::*;

pub(super) fn text(events: &[Value]) -> String {
    let content = |event: &Value| {
        event["choices"][0]["delta"]["content"]
            .as_str()
            .map(str::to_owned)
    };
    events.iter().filter_map(content).collect()
}

pub(super) fn objects(stream: &str) -> Vec<Value> {
    let data = stream
        .split("\n\n")
        .filter_map(|event| event.strip_prefix("data: "));
    data.filter_map(|data| serde_json::from_str(data).ok())
        .collect()
}

fn faulty() -> Scripted {
    let fault = || Fault::retryable("reset", "the connection was reset");
    Scripted::new()
        .fault_after("Half of a sen", fault())
        .fault_after("Half of another", fault())
        .reply(done("A whole sentence."))
}

pub(super) fn answer_alone(body: Value) -> Value {
    let mut body = streamed(body);
    body["stream_options"] = json!({ "oracle": "answer" });
    body
}

#[tokio::test(start_paused = true)]
async fn failed_attempt_leaves_no_trace_in_a_stream_of_the_answer() {
    let served = Served::start(TestOracle::new(faulty())).await;
    let got = served
        .post(&[("x-oracle-session", "s")], answer_alone(chat(&["q?"])))
        .await;
    assert_eq!(served.count("s", "turn.restarted").await, 2);
    assert_eq!(text(&objects(&got.text)), "A whole sentence.");
    let turns = Scripted::new()
        .reply(more("Looking."))
        .reply(done("There."));
    let served = Served::start(TestOracle::new(turns)).await;
    let got = served.post(&[], answer_alone(chat(&["q?"]))).await;
    assert_eq!(text(&objects(&got.text)), "There.");
}

#[tokio::test(start_paused = true)]
async fn retry_with_other_text_ends_the_stream_but_not_a_named_query() {
    for (headers, then) in [
        (
            &[("x-oracle-session", "s")][..],
            "`GET /api/sessions/s/queries/1`",
        ),
        (&[], "the query is cancelled: send it again"),
    ] {
        let served = Served::start(TestOracle::new(faulty())).await;
        let got = served.post(headers, streamed(chat(&["q?"]))).await;
        let mut events = objects(&got.text);
        let last = events.pop().unwrap();
        assert_eq!(last["error"]["code"], "retracted", "{}", got.text);
        let message = last["error"]["message"].as_str().unwrap();
        assert!(message.contains(then), "{message}");
        assert!(!got.text.contains("[DONE]"), "{}", got.text);
        assert_eq!(text(&events), "Half of a sen");
        if headers.is_empty() {
            advance_time(Duration::from_secs(5)).await;
            assert_eq!(served.system.oracle().running(), 0);
            continue;
        }
        let session = served.system.session("s").unwrap();
        let finished = session.wait_for("query.finished").await.unwrap();
        assert_eq!(finished.payload["answer"], "A whole sentence.");
    }
}

#[tokio::test(start_paused = true)]
async fn retry_that_begins_with_the_sent_text_continues_it() {
    let fault = Fault::retryable("reset", "the connection was reset");
    let script = Scripted::new()
        .fault_after("A whole sen", fault)
        .reply(done("A whole sentence."));
    let served = Served::start(TestOracle::new(script)).await;
    let got = served.post(&[], streamed(chat(&["q?"]))).await;
    assert_eq!(text(&objects(&got.text)), "A whole sentence.");
    assert!(got.text.ends_with("data: [DONE]\n\n"), "{}", got.text);
}

#[tokio::test(start_paused = true)]
async fn chunks_have_their_turn_and_the_events_around_them() {
    let script = Scripted::new()
        .calls("Looking.", [("look", json!({}))])
        .reply(done("There."));
    let served = Served::start(TestOracle::new(script).tool(TestTool::new("look"))).await;
    let got = served
        .post(
            &[("x-oracle-session", "s")],
            streamed(chat(&["where is it?"])),
        )
        .await;
    let brief = |event: &Value| {
        let content = event["choices"][0]["delta"]["content"].clone();
        (content, event["oracle"].clone())
    };
    let mut got: Vec<_> = objects(&got.text).iter().map(brief).collect();
    got.dedup();
    let (_, mut end) = got.pop().unwrap();
    end.as_object_mut().unwrap().remove("query");
    assert_eq!(
        end,
        json!({
            "session": "s", "outcome": "answered", "reason": null, "turns": 2, "answer_from": 1,
        })
    );
    let at = |turn: u32, event: &str| (Value::Null, json!({ "turn": turn, "event": event }));
    let tool = |event: &str| {
        let told = json!({ "turn": 0, "event": event, "tool": "look" });
        (Value::Null, told)
    };
    let text = |turn: u32, text: &str| (json!(text), json!({ "turn": turn }));
    let expected = [
        (json!(""), Value::Null),
        at(0, "turn.started"),
        text(0, "Looking."),
        tool("tool.started"),
        tool("tool.finished"),
        at(1, "turn.started"),
        text(0, "\n\n"),
        text(1, "There."),
    ];
    assert_eq!(got, expected);
}

#[tokio::test(start_paused = true)]
async fn a_long_text_comes_whole_and_in_pieces() {
    let long: String = (0..4_000)
        .map(|number| format!("wörter {number} "))
        .collect();
    let served = Served::start(TestOracle::new(Scripted::new().reply(done(&long)))).await;
    let got = served.post(&[], streamed(chat(&["q?"]))).await;
    let events = objects(&got.text);
    assert_eq!(text(&events), long.trim_end());
    assert!(events.len() > 8, "{} pieces", events.len());
}

#[tokio::test(start_paused = true)]
async fn idle_chat_stream_sends_keep_alives() {
    let script = Scripted::new()
        .reply(done("At last."))
        .slowly(Duration::from_secs(40));
    let served = Served::start(TestOracle::new(script)).await;
    let got = served.post(&[], streamed(chat(&["q?"]))).await;
    let comments = got.text.matches(": keep-alive\n\n").count();
    assert_eq!(
        (comments, text(&objects(&got.text)).as_str()),
        (2, "At last.")
    );
}

#[tokio::test(start_paused = true)]
async fn cancelled_query_ends_its_stream_with_an_error() {
    let served = Served::start(TestOracle::new(Scripted::new().stall("Hm"))).await;
    let (_, _, body) = served
        .open(&[("x-oracle-session", "s")], streamed(chat(&["q?"])))
        .await;
    served
        .system
        .session("s")
        .unwrap()
        .cancel(None)
        .await
        .unwrap();
    let stream = read(body).await;
    let last = objects(&stream).pop().unwrap();
    assert_eq!(last["error"]["code"], "cancelled", "{stream}");
    assert!(!stream.contains("[DONE]"), "{stream}");
    let (_, _, body) = served
        .open(&[("x-oracle-session", "t")], streamed(chat(&["q?"])))
        .await;
    served.host.drain().finish();
    let stream = read(body).await;
    let last = objects(&stream).pop().unwrap();
    assert_eq!(last["error"]["code"], "draining", "{stream}");
}

#[tokio::test(start_paused = true)]
async fn disconnect_cancels_a_query_that_no_client_can_resume() {
    let script = Scripted::new()
        .reply(done("There."))
        .slowly(Duration::from_secs(60));
    let served = Served::start(TestOracle::new(script)).await;
    for is_stream in [true, false] {
        let body = |body: Value| if is_stream { streamed(body) } else { body };
        let name = format!("kept-{is_stream}");
        for headers in [&[][..], &[("x-oracle-session", name.as_str())]] {
            let asked = served.open(headers, body(chat(&["q?"])));
            // The stream begins and is dropped in the middle.
            let begun = tokio::time::timeout(Duration::from_secs(10), async {
                let (_, _, body) = asked.await;
                body.into_data_stream().for_each(|_| async {}).await;
            });
            assert!(begun.await.is_err(), "it is not over yet");
        }
        advance_time(Duration::from_secs(5)).await;
        let sessions = served.sessions().await;
        assert!(
            sessions.iter().all(|name| name.starts_with("kept-")),
            "{sessions:?}"
        );
        assert_eq!(
            served.system.oracle().running(),
            1,
            "the one that has a name goes on"
        );
        served
            .system
            .session(&name)
            .unwrap()
            .wait_for("query.finished")
            .await
            .unwrap();
    }
}

#[tokio::test(start_paused = true)]
async fn stream_delivers_text_before_the_reply_ends() {
    let served = Served::start(TestOracle::new(Scripted::new().stall("Looking around."))).await;
    let (_, _, body) = served
        .open(&[("x-oracle-session", "s")], streamed(chat(&["q?"])))
        .await;
    let mut stream = body.into_data_stream();
    let mut seen = String::new();
    while !seen.contains("Looking") {
        let piece: Bytes = stream.next().await.unwrap().unwrap();
        seen.push_str(std::str::from_utf8(&piece).unwrap());
    }
    assert_eq!(served.count("s", "turn.restarted").await, 0);
    assert_eq!(served.system.oracle().running(), 1);
}

#[tokio::test(start_paused = true)]
async fn late_reader_gets_missed_text_from_the_record_of_the_reply() {
    let words: Vec<_> = (0..200).map(|word| format!("word{word} ")).collect();
    let all = words.concat();
    let script = Scripted::new().play(ScriptedReply::chunks(words));
    let served = Served::start(TestOracle::new(script)).await;
    let (_, _, body) = served
        .open(&[("x-oracle-session", "s")], streamed(chat(&["hello"])))
        .await;
    let session = served.system.session("s").unwrap();
    session.wait_for("query.finished").await.unwrap();
    let events = objects(&read(body).await);
    assert_eq!(text(&events), all.trim_end());
    assert!(events.len() < 50, "{} chunks were kept", events.len());
}
