//! How often a call was tried, and how that went.

use std::{sync::Arc, time::Duration};

use super::Query;
use crate::{
    kernel::{
        effect::Trial,
        phase::{Pause, Step},
    },
    model::{Fault, FaultClass, Timestamp, record::LlmFact},
};

/// Refusals in a row, of one model in one turn. They use up no try, but the patience.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(in crate::kernel) struct Refusals {
    pub count: u32,
    /// When the first one came.
    pub since: Option<Timestamp>,
}

impl Refusals {
    /// One more.
    fn add(&mut self, at: Timestamp) {
        self.count = self.count.saturating_add(1);
        self.since.get_or_insert(at);
    }

    /// For how long they have gone on.
    pub(in crate::kernel) fn lasting(self, now: Timestamp) -> Duration {
        self.since.map_or(Duration::ZERO, |since| now.since(since))
    }
}

impl Query {
    pub(super) fn evolve_llm(&mut self, fact: &LlmFact, at: Timestamp) {
        self.usage += match fact {
            LlmFact::Retried(retried) => retried.usage,
            LlmFact::FailedOver(failed) => failed.usage,
            LlmFact::Failed(failed) => failed.usage,
            // Of a provider, not of a query.
            LlmFact::CircuitOpened(_) | LlmFact::CircuitClosed(_) => return,
        };
        let tried = match fact {
            LlmFact::Retried(retried) => self.failed_before(&retried.fault, at),
            LlmFact::FailedOver(_)
            | LlmFact::Failed(_)
            | LlmFact::CircuitOpened(_)
            | LlmFact::CircuitClosed(_) => {
                self.begins_anew();
                // What another model counts says nothing of the first one's tokens.
                self.sent = None;
                1
            }
        };
        if let Step::Compacting { what, tries, pause } = &mut self.step {
            let (until, fault, trial) = match fact {
                LlmFact::Retried(retried) => {
                    *tries = (*tries + tried).saturating_sub(1);
                    let trial = Trial::after(&retried.fault);
                    (retried.not_before, &retried.fault, trial)
                }
                LlmFact::FailedOver(failed) => {
                    Arc::make_mut(what).model.clone_from(&failed.to);
                    *tries = 0;
                    (at, &failed.fault, Trial::First)
                }
                LlmFact::Failed(_) | LlmFact::CircuitOpened(_) | LlmFact::CircuitClosed(_) => {
                    return;
                }
            };
            let code = fault.code.as_str().into();
            *pause = Some(Pause { until, code, trial });
            return;
        }
        match fact {
            LlmFact::Retried(retried) => {
                self.step = Step::BackingOff {
                    attempt: retried.attempt,
                    tries: (self.tries() + tried).saturating_sub(1),
                    until: retried.not_before,
                    code: retried.fault.code.as_str().into(),
                    trial: Trial::after(&retried.fault),
                };
            }
            // The next model is asked at once, or when the pause of the session ends.
            LlmFact::FailedOver(failed) => {
                self.set_model(&failed.to);
                self.step = Step::BackingOff {
                    attempt: failed.attempt,
                    tries: 0,
                    until: at,
                    code: failed.fault.code.as_str().into(),
                    trial: Trial::First,
                };
            }
            LlmFact::Failed(_) | LlmFact::CircuitOpened(_) | LlmFact::CircuitClosed(_) => {}
        }
    }

    /// A try failed, and the same model is asked again: how many tries that was.
    fn failed_before(&mut self, fault: &Fault, at: Timestamp) -> u32 {
        match fault.class {
            // Nothing was sent.
            FaultClass::Overloaded { .. } => {
                self.refusals.add(at);
                0
            }
            FaultClass::Retryable { .. }
            | FaultClass::Permanent
            | FaultClass::Cancelled
            | FaultClass::Bug => {
                self.refusals = Refusals::default();
                self.repeats = Some(Arc::new(fault.clone()));
                1
            }
        }
    }

    /// Another call, or another model.
    pub(super) fn begins_anew(&mut self) {
        self.refusals = Refusals::default();
        self.repeats = None;
    }

    pub(super) fn tries(&self) -> u32 {
        match self.step {
            Step::Calling { tries, .. }
            | Step::BackingOff { tries, .. }
            | Step::Compacting { tries, .. } => tries,
            Step::Preparing
            | Step::Doubting { .. }
            | Step::Ready
            | Step::Tools { .. }
            | Step::Delegating { .. }
            | Step::Ending { .. } => 0,
        }
    }
}
