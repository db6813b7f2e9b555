//! What people do to a running query (spec 8, "Commands while a query runs").

use super::{
    calls, compaction, doubt,
    draft::Draft,
    effect::{CallToken, Decision, Effect, Reply},
    inbox,
    input::Refusal,
    phase::{CallState, Step},
    restart, retry,
};
use crate::model::{
    By, CallId, ForcedBy, Limits, Outcome,
    command::Author,
    record::{
        Accepted, AgentFact, ApprovalGiven, ApprovalVerdict, BudgetSet, ChildCancel, ControlFact,
        Ending, Place, Steered,
    },
};

/// Code of a query that went past its budget.
const VIOLATED: &str = "budget_violated";

/// The running query is taken back: what it waits for is dropped, what it has is kept. One that is to
/// end already ends as was decided first.
pub(super) fn cancel_running(mut draft: Draft<'_>, by: By) -> Decision {
    if draft.query.ending().is_some() {
        return draft.wait();
    }
    draft.emit_query(ControlFact::Cancelled(by.into()));
    end(draft, Ending::Cancelled)
}

/// The running query ends with what there is, unless it is to end already.
pub(super) fn finish_now(mut draft: Draft<'_>, by: By) -> Decision {
    if draft.query.ending().is_some() {
        return draft.wait();
    }
    draft.emit_query(ControlFact::Finished(by.into()));
    end(draft, Ending::Finished)
}

/// The supervisor counted more than the budget allows. Nothing is started any more, but a sub-agent's
/// end is waited for here too: it must not run on, and what it used counts. The wait is bounded, and
/// a second violation ends it.
pub(super) fn budget_violated(draft: Draft<'_>, detail: String) -> Decision {
    let code = VIOLATED.to_owned();
    end(draft, Ending::Failed { code, detail })
}

/// The journal takes other records and will not take this query's: it ends, so that the session can go on.
pub(super) fn unwritable(draft: Draft<'_>, detail: String) -> Decision {
    let code = "journal".to_owned();
    end(draft, Ending::Failed { code, detail })
}

/// Ends the query: at once, or when the sub-agent that it waits for has ended. If it waited for that
/// already, it waits no longer.
pub(super) fn end(mut draft: Draft<'_>, ending: Ending) -> Decision {
    let query = draft.query.id;
    retry::count_cut_off(&mut draft);
    match draft.query.step.clone() {
        Step::Delegating { child, .. } => {
            let cancel = ChildCancel {
                child: child.clone(),
                ending,
            };
            draft.emit(AgentFact::DelegationCancelled(cancel));
            draft.effect(Effect::CancelChild { query, child });
            return draft.wait();
        }
        Step::Ending { child, .. } => draft.effect(Effect::CancelChild { query, child }),
        Step::Calling { attempt, .. } => {
            let turn = draft.query.turn;
            let token = CallToken {
                query,
                turn,
                attempt,
            };
            draft.effect(Effect::AbortModel { token });
        }
        Step::Doubting { .. } => {
            let token = doubt::token(&draft);
            draft.effect(Effect::AbortModel { token });
        }
        Step::Compacting {
            what, pause: None, ..
        } => {
            let token = compaction::token(&draft, what.attempt);
            draft.effect(Effect::AbortModel { token });
        }
        // Calls are dropped at the end of the query.
        _ => {}
    }
    conclude(draft, ending)
}

/// Ends the query now.
pub(super) fn conclude(draft: Draft<'_>, ending: Ending) -> Decision {
    match ending {
        Ending::Cancelled => draft.finish(Outcome::Cancelled),
        Ending::Finished => draft.force(ForcedBy::Operator),
        Ending::Failed { code, detail } if code == VIOLATED => draft.fail(&code, detail),
        Ending::Failed { code, detail } => draft.give_up(&code, detail),
    }
}

/// Words for the running query; they go in before its next call. Where there will be none, a user's
/// words become the next query, and there is nobody left to hear an operator's.
pub(super) fn steer(mut draft: Draft<'_>, steered: Steered) -> Result<Decision, Refusal> {
    if draft.query.ending().is_some() {
        return match steered.author {
            Author::User => {
                let accepted = Accepted {
                    text: steered.text,
                    limits: draft.policy().limits,
                    idempotency_key: steered.idempotency_key,
                    continues: None,
                    place: Place::Front,
                };
                let waits = inbox::wait(draft.session, accepted, draft.now)?;
                let late = ControlFact::SteeredLate(steered.by.into());
                let mut records = draft.session.note(late, draft.now).records;
                records.extend(waits.records);
                Ok(Decision { records, ..waits })
            }
            Author::Operator => Err(Refusal::NothingRunning),
        };
    }
    let query = draft.query.id;
    draft.emit_query(ControlFact::Steered(steered));
    Ok(Decision {
        reply: Reply::query(query),
        ..draft.wait()
    })
}

/// It goes on. The draft is made from the session as it will be: no longer paused.
pub(super) fn resume(draft: Draft<'_>) -> Decision {
    match draft.query.step.clone() {
        // What these wait for was not stopped by the pause.
        Step::Doubting { .. }
        | Step::Calling { .. }
        | Step::Compacting { pause: None, .. }
        | Step::Delegating { .. }
        | Step::Ending { .. } => draft.wait(),
        // Its end may have come during the pause, and then nothing was asked.
        Step::Preparing
        | Step::Ready
        | Step::BackingOff { .. }
        | Step::Compacting { pause: Some(_), .. } => restart::owed(draft),
        Step::Tools { .. } => calls::go_on(draft),
    }
}

/// Other limits. Below what is spent, the next check before a turn ends the query.
pub(super) fn set_budget(mut draft: Draft<'_>, limits: Limits, by: By) -> Decision {
    draft.emit_query(ControlFact::BudgetSet(BudgetSet { limits, by }));
    draft.wait()
}

/// A person's word on a call.
pub(super) fn answer_approval(
    mut draft: Draft<'_>,
    call: CallId,
    verdict: ApprovalVerdict,
    by: By,
) -> Result<Decision, Refusal> {
    match draft.query.step.slot(&call).map(|slot| &slot.state) {
        Some(CallState::AwaitingApproval) => {
            draft.emit(ControlFact::ApprovalAnswered(ApprovalGiven {
                call: call.clone(),
                verdict,
                by,
            }));
            Ok(calls::approval(draft, call, verdict))
        }
        Some(CallState::Waiting | CallState::Running | CallState::Done(_)) | None => {
            Err(Refusal::NotWaiting { call })
        }
    }
}
