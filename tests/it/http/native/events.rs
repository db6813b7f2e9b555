//! Events as pages and as streams.

use std::{sync::Arc, time::Duration};

use oracle_agent::{
    journal::Memory,
    llm::Scripted,
    model::Event,
    testkit::{
        Obstacle, ObstructedJournal, TestOracle, advance_time,
        faulty::{FaultyJournal, Operation},
    },
};
use serde_json::{Value, json};

use super::{super::greeter, Api, StreamedEvent};

const MORE: &str = "More.\n<signal type=\"need_turn\"><reason>there is REASON more to \
                    find</reason><confidence>0.9</confidence></signal>";
const DONE: &str = "All of it.\n<signal type=\"context_sufficient\"><sources_found>1</sources_found>\
                    <confidence>0.9</confidence></signal>";

fn long_winded(answers: usize, turns: usize) -> Scripted {
    slow(answers, turns, Duration::ZERO)
}

/// A model with this many turns per answer and this delay per turn.
pub(super) fn slow(answers: usize, turns: usize, each: Duration) -> Scripted {
    (0..answers).fold(Scripted::new(), |model, _| {
        let more = (1..turns).fold(model, |model, turn| {
            let reply = MORE.replace("REASON", &"even ".repeat(turn));
            model.reply(reply).slowly(each)
        });
        more.reply(DONE).slowly(each)
    })
}

fn as_json(events: &[Event]) -> Vec<Value> {
    let json = events
        .iter()
        .map(|event| serde_json::to_value(event).unwrap());
    json.collect()
}

/// Returns `count` events of the log from the `from`th on: a passivation may have added more.
async fn logged(api: &Api, from: usize, count: usize) -> Vec<Value> {
    let log = as_json(&api.log("s").await);
    log.into_iter().skip(from).take(count).collect()
}

fn data(told: Vec<StreamedEvent>) -> Vec<Value> {
    told.into_iter().map(|told| told.data).collect()
}

#[tokio::test]
async fn stream_replays_past_events_and_follows_new_ones() {
    let api = Api::of(TestOracle::new(long_winded(2, 2))).await;
    api.session("s").ask("the first one?").await.unwrap();
    let mut stream = api.stream("/api/sessions/s/events", None).await;
    let mut told = stream.until("query.finished").await;
    let (asked, more) = {
        let session = api.session("s");
        let ask = async move { session.ask("the second one?").await.unwrap() };
        tokio::join!(ask, stream.until("query.finished"))
    };
    assert_eq!(asked.query.0, 2);
    told.extend(more);
    for event in &told {
        assert_eq!(event.id, event.data["seq"].as_u64());
        assert_eq!(event.name, event.data["type"].as_str().unwrap());
    }
    let log = logged(&api, 0, told.len()).await;
    assert_eq!(data(told), log);
}

#[tokio::test]
async fn reconnecting_client_sees_every_event_once() {
    let api = Api::of(TestOracle::new(long_winded(1, 20))).await;
    let (status, _) = api
        .post(
            "/api/sessions/s/messages",
            json!({ "text": "where is it?" }),
        )
        .await;
    assert_eq!(status, 202);
    let (mut told, mut last) = (Vec::new(), None);
    // Reconnects after every few events, at different places, while the session continues.
    for stay in (1..8).cycle() {
        let mut stream = api.stream("/api/sessions/s/events", last).await;
        for _ in 0..stay {
            let event = stream.next().await.unwrap();
            last = event.id;
            told.push(event);
            if told.last().unwrap().name == "query.finished" {
                break;
            }
        }
        if told.last().unwrap().name == "query.finished" {
            break;
        }
        drop(stream);
        tokio::task::yield_now().await;
    }
    let log = logged(&api, 0, told.len()).await;
    assert!(log.len() > 60, "{}", log.len());
    assert_eq!(data(told), log);
}

#[tokio::test]
async fn types_that_no_event_has_are_refused() {
    let api = Api::of(greeter()).await;
    let message = json!({ "text": "hello" });
    let (status, _) = api.post("/api/sessions/s/messages", message).await;
    assert_eq!(status, 202);
    let (status, refused) = api.get("/api/sessions/s/events?type=nonsense.").await;
    let error = &refused["error"];
    assert_eq!(
        (status, &error["code"], &error["param"]),
        (400, &json!("unknown_type"), &json!("type"))
    );
}

#[tokio::test]
async fn slow_client_misses_nothing() {
    let api = Api::of(TestOracle::new(long_winded(3, 20))).await;
    let (status, _) = api.post("/api/sessions", json!({ "name": "s" })).await;
    assert_eq!(status, 201);
    let mut stream = api.stream("/api/sessions/s/events", None).await;
    assert_eq!(stream.next().await.unwrap().name, "session.opened");
    // Far more than the buffer of one reader holds.
    for question in ["the first?", "the second?", "the third?"] {
        api.session("s").ask(question).await.unwrap();
    }
    let log = as_json(&api.log("s").await);
    assert!(log.len() > 180, "{}", log.len());
    for event in &log[1..] {
        assert_eq!(stream.next().await.unwrap().data, *event);
    }
}

#[tokio::test]
async fn streams_and_pages_filter_events() {
    let api = Api::of(TestOracle::new(long_winded(1, 3))).await;
    api.session("s").ask("where is it?").await.unwrap();
    let log = api.log("s").await;
    let wanted = |keep: &dyn Fn(&Event) -> bool| {
        let kept = log.iter().filter(|event| keep(event));
        kept.map(|event| serde_json::to_value(event).unwrap())
            .collect::<Vec<_>>()
    };
    let of = |event: &Event| event.kind.starts_with("signal.") || event.kind == "query.finished";
    let path = "/api/sessions/s/events?type=signal.,,query.finished";
    let mut stream = api.stream(path, None).await;
    assert_eq!(data(stream.until("query.finished").await), wanted(&of));
    let (_, page) = api.get(path).await;
    assert_eq!(page["events"], json!(wanted(&of)));
    let (_, page) = api.get("/api/sessions/s/events?severity=error").await;
    assert_eq!((&page["events"], &page["next"]), (&json!([]), &Value::Null));
}

#[tokio::test]
async fn pages_hold_each_event_once() {
    let api = Api::of(TestOracle::new(long_winded(1, 5))).await;
    api.session("s").ask("where is it?").await.unwrap();
    let log = as_json(&api.log("s").await);
    let (mut told, mut after) = (Vec::new(), json!(0));
    while !after.is_null() {
        let path = format!("/api/sessions/s/events?limit=3&after={after}");
        let (_, page) = api.get(&path).await;
        assert_eq!(page["last"], log.len());
        let events = page["events"].as_array().unwrap();
        assert!(events.len() <= 3);
        told.extend(events.iter().cloned());
        after = page["next"].clone();
    }
    assert_eq!(told, log);
}

#[tokio::test]
async fn text_frames_stream_on_request() {
    let model = Scripted::new()
        .reply("Hello, and welcome to all of you.")
        .slowly(Duration::from_millis(1));
    let api = Api::of(TestOracle::new(model)).await;
    let (status, _) = api.post("/api/sessions", json!({ "name": "s" })).await;
    assert_eq!(status, 201);
    for (frames, want) in [("frames=1", true), ("frames=0", false)] {
        let path = format!("/api/sessions/s/events?{frames}");
        let mut stream = api.stream(&path, Some(1)).await;
        if want {
            let session = api.session("s");
            let ask = async move { session.ask("hello").await.unwrap() };
            let (_, told) = tokio::join!(ask, stream.until("turn.replied"));
            let frames = told.iter().filter(|told| told.name == "frame");
            let text: String = frames
                .map(|told| told.data["text"].as_str().unwrap())
                .collect();
            assert_eq!(text, "Hello, and welcome to all of you.");
            assert!(
                told.iter()
                    .all(|told| (told.name == "frame") == told.id.is_none())
            );
        } else {
            let told = stream.until("turn.replied").await;
            assert!(told.iter().all(|told| told.name != "frame"));
        }
    }
}

#[tokio::test(start_paused = true)]
async fn idle_stream_sends_keep_alives() {
    let api = Api::of(greeter()).await;
    let (status, _) = api.post("/api/sessions", json!({ "name": "s" })).await;
    assert_eq!(status, 201);
    let mut stream = api.stream("/api/sessions/s/events", Some(1)).await;
    assert_eq!(stream.block().await.unwrap(), "retry: 2000");
    for _ in 0..4 {
        let before = tokio::time::Instant::now();
        assert_eq!(stream.block().await.unwrap(), ": keep-alive");
        assert_eq!(before.elapsed().as_secs(), 15);
    }
}

#[tokio::test]
async fn stream_ends_with_its_server_or_session_and_a_reason() {
    let api = Api::of(greeter()).await;
    for name in ["a", "b"] {
        let (status, _) = api.post("/api/sessions", json!({ "name": name })).await;
        assert_eq!(status, 201);
    }
    let mut of_deleted = api.stream("/api/sessions/a/events", Some(1)).await;
    let (status, _) = api.delete("/api/sessions/a").await;
    assert_eq!(status, 200);
    let end = of_deleted.next().await.unwrap();
    assert_eq!((end.id, end.name.as_str()), (None, "end"));
    assert_eq!(end.data["error"]["code"], "deleted");
    assert_eq!(of_deleted.next().await, None);

    let mut stream = api.stream("/api/sessions/b/events", Some(1)).await;
    api.server.host().drain().begin();
    let end = stream.next().await.unwrap();
    assert_eq!(
        (end.name.as_str(), &end.data["error"]["code"]),
        ("end", &json!("draining"))
    );
    assert_eq!(stream.next().await, None);
}

#[tokio::test(start_paused = true)]
async fn unfillable_gap_is_marked_and_filled_later() {
    let journal = ObstructedJournal::new(Arc::new(Memory::new()));
    let oracle = TestOracle::new(long_winded(1, 20)).journal(Arc::new(journal.clone()));
    let api = Api::of(oracle).await;
    let (status, _) = api.post("/api/sessions", json!({ "name": "s" })).await;
    assert_eq!(status, 201);
    let mut stream = api.stream("/api/sessions/s/events", None).await;
    assert_eq!(stream.next().await.unwrap().id, Some(1));
    api.session("s").ask("where is it?").await.unwrap();
    journal.set(Obstacle::Down);
    let mut told = stream.until("gap").await;
    let gap = told.pop().unwrap();
    let from = told.last().and_then(|told| told.id).unwrap_or(1) + 1;
    assert_eq!((gap.id, gap.data), (None, json!({ "from": from })));
    journal.set(Obstacle::None);
    told.extend(stream.until("query.finished").await);
    let log = logged(&api, 1, told.len()).await;
    assert_eq!(data(told), log);
}

#[tokio::test(start_paused = true)]
async fn stream_of_an_unreadable_session_ends() {
    let journal = ObstructedJournal::new(Arc::new(Memory::new()));
    let oracle = greeter().journal(Arc::new(journal.clone()));
    let api = Api::of(oracle).await;
    api.session("s").ask("hello").await.unwrap();
    let mut stream = api.stream("/api/sessions/s/events", None).await;
    journal.set(Obstacle::Down);
    assert_eq!(stream.next().await.unwrap().name, "gap");
    let end = stream.next().await.unwrap();
    assert_eq!(
        (end.name.as_str(), &end.data["error"]["code"]),
        ("end", &json!("journal"))
    );
    advance_time(Duration::ZERO).await;
    assert_eq!(stream.next().await, None);
}

#[tokio::test]
async fn long_text_is_a_reference_with_its_own_body() {
    let api = Api::of(greeter()).await;
    let text = "where is it? ".repeat(2_000);
    api.session("s").ask(&text).await.unwrap();
    let (_, page) = api.get("/api/sessions/s/events?type=query.accepted").await;
    let event = &page["events"][0];
    assert_eq!(
        event["payload"]["text"],
        json!({ "ref": { "seq": 2, "bytes": text.len() } })
    );
    let (status, whole) = api.get("/api/sessions/s/events/2/body").await;
    assert_eq!((status, &whole["payload"]["text"]), (200, &json!(text)));
    assert_eq!(
        (&whole["seq"], &whole["type"]),
        (&event["seq"], &event["type"])
    );
}

#[tokio::test]
async fn filtered_page_needs_few_journal_reads() {
    let journal = Arc::new(FaultyJournal::new(Memory::new(), |_, _| None));
    let oracle = TestOracle::new(long_winded(1, 20)).journal(journal.clone());
    let api = Api::of(oracle).await;
    api.session("s").ask("where is it?").await.unwrap();
    let before = journal.calls(Operation::Read);
    let (_, page) = api
        .get("/api/sessions/s/events?limit=1&type=query.finished")
        .await;
    assert_eq!(page["events"][0]["type"], "query.finished", "{page}");
    assert_eq!(journal.calls(Operation::Read) - before, 1);
}
