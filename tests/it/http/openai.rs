//! The OpenAI-compatible API as its clients meet it: whole objects, streams, and the choice of a
//! session. Without sockets, so on a paused clock.

use std::sync::{
    Arc,
    atomic::{AtomicUsize, Ordering},
};

use axum::{
    Extension, Router,
    body::{Body, Bytes},
    http::{HeaderMap, Request, StatusCode},
};
use futures_util::StreamExt as _;
use oracle_agent::{
    http::{Host, HostParts, Settings},
    llm::{self, Backend, DeltaStream, Scripted},
    model::{Principal, Role, TenantId},
    testkit::{TestOracle, TestSystem, advance_time, router},
};
use serde_json::{Value, json};
use tower::ServiceExt as _;

mod chats;
mod client_tools;
mod objects;
mod options;
mod random;
mod responses;
mod streams;
mod weak;

const COMPLETIONS: &str = "/v1/chat/completions";

struct Served {
    system: TestSystem,
    host: Host,
    router: Router,
}

struct ChatResponse {
    status: StatusCode,
    headers: HeaderMap,
    text: String,
}

impl Served {
    async fn start(oracle: TestOracle) -> Self {
        let system = oracle.profile("other").unwrap().start().await.unwrap();
        let host = Host::new(HostParts {
            keys: Arc::default(),
            oracle: system.oracle().clone(),
            journal: system.journal(),
            settings: Settings::default(),
        });
        let router = router(host.clone()).0;
        Self {
            system,
            host,
            router,
        }
    }

    /// Sends a request and returns its body unread.
    async fn open(&self, headers: &[(&str, &str)], body: Value) -> (StatusCode, HeaderMap, Body) {
        self.open_as(Principal::local(), headers, body).await
    }

    async fn open_as(
        &self,
        who: Principal,
        headers: &[(&str, &str)],
        body: Value,
    ) -> (StatusCode, HeaderMap, Body) {
        let mut request = Request::post(COMPLETIONS);
        for (name, value) in headers {
            request = request.header(*name, *value);
        }
        let request = request.body(Body::from(body.to_string())).unwrap();
        let routes = self.router.clone().layer(Extension(who));
        let (parts, body) = routes.oneshot(request).await.unwrap().into_parts();
        (parts.status, parts.headers, body)
    }

    async fn post(&self, headers: &[(&str, &str)], body: Value) -> ChatResponse {
        let (status, headers, body) = self.open(headers, body).await;
        let text = read(body).await;
        ChatResponse {
            status,
            headers,
            text,
        }
    }

    async fn get(&self, path: &str) -> ChatResponse {
        let request = Request::get(path).body(Body::empty()).unwrap();
        let routes = self.router.clone().layer(Extension(Principal::local()));
        let (parts, body) = routes.oneshot(request).await.unwrap().into_parts();
        let text = read(body).await;
        ChatResponse {
            status: parts.status,
            headers: parts.headers,
            text,
        }
    }

    async fn sessions(&self) -> Vec<String> {
        let listed = self
            .system
            .journal()
            .list(TenantId::local(), None, 1_000)
            .await
            .unwrap();
        let names = listed.into_iter().map(|known| known.key.name);
        names
            .filter(|name| !name.is_reserved())
            .map(|name| name.to_string())
            .collect()
    }

    async fn count(&self, session: &str, kind: &str) -> usize {
        let kinds = self.system.session(session).unwrap().kinds().await.unwrap();
        kinds.iter().filter(|found| *found == kind).count()
    }
}

async fn read(body: Body) -> String {
    let bytes = axum::body::to_bytes(body, usize::MAX).await.unwrap();
    String::from_utf8(bytes.to_vec()).unwrap()
}

impl ChatResponse {
    fn json(&self) -> Value {
        serde_json::from_str(&self.text).unwrap_or_else(|error| panic!("{error}: {}", self.text))
    }

    fn answer(&self) -> String {
        let json = self.json();
        let content = json["choices"][0]["message"]["content"].as_str();
        content.unwrap_or_else(|| panic!("{json}")).to_owned()
    }

    fn session(&self) -> String {
        self.headers["x-oracle-session"]
            .to_str()
            .unwrap()
            .to_owned()
    }

    fn problem(&self) -> (u16, String) {
        let code = self.json()["error"]["code"].as_str().unwrap().to_owned();
        (self.status.as_u16(), code)
    }
}

/// A conversation as a client sends it: questions and answers in turn.
fn chat(said: &[&str]) -> Value {
    let roles = ["user", "assistant"].iter().cycle();
    let messages = said.iter().zip(roles);
    let messages: Vec<Value> = messages
        .map(|(text, role)| json!({ "role": role, "content": text }))
        .collect();
    json!({ "model": "oracle", "messages": messages })
}

fn streamed(mut body: Value) -> Value {
    body["stream"] = true.into();
    body
}

fn done(text: &str) -> String {
    format!(
        "{text}\n<signal type=\"context_sufficient\"><sources_found>1</sources_found>\
         <confidence>0.9</confidence></signal>"
    )
}

fn more(text: &str) -> String {
    format!("{text}\n<signal type=\"need_turn\"><reason>there is more to see</reason></signal>")
}

/// Answers each question with the call's number, the question and the number of messages before it.
#[derive(Clone, Default)]
struct Echo(Arc<AtomicUsize>);

impl Backend for Echo {
    fn provider(&self) -> &'static str {
        "scripted"
    }

    fn call(&self, request: llm::Request) -> DeltaStream {
        let number = self.0.fetch_add(1, Ordering::Relaxed) + 1;
        let mut asked = request
            .messages
            .iter()
            .rev()
            .filter(|said| said.role == Role::User);
        let question: String = asked.next().unwrap().texts().collect();
        let before = request.messages.len() - 1;
        let own = request
            .messages
            .iter()
            .filter(|said| said.role == Role::Assistant)
            .count();
        let text = done(&format!("{number}. {question} ({before} before)"));
        Scripted::new()
            .starting_after(own)
            .reply(text)
            .call(request)
    }
}
