//! Requests between nodes: what a node sends another, and what that accepts.

use std::{collections::VecDeque, sync::Arc};

use axum::{
    Router,
    body::to_bytes,
    extract::Request,
    http::{HeaderMap, StatusCode, header},
};
use bytes::Bytes;
use futures_util::future::BoxFuture;
use oracle_agent::{
    http::{Cluster, ClusterKey},
    journal::{self, Node, NodeFigures, Nodes},
    model::{Owner, SessionKey},
    testkit::TestServer,
};
use reqwest::Response;
use serde_json::json;
use tokio::{net::TcpListener, sync::mpsc, task::JoinSet};

use super::{client, greeter, problem, with};

const SECRET: &str = "0123456789abcdef0123456789abcdef";
const PATH: &str = "/mcp?q=it's";

/// A database with one other node, which owns all sessions.
struct OneOther(Arc<[Node]>);

impl Nodes for OneOther {
    fn owner(&self, _: SessionKey) -> BoxFuture<'_, Result<Option<Owner>, journal::Error>> {
        let owner = Owner {
            pid: None,
            socket: None,
            url: self.0[0].url.clone(),
        };
        Box::pin(async { Ok(Some(owner)) })
    }

    fn others(&self) -> Arc<[Node]> {
        Arc::clone(&self.0)
    }

    fn figures(&self) -> NodeFigures {
        NodeFigures::default()
    }

    fn report(&self, _: bool, _: u64) {}
}

/// A node at a URL that knows another one.
async fn node(own: &str, other: String) -> TestServer {
    let server = TestServer::start(greeter()).await.unwrap();
    let other = Node {
        id: 1,
        url: Some(other),
        is_draining: false,
        queries: 0,
    };
    let nodes = Arc::new(OneOther(Arc::new([other])));
    let key = ClusterKey::new(&SECRET.into());
    server
        .host()
        .join(Cluster::new(nodes, key, own.to_owned()).unwrap());
    server
}

/// A listener that keeps the requests that it gets.
struct Thief {
    url: String,
    requests: mpsc::UnboundedReceiver<(HeaderMap, Bytes)>,
    _serving: JoinSet<()>,
}

impl Thief {
    async fn start() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        let (sender, requests) = mpsc::unbounded_channel();
        let keep = move |request: Request| {
            let sender = sender.clone();
            async move {
                let (parts, body) = request.into_parts();
                let body = to_bytes(body, 1_000_000).await.unwrap();
                sender.send((parts.headers, body)).unwrap();
            }
        };
        let router = Router::new().fallback(keep);
        let mut serving = JoinSet::new();
        serving.spawn(async { axum::serve(listener, router).await.unwrap() });
        Self {
            url,
            requests,
            _serving: serving,
        }
    }
}

/// A call over MCP for a session, which is forwarded to its owner.
async fn ask(node: &TestServer) -> Response {
    let params = json!({"name": "ask", "arguments": {"question": "hello", "session": "talk"}});
    let call = json!({"jsonrpc": "2.0", "id": 7, "method": "tools/call", "params": params});
    let request = client().post(node.url(PATH)).bearer_auth("mine");
    let request = request.header("accept", "application/json, text/event-stream");
    with(request, &call).send().await.unwrap()
}

async fn replay(node: &TestServer, path: &str, headers: &HeaderMap, body: &Bytes) -> Response {
    let mut headers = headers.clone();
    headers.remove(header::CONTENT_LENGTH);
    let request = client().post(node.url(path)).headers(headers);
    request.body(body.clone()).send().await.unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn forwarded_request_has_no_key_and_is_good_once_at_its_node() {
    let mut thief = Thief::start().await;
    let row = ClusterKey::new(&SECRET.into()).proven(&thief.url);
    let sender = node("http://sender", row).await;
    let mut sent = VecDeque::new();
    for _ in 0..2 {
        assert_eq!(ask(&sender).await.status(), StatusCode::OK);
        sent.push_back(thief.requests.recv().await.unwrap());
    }
    assert!(!format!("{sent:?}").contains(SECRET) && !format!("{sent:?}").contains("mine"));
    let receiver = node(&thief.url, "http://sender".into()).await;
    let other = node("http://other", "http://sender".into()).await;
    let (headers, body) = sent.pop_front().unwrap();
    let mut as_admin = headers.clone();
    let caller = r#"{"name":"x","tenant":"acme","role":"admin","profiles":[]}"#;
    as_admin.insert("x-oracle-caller", caller.parse().unwrap());
    for (name, node, path, headers) in [
        ("another node", &other, PATH, &headers),
        ("another path", &receiver, "/api/control", &headers),
        ("another caller", &receiver, PATH, &as_admin),
    ] {
        let (status, code, _) = problem(replay(node, path, headers, &body).await).await;
        assert_eq!((status, &*code), (401, "invalid_signature"), "{name}");
    }
    let taken = replay(&receiver, PATH, &headers, &body).await;
    assert_eq!(taken.status(), StatusCode::OK);
    let (status, _, told) = problem(replay(&receiver, PATH, &headers, &body).await).await;
    assert!(status == 401 && told.contains("came before"), "{told}");
    let (headers, _) = sent.pop_front().unwrap();
    let body = Bytes::from_static(b"{}");
    let (status, _, told) = problem(replay(&receiver, PATH, &headers, &body).await).await;
    assert!(status == 401 && told.contains("does not fit"), "{told}");

    // Guesses are limited as those of keys are.
    let mut told = Vec::new();
    for _ in 0..12 {
        let (status, ..) = problem(replay(&receiver, PATH, &as_admin, &body).await).await;
        told.push(status);
    }
    assert_eq!(told.first(), Some(&401));
    assert_eq!(told.last(), Some(&429));
}

#[tokio::test(flavor = "multi_thread")]
async fn node_without_proof_of_the_key_gets_no_requests() {
    for (secret, nodes) in [(SECRET, 2), ("another-key-of-32-characters-0000", 1)] {
        let mut thief = Thief::start().await;
        let row = ClusterKey::new(&secret.into()).proven(&thief.url);
        let sender = node("http://sender", row).await;
        let metrics = client().get(sender.url("/metrics")).send().await.unwrap();
        let metrics = metrics.text().await.unwrap();
        assert!(
            metrics.contains(&format!("oracle_nodes {nodes}\n")),
            "{metrics}"
        );
        let status = ask(&sender).await.status();
        assert_eq!(status.as_u16(), if nodes == 2 { 200 } else { 502 });
        assert_eq!(thief.requests.try_recv().is_ok(), nodes == 2);
    }
}
