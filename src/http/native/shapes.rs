//! Objects of the native interface that several routes share.

use serde::Serialize;
use utoipa::ToSchema;

use crate::{
    actor::SessionView,
    http::Problem,
    model::{Limits, QueryId, Seq, SessionName, Usage},
};

/// A session's state.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = Session)]
pub(super) struct SessionObject {
    /// Its name.
    session: SessionName,
    /// `idle`, `closed`, `quarantined`, or the phase of the running query.
    state: String,
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
