//! Commands of operators and users during a query.

use super::{
    delegation,
    draft::Draft,
    effect::{Decision, Effect},
    input::Refusal,
    phase::{CallState, Step},
    retry,
};
use crate::model::{
    ApprovalToken, By, CallId, Limits,
    record::{AgentFact, BudgetSet, ChildCancel, ControlFact, Ending},
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
    draft.conclude(ending)
}

/// A limit below what is spent ends the query before its next call.
pub(super) fn set_budget(mut draft: Draft<'_>, limits: Limits, by: By) -> Decision {
    // A parent repeats its order after a restart.
    if by == By::oracle() && limits == draft.query.limits {
        return draft.wait();
    }
    draft.emit_query(ControlFact::BudgetSet(BudgetSet { limits, by }));
    match draft.query.step {
        Step::Delegating { .. } => delegation::follow(draft),
        _ => draft.wait(),
    }
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
