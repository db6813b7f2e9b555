//! What follows a `need_capability`: tools that serve it are added or named, and the query may
//! wait until an operator grants one.

use super::{
    draft::Draft,
    effect::{Decision, Effect},
    guard, guidance, offer,
    phase::Step,
    policy::Policy,
    session::Session,
};
use crate::model::{
    Attempt, SignalFields, Timestamp,
    record::{AgentFact, CapabilityRequested},
};

/// Identifies the deadline of a wait; attempts of calls begin with 1.
pub(super) const WAIT: Attempt = Attempt(0);

pub(super) fn requested(mut draft: Draft<'_>, mut notes: Vec<String>) -> Decision {
    let Some(SignalFields::NeedCapability(wish)) = draft.query.signal_fields().cloned() else {
        return guard::begin_turn(draft, notes);
    };
    let (found, grantable) = offer::serving(&draft, &wish);
    let wait = draft.policy().grant_wait;
    let waits = found.is_empty() && !grantable.is_empty() && !wait.is_zero();
    let mut asked = CapabilityRequested {
        wish,
        grantable,
        until: waits.then(|| draft.now.at.plus(wait)),
        guidance: Vec::new(),
    };
    if let Some(at) = asked.until {
        asked.guidance = notes;
        draft.emit(AgentFact::CapabilityRequested(asked));
        let token = draft.token(WAIT);
        return draft.wait_for(Effect::RetryAt { token, at });
    }
    notes.push(match found.is_empty() {
        true => not_available(&draft, &asked),
        false => guidance::added_tools(&asked.wish, &found),
    });
    draft.emit(AgentFact::CapabilityRequested(asked));
    if !found.is_empty() {
        offer::add(&mut draft, found);
    }
    guard::begin_turn(draft, notes)
}

fn not_available(draft: &Draft<'_>, asked: &CapabilityRequested) -> String {
    let tools = draft.query.tools(draft.policy());
    guidance::available_tools(&asked.wish, &tools, &asked.grantable)
}

/// Ends the wait: the tool was granted, the deadline has passed, or somebody steered the query.
pub(super) fn proceed(draft: Draft<'_>) -> Decision {
    let Step::AwaitingGrant(asked) = &draft.query.step else {
        return draft.wait();
    };
    if draft.session.is_paused() {
        return draft.wait();
    }
    let notes = match is_granted(asked, draft.policy()) {
        // A message about the new tool is there.
        true => Vec::new(),
        false => vec![not_available(&draft, asked)],
    };
    guard::begin_turn(draft, notes)
}

/// Continues the wait after a restart or a pause.
pub(super) fn owed(draft: Draft<'_>, asked: &CapabilityRequested) -> Decision {
    match asked.until {
        Some(at) if !is_granted(asked, draft.policy()) && draft.now.at < at => {
            // If the clock was set back, no longer than the whole wait.
            let at = at.min(draft.now.at.plus(draft.policy().grant_wait));
            let token = draft.token(WAIT);
            draft.wait_for(Effect::RetryAt { token, at })
        }
        _ => proceed(draft),
    }
}

fn is_granted(asked: &CapabilityRequested, policy: &Policy) -> bool {
    let mut wanted = asked.grantable.iter();
    wanted.any(|name| policy.tool(name).is_some())
}

impl Session {
    /// The tools of which the running query awaits one, and the end of the wait.
    pub fn awaited_grant(&self) -> Option<(&[String], Timestamp)> {
        match &self.query()?.step {
            Step::AwaitingGrant(asked) => Some((&asked.grantable, asked.until?)),
            _ => None,
        }
    }
}
