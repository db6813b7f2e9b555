//! Parameters and objects of the native interface that several routes share.

use axum::{extract::FromRequestParts, http::request::Parts};
use serde::{Deserialize, Serialize};
use utoipa::{IntoParams, ToSchema};

use crate::{
    actor::{AskError, SessionHandle, SessionState, SessionView},
    http::{Caller, Host, Problem, extract::Path},
    model::{Limits, QueryId, Seq, SessionName, Usage},
};

/// The path parameter of routes within a session.
#[derive(Debug, Deserialize, IntoParams)]
#[into_params(parameter_in = Path)]
pub(super) struct InSession {
    /// The session's name.
    pub id: SessionName,
}

/// The caller's session of the path, which need not exist. Reserved names are refused.
pub(super) struct OwnSession(pub SessionHandle);

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

/// Refuses names that no caller may write to.
pub(super) fn check_free(name: &SessionName, param: &'static str) -> Result<(), Problem> {
    AskError::check_free(name).map_err(|error| Problem::from(error).of(param))
}

/// A session's state.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = Session)]
pub(super) struct SessionObject {
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
pub(super) fn limit(wanted: Option<u16>, default: u16, most: u16) -> Result<usize, Problem> {
    let limit = wanted.unwrap_or(default);
    if (1..=most).contains(&limit) {
        return Ok(limit.into());
    }
    let what = format!("`limit` must be from 1 to {most}");
    Err(Problem::bad("limit", what))
}
