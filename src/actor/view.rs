//! The state of a session, live or not.

use crate::{
    kernel::{Phase, Session},
    model::{Limits, QueryId, Seq, SessionKey, Usage},
};

/// The state of a session.
#[derive(Debug, Clone, PartialEq, serde::Serialize, serde::Deserialize)]
#[cfg_attr(feature = "server", derive(utoipa::ToSchema))]
pub struct SessionView {
    /// Tenant and name.
    pub key: SessionKey,
    /// `idle`, `closed`, `quarantined`, or the step of the running query.
    pub state: String,
    /// Whether new calls and tools are held back.
    pub paused: bool,
    /// Its last record.
    pub last: Seq,
    /// The running query.
    pub query: Option<QueryId>,
    /// Its completed turns.
    pub turns: u32,
    /// Its budgets.
    pub limits: Option<Limits>,
    /// Its usage.
    pub usage: Usage,
    /// The context window of the first model, in tokens, if it is known.
    pub context_window: Option<u64>,
    /// How many messages wait.
    pub waiting: usize,
    /// Why it is quarantined, if it is.
    pub quarantine: Option<String>,
}

impl SessionView {
    pub(super) fn of(key: SessionKey, session: &Session, last: Seq) -> Self {
        let query = session.query();
        let (state, quarantine) = match session.phase() {
            Phase::Idle if session.is_closed() => ("closed", None),
            Phase::Idle => ("idle", None),
            Phase::Running(query) => (query.step().name(), None),
            Phase::Quarantined(aside) => ("quarantined", Some(aside.reason.clone())),
        };
        Self {
            key,
            state: state.to_owned(),
            paused: session.is_paused(),
            last,
            query: query.map(|query| query.id()),
            turns: query.map_or(0, |query| query.turns()),
            limits: query.map(|query| query.limits()),
            usage: query.map_or(session.usage_before(), |query| query.usage()),
            context_window: session.context_window(),
            waiting: session.waiting(),
            quarantine,
        }
    }
}
