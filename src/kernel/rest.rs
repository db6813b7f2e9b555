//! A session that leaves memory and comes back, or is set aside and let go on (spec 10).
//!
//! Leaving memory is no fault: what comes back from there goes on where it stood. A session that
//! comes back with a query and had not left in order was cut off, which is counted
//! like the death of a process unless what cut it off is known to be no fault ([`Absence`]).

use super::{
    effect::Decision,
    input::Moment,
    phase::Step,
    query::Query,
    retry,
    session::{Phase, Session},
};
use crate::model::{
    By,
    record::{ControlFact, Noted, Quarantined, RestartCause, SessionFact},
};

/// A session that was set aside.
#[derive(Debug, Clone, PartialEq)]
pub struct SetAside {
    /// Why.
    pub reason: String,
    /// The query that ran; it goes on when the session is released.
    pub before: Option<Box<Query>>,
}

/// Where a session was that had not left memory in order.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Absence {
    /// It ended with its process.
    Process,
    /// It ended with the supervisor's arm that it lived under, and was not what that died of.
    Shard,
    /// It was kept from its work by what its query has no part in, such as a journal that was down.
    Excused,
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
                step @ Step::Tools { .. } => !step.runs_calls(),
                // What leads to a call is let go in a pause, and prepared again afterwards.
                Step::Preparing => self.is_paused(),
                _ => false,
            },
        }
    }

    /// It leaves memory in order. What is in flight is dropped and owed when it comes back; what a call has
    /// used until now is recorded.
    #[must_use]
    pub fn leave(&self, now: Moment) -> Decision {
        let mut decision = self.draft(now).map_or_else(Decision::nothing, |mut draft| {
            retry::count_cut_off(&mut draft);
            draft.wait()
        });
        let passivated = self.note(SessionFact::Passivated(Noted {}), now);
        decision.records.extend(passivated.records);
        decision
    }

    /// It is back in memory, as `replay` has made it: what has to be recorded of that. [`Self::resume`]
    /// says what is owed afterwards.
    #[must_use]
    pub fn awake(&self, absence: Absence, now: Moment) -> Decision {
        if self.has_left() {
            return self.revived(now);
        }
        let detail = match absence {
            Absence::Process => "the process ended while the query was running",
            Absence::Shard => "its shard ended while the query was running",
            Absence::Excused => return Decision::nothing(),
        };
        self.restarted(RestartCause::ProcessDeath, detail.to_owned(), now)
    }

    /// It is back in memory: the least that can be recorded of that.
    #[must_use]
    pub fn revived(&self, now: Moment) -> Decision {
        self.note(SessionFact::Revived(Noted {}), now)
    }

    /// An operator lets it go on.
    pub(super) fn release(&self, by: By, now: Moment) -> Decision {
        if matches!(self.phase(), Phase::Quarantined(_)) {
            let mut released = self.note(ControlFact::Released(by.into()), now);
            let goes_on = self.note(SessionFact::Released(Noted {}), now);
            released.records.extend(goes_on.records);
            self.and_owed(released, now)
        } else {
            Decision::nothing()
        }
    }
}
