//! From a reply to what follows it, in the order of spec 8: signal, text, count, loop by reason,
//! calls, loop by tools, fallback, decision.

use std::{borrow::Cow, sync::Arc};

use super::{
    calls::{self, Doomed},
    consult::{Consulted, consult},
    delegation,
    draft::Draft,
    effect::Decision,
    guard, guidance,
    policy::OnMissingSignal,
    repetition::ToolLoop,
    verdict::{DelegationRoom, FallbackDone, Presence, TurnEnd, Verdict},
};
use crate::{
    model::{
        Attempt, ForcedBy, Message, Outcome, QueryType, Reply, Role, SignalFields, StopReason,
        Usage,
        record::{
            AgentFact, CapabilityRequested, LoopDetected, LoopKind, Replied, SignalFact,
            SignalPresence, TurnFact, TurnMode,
        },
    },
    signal::{self, Finding},
};

/// How often a query hears why its signal was not accepted (spec 2).
const REJECTION_NOTES: u32 = 2;

/// With what the call cost by the model's price, unless the reply says so itself.
pub(super) fn priced(draft: &Draft<'_>, model: &str, usage: Usage) -> Usage {
    match draft.policy().price(model) {
        Some(price) if usage.cost.0 == 0 => Usage {
            cost: price.of(&usage),
            ..usage
        },
        Some(_) | None => usage,
    }
}

/// The model's reply is whole.
pub(super) fn replied(mut draft: Draft<'_>, attempt: Attempt, reply: Reply) -> Decision {
    let message = Message {
        role: Role::Assistant,
        parts: calls::told_apart(reply.parts),
    };
    let reading = signal::read(&whole(&message), draft.now.at);
    let cut = reply.stop == StopReason::MaxTokens;
    let finding = if cut {
        Finding::Nothing
    } else {
        reading.finding
    };
    let presence = match &finding {
        Finding::Signal(_) => SignalPresence::Valid,
        Finding::Rejection(_) => SignalPresence::Rejected,
        Finding::Nothing => SignalPresence::Absent,
    };
    let asked = message.calls().cloned().map(Arc::new).collect();
    draft.emit(TurnFact::Replied(Replied {
        attempt,
        message: Arc::new(message),
        text: match draft.query.mode {
            TurnMode::Signal => "".into(),
            TurnMode::Normal | TurnMode::Last | TurnMode::Final => reading.text.into(),
        },
        signal: presence,
        stop: reply.stop,
        usage: priced(&draft, &draft.query.model, reply.usage),
        estimated: draft.now.call.is_uncounted(),
        model: reply.model,
    }));
    match finding {
        Finding::Signal(signal) => draft.emit(SignalFact::Emitted(Arc::new(signal))),
        Finding::Rejection(rejection) => draft.emit(SignalFact::Rejected(rejection)),
        Finding::Nothing => {}
    }
    match reply.stop {
        StopReason::Refusal => return draft.give_up("refusal", "the model refused to answer"),
        StopReason::ContentFilter => {
            return draft.give_up(
                "content_filter",
                "the provider's content filter stopped the reply",
            );
        }
        StopReason::EndTurn | StopReason::ToolCalls | StopReason::MaxTokens => {}
    }
    let looping = draft.query.signals.reason_loop().is_some();
    let doomed = if looping { Doomed::Yes } else { Doomed::No };
    calls::request(&mut draft, asked, doomed);
    if draft.query.calls_complete() {
        end(draft)
    } else {
        draft.wait()
    }
}

/// All text of a reply; most have one piece.
fn whole(message: &Message) -> Cow<'_, str> {
    let mut texts = message.texts();
    match (texts.next(), texts.next()) {
        (None, _) => Cow::Borrowed(""),
        (Some(text), None) => Cow::Borrowed(text),
        (Some(_), Some(_)) => Cow::Owned(message.texts().collect()),
    }
}

/// Every call of the turn has its result.
///
/// While the session is paused, an end of the query is recorded but no turn begins: the turn's end is
/// decided again, from the same state, when it is resumed.
pub(super) fn end(mut draft: Draft<'_>) -> Decision {
    let so_far = draft.session.is_paused().then(|| draft.clone());
    let looped = found_loop(&draft);
    let judged = if looped.is_none() {
        consult(&mut draft)
    } else {
        Consulted::NOT_ASKED
    };
    let turn = turn_end(&draft, looped.is_some(), judged.done);
    let verdict = draft.policy().turn.verdict(&turn);
    let verdict = within_bounds(&turn, deferred(&draft, verdict));
    match (so_far, verdict.ends_the_query()) {
        (Some(paused), false) => paused.wait(),
        (Some(_) | None, _) => apply(draft, verdict, looped, judged),
    }
}

fn apply(
    mut draft: Draft<'_>,
    verdict: Verdict,
    looped: Option<LoopDetected>,
    judged: Consulted,
) -> Decision {
    let mut notes = judged.notes;
    if draft.query.current.stop == Some(StopReason::MaxTokens) {
        notes.push(guidance::CUT.into());
    }
    let rejection = draft.query.current.rejection.clone();
    let rejection = rejection.filter(|_| draft.query.rejections <= REJECTION_NOTES);
    let told_why = rejection.is_some();
    notes.extend(rejection.map(|reason| guidance::rejected(&reason)));
    match verdict {
        Verdict::Answered => draft.finish(Outcome::Answered),
        Verdict::Partial => {
            let outcome = partial(&draft);
            draft.finish(outcome)
        }
        Verdict::Stuck => {
            let outcome = stuck(&draft);
            draft.finish(outcome)
        }
        Verdict::EmptyAnswer => draft.fail("empty_answer", "the model gave no text to answer with"),
        Verdict::ForcedByBudget => guard::force_by_turns(draft),
        Verdict::ForcedByLoop => {
            if let Some(looped) = looped {
                draft.emit(AgentFact::LoopDetected(looped));
            }
            draft.force(ForcedBy::Loop)
        }
        Verdict::Escalated => draft.finish(Outcome::Escalated {
            why: judged.reason.unwrap_or_default(),
        }),
        Verdict::Next => {
            delegation::log(&mut draft);
            guard::begin_turn(draft, notes)
        }
        Verdict::NextWithTools => {
            if let Some(SignalFields::NeedCapability(wish)) = draft.query.signal_fields().cloned() {
                notes.push(guidance::tools_there_are(&wish, &draft.policy().tools));
                draft.emit(AgentFact::CapabilityRequested(CapabilityRequested { wish }));
            }
            guard::begin_turn(draft, notes)
        }
        Verdict::Delegate => delegation::start(draft),
        Verdict::NextWithoutDelegation => {
            delegation::log(&mut draft);
            notes.push(guidance::NO_SUB_AGENT.into());
            guard::begin_turn(draft, notes)
        }
        Verdict::AskForSignal => {
            if !told_why {
                notes.push(guidance::SIGNAL_ALONE.into());
            }
            guard::ask_for_signal(draft, notes)
        }
        Verdict::Remind => {
            if !told_why && notes.is_empty() {
                notes.push(guidance::REMINDER.into());
            }
            guard::begin_turn(draft, notes)
        }
    }
}

/// Replaces a verdict by another turn: a truncated reply is no answer (spec 8), and a model is not asked for its
/// signal while steering messages are pending.
fn deferred(draft: &Draft<'_>, verdict: Verdict) -> Verdict {
    let cut = draft.query.current.stop == Some(StopReason::MaxTokens);
    let normal = draft.query.mode == TurnMode::Normal;
    let steered = !draft.query.steers.is_empty();
    match verdict {
        Verdict::Answered if cut && normal => Verdict::Next,
        Verdict::AskForSignal if cut || steered => Verdict::Next,
        other => other,
    }
}

/// A sub-agent starts only where the table lets one start, whatever the policy says.
fn within_bounds(turn: &TurnEnd<'_>, verdict: Verdict) -> Verdict {
    let normal = matches!(turn.mode, TurnMode::Normal | TurnMode::Signal);
    let full = turn.delegation == DelegationRoom::Full || !normal;
    if full && verdict == Verdict::Delegate {
        Verdict::NextWithoutDelegation
    } else {
        verdict
    }
}

/// What the table is asked with.
fn turn_end<'a>(draft: &'a Draft<'_>, repeats: bool, fallback: FallbackDone) -> TurnEnd<'a> {
    let (query, policy) = (&draft.query, draft.policy());
    let signal = query.current.signal.as_deref();
    let text = query.kept.as_ref().or(query.current.text.as_ref());
    let on_missing_signal = match policy.on_missing_signal {
        OnMissingSignal::Auto if query.unsignalled || !guard::may_ask_for_signal(draft) => {
            OnMissingSignal::Finish
        }
        configured => configured,
    };
    TurnEnd {
        query: &query.text,
        reply: text.map_or("", |text| text),
        turns: query.turns,
        max_turns: query.limits.max_turns,
        mode: query.mode,
        signal: signal.map(|signal| (signal.kind(), signal.confidence)),
        text: Presence::of(text.is_some()),
        accumulated: Presence::of(!query.texts.is_empty()),
        calls: Presence::of(query.current.calls > 0),
        repeats,
        stuck_before: query.stucks > 1,
        fallback,
        low_confidence_excused: query.weak_ends > 1,
        low_confidence: policy.fallback.low_confidence.as_fraction(),
        query_type: query.query_type.unwrap_or(QueryType::Conversational),
        on_missing_signal,
        empty_replies: query.empty_replies,
        delegation: delegation::room(draft),
    }
}

/// A loop by reason, or by tools where the hint was given before. Final and last turns end anyway.
fn found_loop(draft: &Draft<'_>) -> Option<LoopDetected> {
    if !matches!(draft.query.mode, TurnMode::Normal | TurnMode::Signal) {
        return None;
    }
    if let Some((kind, detail)) = draft.query.signals.reason_loop() {
        return Some(LoopDetected { kind, detail });
    }
    match draft.query.repetition.verdict() {
        ToolLoop::Again => {
            let slots = draft.query.step.slots();
            let names: Vec<&str> = slots.iter().map(|slot| slot.call.name.as_str()).collect();
            Some(LoopDetected {
                kind: LoopKind::Tool,
                detail: names.join(", "),
            })
        }
        ToolLoop::None | ToolLoop::First => None,
    }
}

/// Without the signal, which only another turn policy than ours brings about, there is nothing to say.
fn partial(draft: &Draft<'_>) -> Outcome {
    let Some(SignalFields::PartialAnswer(partial)) = draft.query.signal_fields() else {
        return Outcome::Partial {
            missing: String::new(),
            caveat: None,
        };
    };
    Outcome::Partial {
        missing: partial.missing.clone(),
        caveat: partial.caveat.clone(),
    }
}

/// The same.
fn stuck(draft: &Draft<'_>) -> Outcome {
    let Some(SignalFields::Stuck(stuck)) = draft.query.signal_fields() else {
        let (attempted, suggestions) = (Vec::new(), Vec::new());
        return Outcome::Stuck {
            attempted,
            blocker: String::new(),
            suggestions,
        };
    };
    Outcome::Stuck {
        attempted: stuck.attempted.clone(),
        blocker: stuck.blocker.clone(),
        suggestions: stuck.suggestions.clone().unwrap_or_default(),
    }
}
