//! Forwarding to the node that owns a session. Any node accepts any request; one that was forwarded
//! is not forwarded again. It has the caller's identity in a header, which counts only beside the
//! cluster's key; the client's own key has been removed by `auth`. Responses are passed on as they
//! come, and a client that leaves cancels the request there.
//!
//! A watch of all sessions merges those of the nodes. The events of a session are in order, because
//! one node has it; whenever a node joins or leaves, `lost` says that some may be missing.
//!
//! **Invariant:** a request gets an identity from its headers only with the cluster's key.

use std::{
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering::Relaxed},
    },
    time::Duration,
};

use axum::{
    body::{Body, to_bytes},
    extract::{RawPathParams, Request, State, rejection::RawPathParamsRejection},
    http::{HeaderMap, HeaderName, HeaderValue, Method, StatusCode, header, request::Parts},
    middleware::Next,
    response::{IntoResponse as _, Response},
};
use bytes::Bytes;
use dashmap::DashMap;
use futures_util::future::{join, join_all};
use prometheus_client::{
    metrics::{counter::ConstCounter, gauge::ConstGauge},
    registry::{Registry, Unit},
};
use reqwest::Client;
use secrecy::{ExposeSecret as _, SecretString};
use serde_json::Value;
use subtle::ConstantTimeEq as _;
use tokio::time::{sleep, timeout};
use tokio_util::task::TaskTracker;

use super::{
    Caller, Host, Problem,
    access_log::{is_stream, with_guard},
    auth::RevocationEvent,
};
use crate::{
    journal::{Node, Nodes},
    llm::{cause, node_client},
    model::{Principal, SessionKey, SessionName},
};

mod merged;

pub(super) use merged::OtherNodes;

/// The URL of the node that owns the session of a refused request.
pub(super) const OWNER: HeaderName = HeaderName::from_static("x-oracle-owner");
/// The session of a request to OpenAI's interface.
const SESSION: HeaderName = HeaderName::from_static("x-oracle-session");
/// The session of a client over MCP, whose calls it may cancel.
pub(super) const MCP_SESSION: HeaderName = HeaderName::from_static("mcp-session-id");
const KEY: HeaderName = HeaderName::from_static("x-oracle-cluster-key");
const CALLER: HeaderName = HeaderName::from_static("x-oracle-caller");

/// Attempts to reach the owner, which may change meanwhile, and the pause between.
const ATTEMPTS: u32 = 5;
const PAUSE: Duration = Duration::from_millis(200);
/// Interval between reports of this node's load, and between a watch's checks for new nodes.
const LOOK: Duration = Duration::from_secs(1);
/// A new session goes to another node if this one runs more than `LOAD_FACTOR` times its queries plus
/// `LOAD_MARGIN`.
const LOAD_FACTOR: u64 = 2;
const LOAD_MARGIN: u64 = 64;
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
    key: SecretString,
    clients: Vec<Client>,
    forwarded: AtomicU64,
    /// Where requests for sessions were forwarded to last.
    owners: DashMap<SessionKey, String>,
    /// Requests that change something and are being answered by other nodes.
    in_flight: TaskTracker,
}

/// Marks a request that another node has forwarded.
#[derive(Debug, Clone, Copy)]
pub(super) struct Forwarded;

impl Cluster {
    /// A cluster, with the key that all of its nodes have.
    ///
    /// # Errors
    /// What is wrong with the certificate authorities of this machine.
    pub fn new(nodes: Arc<dyn Nodes>, key: SecretString) -> Result<Self, String> {
        Ok(Self {
            nodes,
            key,
            clients: (0..CONNECTIONS)
                .map(|_| node_client())
                .collect::<Result<_, _>>()?,
            forwarded: AtomicU64::new(0),
            owners: DashMap::new(),
            in_flight: TaskTracker::new(),
        })
    }

    /// Registers metrics of this node.
    pub(super) fn metrics(&self, registry: &mut Registry) {
        let figures = self.nodes.figures();
        let nodes = ConstGauge::new(1 + self.nodes.others().len() as u64);
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

    /// The caller of a request from another node; `None` for other requests.
    pub(super) fn caller(&self, headers: &HeaderMap) -> Option<Principal> {
        if !self.is_node(headers) {
            return None;
        }
        serde_json::from_slice(headers.get(CALLER)?.as_bytes()).ok()
    }

    pub(super) fn is_node(&self, headers: &HeaderMap) -> bool {
        let key = self.key.expose_secret().as_bytes();
        let sent = headers.get(KEY).map(HeaderValue::as_bytes);
        sent.is_some_and(|sent| bool::from(sent.ct_eq(key)))
    }

    /// Where a message goes instead, because this node is ending, or because it is much busier and the
    /// message begins a session.
    fn elsewhere(&self, host: &Host, parts: &Parts) -> Option<String> {
        let path = parts.uri.path();
        let begins = matches!(
            path,
            "/api/sessions" | "/v1/chat/completions" | "/v1/responses"
        ) && !parts.headers.contains_key(SESSION);
        // A tool call over MCP may begin one too.
        let moves = begins || path.ends_with("/messages") || path == "/mcp";
        if parts.method != Method::POST || !moves {
            return None;
        }
        let others = self.nodes.others();
        let fit = others
            .iter()
            .filter(|node| !node.is_draining && node.url.is_some());
        let other = fit.min_by_key(|node| node.queries)?;
        let is_fuller = is_much_fuller(host.oracle.busy() as u64, other.queries);
        match host.is_draining() || begins && is_fuller {
            true => other.url.clone(),
            false => None,
        }
    }

    async fn owner(&self, key: &SessionKey) -> Option<String> {
        self.nodes.owner(key.clone()).await.ok().flatten()?.url
    }

    /// Where a session was last, unless that node has ended or drains. If that node no
    /// longer has the session, it claims it or names the owner.
    fn last_owner(&self, key: &SessionKey) -> Option<String> {
        let url = self.owners.get(key)?.clone();
        let others = self.nodes.others();
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
        let others = self.nodes.others();
        let urls = others.iter().filter_map(|node| node.url.as_deref());
        let sent =
            urls.map(|url| timeout(NODE_ANSWER, self.send(url, parts, body.clone(), caller)));
        join_all(sent).await;
    }

    async fn send(
        &self,
        url: &str,
        parts: &Parts,
        body: Bytes,
        caller: &Principal,
    ) -> Result<Response, Problem> {
        let path = parts.uri.path_and_query().map_or("/", |path| path.as_str());
        let url = format!("{}{path}", url.trim_end_matches('/'));
        let mut headers = parts.headers.clone();
        for own in [
            header::HOST,
            header::ORIGIN,
            header::CONNECTION,
            header::CONTENT_LENGTH,
            header::TRANSFER_ENCODING,
            header::UPGRADE,
        ] {
            headers.remove(own);
        }
        let secret = HeaderValue::from_str(self.key.expose_secret());
        let caller = serde_json::to_vec(caller).unwrap_or_default();
        let caller = HeaderValue::from_bytes(&caller);
        let (Ok(mut secret), Ok(caller)) = (secret, caller) else {
            let what = "the cluster's key or the caller's name cannot be sent in a header";
            return Err(Problem::new(StatusCode::BAD_GATEWAY, "not_forwarded", what));
        };
        secret.set_sensitive(true);
        // In place of what a client may have sent under these names.
        headers.insert(KEY, secret);
        headers.insert(CALLER, caller);
        let in_flight = (parts.method != Method::GET).then(|| self.in_flight.token());
        let number = self.forwarded.fetch_add(1, Relaxed) as usize;
        let client = &self.clients[number % self.clients.len()];
        let request = client.request(parts.method.clone(), &url);
        let response = request.headers(headers).body(body).send().await;
        let response = response.map_err(|error| {
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
        let mut response = (status, headers, body).into_response();
        if is_stream(&response) {
            let end = last_event(parts.uri.path());
            response.extensions_mut().insert(end);
        }
        Ok(response)
    }
}

/// Whether a new session is better off at a node that runs `other` queries than at one with `own`.
const fn is_much_fuller(own: u64, other: u64) -> bool {
    own > LOAD_FACTOR * other + LOAD_MARGIN
}

/// The end of a stream whose key is revoked.
fn last_event(path: &str) -> RevocationEvent {
    let name = match path {
        "/v1/responses" => Some("error"),
        path if path.starts_with("/api/") => Some("end"),
        _ => None,
    };
    RevocationEvent::new(name, &Problem::no_key().body())
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
    State(host): State<Host>,
    Caller(caller): Caller,
    parameters: Result<RawPathParams, RawPathParamsRejection>,
    request: Request,
    next: Next,
) -> Response {
    let is_forwarded = request.extensions().get::<Forwarded>().is_some();
    let Some(cluster) = host.cluster().filter(|_| !is_forwarded) else {
        return next.run(request).await;
    };
    let name = parameters.ok().and_then(|parameters| {
        let (_, name) = parameters.iter().find(|(name, _)| *name == "id")?;
        SessionName::new(name).ok()
    });
    let (parts, body) = request.into_parts();
    let Ok(body) = to_bytes(body, usize::MAX).await else {
        let what = "the request body ended early: send it again";
        return Problem::new(StatusCode::BAD_REQUEST, "broken_body", what).into_response();
    };
    let message = mcp_message(&parts, &body);
    let is_of_session = parts.headers.contains_key(MCP_SESSION);
    if is_of_session && message["method"] == "notifications/cancelled" {
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
    let mut first = cluster.elsewhere(&host, &parts);
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

/// The message of a request to `/mcp`; null for others.
fn mcp_message(parts: &Parts, body: &[u8]) -> Value {
    let is_mcp = parts.uri.path() == "/mcp";
    let message = is_mcp.then(|| serde_json::from_slice(body).ok());
    message.flatten().unwrap_or_default()
}

/// The session that a tool call over MCP continues.
fn session_of_tool_call(message: &Value) -> Option<SessionName> {
    let session = message["params"]["arguments"]["session"].as_str()?;
    SessionName::new(session).ok()
}

/// Reports this node's load, and divides the limits by the number of live nodes.
pub(super) async fn watch(host: Host) {
    let Some(cluster) = host.cluster() else {
        return;
    };
    loop {
        let queries = host.oracle.busy() as u64;
        cluster.nodes.report(host.is_draining(), queries);
        let others = cluster.nodes.others();
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
        let parts = |uri: &str| Request::get(uri).body(()).unwrap().into_parts().0;
        let call = br#"{"method":"tools/call","params":{"arguments":{"session":"talk"}}}"#;
        let session = |path, body| session_of_tool_call(&mcp_message(&parts(path), body));
        assert_eq!(session("/mcp", call), SessionName::new("talk").ok());
        for (path, body) in [
            ("/api/sessions", &call[..]),
            ("/mcp", b"{"),
            ("/mcp", br#"{"params":{"arguments":{"session":7}}}"#),
            ("/mcp", br#"{"params":{"arguments":{"session":"no name"}}}"#),
        ] {
            assert_eq!(session(path, body), None, "{path}");
        }
    }
}
