//! A decision in progress: a copy of the query's state, and the records and effects decided so far.
//!
//! Every flow takes the draft by value and returns the [`Decision`], so nothing can be decided
//! after the end of the query.

use std::sync::Arc;

use super::{
    effect::{BegunQuery, CallToken, Decision, Effect},
    history::Transcript,
    input::{DecisionContext, Refusal},
    phase::{CallState, ToolSlot},
    policy::{ModelChoice, Policy},
    query::Query,
    schema::Work,
    session::Session,
};
use crate::model::{
    Attempt, FaultCode, ForcedBy, Outcome, Record, ToolCall, ToolResult, ToolSpec, ToolStatus,
    Turn, Usage,
    record::{
        ApprovalAnswered, ApprovalFact, ApprovalVerdict, CallStarted, Ending, Fact, InboxPosition,
        QueryFact, QueryFinished, ToolFact, ToolFinished,
    },
};

#[derive(Clone)]
pub(super) struct Draft<'a> {
    pub session: &'a Session,
    pub now: DecisionContext,
    pub query: Query,
    /// As the records leave it.
    pub transcript: Transcript,
    /// Those of other queries are pushed; [`Self::emit_in`] takes those of this one.
    pub records: Vec<Record>,
    effects: Vec<Effect>,
    /// Tools that the records add to the session's list.
    pub added: Vec<ToolSpec>,
    /// What its checks of JSON may still cost.
    pub work: Work,
    /// The row of the decision table that the turn matched, until a record has it.
    pub row: Option<u8>,
}

impl<'a> Draft<'a> {
    pub(super) fn new(session: &'a Session, query: &Query, now: DecisionContext) -> Self {
        Self {
            session,
            now,
            query: query.clone(),
            transcript: session.transcript().clone(),
            records: Vec::new(),
            effects: Vec::new(),
            added: Vec::new(),
            work: Work::new(now.work),
            row: None,
        }
    }

    pub(super) fn policy(&self) -> &'a Policy {
        self.session.policy()
    }

    /// Usage of the model calls in the records decided so far.
    pub(super) fn charged(&self) -> Usage {
        self.records.iter().map(Record::usage).sum()
    }

    pub(super) fn emit(&mut self, fact: impl Into<Fact>) {
        self.emit_in(Some(self.query.turn), fact);
    }

    pub(super) fn emit_next_turn(&mut self, fact: impl Into<Fact>) {
        self.emit_in(Some(Turn(self.query.turns)), fact);
    }

    pub(super) fn emit_query(&mut self, fact: impl Into<Fact>) {
        self.emit_in(None, fact);
    }

    pub(super) fn emit_in(&mut self, turn: Option<Turn>, fact: impl Into<Fact>) {
        let record = Record::new(self.now.at, Some(self.query.id), turn, fact);
        self.transcript.evolve(&mut self.query, &record);
        self.records.push(record);
    }

    /// Emits what follows from the row that the turn matched.
    pub(super) fn emit_by_row(&mut self, turn: Option<Turn>, fact: impl Into<Fact>) {
        self.emit_in(turn, fact);
        if let Some(record) = self.records.last_mut() {
            record.row = self.row.take();
        }
    }

    pub(super) fn token(&self, attempt: Attempt) -> CallToken {
        CallToken {
            query: self.query.id,
            turn: self.query.turn,
            attempt,
        }
    }

    pub(super) fn next_turn_token(&self, attempt: Attempt) -> CallToken {
        CallToken {
            turn: Turn(self.query.turns),
            ..self.token(attempt)
        }
    }

    pub(super) fn effect(&mut self, effect: Effect) {
        self.effects.push(effect);
    }

    pub(super) fn wait(self) -> Decision {
        Decision {
            records: self.records,
            effects: self.effects,
            is_short_of_work: self.work.is_short,
            ..Decision::nothing()
        }
    }

    pub(super) fn noted(mut self, fact: impl Into<Fact>) -> Decision {
        self.emit(fact);
        self.wait()
    }

    pub(super) fn wait_for(mut self, effect: Effect) -> Decision {
        self.effect(effect);
        self.wait()
    }

    pub(super) fn finish(self, outcome: Outcome) -> Decision {
        let answer = answer(&self.query);
        self.finish_with(outcome, answer)
    }

    /// Ends the query by force. The caller has already emitted the fact with the reason.
    pub(super) fn force(self, by: ForcedBy) -> Decision {
        let answer = forced(&self.query, by);
        self.finish_with(Outcome::Forced { by }, answer)
    }

    pub(super) fn fail(mut self, code: FaultCode, detail: impl Into<String>) -> Decision {
        // Any other fault decides by itself.
        self.row = self.row.filter(|_| code == FaultCode::EmptyAnswer);
        self.finish(Outcome::Failed {
            code,
            detail: detail.into(),
        })
    }

    /// Ends a query whose model fails: as failed, unless a kept reply lacks only its signal.
    pub(super) fn give_up(self, code: FaultCode, detail: impl Into<String>) -> Decision {
        match self.query.kept {
            Some(_) => self.finish(Outcome::Answered),
            None => self.fail(code, detail),
        }
    }

    pub(super) fn finish_with(mut self, outcome: Outcome, answer: String) -> Decision {
        self.close_calls();
        self.requeue_steers(&outcome);
        let Query { turns, usage, .. } = self.query;
        let cut = self.query.current.cut;
        let cut = cut.filter(|_| outcome == Outcome::Answered);
        let unverified = outcome == Outcome::Answered && self.query.claims_sources();
        let finished = QueryFinished {
            outcome,
            answer,
            turns,
            usage,
            cut,
            unverified,
        };
        self.emit_by_row(None, QueryFact::Finished(finished));
        if let Some(next) = self.next_query() {
            self.effect(next);
        }
        self.wait()
    }

    /// Turns steering by a user that came too late into the next query, unless the query was
    /// cancelled or the session is closed.
    fn requeue_steers(&mut self, outcome: &Outcome) {
        if *outcome == Outcome::Cancelled || self.session.closed {
            return;
        }
        let text = self.query.late_text();
        if text.is_empty() {
            return;
        }
        let late: Vec<_> = self.query.late_steers().collect();
        let idempotency_key = match late[..] {
            [alone] => alone.idempotency_key.clone(),
            _ => None,
        };
        let last = late.last().map_or(&self.query.by, |steered| &steered.by);
        let accepted = self.session.message(text, idempotency_key, last.clone());
        let (query, fact) = (self.session.next_query(), QueryFact::Accepted(accepted));
        let record = Record::new(self.now.at, Some(query), None, fact);
        self.records.push(record);
    }

    fn next_query(&self) -> Option<Effect> {
        let accepted = |at: InboxPosition| {
            self.records.iter().find_map(|record| {
                let new = record.accepted()?;
                (new.place == at).then_some((record.query?, new))
            })
        };
        let waiting = self.session.inbox.iter();
        let mut waiting = waiting.map(|queued| (queued.id, &*queued.accepted));
        let (query, next) = accepted(InboxPosition::Front)
            .or_else(|| waiting.next())
            .or_else(|| accepted(InboxPosition::Back))?;
        Some(Effect::Prepare(BegunQuery {
            query,
            text: next.text.as_str().into(),
            previous: Some(Arc::clone(&self.query.text)),
            is_task: next.is_task(),
        }))
    }

    /// The model of the next turn: the one that answers the query, because another could not read its
    /// reasoning in front of the results of its calls; else the first of the chain.
    pub(super) fn next_model(&self) -> Option<&ModelChoice> {
        let (policy, query) = (self.policy(), &self.query);
        let mut chain = policy.models.iter();
        let stays = chain.find(|model| query.turns > 0 && *model.name == *query.model);
        stays.or(policy.model())
    }

    /// Adds the cost by the model's price, unless the provider reported it.
    pub(super) fn priced(&self, model: &str, usage: Usage) -> Usage {
        usage.priced(self.policy().price(model))
    }

    pub(super) fn conclude(self, ending: Ending) -> Decision {
        match ending {
            Ending::Cancelled => self.finish(Outcome::Cancelled),
            Ending::Finished => self.force(ForcedBy::Operator),
            Ending::Failed { code, detail } if code == FaultCode::BudgetViolated => {
                self.fail(code, detail)
            }
            Ending::Failed { code, detail } => self.give_up(code, detail),
        }
    }

    pub(super) fn start_call(&mut self, call: &ToolCall) {
        let (call, name) = (call.id.clone(), call.name.clone());
        self.emit(ToolFact::Started(CallStarted { call, name }));
    }

    pub(super) fn finish_call(&mut self, call: &ToolCall, status: ToolStatus, content: &str) {
        let result = Arc::new(ToolResult::new(call.id.clone(), status, content));
        let name = call.name.clone();
        self.emit(ToolFact::Finished(ToolFinished { name, result }));
    }

    pub(super) fn open_calls(&self) -> Vec<ToolSlot> {
        let slots = self.query.step.slots().iter();
        let open = slots.filter(|slot| slot.result().is_none());
        open.cloned().collect()
    }

    /// Gives every open call a result at the end of the query.
    fn close_calls(&mut self) {
        let mut abort = false;
        for slot in self.open_calls() {
            if slot.state == CallState::Running {
                abort = true;
                let why = ToolResult::CANCELLED;
                self.finish_call(&slot.call, ToolStatus::Unknown, why);
                continue;
            }
            if slot.state == CallState::AwaitingApproval {
                self.emit(ApprovalFact::Answered(ApprovalAnswered {
                    call: slot.call.id.clone(),
                    verdict: ApprovalVerdict::Withdrawn,
                    reason: None,
                }));
            }
            let why = ToolResult::QUERY_ENDED;
            self.finish_call(&slot.call, ToolStatus::Refused, why);
        }
        if abort {
            self.effect(Effect::AbortTools);
        }
    }
}

fn accumulated(query: &Query) -> String {
    query.texts.join("\n\n")
}

/// docs/protocol.md, "A turn", defines the answer.
pub(super) fn answer(query: &Query) -> String {
    match query.kept.as_ref().or(query.current.text.as_ref()) {
        Some(text) => text.to_string(),
        None if query.current.cut.is_some() => String::new(),
        None => accumulated(query),
    }
}

fn forced(query: &Query, by: ForcedBy) -> String {
    let [after_text, alone] = by.marks();
    let text = accumulated(query);
    if text.is_empty() {
        alone.to_owned()
    } else {
        format!("{text}\n\n{after_text}")
    }
}

impl Session {
    pub(super) fn draft(&self, now: DecisionContext) -> Option<Draft<'_>> {
        self.query().map(|query| Draft::new(self, query, now))
    }

    pub(super) fn running(&self, now: DecisionContext) -> Result<Draft<'_>, Refusal> {
        self.draft(now).ok_or(Refusal::NothingRunning)
    }

    pub(super) fn and_then(
        &self,
        decision: Decision,
        now: DecisionContext,
        next: impl FnOnce(Draft<'_>) -> Decision,
    ) -> Decision {
        match self.after(&decision).draft(now) {
            Some(draft) => decision.and(next(draft)),
            None => decision,
        }
    }
}
