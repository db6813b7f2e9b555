//! A client that drops its stream and reconnects, whatever happened to session and server
//! meanwhile.

use std::{sync::Arc, time::Duration};

use oracle_agent::{
    journal::{ALL, Journal, Memory},
    testkit::{TestOracle, advance_time},
};
use serde_json::{Value, json};

use super::{Api, Stream, StreamedEvent, events::slow};

const PATH: &str = "/api/sessions/s/events";
const MINUTE: Duration = Duration::from_secs(60);
/// Duration of each model call.
const A_TURN: Duration = Duration::from_secs(10);
const TURNS: usize = 20;

/// A client with the events that it has received and the number of the last.
#[derive(Default)]
struct Client {
    seen: Vec<Value>,
    last: Option<u64>,
}

impl Client {
    async fn comes(&self, api: &Api) -> Stream {
        api.stream(PATH, self.last).await
    }

    fn see(&mut self, told: StreamedEvent) {
        self.last = told.id;
        assert!(told.id.is_some(), "{told:?}");
        self.seen.push(told.data);
    }

    async fn sees(&mut self, stream: &mut Stream, many: usize) {
        for _ in 0..many {
            self.see(stream.next().await.unwrap());
        }
    }

    async fn sees_until(&mut self, stream: &mut Stream, name: &str) {
        for told in stream.until(name).await {
            self.see(told);
        }
    }

    /// Reads to the end of the stream, which announces a drain; earlier events count.
    async fn sees_the_end(&mut self, mut stream: Stream) {
        while let Some(told) = stream.next().await {
            if told.name == "end" {
                assert_eq!(told.data["error"]["code"], "draining");
                assert_eq!(stream.next().await, None);
                return;
            }
            self.see(told);
        }
        panic!("cut off");
    }
}

async fn serve(journal: &Arc<dyn Journal>) -> Api {
    let model = slow(3, TURNS, A_TURN);
    let oracle = TestOracle::new(model).journal(Arc::clone(journal));
    Api::of(oracle.settings(|settings| settings.idle_timeout = MINUTE)).await
}

async fn hand_in(api: &Api, text: &str) {
    let (status, _) = api
        .post("/api/sessions/s/messages", json!({ "text": text }))
        .await;
    assert_eq!(status, 202);
}

#[tokio::test(start_paused = true)]
async fn every_event_is_seen_once_across_passivation_and_restart() {
    let journal: Arc<dyn Journal> = Arc::new(Memory::new());
    let mut client = Client::default();

    let api = serve(&journal).await;
    hand_in(&api, "the first?").await;
    let mut stream = client.comes(&api).await;
    client.sees(&mut stream, 1).await;
    // The client reads nothing for a whole query, which exceeds its queue, and disconnects.
    advance_time(A_TURN * 100).await;
    client.sees(&mut stream, 30).await;
    drop(stream);
    // The session is passivated, and a stream does not reactivate it.
    let mut stream = client.comes(&api).await;
    client.sees_until(&mut stream, "session.passivated").await;
    // The session is reactivated below the stream, and the server shuts down during a query.
    hand_in(&api, "the second?").await;
    client.sees_until(&mut stream, "turn.replied").await;
    drop(stream);
    advance_time(A_TURN).await;
    let stream = client.comes(&api).await;
    let Api { server, router } = api;
    let ((), ()) = tokio::join!(server.shut_down(), client.sees_the_end(stream));
    drop(router);
    let unfinished = journal.unfinished(None, ALL, 10).await.unwrap();
    assert_eq!(unfinished.len(), 1, "cut off in the middle");

    // The next server continues the query, also for clients that did not follow it before.
    let api = serve(&journal).await;
    let mut stream = client.comes(&api).await;
    client.sees_until(&mut stream, "query.finished").await;
    hand_in(&api, "the third?").await;
    drop(stream);
    advance_time(A_TURN * 100).await;
    api.server.shut_down().await;
    let api = serve(&journal).await;
    let mut stream = client.comes(&api).await;
    client.sees_until(&mut stream, "query.finished").await;
    client.sees_until(&mut stream, "session.passivated").await;

    let log = api.log("s").await;
    let count = |kind: &str| log.iter().filter(|event| event.kind == kind).count();
    assert_eq!(count("query.finished"), 3);
    assert!(count("session.passivated") >= 2 && count("session.revived") >= 2);
    let log = log.iter().map(|event| serde_json::to_value(event).unwrap());
    assert_eq!(client.seen, log.collect::<Vec<_>>());
}
