//! How a query's state follows from its records. No decisions: each record says what is.

use std::sync::Arc;

use super::Query;
use crate::{
    kernel::{
        compaction::TOO_LONG,
        phase::{CallState, Step, ToolSlot},
        repetition::TurnDigest,
    },
    model::{
        CallId, Record, Signal, SignalType, Timestamp, ToolResult, ToolStatus, Turn,
        record::{
            AgentFact, ApprovalFact, ApprovalVerdict, BudgetFact, ControlFact, Fact,
            FallbackAction, FallbackCause, FallbackTriggered, QueryFact, Replied, RestartCause,
            SignalFact, SignalPresence, SupervisorFact, ToolFact, TurnFact, TurnMode,
            TurnRestartCause,
        },
        signal::SignalClass,
    },
};

impl Query {
    /// Takes in a record of this query.
    pub(in crate::kernel) fn evolve(&mut self, record: &Record) {
        match &record.fact {
            Fact::Query(QueryFact::Doubted(fact)) => {
                let what = Arc::new(fact.clone());
                self.step = Step::Doubting { what };
                self.is_called();
            }
            Fact::Query(QueryFact::Classified(fact)) => {
                self.in_flight = false;
                if let Some(opinion) = &fact.second_opinion {
                    self.usage += opinion.usage;
                }
                self.query_type = Some(fact.classification.query_type);
                self.prompt_tokens = fact.prompt.token_estimate;
                self.step = Step::Ready;
            }
            Fact::Turn(fact) => self.evolve_turn(record.turn, fact),
            Fact::Signal(fact) => self.evolve_signal(fact),
            Fact::Tool(fact) => self.evolve_tool(fact),
            Fact::Approval(fact) => self.evolve_approval(fact, record.at),
            Fact::Budget(fact) => self.evolve_budget(fact, record.at),
            Fact::Agent(fact) => self.evolve_agent(fact),
            Fact::Llm(fact) => self.evolve_llm(fact, record.at),
            Fact::Supervisor(SupervisorFact::Restarted(fact)) => match fact.cause {
                RestartCause::Crash | RestartCause::Stall => self.crashes = fact.count,
                RestartCause::ProcessDeath => self.process_deaths = fact.count,
            },
            Fact::Control(ControlFact::Steered(fact)) => self.steers.push(Arc::new(fact.clone())),
            Fact::Control(ControlFact::BudgetSet(fact)) => self.limits = fact.limits,
            // These change the session, not the query.
            _ => {}
        }
    }

    fn evolve_turn(&mut self, turn: Option<Turn>, fact: &TurnFact) {
        match fact {
            TurnFact::Started(started) => {
                self.turn = turn.unwrap_or(Turn(self.turns));
                self.mode = started.mode;
                self.set_model(&started.model);
                self.unsignalled = started.unsignalled;
                let before = std::mem::take(&mut self.current);
                self.kept = before.text.filter(|_| started.mode == TurnMode::Signal);
                // A reply whose signal is asked for separately is no silent turn.
                if let (Some(_), Some(signals)) = (&self.kept, before.before_silence) {
                    self.signals = signals;
                }
                self.steers.clear();
                self.child = None;
                self.notes.clear();
                self.sent = started.token_estimate;
                self.estimate = started.token_estimate.unwrap_or_default();
                self.is_called();
                self.begins_anew();
                self.final_mark = false;
                self.step = Step::Calling {
                    attempt: started.attempt,
                    tries: 1,
                };
            }
            TurnFact::Restarted(restarted) => {
                let tries = match restarted.cause {
                    // It was not the model that failed.
                    TurnRestartCause::Recovery => self.tries(),
                    TurnRestartCause::Fault { .. } if *self.model == *restarted.model => {
                        self.tries() + 1
                    }
                    TurnRestartCause::Fault { .. } => 1,
                };
                self.set_model(&restarted.model);
                self.is_called();
                self.step = Step::Calling {
                    attempt: restarted.attempt,
                    tries,
                };
            }
            TurnFact::Replied(replied) => self.evolve_replied(replied),
        }
    }

    fn evolve_replied(&mut self, replied: &Replied) {
        self.turns += 1;
        self.in_flight = false;
        self.usage += replied.usage;
        match replied.signal {
            SignalPresence::Valid => {}
            SignalPresence::Rejected | SignalPresence::Absent => {
                self.current.before_silence = Some(self.signals.clone());
                self.signals.record_silence();
            }
        }
        self.current.stop = Some(replied.stop);
        self.current.calls = replied.message.calls().count();
        let silent = replied.signal == SignalPresence::Absent && self.mode != TurnMode::Signal;
        let empty = silent && replied.text.is_empty() && self.current.calls == 0;
        self.empty_replies = if empty { self.empty_replies + 1 } else { 0 };
        if !replied.text.is_empty() {
            let text = Arc::clone(&replied.text);
            let joint = if self.texts.is_empty() { 0 } else { 2 };
            self.accumulated_chars += joint + text.chars().count();
            self.texts.push(Arc::clone(&text));
            self.current.text = Some(text);
        }
        if self.current.calls == 0 {
            self.repetition.push(None);
        }
        self.step = Step::Tools { slots: Vec::new() };
    }

    fn evolve_signal(&mut self, fact: &SignalFact) {
        match fact {
            SignalFact::Emitted(signal) => {
                self.signals.record_signal(signal);
                self.silence_mark = 0;
                if signal.kind() == SignalType::Stuck {
                    self.stucks += 1;
                }
                self.current.signal = Some(Arc::clone(signal));
            }
            SignalFact::Rejected(rejection) => {
                self.rejections += 1;
                self.current.rejection = Some(rejection.reason.as_str().into());
            }
        }
    }

    fn evolve_tool(&mut self, fact: &ToolFact) {
        match fact {
            ToolFact::Requested(requested) => {
                if let Step::Tools { slots } = &mut self.step {
                    let call = Arc::clone(&requested.call);
                    slots.push(ToolSlot {
                        call,
                        state: CallState::Waiting,
                    });
                }
            }
            ToolFact::Started(started) => self.set(&started.call, CallState::Running),
            ToolFact::Finished(finished) => self.answer(&finished.name, &finished.result),
            ToolFact::Refused(refused) => {
                let result = Arc::new(ToolResult {
                    call: refused.call.id.clone(),
                    status: ToolStatus::Refused,
                    content: refused.content.clone(),
                    data: None,
                });
                if let Step::Tools { slots } = &mut self.step
                    && !slots.iter().any(|slot| slot.call.id == refused.call.id)
                {
                    let call = Arc::clone(&refused.call);
                    slots.push(ToolSlot {
                        call,
                        state: CallState::Waiting,
                    });
                }
                self.answer(&refused.call.name, &result);
            }
        }
    }

    fn answer(&mut self, name: &str, result: &Arc<ToolResult>) {
        // A turn that asks for a signal alone offers no tools, and what is called all the same counts for nothing.
        let counts = self.mode != TurnMode::Signal;
        self.results += usize::from(counts);
        if counts && result.status.counts_as_failed() {
            self.failed += 1;
            if !self.failed_tools.iter().any(|tool| **tool == *name) {
                Arc::make_mut(&mut self.failed_tools).push(name.into());
            }
        }
        self.set(&result.call, CallState::Done(Arc::clone(result)));
        if counts && self.calls_complete() {
            self.repetition.push(TurnDigest::of(self.step.slots()));
        }
    }

    fn evolve_approval(&mut self, fact: &ApprovalFact, at: Timestamp) {
        match fact {
            ApprovalFact::Requested(waiting) => {
                self.set(&waiting.call, CallState::AwaitingApproval);
                self.approvals.push((waiting.call.clone(), at));
            }
            ApprovalFact::Answered(answered) => {
                self.approvals.retain(|(call, _)| *call != answered.call);
                // Of the others a result follows in the same decision.
                if answered.verdict == ApprovalVerdict::Approved {
                    self.set(&answered.call, CallState::Waiting);
                }
            }
        }
    }

    fn set(&mut self, call: &CallId, state: CallState) {
        if let Some(slot) = self.step.slot_mut(call) {
            slot.state = state;
        }
    }

    fn evolve_budget(&mut self, fact: &BudgetFact, at: Timestamp) {
        match fact {
            BudgetFact::IterationWarning(_) => self.warned.iteration = true,
            BudgetFact::TokensWarning(_) => self.warned.tokens = true,
            BudgetFact::CostWarning(_) => self.warned.cost = true,
            BudgetFact::ContextWarning(_) => self.warned.context = true,
            // The end of the query follows in the same decision.
            BudgetFact::IterationExceeded(_)
            | BudgetFact::TokensExceeded(_)
            | BudgetFact::CostExceeded(_)
            | BudgetFact::ContextExceeded(_) => {}
            BudgetFact::ContextCompacting(fact) => {
                let tries = match fact.again {
                    None => 1,
                    // It was not the model that failed.
                    Some(TurnRestartCause::Recovery) => self.tries(),
                    Some(TurnRestartCause::Fault { .. }) => self.tries() + 1,
                };
                if fact.again.is_none() {
                    self.begins_anew();
                }
                self.compactions = fact.number;
                self.compaction_attempt = fact.attempt;
                self.notes.clone_from(&fact.guidance);
                let (what, pause) = (Arc::new(fact.clone()), None);
                self.is_called();
                self.step = Step::Compacting { what, tries, pause };
            }
            BudgetFact::ContextCompacted(fact) => {
                self.usage += fact.usage;
                self.sent = None;
                self.compaction_ended(at);
            }
            BudgetFact::ContextCompactionFailed(fact) => {
                self.usage += fact.usage;
                self.uncompacted = Some(self.turns);
                self.compaction_ended(at);
            }
        }
    }

    /// The next turn can begin, or the call that was too long be made again.
    fn compaction_ended(&mut self, until: Timestamp) {
        let Step::Compacting { what, .. } = &self.step else {
            return;
        };
        self.in_flight = false;
        self.step = match what.turn_attempt {
            None => Step::Ready,
            Some(attempt) => Step::BackingOff {
                attempt,
                tries: 0,
                until,
                code: TOO_LONG.into(),
            },
        };
    }

    fn evolve_agent(&mut self, fact: &AgentFact) {
        match fact {
            AgentFact::FallbackTriggered(fallback) => self.evolve_fallback(fallback),
            AgentFact::EscalationRaised(_) => self.escalations += 1,
            AgentFact::DelegationStarted(start) => {
                self.children += 1;
                self.step = Step::Delegating {
                    child: start.child.clone(),
                    scope: start.scope.as_str().into(),
                    max_tokens: start.max_tokens,
                    max_cost: start.max_cost,
                };
            }
            AgentFact::DelegationCancelled(cancel) => {
                self.step = Step::Ending {
                    child: cancel.child.clone(),
                    ending: cancel.ending.clone(),
                };
            }
            AgentFact::DelegationFinished(end) => {
                self.usage += end.usage;
                self.child = Some(Arc::new(end.clone()));
                self.step = Step::Ready;
            }
            _ => {}
        }
    }

    fn evolve_fallback(&mut self, fallback: &FallbackTriggered) {
        match fallback.cause {
            FallbackCause::Silence => self.silence_mark = self.signals.turns_without_signal(),
            FallbackCause::ToolLoop => self.repetition.mark_hinted(),
            FallbackCause::LowConfidence
                if fallback.action == FallbackAction::Continue && self.weak_end() =>
            {
                self.weak_ends += 1;
            }
            FallbackCause::LowConfidence | FallbackCause::Stuck => {}
        }
        if fallback.applied && fallback.action == FallbackAction::ForceResponse {
            self.final_mark = true;
        }
    }

    /// Whether this turn would end the query but for its low confidence (row 10).
    fn weak_end(&self) -> bool {
        let ends = |signal: &Arc<Signal>| signal.kind().class() == SignalClass::Terminal;
        self.current.calls == 0 && self.current.signal.as_ref().is_some_and(ends)
    }

    /// A call is about to be made.
    const fn is_called(&mut self) {
        (self.in_flight, self.waits) = (true, false);
    }

    /// Most turns go to the model of the turn before.
    pub(super) fn set_model(&mut self, name: &str) {
        if *self.model != *name {
            self.model = name.into();
        }
    }
}
