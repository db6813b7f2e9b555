//! Commands of operators and users during a query.

use super::{
    calls, capability, delegation,
    draft::Draft,
    effect::{Decision, Effect},
    inbox,
    input::Refusal,
    phase::{CallState, Step},
    restart, retry,
};
use crate::model::{
    ApprovalToken, By, CallId, FaultCode, ForcedBy, Limits, Outcome,
    command::Author,
    record::{AgentFact, BudgetSet, ChildCancel, ControlFact, Ending, Steered},
};

pub(super) fn cancel_running(mut draft: Draft<'_>, by: By) -> Decision {
    if draft.query.ending().is_some() {
        return draft.wait();
    }
    draft.emit_query(ControlFact::Cancelled(by.into()));
    end(draft, Ending::Cancelled)
}

pub(super) fn finish_now(mut draft: Draft<'_>, by: By) -> Decision {
    if draft.query.ending().is_some() {
        return draft.wait();
    }
    draft.emit_query(ControlFact::Finished(by.into()));
    end(draft, Ending::Finished)
}

/// Ends the query, after its sub-agents if any run. A second call no longer waits for them.
pub(super) fn end(mut draft: Draft<'_>, ending: Ending) -> Decision {
    retry::count_cut_off(&mut draft);
    match draft.query.step.clone() {
        step @ Step::Delegating { .. } => {
            for start in step.running_children() {
                let (child, ending) = (start.child.clone(), ending.clone());
                draft.emit(AgentFact::DelegationCancelled(ChildCancel {
                    child,
                    ending,
                }));
            }
            delegation::cancel(&mut draft);
            return draft.wait();
        }
        Step::Ending { .. } => delegation::cancel(&mut draft),
        Step::Calling { pause: None, .. } | Step::Compacting { pause: None, .. } => {
            draft.effect(Effect::AbortModel);
        }
        _ => {}
    }
    conclude(draft, ending)
}

pub(super) fn conclude(draft: Draft<'_>, ending: Ending) -> Decision {
    match ending {
        Ending::Cancelled => draft.finish(Outcome::Cancelled),
        Ending::Finished => draft.force(ForcedBy::Operator),
        Ending::Failed { code, detail } if code == FaultCode::BudgetViolated => {
            draft.fail(code, detail)
        }
        Ending::Failed { code, detail } => draft.give_up(code, detail),
    }
}

/// Adds text to the running query before its next call. If no call follows, a user's text becomes
/// the next query.
pub(super) fn steer(mut draft: Draft<'_>, steered: Steered) -> Result<Decision, Refusal> {
    if draft.query.ending().is_some() {
        return match steered.author {
            Author::User => inbox::steer_late(draft.session, steered, draft.now),
            Author::Operator => Err(Refusal::NothingRunning),
        };
    }
    let query = draft.query.id;
    draft.emit_query(ControlFact::Steered(steered));
    // New words may make the wait for a tool pointless.
    let decision = match draft.query.step {
        Step::AwaitingGrant(_) => capability::proceed(draft),
        _ => draft.wait(),
    };
    Ok(decision.replying(query))
}

pub(super) fn resume(draft: Draft<'_>) -> Decision {
    match draft.query.step {
        // Nothing is in flight.
        Step::Preparing
        | Step::Ready
        | Step::Calling { pause: Some(_), .. }
        | Step::AwaitingGrant(_)
        | Step::Compacting { pause: Some(_), .. } => restart::owed(draft),
        Step::Tools { .. } => calls::advance(draft),
        Step::Delegating { .. } => delegation::sync_pause(draft),
        // A pause does not stop the other steps.
        _ => draft.wait(),
    }
}

/// A limit below what is spent ends the query before its next turn.
pub(super) fn set_budget(mut draft: Draft<'_>, limits: Limits, by: By) -> Decision {
    draft.emit_query(ControlFact::BudgetSet(BudgetSet { limits, by }));
    draft.wait()
}

/// Checks that an answer is for the call that waits.
pub(super) fn approval_of<'a>(
    draft: Draft<'a>,
    call: &CallId,
    token: &ApprovalToken,
) -> Result<Draft<'a>, Refusal> {
    let slot = draft.query.step.slot(call);
    let waits = slot.filter(|slot| slot.state == CallState::AwaitingApproval);
    let waits = waits.map(|slot| slot.call.approval_token(draft.query.id, draft.query.turn));
    match waits {
        Some(waits) if waits == *token => Ok(draft),
        Some(_) => Err(Refusal::OtherCall(call.clone())),
        None => Err(Refusal::NotWaiting(call.clone())),
    }
}
