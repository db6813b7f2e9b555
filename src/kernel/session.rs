//! The session: which inputs it takes in which phase.

use std::{
    collections::{BTreeMap, VecDeque},
    sync::Arc,
};

use super::{
    calls, control, delegation,
    draft::Draft,
    effect::Decision,
    guard,
    history::Transcript,
    inbox::{self, KeyUse, Queued},
    input::{Command, Moment, Refusal, Report},
    phase::Step,
    policy::Policy,
    query::{Inheritance, Query},
    restart, retry, turn_end,
};
use crate::model::{
    Fault, QueryClassification, QueryId, Record, SessionKey, Usage,
    record::{
        Accepted, Classified, ControlFact, Fact, Noted, Opened, PromptSummary, Quarantined,
        QueryFact, SessionFact, Steered,
    },
};

mod evolve;

/// What a session is at.
#[derive(Debug, Clone, PartialEq)]
pub enum Phase {
    /// Nothing.
    Idle,
    /// A query.
    Running(Box<Query>),
    /// Set aside until an operator releases it (spec 10).
    Quarantined(Quarantined),
}

/// A conversation's whole state. See the room for the order in which it is used.
#[derive(Clone)]
pub struct Session {
    policy: Arc<Policy>,
    opened: Option<Arc<Opened>>,
    phase: Phase,
    paused: bool,
    transcript: Transcript,
    inbox: VecDeque<Queued>,
    /// The last query that was accepted.
    last_query: QueryId,
    last_question: Option<Arc<str>>,
    /// The last query, if it was ended by force.
    forced: Option<Inheritance>,
    keys: BTreeMap<String, KeyUse>,
    /// What all ended queries used.
    usage: Usage,
}

impl Session {
    /// A session without records.
    #[must_use]
    pub fn new(policy: Arc<Policy>) -> Self {
        Self {
            policy,
            opened: None,
            phase: Phase::Idle,
            paused: false,
            transcript: Transcript::default(),
            inbox: VecDeque::new(),
            last_query: QueryId(0),
            last_question: None,
            forced: None,
            keys: BTreeMap::new(),
            usage: Usage::default(),
        }
    }

    /// Decides on a command: what should become durable, and what should then be done.
    ///
    /// # Errors
    /// A command that cannot be carried out is refused; nothing changes.
    pub fn decide(&self, command: Command, now: Moment) -> Result<Decision, Refusal> {
        if let Phase::Quarantined(Quarantined { reason }) = &self.phase {
            return Err(Refusal::Quarantined {
                reason: reason.clone(),
            });
        }
        match command {
            Command::Open(opened) => self.open(opened, now),
            Command::Submit(submission) => inbox::submit(self, submission, now),
            Command::Continue(limits) => inbox::go_on(self, limits, now),
            Command::Cancel { query } => self.cancel(query, now),
            Command::Steer { text, author } => {
                let idempotency_key = None;
                let steered = Steered {
                    text,
                    author,
                    idempotency_key,
                };
                control::steer(self.running(now)?, steered)
            }
            Command::Pause => Ok(self.pause(now)),
            Command::Resume => Ok(self.unpause(now)),
            Command::FinishNow => Ok(control::finish_now(self.running(now)?)),
            Command::SetBudget(limits) => Ok(control::set_budget(
                self.running(now)?,
                inbox::checked(limits)?,
            )),
            Command::AnswerApproval { call, verdict } => {
                control::answer_approval(self.running(now)?, call, verdict)
            }
        }
    }

    /// Decides on what happened. What fits nothing is stale and decides nothing.
    #[must_use]
    pub fn observe(&self, report: Report, now: Moment) -> Decision {
        let Phase::Running(query) = &self.phase else {
            return self.observe_idle(report, now);
        };
        let fits = match &report {
            Report::Prepared { query: id, .. } => {
                *id == query.id() && *query.step() == Step::Preparing
            }
            Report::ModelReplied { token, .. } | Report::ModelFailed { token, .. } => {
                query.calls_with(*token)
            }
            Report::RetryDue { token } => query.backs_off_with(*token),
            Report::ToolEnded {
                query: id, turn, ..
            } => query.is_at(*id, *turn),
            Report::ChildEnded { query: id, end } => {
                *id == query.id() && query.awaits_child(&end.child)
            }
            Report::BudgetViolated { query: id, .. } => *id == query.id(),
            Report::Restarted { .. } => true,
        };
        if !fits {
            return Decision::nothing();
        }
        let draft = Draft::new(self, query, now);
        match report {
            Report::Prepared { result, .. } => prepared(draft, result),
            Report::ModelReplied { token, reply } => turn_end::replied(draft, token.attempt, reply),
            Report::ModelFailed { token, fault } => retry::failed(draft, token, fault),
            Report::RetryDue { token } => retry::due(draft, token),
            Report::ToolEnded { result, .. } => calls::ended(draft, result),
            Report::ChildEnded { end, .. } => delegation::ended(draft, end),
            Report::Restarted { cause, detail } => restart::restarted(draft, cause, detail),
            Report::BudgetViolated { detail, .. } => control::budget_violated(draft, detail),
        }
    }

    /// A crash while nothing runs is not of a query's making: the session is set aside (spec 10).
    fn observe_idle(&self, report: Report, now: Moment) -> Decision {
        match (&self.phase, report) {
            (Phase::Idle, Report::Restarted { detail, .. }) => {
                let reason = format!("it crashed while idle: {detail}");
                self.note(SessionFact::Quarantined(Quarantined { reason }), now)
            }
            (Phase::Idle | Phase::Running(_) | Phase::Quarantined(_), _) => Decision::nothing(),
        }
    }

    /// What the state reached by replay still owes.
    #[must_use]
    pub fn resume(&self, now: Moment) -> Decision {
        self.draft(now)
            .map_or_else(Decision::nothing, restart::owed)
    }

    fn open(&self, opened: Opened, now: Moment) -> Result<Decision, Refusal> {
        match self.opened {
            Some(_) => Err(Refusal::AlreadyOpen),
            None => Ok(self.note(SessionFact::Opened(opened), now)),
        }
    }

    fn cancel(&self, query: Option<QueryId>, now: Moment) -> Result<Decision, Refusal> {
        let running = self.query().map(Query::id);
        match query {
            Some(id) if Some(id) != running => {
                let queued = self.inbox.iter().any(|queued| queued.id == id);
                if queued {
                    Ok(inbox::withdraw(id, now))
                } else {
                    Err(Refusal::NothingRunning)
                }
            }
            Some(_) | None => Ok(control::cancel_running(self.running(now)?)),
        }
    }

    fn pause(&self, now: Moment) -> Decision {
        if self.paused {
            Decision::nothing()
        } else {
            self.note(ControlFact::Paused(Noted {}), now)
        }
    }

    fn unpause(&self, now: Moment) -> Decision {
        if !self.paused {
            return Decision::nothing();
        }
        let mut decision = self.note(ControlFact::Resumed(Noted {}), now);
        let mut resumed = self.clone();
        decision
            .records
            .iter()
            .for_each(|record| resumed.evolve(record));
        if let Some(draft) = resumed.draft(now) {
            let then = control::resume(draft);
            decision.records.extend(then.records);
            decision.effects.extend(then.effects);
        }
        decision
    }

    /// A decision of one record and no effect.
    fn note(&self, fact: impl Into<Fact>, now: Moment) -> Decision {
        let query = self.query().map(Query::id);
        let record = Record {
            at: now.at,
            query,
            turn: None,
            fact: fact.into(),
        };
        Decision {
            records: vec![record],
            ..Decision::nothing()
        }
    }

    fn running(&self, now: Moment) -> Result<Draft<'_>, Refusal> {
        self.draft(now).ok_or(Refusal::NothingRunning)
    }

    pub(super) fn draft(&self, now: Moment) -> Option<Draft<'_>> {
        self.query().map(|query| Draft::new(self, query, now))
    }
}

/// What can be seen of a session.
impl Session {
    /// What it is at.
    #[must_use]
    pub const fn phase(&self) -> &Phase {
        &self.phase
    }

    /// The running query, if there is one.
    #[must_use]
    pub fn query(&self) -> Option<&Query> {
        match &self.phase {
            Phase::Running(query) => Some(query),
            Phase::Idle | Phase::Quarantined(_) => None,
        }
    }

    /// Whether new calls and tools are held back.
    #[must_use]
    pub const fn is_paused(&self) -> bool {
        self.paused
    }

    /// The conversation as a model gets it.
    #[must_use]
    pub const fn transcript(&self) -> &Transcript {
        &self.transcript
    }

    /// Its tenant and name, once it is open.
    #[must_use]
    pub fn key(&self) -> Option<&SessionKey> {
        self.opened.as_deref().map(|opened| &opened.key)
    }

    /// How many messages wait.
    #[must_use]
    pub fn waiting(&self) -> usize {
        self.inbox.len()
    }

    /// How deep it is below a session that people opened.
    pub(super) fn depth(&self) -> u32 {
        let parent = self
            .opened
            .as_deref()
            .and_then(|opened| opened.parent.as_ref());
        parent.map_or(0, |parent| parent.depth)
    }

    /// What it goes by.
    #[must_use]
    pub fn policy(&self) -> &Policy {
        &self.policy
    }

    pub(super) const fn inbox(&self) -> &VecDeque<Queued> {
        &self.inbox
    }

    pub(super) fn key_use(&self, key: &str) -> Option<&KeyUse> {
        self.keys.get(key)
    }

    pub(super) fn last_question(&self) -> Option<Arc<str>> {
        self.last_question.clone()
    }

    pub(super) const fn next_query(&self) -> QueryId {
        self.last_query.next()
    }

    /// What a message asks: that of the query which it continues, or its own text.
    pub(super) fn question_of(&self, accepted: &Accepted) -> Arc<str> {
        let from = self.forced.as_ref();
        let from = from.filter(|from| accepted.continues == Some(from.query));
        from.map_or_else(
            || accepted.text.as_str().into(),
            |from| Arc::clone(&from.text),
        )
    }

    pub(super) fn forced(&self) -> Option<QueryId> {
        self.forced.as_ref().map(|forced| forced.query)
    }

    /// What all ended queries used.
    #[must_use]
    pub const fn usage_before(&self) -> Usage {
        self.usage
    }
}

type Prepared = Result<(QueryClassification, PromptSummary), Fault>;

fn prepared(mut draft: Draft<'_>, result: Prepared) -> Decision {
    match result {
        Ok((classification, prompt)) => {
            draft.emit_query(QueryFact::Classified(Classified {
                classification,
                prompt,
            }));
            if draft.session.is_paused() {
                draft.wait()
            } else {
                guard::begin_turn(draft, Vec::new())
            }
        }
        Err(fault) => draft.fail(&fault.code, fault.detail),
    }
}
