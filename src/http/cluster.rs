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
    collections::BTreeSet,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering::Relaxed},
    },
    time::Duration,
};

use axum::{
    body::{Body, to_bytes},
    extract::{RawPathParams, Request, State, rejection::RawPathParamsRejection},
    http::{HeaderName, HeaderValue, Method, StatusCode, Uri, header, request::Parts},
    middleware::Next,
    response::{IntoResponse as _, Response},
};
use bytes::Bytes;
use dashmap::DashMap;
use futures_util::future::{join, join_all};
use parking_lot::Mutex;
use prometheus_client::{
    metrics::{counter::ConstCounter, gauge::ConstGauge},
    registry::{Registry, Unit},
};
use reqwest::{Client, Url};
use serde_json::Value;
use tokio::time::{sleep, timeout};
use tokio_util::task::TaskTracker;
use uuid::Uuid;

use super::{Begins, Caller, Host, Problem, RouteKind, body::with_guard, problem::OWNER};
use crate::{
    actor::Clock,
    journal::{Node, Nodes},
    llm::{cause, node_client},
    model::{Principal, SessionKey, SessionName},
};

mod merged;
mod signature;

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
/// Attempts to reach the owner, which may change meanwhile, and the pause between.
const ATTEMPTS: u32 = 5;
const PAUSE: Duration = Duration::from_millis(200);
/// A new session goes to another node if this one runs more than `LOAD_FACTOR` times its queries plus
/// `LOAD_MARGIN`.
const LOAD_FACTOR: u64 = 2;
const LOAD_MARGIN: u64 = 64;

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

    /// Where a message goes instead, because this node is ending, or because it is much busier and the
    /// message begins a session.
    fn elsewhere(&self, host: &Host, begins: Begins, parts: &Parts) -> Option<String> {
        let is_new = match begins {
            _ if parts.method != Method::POST => return None,
            Begins::Session if !parts.headers.contains_key(SESSION) => true,
            Begins::Query | Begins::ToolCall => false,
            Begins::Session | Begins::Nothing => return None,
        };
        let others = self.others();
        let fit = others
            .iter()
            .filter(|node| !node.is_draining && node.url.is_some());
        let other = fit.min_by_key(|node| node.queries)?;
        let is_fuller = is_much_fuller(host.oracle.busy() as u64, other.queries);
        let leaves = host.is_draining() || is_new && is_fuller;
        other.url.clone().filter(|_| leaves)
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

/// Whether a new session is better off at a node that runs `other` queries than at one with `own`.
const fn is_much_fuller(own: u64, other: u64) -> bool {
    own > LOAD_FACTOR * other + LOAD_MARGIN
}

/// Sends a request to the node that owns its session. The layer around it has read the body, within
/// its limits.
///
/// It goes to the first of these that applies:
/// 1. the node that [`Cluster::elsewhere`] names;
/// 2. for a read or a tool call, the owner in the database: any node could read the journal, but only
///    the owner has what is in progress;
/// 3. for other requests, the node that took the session's last request;
/// 4. this node, which claims a free session.
///
/// A cancellation over MCP does not say which session its call is for, and goes to all nodes.
pub(super) async fn forward(
    State((host, route)): State<(Host, RouteKind)>,
    Caller(caller): Caller,
    parameters: Result<RawPathParams, RawPathParamsRejection>,
    request: Request,
    next: Next,
) -> Response {
    let Some(cluster) = host.cluster() else {
        return next.run(request).await;
    };
    let name = parameters.ok().and_then(|parameters| {
        let (_, name) = parameters.iter().find(|(name, _)| *name == "id")?;
        SessionName::new(name).ok()
    });
    let (parts, body) = request.into_parts();
    // It is read already.
    let body = to_bytes(body, usize::MAX).await.unwrap_or_default();
    if let Some(Forwarded(body_hash)) = parts.extensions.get() {
        return match signature::hash(&body) == *body_hash {
            true => next.run(Request::from_parts(parts, body.into())).await,
            false => Problem::invalid_signature(signature::WRONG).into_response(),
        };
    }
    let message = mcp_message(route.begins, &body);
    if parts.headers.contains_key(MCP_SESSION) && message["method"] == "notifications/cancelled" {
        let request = Request::from_parts(parts.clone(), body.clone().into());
        let everywhere = join(next.run(request), cluster.tell_all(&parts, &body, &caller));
        return everywhere.await.0;
    }
    let of_tool_call = session_of_tool_call(&message);
    // A refused tool call has no header that names the owner.
    let looks_first = parts.method == Method::GET && name.is_some() || of_tool_call.is_some();
    let name = name.or(of_tool_call).or_else(|| {
        let name = parts.headers.get(SESSION)?;
        SessionName::new(name.to_str().ok()?).ok()
    });
    let tenant = caller.tenant.clone();
    let key = name.map(|name| SessionKey { tenant, name });
    let mut first = cluster.elsewhere(&host, route.begins, &parts);
    if !looks_first {
        first = first.or_else(|| cluster.last_owner(key.as_ref()?));
    }
    for _ in 0..ATTEMPTS {
        let owner = match (first.take(), &key) {
            (None, Some(key)) if looks_first => cluster.owner(key).await,
            (first, _) => first,
        };
        let url = match owner {
            Some(url) => url,
            None => {
                let again = Request::from_parts(parts.clone(), body.clone().into());
                let response = next.clone().run(again).await;
                let owner = response.headers().get(OWNER);
                match owner.and_then(|url| url.to_str().ok()) {
                    Some(url) => url.to_owned(),
                    None => return response,
                }
            }
        };
        let sent = cluster.send(&url, &parts, body.clone(), &caller).await;
        let has_moved = matches!(&sent, Ok(sent) if sent.headers().contains_key(OWNER));
        match &key {
            Some(key) if sent.is_ok() && !has_moved => cluster.remember(key.clone(), url),
            Some(key) => drop(cluster.owners.remove(key)),
            None => {}
        }
        if !has_moved {
            return sent.into_response();
        }
        sleep(PAUSE).await;
    }
    let what = "the session is moving to another node: try again";
    Problem::new(StatusCode::SERVICE_UNAVAILABLE, "owner_unreachable", what)
        .retry_after(NOTICED)
        .into_response()
}

/// The message of a request over MCP; null for others.
fn mcp_message(begins: Begins, body: &[u8]) -> Value {
    let is_mcp = begins == Begins::ToolCall;
    let message = is_mcp.then(|| serde_json::from_slice(body).ok());
    message.flatten().unwrap_or_default()
}

/// The session that a tool call over MCP continues.
fn session_of_tool_call(message: &Value) -> Option<SessionName> {
    SessionName::new(message["params"]["arguments"]["session"].as_str()?).ok()
}

/// Reports this node's load, and divides the limits by the number of live nodes.
pub(super) async fn watch(host: Host) {
    let Some(cluster) = host.cluster() else {
        return;
    };
    let mut told = BTreeSet::new();
    loop {
        let queries = host.oracle.busy() as u64;
        cluster.nodes.report(host.is_draining(), queries);
        for node in &*cluster.nodes.others() {
            if !cluster.is_trusted(node) && told.insert(node.id) {
                tracing::error!(
                    id = node.id,
                    url = node.url,
                    "another node has a different cluster key and gets no requests: give it the \
                     key of the others and restart it, or find out who writes to the database"
                );
            }
        }
        let others = cluster.others();
        let serving = others.iter().filter(|node| node.url.is_some()).count();
        host.oracle.divide_limits(1 + serving);
        sleep(LOOK).await;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn new_sessions_leave_a_node_only_if_it_is_much_fuller() {
        for (own, other, leaves) in [
            (0, 0, false),
            (64, 0, false),
            (65, 0, true),
            (264, 100, false),
            (265, 100, true),
            (100, 1_000, false),
        ] {
            assert_eq!(is_much_fuller(own, other), leaves, "{own} {other}");
        }
    }

    #[test]
    fn tool_calls_are_recognized() {
        let call = br#"{"method":"tools/call","params":{"arguments":{"session":"talk"}}}"#;
        let session = |begins, body| session_of_tool_call(&mcp_message(begins, body));
        let mcp = Begins::ToolCall;
        assert_eq!(session(mcp, call), SessionName::new("talk").ok());
        for (begins, body) in [
            (Begins::Session, &call[..]),
            (mcp, b"{"),
            (mcp, br#"{"params":{"arguments":{"session":7}}}"#),
            (mcp, br#"{"params":{"arguments":{"session":"no name"}}}"#),
        ] {
            assert_eq!(session(begins, body), None, "{begins:?}");
        }
    }
}
