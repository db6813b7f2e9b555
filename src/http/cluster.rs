//! Forwarding to the node that owns a session. Any node takes any request: one that finds its
//! session on another node is sent there, at most once, with the caller's identity in place of the
//! key. Responses are passed on as they come, and a client that leaves cancels the request there.
//!
//! **Invariant:** nobody gets an identity from a request's headers without the cluster's key.

use std::{sync::Arc, time::Duration};

use axum::{
    body::{Body, to_bytes},
    extract::{RawPathParams, Request, State},
    http::{HeaderMap, HeaderName, HeaderValue, Method, StatusCode, header, request::Parts},
    middleware::Next,
    response::{IntoResponse as _, Response},
};
use bytes::Bytes;
use reqwest::Client;
use secrecy::{ExposeSecret as _, SecretString};
use subtle::ConstantTimeEq as _;

use super::{Caller, Host, Problem};
use crate::{
    journal::Nodes,
    llm::{cause, node_client},
    model::{Principal, SessionKey, SessionName},
};

/// The URL of the node that owns the session of a refused request.
pub(super) const OWNER: HeaderName = HeaderName::from_static("x-oracle-owner");
const KEY: HeaderName = HeaderName::from_static("x-oracle-cluster-key");
const CALLER: HeaderName = HeaderName::from_static("x-oracle-caller");

/// Times that a request looks for its owner, which may change meanwhile, and the pause between.
const LOOKS: u32 = 5;
const PAUSE: Duration = Duration::from_millis(200);
/// Retry hint while a node cannot be reached: others notice its death within this time.
const NOTICED: Duration = Duration::from_secs(5);

/// How a server reaches the other nodes of its cluster.
pub struct Cluster {
    nodes: Arc<dyn Nodes>,
    key: SecretString,
    client: Client,
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
        let client = node_client()?;
        Ok(Self { nodes, key, client })
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
        let (Ok(secret), Ok(caller)) = (secret, caller) else {
            let what = "the cluster's key or the caller's name cannot be sent in a header";
            return Err(Problem::new(StatusCode::BAD_GATEWAY, "not_forwarded", what));
        };
        headers.extend([(KEY, secret), (CALLER, caller)]);
        let request = self.client.request(parts.method.clone(), &url);
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
        let body = Body::from_stream(response.bytes_stream());
        Ok((status, headers, body).into_response())
    }
}

/// Sends a request to the node that owns its session. The body has been read as a whole.
///
/// A read asks for the owner first, because this node could answer from the journal, but without
/// what is in progress there. Other requests are tried here, which claims a free session.
pub(super) async fn forward(
    State(host): State<Host>,
    Caller(caller): Caller,
    parameters: RawPathParams,
    request: Request,
    next: Next,
) -> Response {
    let is_forwarded = request.extensions().get::<Forwarded>().is_some();
    let Some(cluster) = host.cluster().filter(|_| !is_forwarded) else {
        return next.run(request).await;
    };
    let name = parameters.iter().find(|(name, _)| *name == "id");
    let name = name.and_then(|(_, name)| SessionName::new(name).ok());
    let read = name.filter(|_| request.method() == Method::GET);
    let (parts, body) = request.into_parts();
    let Ok(body) = to_bytes(body, usize::MAX).await else {
        let what = "the request body ended early: send it again";
        return Problem::new(StatusCode::BAD_REQUEST, "broken_body", what).into_response();
    };
    let mut refused = None;
    for _ in 0..LOOKS {
        let owner = match &read {
            Some(name) => {
                let tenant = caller.tenant.clone();
                let name = name.clone();
                let owner = cluster.nodes.owner(SessionKey { tenant, name }).await;
                owner.ok().flatten().and_then(|owner| owner.url)
            }
            None => None,
        };
        let url = match owner {
            Some(url) => url,
            None => {
                let again = Request::from_parts(parts.clone(), body.clone().into());
                let response = next.clone().run(again).await;
                let owner = response.headers().get(OWNER).cloned();
                match owner.as_ref().map(|url| url.to_str().map(str::to_owned)) {
                    Some(Ok(url)) => url,
                    _ => return response,
                }
            }
        };
        match cluster.send(&url, &parts, body.clone(), &caller).await {
            Ok(response) if response.headers().contains_key(OWNER) => refused = Some(response),
            Ok(response) => return response,
            Err(problem) => return problem.into_response(),
        }
        // The session has just moved.
        tokio::time::sleep(PAUSE).await;
    }
    refused.unwrap_or_else(|| Problem::ends().into_response())
}
