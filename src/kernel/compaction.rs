//! Compaction: a summary takes the place of earlier messages, before the next turn (spec 6, 8).
//!
//! It is not a turn, but what it costs counts. At most [`MOST`] are made in a query, of the part that
//! holds more: what was before the query, or its own earlier turns. Where no summary is to be had, the
//! turn begins without if the conversation still fits.
//!
//! **Invariant:** while one is made the conversation does not change, so the messages that a record
//! names are those that the summary stands for; only the answer to the last try is taken.

use std::sync::Arc;

use crate::model::{
    Attempt, Fault, Reply, StopReason, Turn, Usage,
    record::{
        AmountBudget, BudgetFact, Compacted, Compacting, CompactionFailed, FailedOver, LlmFact,
        Retried, TurnRestartCause,
    },
};

use super::{
    context,
    draft::Draft,
    effect::{CallToken, Decision, Effect},
    guard,
    history::chars,
    phase::Step,
    retry, turn_end,
};

mod choice;
mod rendering;

use choice::{Choice, Sizes};
pub(super) use rendering::quoted_as_data;

/// Compactions of one query.
const MOST: u32 = 2;
/// A summary takes at most one part in so many of the window,
const SHARE: u64 = 10;
/// and tokens within these bounds.
const SUMMARY: (u64, u64) = (64, 2_000);
/// Code of the fault of a provider that found a conversation too long.
pub(super) const TOO_LONG: &str = "context";

/// A compaction that is to be made.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Plan {
    choice: Choice,
    /// The model to be asked.
    model: String,
    before: AmountBudget,
}

/// What is to be done before a turn that would use so much; nothing if it is too early or of no use.
pub(super) fn due(draft: &Draft<'_>, used: AmountBudget) -> Option<Plan> {
    let threshold = context::threshold(draft.policy(), used.limit);
    let model = &draft.policy().model(0)?.name;
    (used.used >= threshold)
        .then(|| plan(draft, used, model))
        .flatten()
}

/// What is to be done where the provider found the running turn's call too long. What is known of the window
/// is wrong then: what was sent is taken for the most that fits.
pub(super) fn instead_of_failing(draft: &Draft<'_>, fault: &Fault) -> Option<Plan> {
    if fault.code != TOO_LONG {
        return None;
    }
    let model = &draft.query.model;
    let sent = context::estimate(draft, &[]);
    let used = draft.session.calibration().applied_to(sent);
    let known = context::window(draft.policy(), model);
    let limit = known.map_or(used, |window| window.min(used));
    plan(draft, AmountBudget { used, limit }, model)
}

fn plan(draft: &Draft<'_>, before: AmountBudget, model: &str) -> Option<Plan> {
    let query = &draft.query;
    let failed_just_now = query.uncompacted == Some(query.turns);
    // A final turn is taken whatever is spent; a summary is not.
    if query.compactions >= MOST || failed_just_now || guard::spent(draft).is_some() {
        return None;
    }
    let choice = choice::choose(&draft.transcript(), sizes(draft, before, model))?;
    let model = model.to_owned();
    Some(Plan {
        choice,
        model,
        before,
    })
}

fn sizes(draft: &Draft<'_>, used: AmountBudget, model: &str) -> Sizes {
    let calibration = draft.session.calibration();
    let room = context::room(draft.policy(), model);
    let window = room.map_or(used.limit, |room| room.min(used.limit));
    let summary = (window / SHARE).clamp(SUMMARY.0, SUMMARY.1);
    Sizes {
        window: calibration.chars_of(window),
        summary: calibration.chars_of(summary),
    }
}

/// Asks for a summary before the next turn begins; `guidance` waits for that.
pub(super) fn before_turn(draft: Draft<'_>, plan: Plan, guidance: Vec<String>) -> Decision {
    let what = Compacting {
        guidance,
        ..planned(&draft, plan)
    };
    ask(draft, what)
}

/// Asks for a summary so that the running turn's call can be made again.
pub(super) fn within_turn(draft: Draft<'_>, plan: Plan, attempt: Attempt) -> Decision {
    let what = Compacting {
        turn_attempt: Some(attempt),
        ..planned(&draft, plan)
    };
    ask(draft, what)
}

fn planned(draft: &Draft<'_>, plan: Plan) -> Compacting {
    Compacting {
        number: draft.query.compactions + 1,
        attempt: draft.query.compaction_attempt.next(),
        model: plan.model,
        part: plan.choice.part,
        messages: plan.choice.messages,
        before: plan.before,
        guidance: Vec::new(),
        turn_attempt: None,
        again: None,
    }
}

/// Records that a model is asked, and asks it.
fn ask(mut draft: Draft<'_>, what: Compacting) -> Decision {
    let transcript = draft.transcript();
    let Sizes { window, summary } = sizes(&draft, what.before, &what.model);
    // Room for the instruction, the frame and the reply; less where the estimate has proved wrong.
    let share = if what.turn_attempt.is_some() { 2 } else { 3 };
    let room = window / 4 * share;
    let room = room.saturating_sub(summary + rendering::INSTRUCTION.len());
    let part = transcript.range(what.messages);
    let text = rendering::rendered(part, summary, room);
    let model = what.model.as_str().into();
    let token = token(&draft, what.attempt);
    draft.emit_ahead(BudgetFact::ContextCompacting(what));
    draft.effect(Effect::Compact {
        token,
        model,
        instruction: rendering::INSTRUCTION,
        text: text.into(),
    });
    draft.wait()
}

/// What was tried already, for whoever reads why a query failed.
pub(super) fn made(draft: &Draft<'_>) -> &'static str {
    match draft.query.compactions {
        0 => ", and there is nothing to compact",
        1 => " even compacted",
        _ => " even compacted twice",
    }
}

/// About how many tokens the call for a summary sends.
pub(super) fn tokens_sent(draft: &Draft<'_>, what: &Compacting) -> u64 {
    let part = draft.session.transcript().range(what.messages).iter();
    let part: usize = part.map(|message| chars(&message.parts)).sum();
    ((part + rendering::INSTRUCTION.len()) / 4) as u64
}

/// Which try of a compaction before the next turn.
pub(super) fn token(draft: &Draft<'_>, attempt: Attempt) -> CallToken {
    CallToken {
        query: draft.query.id,
        turn: Turn(draft.query.turns),
        attempt,
    }
}

/// What is being done, and how often the model was asked for it.
fn current(draft: &Draft<'_>) -> Option<(Arc<Compacting>, u32)> {
    match &draft.query.step {
        Step::Compacting { what, tries, .. } => Some((Arc::clone(what), *tries)),
        _ => None,
    }
}

/// A reply is there. One that says nothing is as good as a fault, but for what it cost.
pub(super) fn replied(mut draft: Draft<'_>, reply: Reply) -> Decision {
    let Some((what, _)) = current(&draft) else {
        return Decision::nothing();
    };
    let usage = turn_end::priced(&draft, &what.model, reply.usage);
    let fault = match reply.stop {
        StopReason::Refusal => Some(Fault::permanent(
            "refusal",
            "the model refused to summarise",
        )),
        StopReason::ContentFilter => Some(Fault::permanent(
            "content_filter",
            "the provider's content filter stopped the summary",
        )),
        // Half a summary is one.
        StopReason::EndTurn | StopReason::ToolCalls | StopReason::MaxTokens => None,
    };
    let empty = || Fault::retryable("empty_summary", "the model's summary has no text");
    let summary = match fault {
        Some(fault) => return failed(draft, fault, usage),
        None => match rendering::summary_of(&reply) {
            Some(summary) => summary,
            None => return failed(draft, empty(), usage),
        },
    };
    let count = what.messages.len();
    let most = sizes(&draft, what.before, &what.model).summary;
    let summary = rendering::standing_for(count, &summary, most);
    let gone = draft.session.transcript().range(what.messages);
    let gone: usize = gone.iter().map(|message| chars(&message.parts)).sum();
    let saved = gone.saturating_sub(summary.chars().count()) / 4;
    let saved = draft.session.calibration().applied_to(saved as u64);
    draft.emit_ahead(BudgetFact::ContextCompacted(Compacted {
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
    if draft.session.is_paused() {
        return draft.wait();
    }
    match what.turn_attempt {
        Some(attempt) => retry::again(draft, attempt, too_long()),
        None => guard::begin_turn(draft, Vec::new()),
    }
}

fn too_long() -> TurnRestartCause {
    let code = TOO_LONG.to_owned();
    TurnRestartCause::Fault { code }
}

/// A try failed, and may have been counted all the same.
pub(super) fn try_failed(draft: Draft<'_>, fault: Fault, usage: Usage) -> Decision {
    let Some((what, _)) = current(&draft) else {
        return Decision::nothing();
    };
    let usage = retry::used(&draft, &what.model, &fault, usage);
    failed(draft, fault, usage)
}

/// A try failed: again, the next model, or none.
fn failed(mut draft: Draft<'_>, fault: Fault, usage: Usage) -> Decision {
    let Some((what, tries)) = current(&draft) else {
        return Decision::nothing();
    };
    let attempt = what.attempt;
    if let Some(pause) = retry::pause(&draft, &what.model, &fault, tries) {
        let not_before = draft.now.at.plus(pause);
        let token = token(&draft, attempt);
        draft.emit_ahead(LlmFact::Retried(Retried {
            attempt,
            model: what.model.clone(),
            fault,
            not_before,
            usage,
        }));
        draft.effect(Effect::RetryAt {
            token,
            at: not_before,
        });
        return draft.wait();
    }
    if let Some(next) = draft.policy().after(&what.model) {
        let to = next.name.to_string();
        draft.emit_ahead(LlmFact::FailedOver(FailedOver {
            attempt,
            fault,
            from: what.model.clone(),
            to,
            usage,
        }));
        return retry_due(draft);
    }
    let code = fault.code.clone();
    let detail = fault.detail.clone();
    draft.emit_ahead(BudgetFact::ContextCompactionFailed(CompactionFailed {
        number: what.number,
        attempt,
        fault,
        usage,
    }));
    if draft.session.is_paused() {
        return draft.wait();
    }
    match what.turn_attempt {
        Some(attempt) => {
            let token = token(&draft, attempt);
            let detail = format!(
                "the conversation is too long for the model, and no summary of it was to be had ({code}: {detail})"
            );
            let fault = Fault::permanent(TOO_LONG, detail);
            retry::next_model(draft, token, fault, Usage::default())
        }
        None => guard::begin_turn(draft, Vec::new()),
    }
}

/// A pause before the same again is over, or the next model is to be asked at once. Nothing is asked while
/// the session is paused.
pub(super) fn retry_due(draft: Draft<'_>) -> Decision {
    let Step::Compacting {
        what,
        pause: Some(pause),
        ..
    } = draft.query.step.clone()
    else {
        return draft.wait();
    };
    if draft.session.is_paused() {
        return draft.wait();
    }
    let code = pause.code.to_string();
    again(draft, &what, TurnRestartCause::Fault { code })
}

/// The same once more, as a new try.
pub(super) fn again(draft: Draft<'_>, what: &Compacting, cause: TurnRestartCause) -> Decision {
    let what = Compacting {
        attempt: what.attempt.next(),
        again: Some(cause),
        ..what.clone()
    };
    ask(draft, what)
}
