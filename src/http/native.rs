//! The native interface, `/api`, which shows whole conversations to clients written for Oracle.
//!
//! Parsing is strict: unknown fields are refused, and each refusal names its field. docs/api.md is
//! the manual, `/api/openapi.json` the reference.
//!
//! **Invariant:** a stream delivers events with the numbers of the session's log, in order. A
//! client that reconnects with the number of its last event receives each event exactly once.

mod events;
mod queries;
mod sessions;

use axum::{
    Extension,
    extract::FromRequestParts,
    http::{header, request::Parts},
    response::{IntoResponse, Response},
};
use bytes::Bytes;
use serde::{Deserialize, Serialize};
use utoipa::{IntoParams, ToSchema};
use utoipa_axum::routes;

use super::{Begins, Caller, Host, Problem, Route, RouteGroup, extract::Path, sse};
use crate::{
    actor::{AskError, SessionHandle, SessionState, SessionView},
    model::{Limits, QueryId, Seq, SessionName, Usage},
};
#[cfg(any(test, feature = "testkit"))]
pub(super) use sessions::{NewMessage, NewSession};

pub(super) fn routes() -> Vec<Route> {
    use RouteGroup::{Messages, Others};
    let revocation = || sse::last_event(Some("end"), &Problem::no_key().body());
    let sessions = routes!(sessions::create, sessions::list);
    vec![
        Route::post(Messages, Begins::Query, routes!(sessions::submit)),
        Route::post(Others, Begins::Session, sessions),
        Route::without_post(Others, routes!(sessions::show, sessions::delete)),
        Route::without_post(Others, routes!(events::list)).revocation(revocation),
        Route::without_post(Others, routes!(events::body)),
        Route::without_post(Others, routes!(queries::list)),
        Route::without_post(Others, routes!(queries::show)),
        Route::post(Others, Begins::Nothing, routes!(queries::cancel)),
        Route::without_post(Others, routes!(show)),
    ]
}

#[derive(Debug, Clone)]
pub(super) struct OpenApiJson(pub Bytes);

/// Returns the OpenAPI description of all routes.
#[utoipa::path(get, path = "/api/openapi.json", tag = "api", responses(
    (status = 200, description = "An OpenAPI document.", body = serde_json::Value),
))]
async fn show(Extension(OpenApiJson(json)): Extension<OpenApiJson>) -> Response {
    ([(header::CONTENT_TYPE, "application/json")], json).into_response()
}

/// The path parameter of routes within a session.
#[derive(Debug, Deserialize, IntoParams)]
#[into_params(parameter_in = Path)]
struct InSession {
    /// The session's name.
    pub id: SessionName,
}

/// The caller's session of the path, which need not exist. Reserved names are refused.
struct OwnSession(pub SessionHandle);

impl FromRequestParts<Host> for OwnSession {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, host: &Host) -> Result<Self, Problem> {
        let caller = Caller::from_request_parts(parts, host).await?;
        let Path(InSession { id }) = Path::from_request_parts(parts, host).await?;
        if id.is_reserved() || id.is_ephemeral() {
            return Err(Problem::from(AskError::Reserved(id)).of("id"));
        }
        let oracle = host.oracle.acting(caller.by());
        Ok(Self(oracle.session_by_key(caller.session(id))))
    }
}

/// A session's state.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = Session)]
struct SessionObject {
    /// Its name.
    session: SessionName,
    /// What it is doing.
    state: SessionState,
    /// Whether new model calls and tool calls are held back.
    paused: bool,
    /// The number of its last event.
    last: Seq,
    /// The running query.
    query: Option<QueryId>,
    /// Number of the query's completed turns.
    turns: u32,
    /// The query's budgets.
    limits: Option<Limits>,
    /// The query's usage, or the session's total if no query is running.
    usage: Usage,
    /// Number of pending messages.
    waiting: usize,
    /// Why it is quarantined, if it is.
    quarantine: Option<String>,
}

impl From<SessionView> for SessionObject {
    fn from(view: SessionView) -> Self {
        Self {
            session: view.key.name,
            state: view.state,
            paused: view.paused,
            last: view.last,
            query: view.query,
            turns: view.turns,
            limits: view.limits,
            usage: view.usage,
            waiting: view.waiting,
            quarantine: view.quarantine,
        }
    }
}

/// Returns a limit within its range, or the default.
fn limit(wanted: Option<u16>, default: u16, most: u16) -> Result<usize, Problem> {
    let limit = wanted.unwrap_or(default);
    if (1..=most).contains(&limit) {
        return Ok(limit.into());
    }
    let what = format!("`limit` must be from 1 to {most}");
    Err(Problem::bad("limit", what))
}
