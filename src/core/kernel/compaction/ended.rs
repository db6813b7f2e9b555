//! What follows a call for a summary: the summary takes the place of the messages, the call is
//! repeated, or the oldest messages are removed.

use std::sync::Arc;

use super::{TRIES, is_needed, left, oldest, rendering, sizes};
use crate::{
    kernel::{draft::Draft, effect::Decision, guard, history::chars_of, phase::Step, retry},
    model::{
        Fault, FaultClass, FaultCode, Reply, StopReason, Usage,
        record::{BudgetFact, Compacted, Compacting, CompactionFailed},
    },
};

/// A reply without text is a fault whose usage still counts.
pub(in crate::kernel) fn replied(draft: Draft<'_>, reply: Reply) -> Decision {
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
    match summary {
        Ok(summary) => end(draft, &what, Ok(summary), reply.model, usage),
        Err(fault) => failed(draft, fault, usage),
    }
}

pub(in crate::kernel) fn try_failed(draft: Draft<'_>, mut fault: Fault, usage: Usage) -> Decision {
    let usage = retry::used(&draft, &fault, usage);
    // The deadline was one of the compaction, not of the model.
    if fault.code == FaultCode::TotalTimeout {
        fault.class = FaultClass::Retryable { after_ms: None };
    }
    failed(draft, fault, usage)
}

/// The next model of the chain is preferred for the second try.
fn failed(draft: Draft<'_>, fault: Fault, usage: Usage) -> Decision {
    let Some(what) = current(&draft) else {
        return Decision::nothing();
    };
    let token = draft.next_turn_token(what.attempt);
    let (left, may) = (left(&draft, &what), draft.query.tries() < TRIES);
    if let Some(next) = draft.policy().after(&what.model).filter(|_| may) {
        return retry::fail_over(draft, token, next, fault, usage);
    }
    if let Some(pause) = retry::pause(&draft, &fault).filter(|pause| may && *pause < left) {
        return retry::try_later(draft, token, fault, pause, usage);
    }
    end(draft, &what, Err(fault), what.model.clone(), usage)
}

/// Replaces the messages by their summary or the oldest of them by a note, unless the conversation
/// fits without either.
pub(super) fn end(
    mut draft: Draft<'_>,
    what: &Compacting,
    summary: Result<String, Fault>,
    model: String,
    usage: Usage,
) -> Decision {
    let (number, attempt) = (what.number, what.attempt);
    let most = sizes(&draft, what.before, &what.model).summary;
    let messages = match summary {
        Ok(_) => what.messages,
        Err(_) => oldest(&draft, what, most),
    };
    let part = draft.session.transcript().range(messages);
    let text = rendering::standing_for(part, summary.as_deref().ok(), most);
    let saved = chars_of(part).saturating_sub(text.chars().count()) / 4;
    let saved = draft.session.calibration.applied_to(saved as u64);
    let fact = match summary {
        Err(fault) if !is_needed(&draft, what) => {
            BudgetFact::ContextCompactionFailed(CompactionFailed {
                number,
                attempt,
                fault,
                usage,
            })
        }
        summary => BudgetFact::ContextCompacted(Compacted {
            number,
            attempt,
            model,
            part: what.part,
            messages,
            summary: text,
            cut: summary.err(),
            usage,
            before: what.before.used,
            after: what.before.used.saturating_sub(saved),
        }),
    };
    draft.emit_next_turn(fact);
    match what.turn_attempt {
        Some(_) => retry::due(draft),
        None if draft.session.paused => draft.wait(),
        None => guard::begin_turn(draft, Vec::new()),
    }
}

fn current(draft: &Draft<'_>) -> Option<Arc<Compacting>> {
    match &draft.query.step {
        Step::Compacting { what, .. } => Some(Arc::clone(what)),
        _ => None,
    }
}
