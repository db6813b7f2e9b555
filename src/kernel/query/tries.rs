//! How often a call was tried, and how that went.

use std::{sync::Arc, time::Duration};

use super::Query;
use crate::{
    kernel::phase::{Pause, Step},
    model::{Fault, FaultClass, Timestamp, record::LlmFact},
};

/// Refusals of one kind in a row, of one model in one turn. They use up no try, but the patience.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(in crate::kernel) struct Refusals {
    pub count: u32,
    /// Whether the server was away.
    pub outage: bool,
    /// When the first one came.
    pub since: Option<Timestamp>,
}

impl Refusals {
    /// One more. Another kind begins anew.
    fn add(&mut self, at: Timestamp, outage: bool) {
        *self = self.of(outage);
        self.count = self.count.saturating_add(1);
        self.since.get_or_insert(at);
    }

    /// Those of this kind; none where the last ones were of the other.
    pub(in crate::kernel) fn of(self, outage: bool) -> Self {
        let none = Self {
            outage,
            ..Self::default()
        };
        if self.outage == outage { self } else { none }
    }

    /// For how long those of this kind have gone on.
    pub(in crate::kernel) fn lasting(self, now: Timestamp, outage: bool) -> Duration {
        let since = self.of(outage).since;
        since.map_or(Duration::ZERO, |since| now.since(since))
    }
}

impl Query {
    pub(super) fn evolve_llm(&mut self, fact: &LlmFact, at: Timestamp) {
        match fact {
            LlmFact::Retried(retried) => {
                self.usage += retried.usage;
                self.in_flight = false;
                let tried = self.failed_before(&retried.fault, at);
                let code: Arc<str> = retried.fault.code.as_str().into();
                let until = retried.not_before;
                if let Step::Compacting { tries, pause, .. } = &mut self.step {
                    *tries = (*tries + tried).saturating_sub(1);
                    *pause = Some(Pause { until, code });
                    return;
                }
                self.step = Step::BackingOff {
                    attempt: retried.attempt,
                    tries: (self.tries() + tried).saturating_sub(1),
                    until,
                    code,
                };
            }
            // The next model is asked at once, or when the pause of the session ends.
            LlmFact::FailedOver(failed) => {
                self.usage += failed.usage;
                self.in_flight = false;
                self.begins_anew();
                // What another model counts says nothing of the first one's tokens.
                self.sent = None;
                let code: Arc<str> = failed.fault.code.as_str().into();
                if let Step::Compacting { what, tries, pause } = &mut self.step {
                    Arc::make_mut(what).model.clone_from(&failed.to);
                    *tries = 0;
                    *pause = Some(Pause { until: at, code });
                    return;
                }
                self.set_model(&failed.to);
                self.unsignalled = false;
                self.step = Step::BackingOff {
                    attempt: failed.attempt,
                    tries: 0,
                    until: at,
                    code,
                };
            }
            LlmFact::Failed(failed) => {
                self.usage += failed.usage;
                self.in_flight = false;
            }
            LlmFact::Waiting(_) => self.waits = true,
            LlmFact::Admitted(_) => self.waits = false,
            // Of a provider, not of a query.
            _ => {}
        }
    }

    /// A try failed, and the same model is asked again: how many tries that was.
    fn failed_before(&mut self, fault: &Fault, at: Timestamp) -> u32 {
        match fault.class {
            // Nothing was worked on.
            FaultClass::Overloaded { .. } | FaultClass::Unavailable { .. } => {
                self.refusals.add(at, fault.is_outage());
                0
            }
            FaultClass::Retryable { .. }
            | FaultClass::Permanent
            | FaultClass::Cancelled
            | FaultClass::Bug => {
                self.refusals = Refusals::default();
                1
            }
        }
    }

    /// Another call, or another model.
    pub(super) fn begins_anew(&mut self) {
        self.refusals = Refusals::default();
    }

    pub(super) fn tries(&self) -> u32 {
        match self.step {
            Step::Calling { tries, .. }
            | Step::BackingOff { tries, .. }
            | Step::Compacting { tries, .. } => tries,
            _ => 0,
        }
    }
}
