//! What people do to a running query (spec 8, "Commands while a query runs").

use super::{
    calls,
    draft::Draft,
    effect::{CallToken, Decision, Effect, Reply},
    input::Refusal,
    phase::{CallState, Step},
    restart,
};
use crate::model::{
    CallId, ForcedBy, Limits, Outcome,
    record::{ApprovalVerdict, BudgetSet, ControlFact, Noted, Steered},
};

/// The running query is taken back: what it waits for is dropped, what it has is kept.
pub(super) fn cancel_running(mut draft: Draft<'_>) -> Decision {
    draft.emit_query(ControlFact::Cancelled(Noted {}));
    abort(&mut draft);
    draft.finish(Outcome::Cancelled)
}

/// The running query ends with what there is.
pub(super) fn finish_now(mut draft: Draft<'_>) -> Decision {
    draft.emit_query(ControlFact::Finished(Noted {}));
    abort(&mut draft);
    draft.force(ForcedBy::Operator)
}

/// The supervisor counted more than the budget allows: it ends, without trusting the session.
pub(super) fn budget_violated(mut draft: Draft<'_>, detail: String) -> Decision {
    abort(&mut draft);
    draft.fail("budget_violated", detail)
}

/// Drops the model call or child that the query waits for; calls are dropped at its end.
pub(super) fn abort(draft: &mut Draft<'_>) {
    match draft.query.step.clone() {
        Step::Calling { attempt, .. } => {
            let token = CallToken {
                query: draft.query.id,
                turn: draft.query.turn,
                attempt,
            };
            draft.effect(Effect::AbortModel { token });
        }
        Step::Delegating { child, .. } => draft.effect(Effect::CancelChild { child }),
        Step::Preparing | Step::Ready | Step::BackingOff { .. } | Step::Tools { .. } => {}
    }
}

/// Words for the running query; they go in before its next call.
pub(super) fn steer(mut draft: Draft<'_>, steered: Steered) -> Decision {
    let query = draft.query.id;
    draft.emit_query(ControlFact::Steered(steered));
    Decision {
        reply: Reply::Query { query },
        ..draft.wait()
    }
}

/// It goes on. The draft is made from the session as it will be: no longer paused.
pub(super) fn resume(draft: Draft<'_>) -> Decision {
    match draft.query.step.clone() {
        // What these wait for was not stopped by the pause.
        Step::Preparing | Step::Calling { .. } | Step::Delegating { .. } => draft.wait(),
        // Its end may have come during the pause, and then nothing was asked.
        Step::Ready | Step::BackingOff { .. } => restart::owed(draft),
        Step::Tools { .. } => calls::go_on(draft),
    }
}

/// Other limits. Below what is spent, the next check before a turn ends the query.
pub(super) fn set_budget(mut draft: Draft<'_>, limits: Limits) -> Decision {
    draft.emit_query(ControlFact::BudgetSet(BudgetSet { limits }));
    draft.wait()
}

/// A person's word on a call.
pub(super) fn answer_approval(
    draft: Draft<'_>,
    call: CallId,
    verdict: ApprovalVerdict,
) -> Result<Decision, Refusal> {
    match draft.query.step.slot(&call).map(|slot| &slot.state) {
        Some(CallState::AwaitingApproval) => Ok(calls::approval(draft, call, verdict)),
        Some(CallState::Waiting | CallState::Running | CallState::Done(_)) | None => {
            Err(Refusal::NotWaiting { call })
        }
    }
}
