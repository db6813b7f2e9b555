//! The objects of the native interface that several routes share.

use serde::Serialize;
use serde_json::Value;
use utoipa::ToSchema;

use crate::{
    actor::SessionView,
    control::{self, limits::LimitsObject},
    http::Problem,
    model::{Event, Limits, QueryId, Seq, SessionName, Severity, Source, Timestamp, Turn, Usage},
};

/// The limits that are wanted in this field, if they are in their ranges.
pub(super) fn limits(wanted: LimitsObject, field: &str) -> Result<Limits, Problem> {
    let limits = wanted.into();
    control::limits::check(&limits).map_err(|wrong| {
        let field = format!("{field}.{}", wrong.field);
        let what = format!("`{field}` {}", wrong.what);
        Problem::bad(field, what)
    })?;
    Ok(limits)
}

/// What was used.
#[derive(Debug, Clone, Copy, Serialize, ToSchema)]
#[schema(as = Usage)]
pub(super) struct UsageObject {
    /// Tokens sent, those read from a provider's cache included.
    input_tokens: u64,
    /// Of these, those that the provider had cached.
    cached_tokens: u64,
    /// Tokens received, reasoning included.
    output_tokens: u64,
    /// In billionths of a US dollar, by the configured prices.
    cost: u64,
}

impl From<Usage> for UsageObject {
    fn from(usage: Usage) -> Self {
        Self {
            input_tokens: usage.input_tokens,
            cached_tokens: usage.cached_tokens,
            output_tokens: usage.output_tokens,
            cost: usage.cost.0,
        }
    }
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
    last: u64,
    /// The running query.
    query: Option<u32>,
    /// Its completed turns.
    turns: u32,
    /// Its budgets.
    limits: Option<LimitsObject>,
    /// What it used; where none runs, what the session used.
    usage: UsageObject,
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
            last: view.last.0,
            query: view.query.map(|query| query.0),
            turns: view.turns,
            limits: view.limits.map(Into::into),
            usage: view.usage.into(),
            waiting: view.waiting,
            quarantine: view.quarantine,
        }
    }
}

/// An event of a session's log. In a text beyond 16 KB's place stands `{"ref": {"seq", "bytes"}}`, and
/// `/api/sessions/{id}/events/{seq}/body` has it.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = Event)]
pub(in crate::http) struct EventObject {
    /// Its place in the session's log.
    seq: u64,
    /// Whose log.
    session: SessionName,
    /// Which query it belongs to, if any.
    query: Option<u32>,
    /// Which turn of that query, from 0, if any.
    turn: Option<u32>,
    /// When it was recorded.
    at: Timestamp,
    /// Its type, such as `turn.started`.
    #[serde(rename = "type")]
    kind: String,
    /// Who speaks.
    source: Source,
    /// How much it matters.
    severity: Severity,
    /// What it says.
    payload: Value,
}

impl From<Event> for EventObject {
    fn from(event: Event) -> Self {
        let (Seq(seq), query, turn) = (event.seq, event.query, event.turn);
        Self {
            seq,
            session: event.session,
            query: query.map(|QueryId(query)| query),
            turn: turn.map(|Turn(turn)| turn),
            at: event.at,
            kind: event.kind,
            source: event.source,
            severity: event.severity,
            payload: event.payload,
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
