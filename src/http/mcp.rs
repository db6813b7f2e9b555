//! `/mcp`: the Model Context Protocol over streamable HTTP.
//!
//! Each request is served alone, for the caller that authentication found. The session id that a
//! client gets names its requests, so that a later notification can cancel one, and gives access to
//! nothing.

use std::{collections::HashMap, sync::Arc};

use axum::{
    Router,
    body::{Body, Bytes},
    extract::State,
    http::{HeaderName, HeaderValue, StatusCode, request::Parts},
    response::{IntoResponse as _, Response},
    routing::post,
};
use futures_util::future::{BoxFuture, FutureExt as _};
use http_body_util::Full;
use parking_lot::Mutex;
use rmcp::{
    ErrorData, RoleServer,
    model::{ProtocolVersion, RequestId},
    service::RequestContext,
    transport::streamable_http_server::{
        StreamableHttpServerConfig, StreamableHttpService, session::never::NeverSessionManager,
    },
};
use serde::Deserialize;
use serde_json::json;
use tokio_util::sync::CancellationToken;
use uuid::Uuid;

use super::{Caller, Host, Problem, access_log::is_stream, auth::RevocationEvent, problem};
use crate::{
    actor::{AskError, SessionHandle},
    control::question::QueryHandle,
    mcp,
    model::{Principal, Submission, TenantId},
};

pub(super) const SESSION: HeaderName = HeaderName::from_static("mcp-session-id");

type Service = StreamableHttpService<mcp::Server<HttpFront>, NeverSessionManager>;

pub(super) fn routes(host: &Host) -> Router<Host> {
    let config = StreamableHttpServerConfig::default()
        .with_legacy_session_mode(false)
        .with_max_request_body_bytes(host.settings.max_body)
        .with_cancellation_token(host.drain().ending().clone())
        // Checked for all routes.
        .disable_allowed_hosts();
    let questions = Questions::default();
    let front = HttpFront {
        host: host.clone(),
        questions: questions.clone(),
    };
    let server = mcp::Server::new(host.oracle.clone(), front);
    let sessions = Arc::new(NeverSessionManager::default());
    let service = Service::new(move || Ok(server.clone()), sessions, config);
    let serve = move |State(host): State<Host>, caller: Caller, parts: Parts, body: Bytes| {
        serve(
            host,
            (service.clone(), questions.clone()),
            caller,
            parts,
            body,
        )
    };
    Router::new().route("/mcp", post(serve).fallback(problem::no_such_method))
}

/// What this module reads of a message; rmcp checks it.
#[derive(Deserialize)]
struct Message {
    #[serde(default)]
    method: String,
    params: Option<Params>,
}

#[derive(Deserialize)]
struct Params {
    #[serde(rename = "requestId")]
    request: Option<RequestId>,
}

async fn serve(
    host: Host,
    (service, questions): (Service, Questions),
    Caller(caller): Caller,
    parts: Parts,
    body: Bytes,
) -> Response {
    if host.is_draining() {
        return Problem::ends().into_response();
    }
    let message = match serde_json::from_slice::<Message>(&body) {
        Ok(message) => message,
        Err(error) => {
            let what = format!("the body must be one message of MCP, in JSON: {error}");
            return Problem::bad("body", what).into_response();
        }
    };
    if message.method == "notifications/cancelled"
        && let Some(request) = message.params.and_then(|params| params.request)
    {
        questions.cancel(&caller, &parts, &request);
    }
    let request = axum::http::Request::from_parts(parts, Full::new(body));
    let mut response = service.handle(request).await.map(Body::new);
    if message.method == "initialize" && response.status() == StatusCode::OK {
        let id = HeaderValue::try_from(Uuid::now_v7().to_string());
        response.headers_mut().extend(id.map(|id| (SESSION, id)));
    }
    if is_stream(&response) {
        let revoked = Problem::no_key().body();
        let revoked = json!({
            "jsonrpc": "2.0",
            "id": null,
            "error": { "code": -32_001, "message": revoked.message() },
        });
        let revocation = RevocationEvent::new(None, &revoked);
        response.extensions_mut().insert(revocation);
    }
    response
}

#[derive(Clone)]
struct HttpFront {
    host: Host,
    questions: Questions,
}

impl mcp::Front for HttpFront {
    fn caller(&self, context: &RequestContext<RoleServer>) -> Result<Principal, ErrorData> {
        let parts = context.extensions.get::<Parts>();
        let caller = parts.and_then(|parts| parts.extensions.get::<Principal>());
        let unknown = || ErrorData::internal_error("the request has no caller", None);
        caller.cloned().ok_or_else(unknown)
    }

    async fn begin(
        &self,
        session: &SessionHandle,
        submission: Submission,
    ) -> Result<QueryHandle, String> {
        let refused = |problem: Problem| problem.body().message().to_owned();
        let room = self.host.reserve_message(session.key()).await;
        let room = room.map_err(refused)?;
        let begun = QueryHandle::ask_here(session, submission).await;
        room.settle(&begun);
        begun.map_err(|error: AskError| error.to_string())
    }

    /// A client that disconnects leaves a session that it named, as on other routes. In the
    /// protocol without sessions, that is how it cancels.
    fn given_up(
        &self,
        caller: &Principal,
        is_named: bool,
        context: &RequestContext<RoleServer>,
    ) -> BoxFuture<'static, bool> {
        let version = context.protocol_version();
        let has_sessions = version.is_none_or(|version| version < ProtocolVersion::V_2026_07_28);
        let parts = context.extensions.get::<Parts>();
        let question = self.questions.begin(caller, parts, &context.id);
        let (host, disconnected) = (self.host.clone(), context.ct.clone());
        async move {
            tokio::select! {
                () = question.cancelled.cancelled() => false,
                () = disconnected.cancelled() => host.is_draining() || (is_named && has_sessions),
            }
        }
        .boxed()
    }
}

/// The caller, its session id, and the request.
type QuestionKey = (TenantId, Arc<str>, HeaderValue, RequestId);

/// Questions in progress, by what a notification names.
#[derive(Clone, Default)]
struct Questions(Arc<Mutex<HashMap<QuestionKey, CancellationToken>>>);

/// Removes a question on drop.
struct RunningQuestion {
    questions: Questions,
    key: Option<QuestionKey>,
    cancelled: CancellationToken,
}

impl Questions {
    fn key(caller: &Principal, parts: &Parts, request: &RequestId) -> Option<QuestionKey> {
        let session = parts.headers.get(SESSION)?.clone();
        let (tenant, name) = (caller.tenant.clone(), Arc::clone(&caller.name));
        Some((tenant, name, session, request.clone()))
    }

    fn begin(
        &self,
        caller: &Principal,
        parts: Option<&Parts>,
        request: &RequestId,
    ) -> RunningQuestion {
        let key = parts.and_then(|parts| Self::key(caller, parts, request));
        let cancelled = CancellationToken::new();
        let entry = key.clone().map(|key| (key, cancelled.clone()));
        self.0.lock().extend(entry);
        RunningQuestion {
            questions: self.clone(),
            key,
            cancelled,
        }
    }

    fn cancel(&self, caller: &Principal, parts: &Parts, request: &RequestId) {
        let key = Self::key(caller, parts, request);
        if let Some(question) = key.and_then(|key| self.0.lock().get(&key).cloned()) {
            question.cancel();
        }
    }
}

impl Drop for RunningQuestion {
    fn drop(&mut self) {
        if let Some(key) = &self.key {
            self.questions.0.lock().remove(key);
        }
    }
}
