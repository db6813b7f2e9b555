//! Forwarding to the node that owns a session. Any node accepts any request; one that was forwarded
//! is not forwarded again. It has the caller's identity in a header, which counts only beside a
//! signature by the cluster's key (`signature`); the client's own key has been removed by `auth`.
//! Responses are passed on as they come, and a client that leaves cancels the request there.
//!
//! A watch of all sessions merges those of the nodes. The events of a session are in order, because
//! one node has it; whenever a node joins or leaves, `lost` says that some may be missing.
//!
//! **Invariant:** a request gets an identity from its headers only if a node has signed it for this
//! one, and only once. The cluster's key is never sent.

use std::{
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering::Relaxed},
    },
    time::Duration,
};

use axum::{
    body::Body,
    extract::Request,
    http::{HeaderName, HeaderValue, Method, StatusCode, Uri, header, request::Parts},
    response::{IntoResponse as _, Response},
};
use bytes::Bytes;
use dashmap::DashMap;
use futures_util::future::join_all;
use parking_lot::Mutex;
use prometheus_client::{
    metrics::{counter::ConstCounter, gauge::ConstGauge},
    registry::{Registry, Unit},
};
use reqwest::{Client, Url};
use tokio::time::timeout;
use tokio_util::task::TaskTracker;
use uuid::Uuid;

use super::{Problem, body::with_guard};
use crate::{
    actor::Clock,
    journal::{Node, Nodes},
    llm::{cause, node_client},
    model::{Principal, SessionKey},
};

mod forwarding;
mod merged;
mod signature;

pub(super) use forwarding::{forward, watch};
pub(super) use merged::OtherNodes;
pub use signature::ClusterKey;
use signature::{Nonces, WRONG};

/// The session of a request to OpenAI's interface.
const SESSION: HeaderName = HeaderName::from_static("x-oracle-session");
/// The session of a client over MCP, whose calls it may cancel.
pub(super) const MCP_SESSION: HeaderName = HeaderName::from_static("mcp-session-id");
pub(super) const SIGNATURE: HeaderName = HeaderName::from_static("x-oracle-signature");
const CALLER: HeaderName = HeaderName::from_static("x-oracle-caller");

/// Interval between reports of this node's load, and between a watch's checks for new nodes.
const LOOK: Duration = Duration::from_secs(1);
/// Age of the last heartbeat at which a node stops acting: four fifths of the lease.
const OLDEST_HEARTBEAT: Duration = Duration::from_secs(8);
/// Connections to each node: the streams of one are limited.
const CONNECTIONS: usize = 8;
/// Deadline of another node's answer to a watch or a cancellation.
const NODE_ANSWER: Duration = Duration::from_secs(2);
/// Sessions whose last owners are remembered.
const REMEMBERED: usize = 10_000;
/// Retry hint while a node cannot be reached. If it is dead, its sessions move after 8 to 11 s.
const NOTICED: Duration = Duration::from_secs(5);

/// How a server reaches the other nodes of its cluster.
pub struct Cluster {
    nodes: Arc<dyn Nodes>,
    key: ClusterKey,
    /// Of this node, as the others know it.
    url: String,
    nonces: Mutex<Nonces>,
    clock: Clock,
    clients: Vec<Client>,
    forwarded: AtomicU64,
    /// Where requests for sessions were forwarded to last.
    owners: DashMap<SessionKey, String>,
    /// Requests that change something and are being answered by other nodes.
    in_flight: TaskTracker,
}

/// Marks a request that another node has forwarded, with the hash of the body that it signed.
#[derive(Debug, Clone)]
pub(super) struct Forwarded(String);

impl Cluster {
    /// A cluster, with the key that all of its nodes have, and the URL at which they reach this one.
    ///
    /// # Errors
    /// What is wrong with the certificate authorities of this machine.
    pub fn new(nodes: Arc<dyn Nodes>, key: ClusterKey, url: String) -> Result<Self, String> {
        Ok(Self {
            nodes,
            key,
            url,
            nonces: Mutex::default(),
            clock: Clock::system(),
            clients: (0..CONNECTIONS)
                .map(|_| node_client())
                .collect::<Result<_, _>>()?,
            forwarded: AtomicU64::new(0),
            owners: DashMap::new(),
            in_flight: TaskTracker::new(),
        })
    }

    /// The other live nodes that have the key.
    fn others(&self) -> Vec<Node> {
        let others = self.nodes.others();
        let trusted = others.iter().filter(|node| self.is_trusted(node));
        trusted.cloned().collect()
    }

    /// Whether requests may go to a node: one without a server gets none anyway.
    fn is_trusted(&self, node: &Node) -> bool {
        node.url.iter().all(|row| self.key.of_row(row).is_some())
    }

    /// Registers metrics of this node.
    pub(super) fn metrics(&self, registry: &mut Registry) {
        let figures = self.nodes.figures();
        let nodes = ConstGauge::new(1 + self.others().len() as u64);
        registry.register("nodes", "Live nodes of the cluster", nodes);
        let help = "Time since the database answered a heartbeat of this node";
        let age = ConstGauge::new(figures.lease_age.as_secs_f64());
        registry.register_with_unit("node_lease_age", help, Unit::Seconds, age);
        let mut count = |name: &str, help: &str, count: u64| {
            registry.register(name, help, ConstCounter::new(count));
        };
        let help = "Unfinished sessions adopted from other nodes";
        count("node_adoptions", help, figures.adopted);
        let help = "Requests forwarded to other nodes";
        count("node_forwards", help, self.forwarded.load(Relaxed));
        let help = "Statements that have written to the journal";
        count("journal_batches", help, figures.batches);
        let help = "Requests in the statements that have written to the journal";
        count("journal_batched_writes", help, figures.batched);
    }

    /// Whether clients of this node wait for answers of others.
    pub(super) fn is_forwarding(&self) -> bool {
        !self.in_flight.is_empty()
    }

    /// Whether this node may act for its sessions.
    pub(super) fn has_lease(&self) -> bool {
        self.nodes.figures().lease_age < OLDEST_HEARTBEAT
    }

    /// The caller of a signed request, which counts once; [`forward`] compares its body.
    pub(super) fn caller(&self, request: &Request) -> Result<(Principal, Forwarded), String> {
        let (method, headers) = (request.method().as_str(), request.headers());
        let [signature, caller] = [SIGNATURE, CALLER]
            .map(|name| headers.get(name).map_or(&b""[..], HeaderValue::as_bytes));
        let url = url_at(&self.url, request.uri());
        let signed = [method.as_bytes(), url.as_bytes(), caller];
        let (at, nonce, body_hash) = self.key.verify(signed, signature).ok_or(WRONG)?;
        let used = (at, nonce.to_owned());
        self.nonces.lock().admit(used, self.clock.now())?;
        let caller = serde_json::from_slice(caller).map_err(|_| WRONG)?;
        Ok((caller, Forwarded(body_hash.to_owned())))
    }

    async fn owner(&self, key: &SessionKey) -> Option<String> {
        self.nodes.owner(key.clone()).await.ok().flatten()?.url
    }

    /// Where a session was last, unless that node has ended or drains. If that node no
    /// longer has the session, it claims it or names the owner.
    fn last_owner(&self, key: &SessionKey) -> Option<String> {
        let url = self.owners.get(key)?.clone();
        let others = self.others();
        let is_there = |node: &Node| !node.is_draining && node.url.as_ref() == Some(&url);
        let is_there = others.iter().any(is_there);
        if !is_there {
            self.owners.remove(key);
        }
        is_there.then_some(url)
    }

    fn remember(&self, key: SessionKey, url: String) {
        if self.owners.len() >= REMEMBERED {
            self.owners.clear();
        }
        self.owners.insert(key, url);
    }

    /// Sends a request to all other nodes and ignores their answers.
    async fn tell_all(&self, parts: &Parts, body: &Bytes, caller: &Principal) {
        let others = self.others();
        let urls = others.iter().filter_map(|node| node.url.as_deref());
        let sent =
            urls.map(|url| timeout(NODE_ANSWER, self.send(url, parts, body.clone(), caller)));
        join_all(sent).await;
    }

    async fn send(
        &self,
        row: &str,
        parts: &Parts,
        body: Bytes,
        caller: &Principal,
    ) -> Result<Response, Problem> {
        let mut headers = parts.headers.clone();
        for own in [
            header::HOST,
            header::ORIGIN,
            header::CONNECTION,
            header::CONTENT_LENGTH,
            header::TRANSFER_ENCODING,
            header::UPGRADE,
            SIGNATURE,
            CALLER,
        ] {
            headers.remove(own);
        }
        let caller = serde_json::to_vec(caller).unwrap_or_default();
        let node = self.key.of_row(row).ok_or_else(|| {
            let what = "the session is on a node without the cluster's key: see the log";
            Problem::new(StatusCode::BAD_GATEWAY, "not_forwarded", what)
        })?;
        let url = url_at(node, &parts.uri);
        let signed = [parts.method.as_str().as_bytes(), url.as_bytes(), &caller];
        let (now, nonce) = (self.clock.now(), Uuid::now_v7().to_string());
        let signature = self.key.sign(signed, now, &nonce, &signature::hash(&body));
        let in_flight = (parts.method != Method::GET).then(|| self.in_flight.token());
        let number = self.forwarded.fetch_add(1, Relaxed) as usize;
        let client = &self.clients[number % self.clients.len()];
        let request = client.request(parts.method.clone(), &url).headers(headers);
        let request = request.header(SIGNATURE, signature).header(CALLER, caller);
        let response = request.body(body).send().await.map_err(|error| {
            let what = format!(
                "the session is on another node, which cannot be reached ({}): try again",
                cause(&error.without_url())
            );
            let status = StatusCode::SERVICE_UNAVAILABLE;
            Problem::new(status, "owner_unreachable", what).retry_after(NOTICED)
        })?;
        let status = response.status();
        let mut headers = response.headers().clone();
        for own in [header::CONNECTION, header::TRANSFER_ENCODING] {
            headers.remove(own);
        }
        let body = with_guard(Body::from_stream(response.bytes_stream()), in_flight);
        Ok((status, headers, body).into_response())
    }
}

/// The URL of a request at a node, which its signature covers; written alike before and after an
/// HTTP client has sent it.
fn url_at(node: &str, uri: &Uri) -> String {
    let path = uri.path_and_query().map_or("/", |path| path.as_str());
    let url = format!("{}{path}", node.trim_end_matches('/'));
    Url::parse(&url).map_or(url, String::from)
}
