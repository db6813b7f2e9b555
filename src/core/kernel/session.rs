//! The state of a session, and what it shows. Its child files decide on inputs and apply records.

mod decide;
mod evolve;

use std::{collections::VecDeque, fmt, sync::Arc, time::Duration};

use serde::{Deserialize, Serialize};

use super::{
    calibration::Calibration,
    effect::Decision,
    head::Head,
    history::Transcript,
    input::DecisionContext,
    keys::Keys,
    last_call::LastCall,
    phase::{CallState, Step},
    policy::Policy,
    query::{Inheritance, Query},
};
use crate::model::{
    By, Outcome, ProfileName, QueryId, Record, SessionKey, SessionState, SignalType, Timestamp,
    ToolCall, Turn, Usage,
    record::{Accepted, AddedTool, Fact, InboxPosition, Opened, Quarantined, SessionFact},
};

/// Phase of a session.
#[derive(Debug, Clone, Default, PartialEq)]
pub enum Phase {
    /// No query runs.
    #[default]
    Idle,
    /// A query runs.
    Running(Box<Query>),
    /// Quarantined until an operator releases it.
    Quarantined(Quarantine),
}

/// State of a quarantined session.
#[derive(Debug, Clone, PartialEq)]
pub struct Quarantine {
    /// Reason for the quarantine.
    pub reason: String,
    /// The query that ran, to be continued after the release.
    pub before: Option<Box<Query>>,
}

impl Phase {
    pub(super) fn quarantined(self, why: &Quarantined) -> Self {
        Self::Quarantined(Quarantine {
            reason: why.reason.clone(),
            before: match self {
                Self::Idle => None,
                Self::Running(query) => Some(query),
                Self::Quarantined(aside) => aside.before,
            },
        })
    }

    pub(super) fn released(self) -> Self {
        match self {
            Self::Quarantined(aside) => aside.before.map_or(Self::Idle, Self::Running),
            _ => self,
        }
    }
}

#[derive(Debug, Clone, PartialEq)]
pub(super) struct Queued {
    pub id: QueryId,
    pub accepted: Arc<Accepted>,
    pub size: usize,
}

/// After so many queries in a row without a signal, the model can signal by a tool.
pub(super) const SILENT_QUERIES: u32 = 2;

/// State of a session, replayed from its records.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Session {
    #[serde(skip)]
    pub(super) rules: Rules,
    pub(super) opened: Option<Arc<Opened>>,
    #[serde(skip)]
    pub(super) phase: Phase,
    pub(super) paused: bool,
    pub(super) closed: bool,
    /// Tools that were attached or found.
    pub(super) joined: Vec<AddedTool>,
    pub(super) has_left: bool,
    pub(super) transcript: Transcript,
    /// `None` in a session that an earlier version recorded, until its next query.
    pub(super) head: Option<Arc<Head>>,
    /// The application's instructions, escaped.
    pub(super) instructions: Option<Arc<str>>,
    #[serde(skip)]
    pub(super) inbox: VecDeque<Queued>,
    pub(super) last_query: QueryId,
    pub(super) last_question: Option<Arc<str>>,
    pub(super) last_end: Option<Arc<LastEnd>>,
    /// State of the last query, if it was forced.
    pub(super) forced: Option<Inheritance>,
    /// Queries in a row without a signal, up to [`SILENT_QUERIES`].
    pub(super) silent_queries: u32,
    pub(super) keys: Keys,
    pub(super) usage: Usage,
    pub(super) calibration: Calibration,
    pub(super) last_call: Option<LastCall>,
}

/// How the last query ended.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct LastEnd {
    /// Its outcome.
    pub outcome: Outcome,
    /// Its last signal.
    pub signal: Option<SignalType>,
}

/// Not part of the state: sessions that differ only in their policy are equal.
#[derive(Clone)]
pub(super) struct Rules {
    pub policy: Arc<Policy>,
}

impl From<Arc<Policy>> for Rules {
    fn from(policy: Arc<Policy>) -> Self {
        Self { policy }
    }
}

impl Default for Rules {
    fn default() -> Self {
        Arc::new(Policy::new(Vec::new(), Arc::default())).into()
    }
}

impl PartialEq for Rules {
    fn eq(&self, _: &Self) -> bool {
        true
    }
}

impl fmt::Debug for Rules {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Rules")
    }
}

impl Session {
    /// Creates a session without records.
    pub fn new(policy: Arc<Policy>) -> Self {
        Self {
            rules: policy.into(),
            ..Self::default()
        }
    }

    /// Prepends the record that opens a new session to the decision `then`.
    pub fn opening(&self, opened: Opened, then: Decision, now: DecisionContext) -> Decision {
        self.note(SessionFact::Opened(opened), now).and(then)
    }

    pub(super) fn note(&self, fact: impl Into<Fact>, now: DecisionContext) -> Decision {
        let query = self.query().map(|query| query.id);
        Decision::of(Record::new(now.at, query, None, fact))
    }

    /// Current phase.
    pub const fn phase(&self) -> &Phase {
        &self.phase
    }

    /// Running query, if any.
    pub fn query(&self) -> Option<&Query> {
        match &self.phase {
            Phase::Running(query) => Some(query),
            _ => None,
        }
    }

    /// What the session is doing.
    pub fn state(&self) -> SessionState {
        let query = match &self.phase {
            Phase::Quarantined(_) => return SessionState::Quarantined,
            Phase::Idle if self.closed => return SessionState::Closed,
            Phase::Idle => return SessionState::Idle,
            Phase::Running(query) => query,
        };
        match &query.step {
            Step::Ending { .. } => SessionState::Ending,
            Step::AwaitingGrant(_) => SessionState::Grant,
            Step::Tools { .. } if query.awaits_client() => SessionState::Client,
            step if !step.has(&CallState::Running) && step.has(&CallState::AwaitingApproval) => {
                SessionState::Approval
            }
            // A pause holds back what is next, and not what is in flight.
            Step::Calling { pause: None, .. } => SessionState::Calling,
            Step::Compacting { pause: None, .. } => SessionState::Compacting,
            step if step.has(&CallState::Running) => SessionState::Tools,
            _ if self.paused => SessionState::Paused,
            Step::Calling { .. } | Step::Compacting { .. } => SessionState::BackingOff,
            Step::Preparing | Step::Ready => SessionState::Preparing,
            Step::Tools { .. } => SessionState::Tools,
            Step::Delegating { .. } => SessionState::Delegating,
        }
    }

    /// Whether new model and tool calls are held back.
    pub const fn is_paused(&self) -> bool {
        self.paused
    }

    /// Whether the session is closed.
    pub const fn is_closed(&self) -> bool {
        self.closed
    }

    /// The conversation as the model gets it.
    pub const fn transcript(&self) -> &Transcript {
        &self.transcript
    }

    /// Instructions of the application, escaped.
    pub const fn instructions(&self) -> Option<&Arc<str>> {
        self.instructions.as_ref()
    }

    /// Pending approvals: query, turn, call and time of the request.
    pub fn waiting_calls(
        &self,
    ) -> impl Iterator<Item = (QueryId, Turn, &Arc<ToolCall>, Timestamp)> {
        self.query().into_iter().flat_map(|query| {
            query.approvals.iter().filter_map(|(call, since)| {
                Some((query.id, query.turn, &query.step.slot(call)?.call, *since))
            })
        })
    }

    /// Tenant and name, once the session is open.
    pub fn key(&self) -> Option<&SessionKey> {
        self.opened.as_deref().map(|opened| &opened.key)
    }

    /// Number of queued messages.
    pub fn waiting(&self) -> usize {
        self.inbox.len()
    }

    /// About how many bytes its texts take. `weighed` is how many messages were weighed before, and
    /// their bytes.
    pub fn bytes(&self, weighed: &mut (usize, usize)) -> usize {
        let messages = self.transcript.messages();
        // Those that a summary or a failed query has removed are not known.
        if messages.len() < weighed.0 {
            *weighed = (0, 0);
        }
        let new = messages.iter().skip(weighed.0);
        weighed.1 += new.map(|message| message.bytes()).sum::<usize>();
        weighed.0 = messages.len();
        let texts = [&self.last_question, &self.instructions].into_iter();
        let texts: usize = texts.flatten().map(|text| text.len()).sum();
        let waiting: usize = self.inbox.iter().map(|queued| queued.size).sum();
        weighed.1 + texts + waiting + self.query().map_or(0, Query::bytes)
    }

    /// Number of accepted messages whose queries have not finished: those that wait, and the query
    /// that runs or was interrupted by the quarantine.
    pub fn open_queries(&self) -> usize {
        self.inbox.len() + usize::from(self.unfinished().is_some())
    }

    pub(super) fn depth(&self) -> u32 {
        let opened = self.opened.as_deref();
        let parent = opened.and_then(|opened| opened.parent.as_ref());
        parent.map_or(0, |parent| parent.depth)
    }

    /// The policy that the session runs under.
    pub fn policy(&self) -> &Policy {
        &self.rules.policy
    }

    /// How long the running query has waited for a model that is down (`outage`) or overloaded.
    #[doc(hidden)]
    pub fn waited(&self, now: Timestamp, outage: bool) -> Duration {
        let refusals = self.query().map(|query| query.refusals);
        refusals.unwrap_or_default().lasting(now, outage)
    }

    pub(super) const fn next_query(&self) -> QueryId {
        self.last_query.next()
    }

    /// Profile, once the session is open.
    pub fn profile(&self) -> Option<&ProfileName> {
        self.opened.as_deref().map(|opened| &opened.profile)
    }

    /// The question of the running query, or of the last one.
    pub fn question(&self) -> Option<&str> {
        let last = self.last_question.as_deref();
        self.query().map(|query| &*query.text).or(last)
    }

    /// How the last query that has ended did.
    pub fn last_end(&self) -> Option<&LastEnd> {
        self.last_end.as_deref()
    }

    /// Usage of all queries, the running one included.
    pub fn total_usage(&self) -> Usage {
        let mut total = self.usage;
        total += self.query().map(Query::own_usage).unwrap_or_default();
        total
    }

    /// Usage of all ended queries.
    pub const fn usage_before(&self) -> Usage {
        self.usage
    }

    /// A message without options, with the profile's limits, to be answered next.
    pub(super) fn message(&self, text: String, key: Option<String>, by: By) -> Accepted {
        Accepted {
            text,
            limits: self.policy().limits,
            idempotency_key: key,
            continues: None,
            place: InboxPosition::Front,
            by,
            options: None,
        }
    }

    /// The caller who pays for the query that runs, or that the quarantine interrupted.
    #[doc(hidden)]
    pub fn payer(&self) -> By {
        let query = self.unfinished();
        query.map(|query| query.by.clone()).unwrap_or_default()
    }

    /// The query that runs, or that the quarantine interrupted.
    #[doc(hidden)]
    pub fn unfinished(&self) -> Option<&Query> {
        match &self.phase {
            Phase::Idle => None,
            Phase::Running(query) => Some(query),
            Phase::Quarantined(aside) => aside.before.as_deref(),
        }
    }
}
