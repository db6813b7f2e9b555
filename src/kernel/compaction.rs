//! Compaction: a summary replaces earlier messages before the next turn.
//!
//! It is no turn, but its usage counts. A query compacts at most [`MOST`] times, each time the
//! larger part: what precedes the query, or its own earlier turns. If no summary can be made, the
//! turn starts as long as the conversation fits.
//!
//! **Invariant:** the conversation does not change during a compaction, so the message range in its
//! record stays valid. Only the reply to the latest try is accepted.

use std::sync::Arc;

use crate::model::{
    Fault, FaultCode, Reply, Role, StopReason, Usage,
    record::{
        AmountBudget, BudgetFact, Compacted, CompactedPart, Compacting, CompactionFailed,
        MessageRange, TurnRestartCause,
    },
};

use super::{
    context,
    draft::Draft,
    effect::{Decision, Effect},
    guard,
    history::{Transcript, chars_of},
    phase::Step,
    retry, turn_end,
};

mod rendering;

pub(super) use rendering::quoted_as_data;

const MOST: u32 = 2;
/// A summary takes at most 1 / `SHARE` of the window.
const SHARE: u64 = 10;
/// Bounds of a summary, in tokens.
const SUMMARY: (u64, u64) = (64, 2_000);

pub(super) fn due(draft: &Draft<'_>, used: AmountBudget) -> Option<Compacting> {
    let threshold = context::threshold(draft.policy(), used.limit);
    let model = &draft.policy().model()?.name;
    (used.used >= threshold).then(|| plan(draft, used, model))?
}

/// Plans the compaction that the question asks for, before its first turn.
pub(super) fn requested(draft: &Draft<'_>, estimate: u64) -> Option<Compacting> {
    let query = &draft.query;
    if !query.options().compact || query.turns > 0 || query.compactions > 0 {
        return None;
    }
    let model = &draft.policy().model()?.name;
    let used = draft.session.calibration.applied_to(estimate);
    // Without a known window, assumes one that the request for the summary fits into.
    let limit = used.saturating_add(used / 2);
    let window = context::window(draft.policy(), model);
    let limit = window.map_or(limit, |window| window.min(limit));
    plan(draft, AmountBudget { used, limit }, model)
}

/// Plans a compaction when the provider rejects the call as too long. The configured window is
/// wrong then, so the size of the rejected call is taken as the window.
pub(super) fn instead_of_failing(draft: &Draft<'_>, fault: &Fault) -> Option<Compacting> {
    if fault.code != FaultCode::Context {
        return None;
    }
    let model = &draft.query.model;
    let sent = context::estimate(draft, &[]);
    let used = draft.session.calibration.applied_to(sent);
    let known = context::window(draft.policy(), model);
    let limit = known.map_or(used, |window| window.min(used));
    plan(draft, AmountBudget { used, limit }, model)
}

fn plan(draft: &Draft<'_>, before: AmountBudget, model: &str) -> Option<Compacting> {
    let query = &draft.query;
    let failed_just_now = query.uncompacted == Some(query.turns);
    // A final turn takes place although a budget is spent; a compaction does not.
    if query.compactions >= MOST || failed_just_now || guard::spent(draft).is_some() {
        return None;
    }
    let (part, messages) = choose(&draft.transcript, sizes(draft, before, model))?;
    Some(Compacting {
        number: query.compactions + 1,
        attempt: query.compaction_attempt.next(),
        model: model.to_owned(),
        part,
        messages,
        before,
        guidance: Vec::new(),
        turn_attempt: None,
        again: None,
    })
}

fn sizes(draft: &Draft<'_>, used: AmountBudget, model: &str) -> Sizes {
    let calibration = draft.session.calibration;
    let room = context::room(draft.policy(), model);
    let window = room.map_or(used.limit, |room| room.min(used.limit));
    let summary = (window / SHARE).clamp(SUMMARY.0, SUMMARY.1);
    Sizes {
        window: calibration.chars_of(window),
        summary: calibration.chars_of(summary),
    }
}

pub(super) fn begin(mut draft: Draft<'_>, what: Compacting) -> Decision {
    let Sizes { window, summary } = sizes(&draft, what.before, &what.model);
    // Leaves room for the instruction, the frame and the reply, and more after a wrong estimate.
    let share = if what.turn_attempt.is_some() { 2 } else { 3 };
    let room = window / 4 * share;
    let room = room.saturating_sub(summary + rendering::INSTRUCTION.len());
    let part = draft.transcript.range(what.messages);
    let text = rendering::rendered(part, summary, room);
    let model = what.model.as_str().into();
    let token = draft.next_turn_token(what.attempt);
    draft.emit_next_turn(BudgetFact::ContextCompacting(what));
    draft.wait_for(Effect::Compact {
        token,
        model,
        instruction: rendering::INSTRUCTION,
        text: text.into(),
    })
}

pub(super) fn made(draft: &Draft<'_>) -> &'static str {
    match draft.query.compactions {
        0 => ", and there is nothing to compact",
        1 => " even compacted",
        _ => " even compacted twice",
    }
}

pub(super) fn tokens_sent(draft: &Draft<'_>, what: &Compacting) -> u64 {
    let part = chars_of(draft.session.transcript().range(what.messages));
    ((part + rendering::INSTRUCTION.len()) / 4) as u64
}

fn current(draft: &Draft<'_>) -> Option<Arc<Compacting>> {
    match &draft.query.step {
        Step::Compacting { what, .. } => Some(Arc::clone(what)),
        _ => None,
    }
}

/// A reply without text is a fault whose usage still counts.
pub(super) fn replied(mut draft: Draft<'_>, reply: Reply) -> Decision {
    let Some(what) = current(&draft) else {
        return Decision::nothing();
    };
    let usage = turn_end::priced(&draft, &what.model, reply.usage);
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

pub(super) fn try_failed(draft: Draft<'_>, fault: Fault, usage: Usage) -> Decision {
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

pub(super) fn again(draft: Draft<'_>, what: &Compacting, cause: TurnRestartCause) -> Decision {
    let what = Compacting {
        attempt: what.attempt.next(),
        again: Some(cause),
        ..what.clone()
    };
    begin(draft, what)
}

/// Sizes in characters.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Sizes {
    window: usize,
    summary: usize,
}

fn choose(transcript: &Transcript, sizes: Sizes) -> Option<(CompactedPart, MessageRange)> {
    let to = transcript.query_start();
    let history = MessageRange { from: 0, to };
    let query = earlier_turns(transcript, sizes.window / KEPT);
    let parts = [
        (CompactedPart::History, history),
        (CompactedPart::Query, query),
    ];
    let worth = sizes.summary.saturating_mul(2);
    let sized = parts.map(|(part, range)| (chars_of(transcript.range(range)), part, range));
    let worthy = sized.into_iter().filter(|(size, ..)| *size > worth);
    let best = worthy.reduce(|best, next| if next.0 > best.0 { next } else { best });
    best.map(|(_, part, messages)| (part, messages))
}

/// Earlier turns stay with the last one while all take at most 1 / `KEPT` of the window.
const KEPT: usize = 5;

fn earlier_turns(transcript: &Transcript, kept: usize) -> MessageRange {
    let messages = transcript.messages();
    let size = |from, to| chars_of(transcript.range(MessageRange { from, to }));
    let from = transcript.query_start() + 1;
    let is_reply = |at: &usize| messages[*at].role == Role::Assistant;
    let mut replies = (from..messages.len()).rev().filter(is_reply);
    let Some(mut to) = replies.next() else {
        return MessageRange { from, to: from };
    };
    let mut held = size(to, messages.len());
    for at in replies {
        held += size(at, to);
        if held > kept {
            break;
        }
        to = at;
    }
    MessageRange { from, to }
}
