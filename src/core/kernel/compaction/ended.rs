//! What follows a call for a summary: the summary takes its place, or the call is repeated or given up.

use std::sync::Arc;

use super::{rendering, sizes};
use crate::{
    kernel::{draft::Draft, effect::Decision, guard, history::chars_of, phase::Step, retry},
    model::{
        Fault, FaultCode, Reply, StopReason, Usage,
        record::{BudgetFact, Compacted, Compacting, CompactionFailed, TurnRestartCause},
    },
};

/// A reply without text is a fault whose usage still counts.
pub(in crate::kernel) fn replied(mut draft: Draft<'_>, reply: Reply) -> Decision {
    let Some(what) = current(&draft) else {
        return Decision::nothing();
    };
    let usage = draft.priced(&what.model, reply.usage);
    let summary = match reply.stop {
        StopReason::Refusal => Err(Fault::permanent(
            FaultCode::Refusal,
            "the model refused to summarize",
        )),
        StopReason::ContentFilter => Err(Fault::permanent(
            FaultCode::ContentFilter,
            "the provider's content filter stopped the summary",
        )),
        // A summary that was cut off is accepted.
        _ => rendering::summary_of(&reply).ok_or_else(|| {
            Fault::retryable(FaultCode::EmptySummary, "the model's summary has no text")
        }),
    };
    let summary = match summary {
        Ok(summary) => summary,
        Err(fault) => return failed(draft, fault, usage),
    };
    let count = what.messages.len();
    let most = sizes(&draft, what.before, &what.model).summary;
    let part = draft.session.transcript().range(what.messages);
    let summary = rendering::standing_for(count, &summary, most, rendering::source(part));
    let gone = chars_of(part);
    let saved = gone.saturating_sub(summary.chars().count()) / 4;
    let saved = draft.session.calibration.applied_to(saved as u64);
    draft.emit_next_turn(BudgetFact::ContextCompacted(Compacted {
        number: what.number,
        attempt: what.attempt,
        model: reply.model,
        part: what.part,
        messages: what.messages,
        summary,
        usage,
        before: what.before.used,
        after: what.before.used.saturating_sub(saved),
    }));
    if draft.session.paused {
        return draft.wait();
    }
    match what.turn_attempt {
        Some(attempt) => {
            let code = FaultCode::Context;
            retry::again(draft, attempt, TurnRestartCause::Fault { code })
        }
        None => guard::begin_turn(draft, Vec::new()),
    }
}

pub(in crate::kernel) fn try_failed(draft: Draft<'_>, fault: Fault, usage: Usage) -> Decision {
    let usage = retry::used(&draft, &fault, usage);
    failed(draft, fault, usage)
}

fn failed(mut draft: Draft<'_>, fault: Fault, usage: Usage) -> Decision {
    let Some(what) = current(&draft) else {
        return Decision::nothing();
    };
    let token = draft.next_turn_token(what.attempt);
    if let Some(pause) = retry::pause(&draft, &fault) {
        let later = retry::retried(&mut draft, token, fault, pause, usage);
        return draft.wait_for(later);
    }
    if let Some(next) = draft.policy().after(&what.model) {
        return retry::fail_over(draft, token, next, fault, usage);
    }
    let (code, detail) = (fault.code.clone(), fault.detail.clone());
    draft.emit_next_turn(BudgetFact::ContextCompactionFailed(CompactionFailed {
        number: what.number,
        attempt: what.attempt,
        fault,
        usage,
    }));
    if draft.session.paused {
        return draft.wait();
    }
    match what.turn_attempt {
        Some(attempt) => {
            let token = draft.next_turn_token(attempt);
            let detail = format!(
                "the conversation is too long for the model and could not be summarized ({code}: \
                 {detail}): start a new session, or use a model with a larger context window"
            );
            let fault = Fault::permanent(FaultCode::Context, detail);
            retry::next_model(draft, token, fault, Usage::default())
        }
        None => guard::begin_turn(draft, Vec::new()),
    }
}

fn current(draft: &Draft<'_>) -> Option<Arc<Compacting>> {
    match &draft.query.step {
        Step::Compacting { what, .. } => Some(Arc::clone(what)),
        _ => None,
    }
}
