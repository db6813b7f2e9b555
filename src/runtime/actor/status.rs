//! The state of a session, live or not.

use super::approvals::{Approval, AwaitedGrant, PendingCalls};
use crate::{
    kernel::{Phase, Session},
    model::{
        Limits, ProfileName, QueryId, Seq, SessionKey, SessionState, SignalType, Timestamp, Usage,
    },
};

const QUESTION: usize = 500;

/// The state of a session.
#[derive(Debug, Clone, PartialEq, serde::Serialize, serde::Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct SessionView {
    /// Tenant and name.
    pub key: SessionKey,
    /// Its profile.
    pub profile: Option<ProfileName>,
    /// The question of the running query, or of the last one: its first 500 characters.
    pub question: Option<String>,
    /// What it is doing.
    pub state: SessionState,
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
    /// When it began.
    pub since: Option<Timestamp>,
    /// Its last signal, or that of the last query.
    pub signal: Option<SignalType>,
    /// The outcome of the last query that has ended.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub outcome: Option<String>,
    /// The reason for that outcome.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// Its calls that wait for approval, the oldest first.
    #[serde(default)]
    pub calls: Vec<Approval>,
    /// The tools of which its query awaits one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub grant: Option<AwaitedGrant>,
    /// Its usage; without a query, that of the session.
    pub usage: Usage,
    /// The context window of the first model, in tokens, if it is known.
    pub context_window: Option<u64>,
    /// Usage of all queries of the session.
    #[serde(default)]
    pub total: Usage,
    /// How many messages wait.
    pub waiting: usize,
    /// Why it is quarantined, if it is.
    pub quarantine: Option<String>,
}

impl SessionView {
    pub(super) fn of(key: SessionKey, session: &Session, last: Seq) -> Self {
        let query = session.query();
        let quarantine = match session.phase() {
            Phase::Quarantined(aside) => Some(aside.reason.clone()),
            Phase::Idle | Phase::Running(_) => None,
        };
        let question = session.question();
        let ended = session.last_end();
        let signal = match query {
            Some(query) => query.signals.last_signal().map(|signal| signal.kind()),
            None => ended.and_then(|ended| ended.signal),
        };
        let reason = ended.and_then(|ended| ended.outcome.reason());
        let PendingCalls { calls, grant, .. } = PendingCalls::of(&key, session, last);
        Self {
            key,
            state: session.state(),
            paused: session.is_paused(),
            last,
            profile: session.profile().cloned(),
            question: question.map(|text| text.chars().take(QUESTION).collect()),
            since: query.map(|query| query.since),
            signal,
            outcome: ended.map(|ended| ended.outcome.name().to_owned()),
            reason: reason.map(str::to_owned),
            calls,
            grant,
            total: session.total_usage(),
            query: query.map(|query| query.id),
            turns: query.map_or(0, |query| query.turns),
            limits: query.map(|query| query.limits),
            usage: query.map_or(session.usage_before(), |query| query.usage),
            context_window: session.context_window(),
            waiting: session.waiting(),
            quarantine,
        }
    }
}
