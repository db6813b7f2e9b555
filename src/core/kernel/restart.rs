//! Passivation, quarantine, restarts and recovery, and the effects that a recovered state still
//! owes.
//!
//! Passivation is no fault. If a session recovers with a query and was not passivated, its process
//! died. A query that only waited for a person is not to blame for that.

use super::{
    calls, capability, control, delegation,
    draft::Draft,
    effect::{BegunQuery, CallToken, Decision, Effect},
    guard,
    input::DecisionContext,
    phase::{CallState, Pause, Step},
    retry,
    session::{Phase, Session},
    turn_end,
};
use crate::model::{
    By, FaultCode,
    record::{
        ControlFact, Ending, Noted, RestartCause, Restarted, SessionFact, SupervisorFact,
        TurnRestartCause,
    },
};

impl Session {
    /// Whether the session may be passivated: nothing is in flight, except pending approvals.
    pub fn may_passivate(&self) -> bool {
        match &self.phase {
            Phase::Idle | Phase::Quarantined(_) => true,
            Phase::Running(query) => match &query.step {
                Step::Ready => true,
                step @ Step::Tools { .. } => !step.has(&CallState::Running),
                // Left by a failed append; prepared at the next activation.
                Step::Preparing => self.paused,
                _ => false,
            },
        }
    }

    /// Whether a query waits for a person alone, to approve a call or end a pause, or for the results
    /// of the caller's own tools.
    pub fn waits_for_a_person(&self) -> bool {
        self.may_passivate() && self.state().awaits_person()
    }

    /// Passivates the session. Records the usage of calls in flight, which are repeated after
    /// recovery.
    pub fn leave(&self, now: DecisionContext) -> Decision {
        let decision = self.draft(now).map_or_else(Decision::nothing, |mut draft| {
            retry::count_cut_off(&mut draft);
            draft.wait()
        });
        decision.and(self.note(SessionFact::Passivated(Noted {}), now))
    }

    /// Returns the records of a recovery, after the replay. [`Self::resume`] returns the effects
    /// that are owed.
    pub fn awake(&self, now: DecisionContext) -> Decision {
        if self.has_left || self.waits_for_a_person() || self.awaited_grant().is_some() {
            return self.revived(now);
        }
        let detail = "the process ended while the query was running";
        self.draft(now).map_or_else(Decision::nothing, |draft| {
            restarted(draft, RestartCause::ProcessDeath, detail.to_owned())
        })
    }

    /// Returns the smallest record of a recovery.
    pub fn revived(&self, now: DecisionContext) -> Decision {
        self.note(SessionFact::Revived(Noted {}), now)
    }

    pub(super) fn release(&self, by: By, now: DecisionContext) -> Decision {
        if !matches!(self.phase, Phase::Quarantined(_)) {
            return Decision::nothing();
        }
        let released = self.note(ControlFact::Released(by.into()), now);
        let released = released.and(self.note(SessionFact::Released(Noted {}), now));
        self.and_then(released, now, owed)
    }
}

/// Counts a restart, and ends the query at the limit. Owed effects follow once the count is
/// durable, because they may be what crashes the session.
pub(super) fn restarted(mut draft: Draft<'_>, cause: RestartCause, detail: String) -> Decision {
    let policy = draft.policy().restarts;
    let (before, limit, code) = match cause {
        RestartCause::Crash => (draft.query.crashes, policy.crashes, FaultCode::Crash),
        RestartCause::Stall => (draft.query.crashes, policy.crashes, FaultCode::Stall),
        RestartCause::ProcessDeath => {
            let deaths = draft.query.process_deaths;
            (deaths, policy.process_deaths, FaultCode::ProcessDeath)
        }
    };
    let count = before + 1;
    let seen = detail.clone();
    draft.emit(SupervisorFact::Restarted(Restarted {
        cause,
        count,
        detail,
    }));
    if count >= limit {
        let detail = format!("restarted {count} times, which is the limit; last cause: {seen}");
        return control::end(draft, Ending::Failed { code, detail });
    }
    draft.wait()
}

/// Continues a back-off, at most for its length: the clock may have been set back.
fn continue_pause(draft: Draft<'_>, token: CallToken, pause: &Pause) -> Decision {
    let at = pause.until.min(draft.now.at.plus(pause.length));
    draft.wait_for(Effect::RetryAt { token, at })
}

pub(super) fn owed(mut draft: Draft<'_>) -> Decision {
    let query = draft.query.id;
    retry::count_cut_off(&mut draft);
    match draft.query.step.clone() {
        Step::Preparing => {
            let text = draft.query.text.clone();
            let previous = draft.session.last_question.clone();
            let is_task = draft.query.options().is_task;
            draft.wait_for(Effect::Prepare(BegunQuery {
                query,
                text,
                previous,
                is_task,
            }))
        }
        Step::Ready if draft.session.paused => draft.wait(),
        Step::Ready if !draft.query.delegated.is_empty() => delegation::advance(draft),
        Step::Ready => guard::begin_turn(draft, Vec::new()),
        Step::Calling { pause, .. } | Step::Compacting { pause, .. } => {
            match pause.zip(draft.query.token()) {
                Some((pause, token)) => continue_pause(draft, token, &pause),
                None => retry::repeat(draft, TurnRestartCause::Recovery),
            }
        }
        Step::Tools { .. } if draft.query.calls_complete() => turn_end::end(draft),
        Step::Tools { .. } => calls::recover(draft),
        Step::AwaitingGrant(asked) => capability::owed(draft, &asked),
        Step::Delegating { .. } => delegation::follow(draft),
        Step::Ending { .. } => {
            delegation::cancel(&mut draft);
            draft.wait()
        }
    }
}

pub(super) fn resume(draft: Draft<'_>) -> Decision {
    match draft.query.step {
        // Nothing is in flight.
        Step::Preparing
        | Step::Ready
        | Step::Calling { pause: Some(_), .. }
        | Step::AwaitingGrant(_)
        | Step::Compacting { pause: Some(_), .. } => owed(draft),
        Step::Tools { .. } => calls::advance(draft),
        Step::Delegating { .. } => delegation::sync_pause(draft),
        // A pause does not stop the other steps.
        _ => draft.wait(),
    }
}
