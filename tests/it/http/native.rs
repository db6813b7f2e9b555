//! Oracle's own API, called on the router without a socket.

use axum::{
    Router,
    body::{Body, BodyDataStream},
    http::{Request, Response},
};
use futures_util::StreamExt as _;
use http_body_util::BodyExt as _;
use oracle_agent::{
    model::{Event, Principal, Seq, SessionKey, SessionName},
    testkit::{TestOracle, TestServer, TestSession, router},
};
use serde_json::Value;
use tower::ServiceExt as _;

mod activity;
mod events;
mod queries;
mod refusals;
mod returning;
mod sessions;

struct Api {
    server: TestServer,
    router: Router,
}

impl Api {
    async fn of(oracle: TestOracle) -> Self {
        let server = TestServer::start(oracle).await.unwrap();
        let (router, _) = router(server.host().clone());
        Self { server, router }
    }

    /// Sends a request with headers, one `name: value` each.
    async fn send(&self, request: &str, headers: &[&str], body: impl Into<Body>) -> Response<Body> {
        let (method, path) = request.split_once(' ').unwrap();
        let mut asked = Request::builder().method(method).uri(path);
        asked = asked.header("host", "127.0.0.1");
        for header in headers {
            let (name, value) = header.split_once(": ").unwrap();
            asked = asked.header(name, value);
        }
        let asked = asked.extension(Principal::local());
        let asked = asked.body(body.into()).unwrap();
        self.router.clone().oneshot(asked).await.unwrap()
    }

    async fn get(&self, path: &str) -> (u16, Value) {
        read(self.send(&format!("GET {path}"), &[], Body::empty()).await).await
    }

    async fn post(&self, path: &str, body: Value) -> (u16, Value) {
        let kind = "content-type: application/json";
        let request = format!("POST {path}");
        read(self.send(&request, &[kind], body.to_string()).await).await
    }

    async fn delete(&self, path: &str) -> (u16, Value) {
        read(
            self.send(&format!("DELETE {path}"), &[], Body::empty())
                .await,
        )
        .await
    }

    async fn stream(&self, path: &str, last: Option<u64>) -> Stream {
        let last = last.map(|last| format!("last-event-id: {last}"));
        let mut headers = vec!["accept: text/event-stream"];
        headers.extend(last.as_deref());
        let request = format!("GET {path}");
        let response = self.send(&request, &headers, Body::empty()).await;
        assert_eq!(response.status().as_u16(), 200);
        assert_eq!(response.headers()["content-type"], "text/event-stream");
        Stream {
            body: response.into_body().into_data_stream(),
            text: String::new(),
        }
    }

    fn session(&self, name: &str) -> TestSession {
        self.server.session(name).unwrap()
    }

    async fn log(&self, name: &str) -> Vec<Event> {
        let session = self.server.oracle().session_by_key(key(name));
        session.events(Seq(0)).await.unwrap()
    }
}

fn key(name: &str) -> SessionKey {
    SessionKey::local(SessionName::new(name).unwrap())
}

async fn read(response: Response<Body>) -> (u16, Value) {
    let status = response.status().as_u16();
    let bytes = response.into_body().collect().await.unwrap().to_bytes();
    (status, serde_json::from_slice(&bytes).unwrap())
}

fn refusal(answer: &(u16, Value)) -> (u16, &str, Option<&str>) {
    let error = &answer.1["error"];
    assert!(!error["message"].as_str().unwrap().is_empty());
    (
        answer.0,
        error["code"].as_str().unwrap(),
        error["param"].as_str(),
    )
}

struct Stream {
    body: BodyDataStream,
    text: String,
}

#[derive(Debug, PartialEq)]
struct StreamedEvent {
    id: Option<u64>,
    name: String,
    data: Value,
}

impl Stream {
    async fn block(&mut self) -> Option<String> {
        loop {
            if let Some((block, rest)) = self.text.split_once("\n\n") {
                let (block, rest) = (block.to_owned(), rest.to_owned());
                self.text = rest;
                return Some(block);
            }
            let more = self.body.next().await?.unwrap();
            self.text.push_str(std::str::from_utf8(&more).unwrap());
        }
    }

    async fn next(&mut self) -> Option<StreamedEvent> {
        loop {
            let block = self.block().await?;
            let field = |name: &str| {
                let lines = block.lines().filter_map(|line| line.split_once(": "));
                let mut values = lines.filter(|(field, _)| *field == name);
                values.next().map(|(_, value)| value)
            };
            if let Some(data) = field("data") {
                return Some(StreamedEvent {
                    id: field("id").map(|id| id.parse().unwrap()),
                    name: field("event").unwrap().to_owned(),
                    data: serde_json::from_str(data).unwrap(),
                });
            }
        }
    }

    async fn until(&mut self, name: &str) -> Vec<StreamedEvent> {
        let mut told = Vec::new();
        loop {
            told.push(self.next().await.unwrap());
            if told.last().unwrap().name == name {
                return told;
            }
        }
    }
}
