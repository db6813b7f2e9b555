//! The objects of the native interface that several routes share.

use serde::Serialize;
use utoipa::ToSchema;

use crate::{
    actor::SessionView,
    control,
    http::Problem,
    model::{Limits, QueryId, Seq, SessionName, Usage},
};

/// Refuses limits outside their ranges.
pub(super) fn check(limits: &Limits) -> Result<(), Problem> {
    control::limits::check(limits).map_err(|wrong| {
        let field = format!("limits.{}", wrong.field);
        let what = format!("`{field}` {}", wrong.what);
        Problem::bad(field, what)
    })
}

/// A session as it stands.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = Session)]
pub(super) struct SessionObject {
    /// Its name.
    session: SessionName,
    /// `idle`, `closed`, `quarantined`, or the step of the running query.
    state: String,
    /// Whether new calls and tools are held back.
    paused: bool,
    /// The number of its last event.
    last: Seq,
    /// The running query.
    query: Option<QueryId>,
    /// Its completed turns.
    turns: u32,
    /// Its budgets.
    limits: Option<Limits>,
    /// What it used; where none runs, what the session used.
    usage: Usage,
    /// How many messages wait.
    waiting: usize,
    /// Why it was set aside, if it was.
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

/// A number within its range, or the default.
pub(super) fn limit(wanted: Option<u16>, default: u16, most: u16) -> Result<usize, Problem> {
    let limit = wanted.unwrap_or(default);
    if (1..=most).contains(&limit) {
        return Ok(limit.into());
    }
    let what = format!("`limit` has to be from 1 to {most}");
    Err(Problem::bad("limit", what))
}
