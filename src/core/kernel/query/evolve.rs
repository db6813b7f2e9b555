//! How records change a running query.

use std::{mem, sync::Arc, time::Duration};

use super::{Query, RefusalStreak};
use crate::{
    kernel::{
        format, guidance,
        phase::{CallState, ChildSlot, Pause, Step, ToolSlot},
    },
    model::{
        CallId, Fault, FaultClass, FaultCode, Part, Record, SignalType, Timestamp, ToolCall,
        ToolResult, ToolStatus, Turn,
        record::{
            AgentFact, ApprovalFact, ApprovalVerdict, BudgetFact, ControlFact, Fact,
            FallbackAction, FallbackCause, FallbackTriggered, HeadReason, LlmFact, QueryFact,
            Replied, RestartCause, SessionFact, SignalFact, SignalPresence, SupervisorFact,
            ToolFact, TurnFact, TurnMode, TurnRestartCause,
        },
    },
};

/// Tokens of an empty reply that must have been reasoning, whether or not the provider sent it.
const REASONED: u64 = 8;

impl Query {
    pub(in crate::kernel) fn evolve(&mut self, record: &Record) {
        match &record.fact {
            Fact::Query(QueryFact::Classified(fact)) => {
                self.query_type = Some(fact.classification.query_type);
                self.prompt_tokens = fact.prompt.token_estimate;
                self.format_told = fact.formatted;
                self.step = Step::Ready;
            }
            Fact::Query(QueryFact::AnswerRejected(_)) => {
                (self.repaired, self.final_mark) = (true, true);
            }
            Fact::Session(SessionFact::HeadComposed(head)) => {
                self.format_told |= head.reason == HeadReason::First;
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
            _ => {}
        }
    }

    fn evolve_turn(&mut self, turn: Option<Turn>, fact: &TurnFact) {
        match fact {
            TurnFact::Started(started) => {
                self.turn = turn.unwrap_or(Turn(self.turns));
                self.mode = started.mode;
                // A turn of an earlier version did not tell it, because the prompt had it.
                let tells = |format: String| started.guidance.contains(&format);
                self.format_told = self.format_told
                    || format::instruction(&self.options().format).is_some_and(tells);
                self.set_model(&started.model);
                self.unsignalled = started.unsignalled;
                self.called_in_vain = false;
                let before = mem::take(&mut self.current);
                self.kept = before.text.filter(|_| started.mode == TurnMode::Signal);
                // A reply whose signal is asked for does not count as silent.
                if let (Some(_), Some(signals)) = (&self.kept, before.before_silence) {
                    self.signals = signals;
                }
                self.steers.clear();
                self.delegated.clear();
                self.notes.clear();
                self.sent = started.token_estimate;
                self.estimate = started.token_estimate.unwrap_or_default();
                self.refusals = RefusalStreak::default();
                self.final_mark = false;
                self.begin_call(Step::Calling {
                    attempt: started.attempt,
                    tries: 1,
                    pause: None,
                });
            }
            TurnFact::Restarted(restarted) => {
                let tries = match restarted.cause {
                    // A recovery is no failure of the model.
                    TurnRestartCause::Recovery => self.tries(),
                    TurnRestartCause::Fault { .. } if *self.model == *restarted.model => {
                        self.tries() + 1
                    }
                    TurnRestartCause::Fault { .. } => 1,
                };
                self.set_model(&restarted.model);
                self.begin_call(Step::Calling {
                    attempt: restarted.attempt,
                    tries,
                    pause: None,
                });
            }
            TurnFact::Replied(replied) => self.evolve_replied(replied),
        }
    }

    fn evolve_replied(&mut self, replied: &Replied) {
        self.turns += 1;
        self.in_flight = false;
        self.usage += replied.usage;
        if replied.signal != SignalPresence::Valid {
            self.current.before_silence = Some(self.signals.clone());
            self.signals.record_silence();
        }
        self.current.stop = Some(replied.stop);
        self.current.cut = replied.cut;
        self.current.reports = replied.reports;
        let calls = replied.message.calls().count();
        self.current.calls = calls.saturating_sub(replied.reports);
        let message = &replied.message;
        let opaque = |part: &Part| matches!(part, Part::Opaque(_));
        let thought = message.texts().next().is_some() || message.parts.iter().any(opaque);
        let spent = replied.usage.output_tokens >= REASONED;
        let is_blank = replied.text.is_empty() && self.current.calls == 0;
        let says_nothing = is_blank && replied.signal == SignalPresence::Absent;
        self.current.reasoned = says_nothing && (thought || spent);
        // Nor does a report alone say anything to the user.
        let reports = replied.reports > 0 && replied.signal == SignalPresence::Valid;
        let empty = says_nothing || is_blank && reports;
        let empty = empty && self.mode != TurnMode::Signal;
        self.empty_replies = if empty { self.empty_replies + 1 } else { 0 };
        if !replied.text.is_empty() {
            let text = Arc::clone(&replied.text);
            let joint = if self.texts.is_empty() { 0 } else { 2 };
            self.accumulated_chars += joint + text.chars().count();
            Arc::make_mut(&mut self.texts).push(Arc::clone(&text));
            self.current.text = Some(text);
        }
        if self.current.calls == 0 {
            self.repetition.push(&[]);
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
                self.current.missed_call = rejection.is_of_call();
                self.current.rejection = Some(guidance::rejected(rejection).into());
            }
        }
    }

    fn evolve_tool(&mut self, fact: &ToolFact) {
        match fact {
            ToolFact::Requested(requested) => self.request(&requested.call),
            ToolFact::Started(started) => self.set(&started.call, CallState::Running),
            ToolFact::Finished(finished) => self.answer(&finished.name, &finished.result),
            ToolFact::Refused(refused) => {
                let (call, why) = (&refused.call, refused.content.clone());
                let result = ToolResult::new(call.id.clone(), ToolStatus::Refused, why);
                if self.step.slot(&call.id).is_none() {
                    self.request(call);
                }
                self.answer(&call.name, &Arc::new(result));
            }
            ToolFact::HandedOver(_) => self.current.handed_over = true,
            ToolFact::Returned(returned) => {
                self.current.handed_over = false;
                if let Some(options) = &returned.options {
                    self.format_told &= options.format == self.options().format;
                    self.bytes = self.text.len() + options.bytes();
                    self.options = Some(Arc::clone(options));
                }
            }
        }
    }

    fn request(&mut self, call: &Arc<ToolCall>) {
        if let Step::Tools { slots } = &mut self.step {
            let state = match self.options.as_ref().and_then(|own| own.tool(&call.name)) {
                Some(_) => CallState::AwaitingClient,
                None => CallState::Waiting,
            };
            let call = Arc::clone(call);
            slots.push(ToolSlot { call, state });
        }
    }

    fn answer(&mut self, name: &str, result: &Arc<ToolResult>) {
        // In a turn that asks for a signal, calls are refused and do not count.
        let is_work = self.mode != TurnMode::Signal && self.current.calls > 0;
        let counts = is_work && !self.current.is_report(name);
        self.results += usize::from(counts);
        if counts && result.status.counts_as_failed() {
            self.failed += 1;
            if !self.failed_tools.iter().any(|tool| **tool == *name) {
                Arc::make_mut(&mut self.failed_tools).push(name.into());
            }
        }
        self.set(&result.call, CallState::Done(Arc::clone(result)));
        if is_work && self.calls_complete() {
            let current = &self.current;
            let work = self.step.slots().iter();
            let work = work.filter(|slot| !current.is_report(&slot.call.name));
            let is_new = self.repetition.push(&work.collect::<Vec<_>>());
            let is_mute = current.text.is_none() && current.rejection.is_none();
            if is_new && is_mute && current.signal.is_none() {
                self.signals.excuse_silence();
            }
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
                if answered.verdict == ApprovalVerdict::Approved {
                    self.set(&answered.call, CallState::Waiting);
                }
            }
        }
    }

    fn set(&mut self, call: &CallId, state: CallState) {
        if let Step::Tools { slots } = &mut self.step
            && let Some(slot) = slots.iter_mut().find(|slot| slot.call.id == *call)
        {
            slot.state = state;
        }
    }

    fn evolve_budget(&mut self, fact: &BudgetFact, at: Timestamp) {
        match fact {
            BudgetFact::IterationWarning(_) => self.warned.iteration = true,
            BudgetFact::TokensWarning(_) => self.warned.tokens = true,
            BudgetFact::CostWarning(_) => self.warned.cost = true,
            BudgetFact::ContextWarning(_) => self.warned.context = true,
            BudgetFact::ContextCompacting(fact) => {
                let tries = match fact.again {
                    None => 1,
                    // A recovery is no failure of the model.
                    Some(TurnRestartCause::Recovery) => self.tries(),
                    Some(TurnRestartCause::Fault { .. }) => self.tries() + 1,
                };
                if fact.again.is_none() {
                    self.refusals = RefusalStreak::default();
                }
                self.compactions = fact.number;
                self.compaction_attempt = fact.attempt;
                self.notes.clone_from(&fact.guidance);
                let (what, pause) = (Arc::new(fact.clone()), None);
                self.begin_call(Step::Compacting { what, tries, pause });
            }
            BudgetFact::ContextCompacted(fact) => {
                self.usage += fact.usage;
                self.sent = None;
                self.cuts += u32::from(fact.cut.is_some());
                self.compaction_ended(at);
            }
            BudgetFact::ContextCompactionFailed(fact) => {
                self.usage += fact.usage;
                self.compaction_ended(at);
            }
            _ => {}
        }
    }

    fn compaction_ended(&mut self, until: Timestamp) {
        let Step::Compacting { what, .. } = &self.step else {
            return;
        };
        self.in_flight = false;
        self.step = match what.turn_attempt {
            None => Step::Ready,
            Some(attempt) => Step::Calling {
                attempt,
                tries: 0,
                pause: Some(Pause {
                    until,
                    length: Duration::ZERO,
                    code: FaultCode::Context,
                }),
            },
        };
    }

    fn evolve_agent(&mut self, fact: &AgentFact) {
        match fact {
            AgentFact::FallbackTriggered(fallback) => self.evolve_fallback(fallback),
            AgentFact::EscalationRaised(_) => self.escalations += 1,
            AgentFact::CapabilityRequested(asked) if asked.until.is_some() => {
                self.notes.clone_from(&asked.guidance);
                self.step = Step::AwaitingGrant(Arc::new(asked.clone()));
            }
            AgentFact::DelegationStarted(start) => {
                self.children += 1;
                let mut children = match &mut self.step {
                    Step::Delegating { children } => mem::take(children),
                    _ => mem::take(&mut self.delegated),
                };
                children.push(ChildSlot {
                    start: Arc::new(start.clone()),
                    turns: 0,
                    end: None,
                });
                self.step = Step::Delegating { children };
            }
            AgentFact::DelegationProgressed(progress) => {
                if let Some(child) = self.step.child_mut(&progress.child) {
                    child.turns = progress.turns;
                }
            }
            AgentFact::DelegationCancelled(cancel) => {
                if let Step::Delegating { children } = &mut self.step {
                    self.step = Step::Ending {
                        children: mem::take(children),
                        ending: cancel.ending.clone(),
                    };
                }
            }
            AgentFact::DelegationFinished(end) => {
                self.usage += end.usage;
                if let Some(child) = self.step.child_mut(&end.child) {
                    child.end = Some(Arc::new(end.clone()));
                }
                if self.step.running_children().next().is_none() {
                    self.delegated = self.step.children().to_vec();
                    self.step = Step::Ready;
                }
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
            _ => {}
        }
        if fallback.applied && fallback.action == FallbackAction::ForceResponse {
            self.final_mark = true;
        }
    }

    fn begin_call(&mut self, step: Step) {
        (self.in_flight, self.waits) = (true, false);
        self.step = step;
    }

    fn set_model(&mut self, name: &str) {
        if *self.model != *name {
            self.model = name.into();
        }
    }

    fn evolve_llm(&mut self, fact: &LlmFact, at: Timestamp) {
        match fact {
            LlmFact::Retried(retried) => {
                self.usage += retried.usage;
                self.called_in_vain |= retried.fault.code == FaultCode::CalledInVain;
                let tried = self.failed_before(&retried.fault, at);
                let tries = (self.tries() + tried).saturating_sub(1);
                self.pause(tries, (at, retried.not_before), &retried.fault);
            }
            // The next model is called at once, or when the session resumes.
            LlmFact::FailedOver(failed) => {
                self.usage += failed.usage;
                let tried = self.failed_before(&failed.fault, at);
                self.refusals = RefusalStreak::default();
                // Another model's token count would distort the calibration.
                self.sent = None;
                let mut count = 0;
                if let Step::Compacting { what, tries, .. } = &mut self.step {
                    Arc::make_mut(what).model.clone_from(&failed.to);
                    count = (*tries + tried).saturating_sub(1);
                } else {
                    self.set_model(&failed.to);
                    self.unsignalled = false;
                }
                self.pause(count, (at, at), &failed.fault);
            }
            // The call is repeated at once, or when the session resumes.
            LlmFact::PrefixBroken(broken) => self.pause(self.tries(), (at, at), &broken.fault),
            LlmFact::Failed(failed) => {
                self.usage += failed.usage;
                self.in_flight = false;
            }
            LlmFact::Waiting(_) => self.waits = true,
            LlmFact::Admitted(_) => self.waits = false,
            _ => {}
        }
    }

    fn failed_before(&mut self, fault: &Fault, at: Timestamp) -> u32 {
        match fault.class {
            FaultClass::Overloaded { .. } | FaultClass::Unavailable { .. } => {
                self.refusals.add(at, fault.is_outage());
                0
            }
            _ => {
                self.refusals = RefusalStreak::default();
                1
            }
        }
    }

    fn pause(&mut self, tried: u32, (from, until): (Timestamp, Timestamp), fault: &Fault) {
        self.in_flight = false;
        if let Step::Calling { tries, pause, .. } | Step::Compacting { tries, pause, .. } =
            &mut self.step
        {
            *tries = tried;
            *pause = Some(Pause {
                until,
                length: until.since(from),
                code: fault.code.clone(),
            });
        }
    }

    pub(in crate::kernel) fn tries(&self) -> u32 {
        match self.step {
            Step::Calling { tries, .. } | Step::Compacting { tries, .. } => tries,
            _ => 0,
        }
    }
}
