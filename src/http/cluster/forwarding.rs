//! Which node gets a request, and what each node reports of its load for that.

use std::{collections::BTreeSet, time::Duration};

use axum::{
    body::to_bytes,
    extract::{RawPathParams, Request, State, rejection::RawPathParamsRejection},
    http::{Method, StatusCode, request::Parts},
    middleware::Next,
    response::{IntoResponse as _, Response},
};
use futures_util::future::join;
use serde_json::Value;
use tokio::time::sleep;

use super::{Cluster, Forwarded, LOOK, MCP_SESSION, NOTICED, SESSION, signature};
use crate::{
    http::{Begins, Caller, Host, Problem, RouteKind, problem::OWNER},
    model::{SessionKey, SessionName},
};

/// Attempts to reach the owner, which may change meanwhile, and the pause between.
const ATTEMPTS: u32 = 5;
const PAUSE: Duration = Duration::from_millis(200);
/// A new session goes to another node if this one runs more than `LOAD_FACTOR` times its queries plus
/// `LOAD_MARGIN`.
const LOAD_FACTOR: u64 = 2;
const LOAD_MARGIN: u64 = 64;

impl Cluster {
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
pub(crate) async fn forward(
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
pub(crate) async fn watch(host: Host) {
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
