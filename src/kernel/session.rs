//! The session: which inputs it takes in which phase.

use std::{
    collections::VecDeque,
    sync::{Arc, OnceLock},
};

use super::{
    attach::{self, Attached},
    calls, compaction,
    context::Calibration,
    control, delegation, doubt,
    draft::Draft,
    effect::Decision,
    history::Transcript,
    inbox::{self, Queued},
    input::{Command, Moment, Order, Refusal, Report},
    keys::Keys,
    phase::Step,
    policy::Policy,
    query::{Inheritance, Query},
    rest::SetAside,
    restart, retry, turn_end,
};
use crate::model::{
    By, QueryId, Record, Usage,
    record::{ControlFact, Fact, Noted, Opened, RestartCause, SessionFact, Steered},
};

mod evolve;
mod view;

/// What a session is at.
#[derive(Debug, Clone, PartialEq)]
pub enum Phase {
    /// Nothing.
    Idle,
    /// A query.
    Running(Box<Query>),
    /// Set aside until an operator releases it (spec 10).
    Quarantined(SetAside),
}

/// A conversation's whole state. See the room for the order in which it is used.
#[derive(Clone)]
pub struct Session {
    pub(super) policy: Arc<Policy>,
    pub(super) opened: Option<Arc<Opened>>,
    pub(super) phase: Phase,
    pub(super) paused: bool,
    /// It takes no messages any more.
    pub(super) closed: bool,
    /// Tools that it got besides those of its policy, by name.
    pub(super) attached: Vec<Attached>,
    /// The last thing that it did was to leave memory in order.
    pub(super) has_left: bool,
    pub(super) transcript: Transcript,
    /// What whoever runs the conversation wants the model told, made harmless.
    pub(super) instructions: Option<Arc<str>>,
    pub(super) inbox: VecDeque<Queued>,
    /// The last query that was accepted.
    pub(super) last_query: QueryId,
    pub(super) last_question: Option<Arc<str>>,
    /// The last query, if it was ended by force.
    pub(super) forced: Option<Inheritance>,
    pub(super) keys: Keys,
    /// What all ended queries used.
    pub(super) usage: Usage,
    /// What the provider counts for what is estimated.
    pub(super) calibration: Calibration,
    /// About how many tokens the tools of the policy come to, once that was asked for.
    pub(super) tool_tokens: OnceLock<u64>,
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
            closed: false,
            attached: Vec::new(),
            has_left: false,
            transcript: Transcript::default(),
            instructions: None,
            inbox: VecDeque::new(),
            last_query: QueryId(0),
            last_question: None,
            forced: None,
            keys: Keys::default(),
            usage: Usage::default(),
            calibration: Calibration::default(),
            tool_tokens: OnceLock::new(),
        }
    }

    /// Decides on a command: what should become durable, and what should then be done.
    ///
    /// # Errors
    /// A command that cannot be carried out is refused; nothing changes.
    pub fn decide(&self, order: impl Into<Order>, now: Moment) -> Result<Decision, Refusal> {
        let Order { by, command } = order.into();
        if let (Phase::Quarantined(aside), false) = (&self.phase, command == Command::Release) {
            let reason = aside.reason.clone();
            return Err(Refusal::Quarantined { reason });
        }
        if self.closed && command.begins_something() {
            return Err(Refusal::Closed);
        }
        match command {
            Command::Open(opened) => self.open(opened, now),
            Command::Submit(submission) => inbox::submit(self, submission, by, now),
            Command::Continue(limits) => inbox::go_on(self, limits, by, now),
            Command::Cancel { query } => self.cancel(query, by, now),
            Command::Steer { text, author } => {
                let idempotency_key = None;
                let steered = Steered {
                    text,
                    author,
                    by,
                    idempotency_key,
                };
                control::steer(self.running(now)?, steered)
            }
            Command::Pause => Ok(self.pause(by, now)),
            Command::Resume => Ok(self.unpause(by, now)),
            Command::Release => Ok(self.release(by, now)),
            Command::FinishNow => Ok(control::finish_now(self.running(now)?, by)),
            Command::SetBudget(limits) => {
                let limits = inbox::checked(limits)?;
                Ok(control::set_budget(self.running(now)?, limits, by))
            }
            Command::AnswerApproval { call, verdict } => {
                control::answer_approval(self.running(now)?, call, verdict, by)
            }
            Command::Restart => Ok(self.note(ControlFact::Restarted(by.into()), now)),
            Command::AttachTool { tool } => attach::attach(self, tool, by, now),
            Command::Close => Ok(self.close(by, now)),
        }
    }

    /// Decides on what happened. What fits nothing is stale and decides nothing.
    #[must_use]
    pub fn observe(&self, report: Report, now: Moment) -> Decision {
        let Phase::Running(query) = &self.phase else {
            return Decision::nothing();
        };
        let fits = match &report {
            Report::Prepared { query: id, .. } => {
                *id == query.id() && *query.step() == Step::Preparing
            }
            Report::SecondOpinion { token, .. } => query.doubts_with(*token),
            Report::ModelReplied { token, .. } | Report::ModelFailed { token, .. } => {
                query.calls_with(*token)
            }
            Report::CallWaits { token, .. } | Report::CallAdmitted { token, .. } => {
                query.calls_with(*token) || query.compacts_with(*token)
            }
            Report::RetryDue { token } => {
                query.backs_off_with(*token) || query.compacts_again_with(*token)
            }
            Report::Compacted { token, .. } | Report::CompactionFailed { token, .. } => {
                query.compacts_with(*token)
            }
            Report::ToolEnded {
                query: id, turn, ..
            } => query.is_at(*id, *turn),
            Report::ChildEnded { query: id, end } => {
                *id == query.id() && query.awaits_child(&end.child)
            }
            Report::BudgetViolated { query: id, .. } | Report::Unwritable { query: id, .. } => {
                *id == query.id()
            }
            Report::Restarted { .. } => true,
        };
        if !fits {
            return Decision::nothing();
        }
        let draft = Draft::new(self, query, now);
        match report {
            Report::Prepared { result, .. } => doubt::prepared(draft, result),
            Report::SecondOpinion { opinion, .. } => doubt::heard(draft, opinion),
            Report::ModelReplied { token, reply } => turn_end::replied(draft, token.attempt, reply),
            Report::ModelFailed {
                token,
                fault,
                usage,
            } => retry::failed(draft, token, fault, usage),
            Report::CallWaits { waiting, .. } => retry::waits(draft, waiting),
            Report::CallAdmitted { token, waited } => retry::admitted(draft, token.attempt, waited),
            Report::RetryDue { token } if query.compacts_again_with(token) => {
                compaction::retry_due(draft)
            }
            Report::RetryDue { token } => retry::due(draft, token),
            Report::Compacted { reply, .. } => compaction::replied(draft, reply),
            Report::CompactionFailed { fault, usage, .. } => {
                compaction::try_failed(draft, fault, usage)
            }
            Report::ToolEnded { result, .. } => calls::ended(draft, result),
            Report::ChildEnded { end, .. } => delegation::ended(draft, end),
            Report::Restarted { cause, detail } => restart::restarted(draft, cause, detail),
            Report::BudgetViolated { detail, .. } => control::budget_violated(draft, detail),
            Report::Unwritable { detail, .. } => control::unwritable(draft, detail),
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

    /// What waits goes first, so that nothing follows what runs.
    fn close(&self, by: By, now: Moment) -> Decision {
        if self.closed {
            return Decision::nothing();
        }
        let mut decision = self.note(ControlFact::Closed(by.clone().into()), now);
        let closed = self.note(SessionFact::Closed(Noted {}), now);
        decision.records.extend(closed.records);
        let waiting = self.inbox.iter().map(|queued| queued.id);
        decision
            .records
            .extend(waiting.flat_map(|id| inbox::withdraw(id, now).records));
        self.and_then(decision, now, |draft| control::cancel_running(draft, by))
    }

    fn cancel(&self, query: Option<QueryId>, by: By, now: Moment) -> Result<Decision, Refusal> {
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
            Some(_) | None => Ok(control::cancel_running(self.running(now)?, by)),
        }
    }

    fn pause(&self, by: By, now: Moment) -> Decision {
        if self.paused {
            Decision::nothing()
        } else {
            self.note(ControlFact::Paused(by.into()), now)
        }
    }

    fn unpause(&self, by: By, now: Moment) -> Decision {
        if !self.paused {
            return Decision::nothing();
        }
        let resumed = self.note(ControlFact::Resumed(by.into()), now);
        self.and_then(resumed, now, control::resume)
    }

    /// A decision, and then what is owed by the state that it leads to.
    pub(super) fn and_owed(&self, decision: Decision, now: Moment) -> Decision {
        self.and_then(decision, now, restart::owed)
    }

    pub(super) fn and_then(
        &self,
        mut decision: Decision,
        now: Moment,
        next: impl FnOnce(Draft<'_>) -> Decision,
    ) -> Decision {
        let mut then = self.clone();
        decision
            .records
            .iter()
            .for_each(|record| then.evolve(record));
        if let Some(draft) = then.draft(now) {
            let next = next(draft);
            decision.records.extend(next.records);
            decision.effects.extend(next.effects);
        }
        decision
    }

    /// The running query was cut off: the count, and the query's end if that is too many.
    pub(super) fn restarted(&self, cause: RestartCause, detail: String, now: Moment) -> Decision {
        self.draft(now).map_or_else(Decision::nothing, |draft| {
            restart::restarted(draft, cause, detail)
        })
    }

    /// A decision of one record and no effect.
    pub(super) fn note(&self, fact: impl Into<Fact>, now: Moment) -> Decision {
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
