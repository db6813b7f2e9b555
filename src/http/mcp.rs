//! `/mcp`: the Model Context Protocol over streamable HTTP.
//!
//! Each request is served alone, for the caller that authentication found. The session id that a
//! client gets names its requests, so that a later notification can cancel one, and gives access to
//! nothing.

use std::{sync::Arc, time::Duration};

use axum::{
    Router,
    body::{Body, Bytes},
    http::{HeaderValue, Request, request::Parts},
    response::Response,
    routing::post,
};
use dashmap::DashMap;
use futures_util::future::{BoxFuture, FutureExt as _};
use http_body_util::Full;
use rmcp::{
    ErrorData, RoleServer,
    model::ProtocolVersion,
    service::RequestContext,
    transport::streamable_http_server::{
        StreamableHttpServerConfig, StreamableHttpService, session::never::NeverSessionManager,
    },
};
use serde_json::Value;
use tokio::time::timeout;
use tokio_util::sync::CancellationToken;
use uuid::Uuid;

use super::{
    Begins, Caller, Host, Problem, Route, RouteGroup, cluster::MCP_SESSION, extract::read,
};
use crate::{
    actor::SessionHandle,
    model::{Principal, Submission, TenantId},
};
use oracle_control::question::QueryHandle;
use oracle_mcp::{Failure, Front, GivenUp, Server};

/// Time for a cancellation to arrive after its client has disconnected.
const LATE: Duration = Duration::from_secs(2);

type Service = StreamableHttpService<Server, NeverSessionManager>;
/// Tenant and name of a caller, session and request.
type Key = (TenantId, Arc<str>, HeaderValue, Value);
/// Calls in progress.
type Calls = Arc<DashMap<Key, CancellationToken>>;

pub(super) fn route(host: &Host) -> Route {
    let config = StreamableHttpServerConfig::default()
        .with_legacy_session_mode(false)
        .with_max_request_body_bytes(host.settings.max_body)
        .with_cancellation_token(host.drain().ending.clone())
        // Checked for all routes.
        .disable_allowed_hosts();
    let server = Server::new(host.oracle.clone(), HttpFront(host.clone()));
    let sessions = Arc::new(NeverSessionManager::default());
    let service = Service::new(move || Ok(server.clone()), sessions, config);
    let calls = Calls::default();
    let handle = move |caller: Caller, parts: Parts, body: Bytes| {
        serve(service.clone(), calls.clone(), caller, parts, body)
    };
    let router = Router::new().route("/mcp", post(handle));
    Route::new(RouteGroup::Others, Begins::ToolCall, router)
}

async fn serve(
    service: Service,
    calls: Calls,
    Caller(caller): Caller,
    mut parts: Parts,
    body: Bytes,
) -> Result<Response, Problem> {
    // rmcp checks it.
    let message: Value = read(&body)?;
    let session = parts.headers.get(MCP_SESSION).cloned();
    let key = |id: &Value| {
        let (tenant, name) = (caller.tenant.clone(), caller.name.clone());
        Some((tenant, name, session.clone()?, id.clone()))
    };
    if message["method"] == "notifications/cancelled"
        && let Some(key) = key(&message["params"]["requestId"])
        && let Some(call) = calls.get(&key)
    {
        call.cancel();
    }
    let call = Arc::new(Call {
        key: key(&message["id"]).filter(|(.., id)| !id.is_null()),
        cancelled: CancellationToken::new(),
        calls,
    });
    if let Some(key) = call.key.clone() {
        call.calls.insert(key, call.cancelled.clone());
    }
    parts.extensions.insert(call);
    let request = Request::from_parts(parts, Full::new(body));
    let mut response = service.handle(request).await.map(Body::new);
    if message["method"] == "initialize" && response.status().is_success() {
        let id = HeaderValue::try_from(Uuid::now_v7().to_string());
        let named = id.map(|id| (MCP_SESSION, id));
        response.headers_mut().extend(named);
    }
    Ok(response)
}

/// A call, which is removed on drop.
struct Call {
    /// Without a session, nothing names it.
    key: Option<Key>,
    cancelled: CancellationToken,
    calls: Calls,
}

impl Drop for Call {
    fn drop(&mut self) {
        self.key.as_ref().map(|key| self.calls.remove(key));
    }
}

struct HttpFront(Host);

impl Front for HttpFront {
    fn caller(&self, context: &RequestContext<RoleServer>) -> Result<Principal, ErrorData> {
        let caller = extension::<Principal>(context);
        caller.ok_or_else(|| ErrorData::internal_error("the request has no caller", None))
    }

    fn begin<'a>(
        &'a self,
        session: &'a SessionHandle,
        submission: Submission,
    ) -> BoxFuture<'a, Result<QueryHandle, Failure>> {
        async move {
            let room = self.0.reserve_message(session.key()).await;
            let room = room.map_err(|problem| Failure(problem.body().message().to_owned()))?;
            let begun = QueryHandle::ask_here(session, submission).await;
            room.settle(&begun);
            Ok(begun?)
        }
        .boxed()
    }

    /// A client that disconnects leaves a session that it named, as on other routes. From
    /// 2026-07-28 on, disconnecting cancels. Older clients may disconnect and send
    /// `notifications/cancelled`, which is awaited for [`LATE`].
    fn given_up(
        &self,
        is_named: bool,
        context: &RequestContext<RoleServer>,
    ) -> BoxFuture<'static, GivenUp> {
        let version = context.protocol_version();
        let has_sessions = version.is_none_or(|version| version < ProtocolVersion::V_2026_07_28);
        let (host, disconnected) = (self.0.clone(), context.ct.clone());
        let call = extension::<Arc<Call>>(context);
        let cancelled = call.map_or_else(CancellationToken::new, |call| call.cancelled.clone());
        async move {
            tokio::select! {
                () = cancelled.cancelled() => return GivenUp::Cancel,
                () = disconnected.cancelled() => {}
            }
            let goes_on = host.is_draining() || (is_named && has_sessions);
            match goes_on && timeout(LATE, cancelled.cancelled()).await.is_err() {
                true => GivenUp::Detach,
                false => GivenUp::Cancel,
            }
        }
        .boxed()
    }
}

/// What an earlier layer has added to the HTTP request.
fn extension<T: Clone + Send + Sync + 'static>(context: &RequestContext<RoleServer>) -> Option<T> {
    context.extensions.get::<Parts>()?.extensions.get().cloned()
}
