//! Compaction: a summary replaces earlier messages before the next turn.
//!
//! It is no turn, but its usage counts. A query compacts at most [`MOST`] times, each time the
//! larger part: what precedes the query, or its own earlier turns. If no summary is made in
//! [`TRIES`] tries and in [`WITHIN`], the oldest messages of the part are removed instead. Only a
//! compaction that was asked for while the conversation fits removes nothing.
//!
//! **Invariant:** the conversation does not change during a compaction, so the message range in its
//! record stays valid. Only the reply to the latest try is accepted.

use std::{sync::Arc, time::Duration};

use super::{
    context,
    draft::Draft,
    effect::{Decision, Effect},
    history::{Transcript, chars_of},
};
use crate::model::{
    Fault, FaultCode, Message, Role, Span, Usage,
    record::{AmountBudget, BudgetFact, CompactedPart, Compacting, MessageRange, TurnRestartCause},
};

pub(super) mod ended;
mod rendering;

const MOST: u32 = 2;
/// Tries at a summary, by all models together. A call that was refused before any work is none.
const TRIES: u32 = 2;
/// For all tries at a summary, with their pauses, and also if a restart lies between them.
const WITHIN: Duration = Duration::from_secs(30);
/// For the first try, so that one that hangs leaves time for the second.
const FIRST: Duration = Duration::from_secs(20);
/// No try begins with less time.
const LEAST: Duration = Duration::from_secs(3);
/// A summary takes at most 1 / `SHARE` of the window.
const SHARE: u64 = 10;
/// Bounds of a summary, in tokens.
const SUMMARY: (u64, u64) = (64, 2_000);

pub(super) fn due(draft: &Draft<'_>, used: AmountBudget) -> Option<Compacting> {
    let threshold = context::threshold(draft, used.limit);
    let model = &draft.next_model()?.name;
    (used.used >= threshold).then(|| plan(draft, used, model))?
}

/// Plans the compaction that the question asks for, before its first turn.
pub(super) fn requested(draft: &Draft<'_>, estimate: u64) -> Option<Compacting> {
    let query = &draft.query;
    if !query.options().compact || query.turns > 0 || query.compactions > 0 {
        return None;
    }
    let model = &draft.next_model()?.name;
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
    if query.compactions >= MOST {
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
        until: Some(draft.now.at.plus(WITHIN)),
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
    let left = left(&draft, &what);
    draft.emit_by_row(Some(token.turn), BudgetFact::ContextCompacting(what));
    let is_last = draft.query.tries() >= TRIES;
    let within = if is_last { left } else { left.min(FIRST) };
    draft.wait_for(Effect::Compact {
        token,
        model,
        instruction: rendering::INSTRUCTION,
        text: text.into(),
        within,
    })
}

/// What is left of [`WITHIN`]; at most all of it if the clock was set back.
fn left(draft: &Draft<'_>, what: &Compacting) -> Duration {
    let left = what.until.map(|until| until.since(draft.now.at));
    left.map_or(WITHIN, |left| left.min(WITHIN))
}

/// Whether the conversation is too long, and the compaction not only asked for.
fn is_needed(draft: &Draft<'_>, what: &Compacting) -> bool {
    let used = what.before.used;
    let is_full = |window| used >= context::threshold(draft, window);
    what.turn_attempt.is_some()
        || draft
            .next_model()
            .and_then(|model| model.context_window)
            .is_some_and(is_full)
}

/// The oldest messages, as many as bring the next call well below the threshold, beside a note of
/// this length. No result loses its call.
fn oldest(draft: &Draft<'_>, what: &Compacting, note: usize) -> MessageRange {
    let kept = context::threshold(draft, what.before.limit) / 3 * 2;
    let excess = what.before.used.saturating_sub(kept);
    let excess = draft.session.calibration.chars_of(excess) + note;
    let mut gone = 0;
    let is_end = |message: &Arc<Message>| {
        let is_enough = gone >= excess && message.role != Role::Tool;
        gone += chars_of([message]);
        is_enough
    };
    let part = draft.session.transcript().range(what.messages);
    let MessageRange { from, to } = what.messages;
    let to = part.iter().position(is_end).map_or(to, |end| from + end);
    MessageRange { from, to }
}

pub(super) fn made(draft: &Draft<'_>) -> &'static str {
    match draft.query.compactions {
        _ if draft.query.cuts > 0 => {
            " even without its oldest messages, of which no summary could be made"
        }
        0 => ", and there is nothing to compact",
        1 => " even compacted",
        _ => " even compacted twice",
    }
}

pub(super) fn tokens_sent(draft: &Draft<'_>, what: &Compacting) -> u64 {
    let part = chars_of(draft.session.transcript().range(what.messages));
    ((part + rendering::INSTRUCTION.len()) / 4) as u64
}

pub(super) fn again(draft: Draft<'_>, what: &Compacting, cause: TurnRestartCause) -> Decision {
    if left(&draft, what) < LEAST {
        let detail = format!("no summary was made within {}", Span(WITHIN));
        let fault = Fault::permanent(FaultCode::TotalTimeout, detail);
        return ended::end(
            draft,
            what,
            Err(fault),
            what.model.clone(),
            Usage::default(),
        );
    }
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
    let from = transcript.after_question();
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
