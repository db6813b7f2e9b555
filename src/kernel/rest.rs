//! A session that leaves memory and comes back, or is set aside and let go on (spec 10).
//!
//! Leaving memory is no fault: what comes back from there goes on where it stood. A session that
//! comes back with a query and had not left in order was cut off with its process, which is counted.

use super::{
    effect::Decision,
    input::Moment,
    phase::Step,
    query::Query,
    session::{Phase, Session},
};
use crate::model::record::{Noted, Quarantined, RestartCause, SessionFact};

/// A session that was set aside.
#[derive(Debug, Clone, PartialEq)]
pub struct SetAside {
    /// Why.
    pub reason: String,
    /// The query that ran; it goes on when the session is released.
    pub before: Option<Box<Query>>,
}

impl Phase {
    /// The same, set aside.
    pub(super) fn set_aside(self, why: &Quarantined) -> Self {
        let before = match self {
            Self::Idle => None,
            Self::Running(query) => Some(query),
            Self::Quarantined(aside) => aside.before,
        };
        let reason = why.reason.clone();
        Self::Quarantined(SetAside { reason, before })
    }

    /// What it was before it was set aside.
    pub(super) fn released(self) -> Self {
        match self {
            Self::Quarantined(aside) => aside.before.map_or(Self::Idle, Self::Running),
            Self::Idle | Self::Running(_) => self,
        }
    }
}

impl Session {
    /// Whether it may leave memory: nothing is in flight, at most a person is waited for.
    #[must_use]
    pub fn may_rest(&self) -> bool {
        match self.phase() {
            Phase::Idle | Phase::Quarantined(_) => true,
            Phase::Running(query) => match query.step() {
                Step::Ready => true,
                step @ Step::Tools { .. } => step.name() == "approval",
                Step::Preparing
                | Step::Calling { .. }
                | Step::BackingOff { .. }
                | Step::Compacting { .. }
                | Step::Delegating { .. }
                | Step::Ending { .. } => false,
            },
        }
    }

    /// It leaves memory in order. What is in flight is dropped and owed when it comes back.
    #[must_use]
    pub fn leave(&self, now: Moment) -> Decision {
        self.note(SessionFact::Passivated(Noted {}), now)
    }

    /// It is back in memory, as `replay` has made it: what has to be recorded of that. [`Self::resume`]
    /// says what is owed afterwards.
    #[must_use]
    pub fn awake(&self, now: Moment) -> Decision {
        if self.has_left() {
            return self.note(SessionFact::Revived(Noted {}), now);
        }
        let detail = "the process ended while the query was running".to_owned();
        self.restarted(RestartCause::ProcessDeath, detail, now)
    }

    /// An operator lets it go on.
    pub(super) fn release(&self, now: Moment) -> Decision {
        if matches!(self.phase(), Phase::Quarantined(_)) {
            self.and_owed(self.note(SessionFact::Released(Noted {}), now), now)
        } else {
            Decision::nothing()
        }
    }
}
