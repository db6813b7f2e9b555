//! What a session counts: what it recorded, how long a turn took, and what it is at.

use std::{sync::Arc, time::Duration};

use super::state::SessionState;
use crate::{
    actor::meter::{Activity, TurnTimes},
    kernel::{Opinion, Report, Step},
    model::{
        FaultClass, Record,
        record::{
            BudgetFact, Fact, LlmFact, QueryFact, SignalFact, SignalPresence, TurnFact, TurnMode,
        },
    },
};

impl SessionState {
    /// These are durable. The step that led to them began at this monotonic microsecond, and the journal
    /// had them at that.
    pub(super) fn count(&mut self, records: &[Arc<Record>], began: u64, now: u64) {
        for record in records {
            self.services.meter.record(record);
            let used = record.usage();
            self.services.meter.used(&used);
            if let Some(inbox) = &self.inbox {
                inbox.used(used.total_tokens());
            }
            match &record.fact {
                Fact::Query(QueryFact::Accepted(_)) => {
                    let runs = self.session.query().map(|query| query.id());
                    if runs == record.query {
                        self.turn_began = Some(began);
                    }
                }
                Fact::Turn(TurnFact::Started(_)) => {
                    self.turn_began.get_or_insert(began);
                }
                Fact::Turn(TurnFact::Replied(_)) => self.turn_ends(now),
                // Pauses and calls of which nothing came are nobody's time.
                Fact::Turn(TurnFact::Restarted(_))
                | Fact::Query(QueryFact::Doubted(_) | QueryFact::Finished(_))
                | Fact::Llm(
                    LlmFact::Retried(_)
                    | LlmFact::FailedOver(_)
                    | LlmFact::Failed(_)
                    | LlmFact::Waiting(_),
                )
                | Fact::Budget(BudgetFact::ContextCompacting(_)) => self.turn_began = None,
                _ => {}
            }
        }
    }

    /// Learns from durable records, before the session evolves by them, which models give no signals.
    pub(super) fn learn_habits(&self, records: &[Arc<Record>]) {
        let Some(query) = self.session.query() else {
            return;
        };
        for record in records {
            match &record.fact {
                Fact::Signal(SignalFact::Emitted(_)) => {
                    self.services.habits.signalled(query.model());
                }
                Fact::Turn(TurnFact::Replied(replied))
                    if query.mode() == TurnMode::Signal
                        && replied.signal != SignalPresence::Valid =>
                {
                    self.services.habits.gave_none(query.model());
                }
                _ => {}
            }
        }
    }

    fn turn_ends(&mut self, now: u64) {
        let Some(began) = self.turn_began.take() else {
            return;
        };
        let (queued, model) = self.pulse.outside();
        self.services.meter.turn(TurnTimes {
            whole: Duration::from_micros(now.saturating_sub(began)),
            queued,
            model,
        });
    }

    /// How a call ended, if that is what is reported.
    pub(super) fn count_call(&self, report: &Report) {
        let fault = match report {
            Report::ModelReplied { .. }
            | Report::Compacted { .. }
            | Report::SecondOpinion {
                opinion: Opinion::Named { .. } | Opinion::NotUnderstood { .. },
                ..
            } => None,
            Report::ModelFailed { fault, .. }
            | Report::CompactionFailed { fault, .. }
            | Report::SecondOpinion {
                opinion: Opinion::Failed { fault, .. },
                ..
            } => Some(&fault.class),
            Report::SecondOpinion {
                opinion: Opinion::Late,
                ..
            } => Some(&FaultClass::Cancelled),
            _ => return,
        };
        self.services.meter.called(fault);
    }

    /// What it is at.
    pub(super) fn activity(&self) -> Activity {
        let Some(query) = self.session.query() else {
            return Activity::Idle;
        };
        if self.session.is_paused() {
            return Activity::Paused;
        }
        match query.step() {
            Step::Preparing | Step::Ready => Activity::Preparing,
            Step::Doubting { .. } | Step::Calling { .. } | Step::Compacting { pause: None, .. } => {
                Activity::Calling
            }
            Step::BackingOff { .. } | Step::Compacting { pause: Some(_), .. } => {
                Activity::BackingOff
            }
            // Nothing is in flight, and it is not over: only a person can mean that.
            Step::Tools { .. } if self.session.may_rest() => Activity::Approval,
            Step::Tools { .. } => Activity::Tools,
            Step::Delegating { .. } | Step::Ending { .. } => Activity::Delegating,
        }
    }
}
