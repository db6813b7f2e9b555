//! After a restart: what the state reached by replay still owes, and when enough is enough (spec 10).

use super::{
    calls, compaction, control, doubt,
    draft::Draft,
    effect::{CallToken, Decision, Effect},
    guard,
    phase::Step,
    retry, turn_end,
};
use crate::model::record::{Ending, RestartCause, Restarted, SupervisorFact, TurnRestartCause};

/// The supervisor brought the session back: the count of that, and the query's end if it is one too
/// many. What is owed is asked for when the count is durable: it may be what the session dies of.
pub(super) fn restarted(mut draft: Draft<'_>, cause: RestartCause, detail: String) -> Decision {
    let policy = draft.policy().restarts;
    let (count, limit, code) = match cause {
        RestartCause::Crash => (draft.query.crashes + 1, policy.crashes, "crash"),
        RestartCause::Stall => (draft.query.crashes + 1, policy.crashes, "stall"),
        RestartCause::ProcessDeath => (
            draft.query.process_deaths + 1,
            policy.process_deaths,
            "process_death",
        ),
    };
    let seen = detail.clone();
    draft.emit(SupervisorFact::Restarted(Restarted {
        cause,
        count,
        detail,
    }));
    if count >= limit {
        let detail = format!("restarted {count} times, which is the limit; the last time: {seen}");
        let code = code.to_owned();
        return control::end(draft, Ending::Failed { code, detail });
    }
    draft.wait()
}

/// What the phase still owes; asked for again after a replay.
pub(super) fn owed(mut draft: Draft<'_>) -> Decision {
    let query = draft.query.id;
    retry::count_cut_off(&mut draft);
    match draft.query.step.clone() {
        Step::Preparing => {
            let (text, previous) = (draft.query.text.clone(), draft.session.last_question());
            draft.effect(Effect::Prepare {
                query,
                text,
                previous,
            });
            draft.wait()
        }
        Step::Doubting { .. } => doubt::cut_off(draft),
        Step::Ready if draft.session.is_paused() => draft.wait(),
        Step::Ready => guard::begin_turn(draft, Vec::new()),
        Step::Calling { attempt, .. } => {
            // It was not the model that failed.
            retry::again(draft, attempt, TurnRestartCause::Recovery)
        }
        Step::BackingOff { attempt, until, .. } => {
            let token = CallToken {
                query,
                turn: draft.query.turn,
                attempt,
            };
            draft.effect(Effect::RetryAt { token, at: until });
            draft.wait()
        }
        Step::Compacting {
            what, pause: None, ..
        } => compaction::again(draft, &what, TurnRestartCause::Recovery),
        Step::Compacting {
            what,
            pause: Some(pause),
            ..
        } => {
            let token = compaction::token(&draft, what.attempt);
            let at = pause.until;
            draft.effect(Effect::RetryAt { token, at });
            draft.wait()
        }
        Step::Tools { .. } if draft.query.calls_complete() => turn_end::end(draft),
        Step::Tools { .. } => calls::recover(draft),
        Step::Delegating {
            child,
            scope,
            max_tokens,
            max_cost,
        } => {
            draft.effect(Effect::StartChild {
                query,
                child,
                scope,
                max_tokens,
                max_cost,
            });
            draft.wait()
        }
        Step::Ending { child, .. } => {
            draft.effect(Effect::CancelChild { query, child });
            draft.wait()
        }
    }
}
