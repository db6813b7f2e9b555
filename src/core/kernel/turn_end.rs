//! From the results of a turn to its consequence, in the order of docs/protocol.md, "A turn".

use super::{
    capability, delegation,
    draft::{self, Draft},
    effect::Decision,
    fallback::{Consulted, consult},
    format, guard, guidance,
    repetition::ToolLoop,
    verdict::{FallbackDone, OnMissingSignal, TurnEnd, Verdict},
};
use crate::model::{
    FaultCode, ForcedBy, Outcome, QueryType, SignalFields, SignalType, StopReason,
    record::{AgentFact, AnswerRejected, LoopDetected, LoopKind, QueryFact, TurnMode},
};

/// Rejected signals of a query whose reason the model learns.
const REJECTION_NOTES: u32 = 2;

/// Decides once all calls of the turn have results.
///
/// While the session is paused, the end of the query is recorded but no turn starts; the decision
/// is repeated when the session resumes.
pub(super) fn end(mut draft: Draft<'_>) -> Decision {
    // The caller's limit ended the answer. Calls of a complete reply still run.
    let current = &draft.query.current;
    let is_cut = current.cut.is_some();
    if is_cut && (current.calls == 0 || current.stop == Some(StopReason::MaxTokens)) {
        return draft.finish(Outcome::Answered);
    }
    let so_far = draft.session.paused.then(|| draft.clone());
    let looped = find_loop(&draft);
    let judged = match looped {
        None => consult(&mut draft),
        Some(_) => Consulted::default(),
    };
    let turn = turn_end(&draft, looped.is_some(), judged.done);
    let decided = draft.policy().turn.decide(&turn);
    let verdict = deferred(&draft, &turn, decided.verdict);
    let is_followed = verdict == decided.verdict && !draft.query.options().is_task;
    draft.row = decided.row.filter(|_| is_followed);
    match so_far {
        Some(paused) if !verdict.ends_the_query() => paused.wait(),
        so_far => apply(draft, verdict, looped, judged, so_far),
    }
}

fn apply(
    mut draft: Draft<'_>,
    verdict: Verdict,
    looped: Option<LoopDetected>,
    judged: Consulted,
    so_far: Option<Draft<'_>>,
) -> Decision {
    let mut notes = judged.notes;
    if draft.query.current.stop == Some(StopReason::MaxTokens) {
        notes.push(guidance::CUT.into());
    }
    let rejection = draft.query.current.rejection.clone();
    let rejection = rejection.filter(|_| draft.query.rejections <= REJECTION_NOTES);
    let told_why = rejection.is_some();
    notes.extend(rejection.map(|told| told.to_string()));
    let verdict = match draft.query.options().is_task {
        true if draft.query.reply_goes_on() => verdict,
        true if draft.query.texts.is_empty() => Verdict::EmptyAnswer,
        true => Verdict::Answered,
        false => verdict,
    };
    match verdict {
        Verdict::Answered | Verdict::Partial | Verdict::Stuck => {
            let outcome = outcome(&draft, verdict);
            let options = draft.query.options();
            match options.format.is_text() || options.is_task {
                true => draft.finish(outcome),
                false => end_with_format(draft, outcome, notes, so_far),
            }
        }
        Verdict::EmptyAnswer => {
            let detail = empty(&draft);
            draft.fail(FaultCode::EmptyAnswer, detail)
        }
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
        Verdict::NextWithTools => capability::requested(draft, notes),
        Verdict::Delegate => {
            delegation::log(&mut draft);
            delegation::advance(draft)
        }
        Verdict::Next | Verdict::NextWithoutDelegation => {
            delegation::log(&mut draft);
            if verdict == Verdict::NextWithoutDelegation {
                notes.push(guidance::NO_SUB_AGENT.into());
            }
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

/// Ends the query if its answer has the format; otherwise asks for it again, once. While the session
/// is paused, that waits, with what was decided `so_far`.
fn end_with_format(
    mut draft: Draft<'_>,
    outcome: Outcome,
    mut notes: Vec<String>,
    so_far: Option<Draft<'_>>,
) -> Decision {
    let text = draft::answer(&draft.query);
    match format::check(&draft.query.options().format, &text, &mut draft.work) {
        Ok(answer) => {
            let answer = answer.to_owned();
            draft.finish_with(outcome, answer)
        }
        Err(None) => {
            let detail = "checking the answer against its format takes too much work: simplify the \
                          schema, above all its patterns and nested alternatives";
            draft.fail(FaultCode::AnswerFormat, detail)
        }
        Err(Some(problem)) if draft.query.repaired => {
            let detail = format!(
                "the model gave no answer in the requested format: {problem}; ask again, or use \
                 another model"
            );
            draft.fail(FaultCode::AnswerFormat, detail)
        }
        Err(Some(problem)) => {
            if let Some(paused) = so_far {
                return paused.wait();
            }
            // The check decides here, not the table.
            draft.row = None;
            notes.push(guidance::wrong_format(&problem));
            draft.emit(QueryFact::AnswerRejected(AnswerRejected { problem }));
            guard::begin_turn(draft, notes)
        }
    }
}

/// Why there is no answer, and what helps.
fn empty(draft: &Draft<'_>) -> &'static str {
    let current = &draft.query.current;
    match current.stop {
        Some(StopReason::MaxTokens) if current.reasoned => {
            "the whole reply was reasoning, up to the output limit: set a higher \
             `max_output_tokens` for the model, or ask for less reasoning effort"
        }
        _ if current.reasoned => {
            "the whole reply was reasoning, without text for the answer: ask for less reasoning \
             effort, check the server's parser of reasoning, or use another model"
        }
        _ => "the model returned no text for the answer: ask again, or use another model",
    }
}

/// Replaces a verdict by another turn: a paused reply goes on, a truncated one is no answer, nor is
/// one with a call that was written as text, as long as the model learns of that, and pending steering
/// precedes a missing signal. A `TurnPolicy` cannot start a sub-agent beyond the limits.
fn deferred(draft: &Draft<'_>, turn: &TurnEnd<'_>, verdict: Verdict) -> Verdict {
    let cut = draft.query.current.stop == Some(StopReason::MaxTokens);
    let normal = turn.mode == TurnMode::Normal;
    let delegates = normal || turn.mode == TurnMode::Signal;
    let steered = !draft.query.steers.is_empty();
    let current = &draft.query.current;
    let told = current.rejection.is_some() && draft.query.rejections <= REJECTION_NOTES;
    let learns_of_missed_call = told && current.missed_call;
    let reports_first =
        current.reports > 0 && draft.query.texts.is_empty() && draft.query.empty_replies == 1;
    match verdict {
        _ if draft.query.reply_goes_on() && normal => Verdict::Next,
        Verdict::Answered if draft.query.reply_goes_on() && turn.mode != TurnMode::Signal => {
            Verdict::ForcedByBudget
        }
        Verdict::Answered if (cut || learns_of_missed_call) && normal => Verdict::Next,
        // The answer follows the report of its status.
        Verdict::Answered | Verdict::Partial | Verdict::Stuck if reports_first && normal => {
            Verdict::Next
        }
        Verdict::AskForSignal if learns_of_missed_call || cut || steered => Verdict::Next,
        Verdict::Delegate if !(turn.delegation && delegates) => Verdict::NextWithoutDelegation,
        other => other,
    }
}

fn turn_end<'a>(draft: &'a Draft<'_>, repeats: bool, fallback: FallbackDone) -> TurnEnd<'a> {
    let (query, policy) = (&draft.query, draft.policy());
    let signal = query.current.signal.as_deref();
    let text = query.kept.as_ref().or(query.current.text.as_ref());
    let options = query.options();
    let on_missing_signal = match policy.on_missing_signal {
        _ if !options.tools.is_empty() || !options.format.is_text() => OnMissingSignal::Finish,
        OnMissingSignal::Auto if query.unsignalled || !guard::may_ask_for_signal(draft) => {
            OnMissingSignal::Finish
        }
        configured => configured,
    };
    let is_stuck = signal.is_some_and(|signal| signal.kind() == SignalType::Stuck);
    // `consult` has already counted this turn.
    let is_excused = fallback == FallbackDone::Continued && query.weak_end();
    TurnEnd {
        query: &query.text,
        reply: text.map_or("", |text| text),
        turns: query.turns,
        max_turns: query.limits.max_turns,
        mode: query.mode,
        signal: signal.map(|signal| (signal.kind(), signal.confidence)),
        text: text.is_some(),
        accumulated: !query.texts.is_empty(),
        calls: query.current.calls > 0,
        repeats,
        stuck_before: query.stucks > u32::from(is_stuck),
        fallback,
        low_confidence_excused: query.weak_ends > u32::from(is_excused),
        low_confidence: policy.fallback.low_confidence.as_fraction(),
        query_type: query.query_type.unwrap_or(QueryType::Conversational),
        on_missing_signal,
        empty_replies: query.empty_replies,
        delegation: delegation::room(draft),
    }
}

/// A reason loop, or a tool loop after its hint. Final and last turns end the query anyway.
fn find_loop(draft: &Draft<'_>) -> Option<LoopDetected> {
    if !matches!(draft.query.mode, TurnMode::Normal | TurnMode::Signal) {
        return None;
    }
    if let Some((kind, detail)) = draft.query.signals.reason_loop() {
        return Some(LoopDetected { kind, detail });
    }
    let again = draft.query.repetition.verdict() == ToolLoop::Again;
    again.then(|| {
        let work = draft.query.work();
        let names: Vec<&str> = work.map(|slot| slot.call.name.as_str()).collect();
        LoopDetected {
            kind: LoopKind::Tool,
            detail: names.join(", "),
        }
    })
}

fn outcome(draft: &Draft<'_>, verdict: Verdict) -> Outcome {
    match verdict {
        Verdict::Partial => partial(draft.query.signal_fields()),
        Verdict::Stuck => stuck(draft.query.signal_fields()),
        _ => Outcome::Answered,
    }
}

/// The gaps are empty if a host's `TurnPolicy` ends the query without the signal.
fn partial(signal: Option<&SignalFields>) -> Outcome {
    let (missing, caveat) = match signal.cloned() {
        Some(SignalFields::PartialAnswer(partial)) => (partial.missing, partial.caveat),
        _ => Default::default(),
    };
    Outcome::Partial { missing, caveat }
}

fn stuck(signal: Option<&SignalFields>) -> Outcome {
    let (attempted, blocker, suggestions) = match signal.cloned() {
        Some(SignalFields::Stuck(stuck)) => (stuck.attempted, stuck.blocker, stuck.suggestions),
        _ => Default::default(),
    };
    Outcome::Stuck {
        attempted,
        blocker,
        suggestions: suggestions.unwrap_or_default(),
    }
}
