//! The fallback, consulted when signals fail (docs/protocol.md, "Fallback").

use super::{
    draft::Draft,
    guidance,
    judgement::{FallbackView, Judgement},
    policy::Policy,
    query::Query,
    repetition::ToolLoop,
    verdict::{FallbackDone, OnMissingSignal},
};
use crate::model::{
    SignalFields, SignalType, StopReason,
    record::{
        AgentFact, EscalationRaised, FallbackAction, FallbackCause, FallbackTriggered, TurnMode,
    },
};
#[derive(Default)]
pub(super) struct Consulted {
    pub done: FallbackDone,
    pub notes: Vec<String>,
    pub reason: Option<String>,
}

pub(super) fn consult(draft: &mut Draft<'_>) -> Consulted {
    let mut consulted = Consulted::default();
    let first_tool_loop = draft.query.repetition.verdict() == ToolLoop::First;
    if let Some(cause) = cause(draft) {
        let judgement = judge(draft);
        consulted.done = record(draft, cause, &judgement, &mut consulted.notes);
        consulted.reason = Some(judgement.reason);
    }
    if first_tool_loop && draft.query.mode == TurnMode::Normal {
        let work = draft.query.work();
        let hint = guidance::tool_loop(work.map(|slot| slot.call.name.as_str()));
        let judgement = Judgement {
            action: FallbackAction::RetryWithHint,
            confidence: 0.6,
            hint: Some(hint),
            reason: "the same calls brought the same results".into(),
        };
        let cause = FallbackCause::ToolLoop;
        let hinted = record(draft, cause, &judgement, &mut consulted.notes);
        if matches!(
            consulted.done,
            FallbackDone::NotAsked | FallbackDone::Continued
        ) {
            consulted.done = hinted;
        }
    }
    consulted
}

fn cause(draft: &Draft<'_>) -> Option<FallbackCause> {
    let (query, policy) = (&draft.query, draft.policy());
    match query.current.signal.as_deref() {
        Some(signal) if signal.kind() == SignalType::Stuck => Some(FallbackCause::Stuck),
        Some(signal) if signal.confidence < policy.fallback.low_confidence.as_fraction() => {
            Some(FallbackCause::LowConfidence)
        }
        Some(_) => None,
        None if query.reply_goes_on() || is_kept(query, policy) => None,
        None => {
            let silent = query.signals.turns_without_signal();
            let silent = silent.saturating_sub(query.silence_mark);
            (silent >= policy.fallback.silence_turns).then_some(FallbackCause::Silence)
        }
    }
}

/// A complete reply without a signal is not silent if the model will be asked for the signal.
fn is_kept(query: &Query, policy: &Policy) -> bool {
    let current = &query.current;
    let whole = current.calls == 0 && current.stop != Some(StopReason::MaxTokens);
    let text = current.text.is_some() || query.kept.is_some();
    policy.on_missing_signal == OnMissingSignal::Auto && whole && text
}

fn judge(draft: &Draft<'_>) -> Judgement {
    let (query, policy) = (&draft.query, draft.policy());
    let mut judgement = policy.fallback_classifier.classify(&FallbackView {
        query: &query.text,
        accumulated_chars: query.accumulated_chars,
        turns_without_signal: query.signals.turns_without_signal(),
        results: query.results,
        failed: query.failed,
        failed_tools: &query.failed_tools,
        last_confidence: query.signals.last_signal().map(|signal| signal.confidence),
        low_confidence: policy.fallback.low_confidence.as_fraction(),
    });
    // A host's number may be NaN, which a record cannot hold.
    judgement.confidence = match judgement.confidence.is_finite() {
        true => judgement.confidence.clamp(0.0, 1.0),
        false => 0.0,
    };
    if let Some(SignalFields::Stuck(stuck)) = query.signal_fields()
        && matches!(
            judgement.action,
            FallbackAction::Continue | FallbackAction::ForceResponse
        )
    {
        judgement.action = FallbackAction::RetryWithHint;
        judgement.hint = Some(guidance::another_strategy(stuck));
    }
    judgement
}

fn record(
    draft: &mut Draft<'_>,
    cause: FallbackCause,
    judgement: &Judgement,
    notes: &mut Vec<String>,
) -> FallbackDone {
    let query = &draft.query;
    let last = query.signals.last_signal();
    let calls = query.current.calls > 0;
    // The model has to read the results of its calls before a response is forced.
    let applied = matches!(query.mode, TurnMode::Normal | TurnMode::Signal)
        && !ends_stuck(query)
        && !(calls && judgement.action == FallbackAction::ForceResponse);
    let again = query.escalations > 0;
    let fact = FallbackTriggered {
        cause,
        reason: judgement.reason.clone(),
        turns_without_signal: query.signals.turns_without_signal(),
        last_signal_type: last.map(|signal| signal.kind()),
        last_signal_confidence: last.map(|signal| signal.confidence),
        action: judgement.action,
        confidence: judgement.confidence,
        hint: judgement.hint.clone(),
        applied,
    };
    draft.emit(AgentFact::FallbackTriggered(fact));
    if !applied {
        return FallbackDone::Continued;
    }
    match judgement.action {
        FallbackAction::Continue => FallbackDone::Continued,
        FallbackAction::ForceResponse => {
            notes.push(guidance::FORCE_RESPONSE.into());
            FallbackDone::Forced
        }
        FallbackAction::RetryWithHint => {
            notes.extend(judgement.hint.clone());
            FallbackDone::Hinted
        }
        FallbackAction::Escalate => {
            let notice = guidance::ESCALATION_NOTICE.to_owned();
            draft.emit(AgentFact::EscalationRaised(EscalationRaised { notice }));
            match again {
                true => FallbackDone::EscalatedAgain,
                false => FallbackDone::Escalated,
            }
        }
    }
}

/// A second `stuck` without calls ends the query.
fn ends_stuck(query: &Query) -> bool {
    let stuck = matches!(query.signal_fields(), Some(SignalFields::Stuck(_)));
    stuck && query.stucks > 1 && query.current.calls == 0
}
