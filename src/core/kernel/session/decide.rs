//! Which commands and events fit which phase, and which rules decide on them.

use super::{Phase, Session};
use crate::{
    kernel::{
        calls, capability, compaction, control, delegation,
        draft::Draft,
        effect::Decision,
        guard, head, import, inbox,
        input::{Command, DecisionContext, IssuedCommand, Refusal, Report},
        phase::{CallState, Step},
        reply, restart, retry,
    },
    model::{
        By, FaultCode, Import, QueryId, Record,
        record::{AgentFact, ControlFact, Ending, LlmFact, Noted, SessionFact, Steered},
    },
};

impl Session {
    /// Decides on a command.
    ///
    /// # Errors
    /// Returns a [`Refusal`], and nothing changes.
    pub fn decide(
        &self,
        order: impl Into<IssuedCommand>,
        now: DecisionContext,
    ) -> Result<Decision, Refusal> {
        let IssuedCommand { by, command } = order.into();
        if let (Phase::Quarantined(aside), false) = (&self.phase, command == Command::Release) {
            return Err(Refusal::Quarantined(aside.reason.clone()));
        }
        if self.closed && command.begins_something() {
            return Err(Refusal::Closed);
        }
        match command {
            Command::Submit(submission) => inbox::submit(self, submission, by, now),
            Command::Continue(limits) => inbox::continue_last(self, limits, by, now),
            Command::Cancel { query } => self.cancel(query, by, now),
            Command::Steer { text, author } => {
                let steered = Steered {
                    text,
                    author,
                    by,
                    idempotency_key: None,
                };
                match self.draft(now) {
                    Some(draft) => inbox::steer(draft, steered),
                    None => inbox::steer_late(self, steered, now),
                }
            }
            Command::Pause if self.paused => Ok(Decision::nothing()),
            Command::Resume if !self.paused => Ok(Decision::nothing()),
            Command::Pause => {
                let paused = self.note(ControlFact::Paused(by.into()), now);
                Ok(self.and_then(paused, now, delegation::sync_pause))
            }
            Command::Resume => {
                let resumed = self.note(ControlFact::Resumed(by.into()), now);
                Ok(self.and_then(resumed, now, restart::resume))
            }
            Command::Release => Ok(self.release(by, now)),
            Command::FinishNow => Ok(control::finish_now(self.running(now)?, by)),
            Command::SetBudget(limits) => {
                let current = self.query().map(|query| query.limits);
                let current = current.unwrap_or(self.policy().limits);
                let limits = inbox::checked(limits.resolve(current), self.policy())?;
                Ok(control::set_budget(self.running(now)?, limits, by))
            }
            Command::AnswerApproval {
                call,
                token,
                verdict,
                reason,
            } => {
                let draft = control::approval_of(self.running(now)?, &call, &token)?;
                Ok(calls::answered(draft, call, verdict, reason, by))
            }
            Command::ReturnResults {
                results,
                options,
                instructions,
            } => {
                let import = Import {
                    instructions,
                    ..Import::default()
                };
                let Some(brought) = import::check(self, Some(import.into()))? else {
                    return calls::returned(self.running(now)?, results, options, by);
                };
                let noted = self.note(SessionFact::Imported(brought), now);
                let then = self.after(&noted);
                Ok(noted.and(calls::returned(then.running(now)?, results, options, by)?))
            }
            Command::Restart => Ok(self.note(ControlFact::Restarted(by.into()), now)),
            Command::AttachTool { tool } => capability::attach(self, tool, by, now),
            Command::Close => Ok(self.close(by, now)),
        }
    }

    /// Decides on an event. A stale event decides nothing.
    pub fn observe(&self, report: Report, now: DecisionContext) -> Decision {
        let Phase::Running(query) = &self.phase else {
            return Decision::nothing();
        };
        let draft = Draft::new(self, query, now);
        let runs = query.step.pause().is_none();
        let calls = |token| runs && matches!(query.step_of(token), Some(Step::Calling { .. }));
        let compacts =
            |token| runs && matches!(query.step_of(token), Some(Step::Compacting { .. }));
        match report {
            Report::Prepared { query: id, result }
                if id == query.id && query.step == Step::Preparing =>
            {
                guard::prepared(draft, result)
            }
            Report::Composed { query: id, prompt } if id == query.id => {
                head::recomposed(draft, &prompt)
            }
            Report::ModelReplied { token, reply } if calls(token) => {
                reply::replied(draft, token.attempt, reply)
            }
            Report::ModelFailed {
                token,
                fault,
                usage,
            } if calls(token) => retry::failed(draft, token, fault, usage),
            Report::CallWaits { token, waiting } if calls(token) || compacts(token) => {
                draft.noted(LlmFact::Waiting(waiting))
            }
            Report::CallAdmitted { token, waited } if calls(token) || compacts(token) => {
                retry::admitted(draft, token.attempt, waited)
            }
            Report::RetryDue { token } => match query.step_of(token) {
                Some(Step::AwaitingGrant(_)) => capability::proceed(draft),
                Some(_) => retry::due(draft),
                None => Decision::nothing(),
            },
            Report::Compacted { token, reply } if compacts(token) => {
                compaction::ended::replied(draft, reply)
            }
            Report::CompactionFailed {
                token,
                fault,
                usage,
            } if compacts(token) => compaction::ended::try_failed(draft, fault, usage),
            Report::ToolEnded {
                query: id,
                turn,
                result,
            } if (query.id, query.turn) == (id, turn) => calls::ended(draft, result),
            Report::ChildEnded { query: id, end }
                if id == query.id && query.awaits_child(&end.child) =>
            {
                delegation::ended(draft, end)
            }
            Report::ChildProgressed {
                query: id,
                progress,
            } if id == query.id && query.takes(&progress) => {
                draft.noted(AgentFact::DelegationProgressed(progress))
            }
            Report::BudgetViolated { query: id, detail } if id == query.id => {
                let code = FaultCode::BudgetViolated;
                control::end(draft, Ending::Failed { code, detail })
            }
            Report::Restarted { cause, detail } => restart::restarted(draft, cause, detail),
            _ => Decision::nothing(),
        }
    }

    /// Whether a report may begin a query or a turn, so that its decision depends on what the budgets
    /// of the tenant and the key allow.
    pub fn may_begin(&self, report: &Report) -> bool {
        match report {
            Report::Composed { .. }
            | Report::CallWaits { .. }
            | Report::CallAdmitted { .. }
            | Report::ChildProgressed { .. } => false,
            Report::ToolEnded { result, .. } => self.query().is_some_and(|query| {
                let mut others = query.step.slots().iter();
                let is_awaited = |state: &CallState| {
                    matches!(state, CallState::Running | CallState::AwaitingApproval)
                };
                !others.any(|slot| slot.call.id != result.call && is_awaited(&slot.state))
            }),
            _ => self.query().is_some(),
        }
    }

    /// Returns the effects that the state owes after a replay.
    pub fn resume(&self, now: DecisionContext) -> Decision {
        let draft = self.draft(now);
        draft.map_or_else(Decision::nothing, restart::owed)
    }

    /// The queue is emptied first, so that no message follows the running query.
    fn close(&self, by: By, now: DecisionContext) -> Decision {
        if self.closed {
            return Decision::nothing();
        }
        let decision = self.note(ControlFact::Closed(by.clone().into()), now);
        let decision = decision.and(self.note(SessionFact::Closed(Noted {}), now));
        let waiting = self.inbox.iter().map(|queued| queued.id);
        let withdrawn = waiting.map(|id| inbox::withdraw(id, now));
        let decision = withdrawn.fold(decision, Decision::and);
        self.and_then(decision, now, |draft| control::cancel_running(draft, by))
    }

    fn cancel(
        &self,
        query: Option<QueryId>,
        by: By,
        now: DecisionContext,
    ) -> Result<Decision, Refusal> {
        match query {
            Some(id) if self.inbox.iter().any(|queued| queued.id == id) => {
                let cancelled = ControlFact::Cancelled(by.into());
                let cancelled = Record::new(now.at, Some(id), None, cancelled);
                Ok(Decision::of(cancelled).and(inbox::withdraw(id, now)))
            }
            _ => {
                let draft = self.running(now)?;
                match (query, draft.query.id) {
                    (Some(query), running) if query != running => {
                        Err(Refusal::OtherRunning { query, running })
                    }
                    _ => Ok(control::cancel_running(draft, by)),
                }
            }
        }
    }
}
