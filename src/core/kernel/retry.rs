//! Failed tries of a model call: retry, failover or failure. Also the usage of calls that end
//! without a reply.

use std::{sync::Arc, time::Duration};

use super::{
    compaction,
    draft::Draft,
    effect::{CallToken, Decision, Effect},
    head,
    input::InFlight,
    phase::Step,
    policy::{ModelChoice, RetryPolicy},
    spending,
};
use crate::model::{
    Attempt, Fault, FaultClass, FaultCode, Span, Usage,
    record::{
        Admitted, Compacting, Failed, FailedOver, LlmFact, PrefixBroken, Retried, TurnFact,
        TurnRestartCause, TurnRestarted,
    },
};

/// Tries in an outage after which the pause no longer grows: then it is eight seconds at most.
const OUTAGE_TRIES: u32 = 5;

pub(super) fn failed(
    mut draft: Draft<'_>,
    token: CallToken,
    fault: Fault,
    usage: Usage,
) -> Decision {
    let usage = used(&draft, &fault, usage);
    if fault.code == FaultCode::ThinkingRefused
        && let Some(messages) = draft.transcript.count_to_strip()
    {
        spent(&mut draft, token.attempt, fault.clone(), usage);
        draft.emit(LlmFact::PrefixBroken(PrefixBroken {
            attempt: token.attempt,
            model: draft.query.model.to_string(),
            fault,
            messages,
        }));
        return due(draft);
    }
    let plan = compaction::instead_of_failing(&draft, &fault);
    match plan.filter(|_| draft.query.kept.is_none()) {
        // The call will be found too long again when the session resumes.
        Some(_) if draft.session.paused => {
            retried(&mut draft, token, fault, Duration::ZERO, usage);
            return draft.wait();
        }
        Some(plan) => {
            if let Some(ended) = unaffordable(&draft, token, &fault, usage) {
                return ended;
            }
            spent(&mut draft, token.attempt, fault, usage);
            let what = Compacting {
                turn_attempt: Some(token.attempt),
                ..plan
            };
            return compaction::begin(draft, what);
        }
        None => {}
    }
    // A kept reply is an answer, so the turn that asks for its signal is not retried.
    let pause = pause(&draft, &fault).filter(|_| draft.query.kept.is_none());
    if let Some(pause) = pause {
        return try_later(draft, token, fault, pause, usage);
    }
    next_model(draft, token, fault, usage)
}

/// The end of the query if a budget is spent after a failed try. A paused session decides on that
/// when it resumes.
fn unaffordable(
    draft: &Draft<'_>,
    token: CallToken,
    fault: &Fault,
    usage: Usage,
) -> Option<Decision> {
    if draft.session.paused {
        return None;
    }
    let mut after = draft.clone();
    spent(&mut after, token.attempt, fault.clone(), usage);
    spending::checked(after).err()
}

/// Tries again after a pause, within the budgets.
pub(super) fn try_later(
    mut draft: Draft<'_>,
    token: CallToken,
    fault: Fault,
    pause: Duration,
    usage: Usage,
) -> Decision {
    if let Some(ended) = unaffordable(&draft, token, &fault, usage) {
        return ended;
    }
    let later = retried(&mut draft, token, fault, pause, usage);
    draft.wait_for(later)
}

/// Records a failed try, and returns the effect that tries again after a pause.
fn retried(
    draft: &mut Draft<'_>,
    token: CallToken,
    fault: Fault,
    pause: Duration,
    usage: Usage,
) -> Effect {
    let at = draft.now.at.plus(pause);
    let fact = LlmFact::Retried(Retried {
        attempt: token.attempt,
        model: draft.query.called_model().to_owned(),
        fault,
        not_before: at,
        usage,
    });
    draft.emit_in(Some(token.turn), fact);
    Effect::RetryAt { token, at }
}

/// Calls another model, within the budgets.
pub(super) fn fail_over(
    mut draft: Draft<'_>,
    token: CallToken,
    to: &ModelChoice,
    fault: Fault,
    usage: Usage,
) -> Decision {
    if let Some(ended) = unaffordable(&draft, token, &fault, usage) {
        return ended;
    }
    let fact = LlmFact::FailedOver(FailedOver {
        attempt: token.attempt,
        fault,
        from: draft.query.called_model().to_owned(),
        to: to.name.to_string(),
        usage,
    });
    draft.emit_in(Some(token.turn), fact);
    due(draft)
}

/// Records the usage of a failed try, unless a later record carries it.
fn spent(draft: &mut Draft<'_>, attempt: Attempt, fault: Fault, usage: Usage) {
    if !usage.is_none() {
        ended(draft, attempt, fault, usage);
    }
}

fn ended(draft: &mut Draft<'_>, attempt: Attempt, fault: Fault, usage: Usage) {
    draft.emit(LlmFact::Failed(Failed {
        attempt,
        model: draft.query.called_model().to_owned(),
        fault,
        usage,
    }));
}

/// Estimates the usage if the model may have worked on the call.
pub(super) fn used(draft: &Draft<'_>, fault: &Fault, reported: Usage) -> Usage {
    let begun = matches!(draft.now.call, InFlight::Sent { received: 1.., .. });
    let estimate = uncounted(draft).filter(|_| begun || fault.may_have_cost());
    estimate.unwrap_or_else(|| draft.priced(draft.query.called_model(), reported))
}

fn uncounted(draft: &Draft<'_>) -> Option<Usage> {
    if !draft.query.in_flight {
        return None;
    }
    let call = match draft.now.call {
        InFlight::Unknown if draft.query.waits => return None,
        InFlight::Unknown => InFlight::Sent {
            tokens: tokens_sent(draft),
            received: 0,
            reported: Usage::default(),
        },
        call => call,
    };
    let InFlight::Sent { tokens, .. } = call else {
        return None;
    };
    let usage = call.cut_off(draft.session.calibration.applied_to(tokens))?;
    Some(draft.priced(draft.query.called_model(), usage))
}

fn tokens_sent(draft: &Draft<'_>) -> u64 {
    match &draft.query.step {
        Step::Compacting { what, .. } => compaction::tokens_sent(draft, what),
        _ => draft.query.estimate,
    }
}

pub(super) fn count_cut_off(draft: &mut Draft<'_>) {
    let (Some(token), Some(usage)) = (draft.query.token(), uncounted(draft)) else {
        return;
    };
    let fault = Fault {
        class: FaultClass::Cancelled,
        code: FaultCode::Cancelled,
        detail: "the call was interrupted before its reply was complete".to_owned(),
    };
    ended(draft, token.attempt, fault, usage);
}

pub(super) fn admitted(draft: Draft<'_>, attempt: Attempt, waited: Duration) -> Decision {
    let waited_ms = u64::try_from(waited.as_millis()).unwrap_or(u64::MAX);
    draft.noted(LlmFact::Admitted(Admitted { attempt, waited_ms }))
}

/// Back-off before the same model is retried; `None` if it is not.
pub(super) fn pause(draft: &Draft<'_>, fault: &Fault) -> Option<Duration> {
    let (model, tries) = (draft.query.called_model(), draft.query.tries());
    let class = fault.class;
    let (policy, now, refusals) = (draft.policy(), draft.now, draft.query.refusals);
    let alone = policy.after(model).is_none();
    let away = alone && fault.is_outage();
    // During an outage, probes replace the server's own estimate.
    let asked = class.after().filter(|_| !away);
    let waited = refusals.lasting(now.at, fault.is_outage());
    let refused = refusals.of(fault.is_outage()).count.saturating_add(1);
    // A model that repeats itself once more will go on to do so.
    let attempts = match fault.code {
        FaultCode::Repetition => policy.retry.attempts.min(2),
        _ => policy.retry.attempts,
    };
    let (tries, waited) = match class {
        FaultClass::Retryable { .. } if tries < attempts => (tries, Duration::ZERO),
        // Nothing was sent. A next model could be called at once; without one, patience limits the
        // wait, not the number of tries.
        FaultClass::Overloaded { .. } if alone => (refused, waited),
        // A call that fails again and again leaves the queue to others.
        FaultClass::Unavailable { .. } if away => (refused.min(OUTAGE_TRIES), waited),
        // The gateway holds the calls of a model that limits the rate, so the pause is short.
        FaultClass::Unavailable { .. } if alone => (1, waited),
        FaultClass::Unavailable { .. } if refused < policy.retry.attempts => (refused, waited),
        _ => return None,
    };
    let most = if away {
        policy.retry.outage
    } else {
        policy.longest_wait(model)
    };
    let in_time = waited.saturating_add(asked.unwrap_or_default()) <= most;
    let left = most.saturating_sub(waited).max(policy.retry.base);
    let longest = if away { left } else { Duration::MAX };
    in_time.then(|| back_off(policy.retry, tries, asked, now.entropy).min(longest))
}

pub(super) fn next_model(
    mut draft: Draft<'_>,
    token: CallToken,
    fault: Fault,
    usage: Usage,
) -> Decision {
    let next = draft.policy().after(&draft.query.model);
    let Some(next) = next.filter(|_| draft.query.kept.is_none()) else {
        let (code, detail) = (fault.code.clone(), explain_failure(&draft, &fault));
        spent(&mut draft, token.attempt, fault, usage);
        return draft.give_up(code, detail);
    };
    fail_over(draft, token, next, fault, usage)
}

fn explain_failure(draft: &Draft<'_>, fault: &Fault) -> String {
    let outage = fault.is_outage();
    let asked = fault.class.after().filter(|_| !outage).unwrap_or_default();
    let waited = draft.query.refusals.lasting(draft.now.at, outage);
    let why = match fault.class {
        _ if asked > draft.policy().retry.patience => {
            format!("the provider asks for a wait of {}", Span(asked))
        }
        FaultClass::Overloaded { .. } | FaultClass::Unavailable { .. } => {
            format!("it persisted for {}", Span(waited))
        }
        _ => return fault.detail.clone(),
    };
    let detail = &fault.detail;
    format!("{detail}; {why}: try again later, or add a model to `model.chain`")
}

/// A paused session calls no model; it backs off again when it resumes.
pub(super) fn due(draft: Draft<'_>) -> Decision {
    match draft.query.step.pause() {
        Some(pause) if !draft.session.paused => {
            let code = pause.code.clone();
            repeat(draft, TurnRestartCause::Fault { code })
        }
        _ => draft.wait(),
    }
}

/// Repeats the call of the current step, within the budgets.
pub(super) fn repeat(draft: Draft<'_>, cause: TurnRestartCause) -> Decision {
    let draft = match spending::checked(draft) {
        Ok(draft) => draft,
        Err(ended) => return ended,
    };
    match draft.query.step.clone() {
        Step::Calling { attempt, .. } => again(draft, attempt, cause),
        Step::Compacting { what, .. } => compaction::again(draft, &what, cause),
        _ => draft.wait(),
    }
}

fn again(mut draft: Draft<'_>, before: Attempt, cause: TurnRestartCause) -> Decision {
    head::settle(&mut draft, None);
    let attempt = before.next();
    draft.emit(TurnFact::Restarted(TurnRestarted {
        attempt,
        model: draft.query.model.to_string(),
        cause,
    }));
    let (token, mode) = (draft.token(attempt), draft.query.mode);
    let model = Arc::clone(&draft.query.model);
    draft.wait_for(Effect::CallModel { token, model, mode })
}

/// base × 2^(tries − 1), at most `cap`, jittered to between half and all of it, and at least as
/// long as the server asked for.
fn back_off(policy: RetryPolicy, tries: u32, asked: Option<Duration>, entropy: u64) -> Duration {
    let doublings = tries.saturating_sub(1).min(16);
    let full = policy.base.saturating_mul(1 << doublings).min(policy.cap);
    let half = full / 2;
    let spread = u64::try_from(half.as_millis()).unwrap_or(u64::MAX);
    let jittered = half + Duration::from_millis(entropy % spread.saturating_add(1));
    asked.unwrap_or_default().max(jittered)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn back_off_doubles_up_to_the_cap_and_honours_retry_after() {
        let policy = RetryPolicy {
            attempts: 9,
            base: Duration::from_millis(500),
            cap: Duration::from_secs(4),
            ..RetryPolicy::default()
        };
        let ms = Duration::from_millis;
        for (name, tries, asked, entropy, pause) in [
            ("first, least jitter", 1, None, 0, ms(250)),
            ("first, most jitter", 1, None, 250, ms(500)),
            ("second", 2, None, 0, ms(500)),
            ("third", 3, None, 0, ms(1_000)),
            ("at the cap", 4, None, 0, ms(2_000)),
            ("beyond the cap", 40, None, 0, ms(2_000)),
            (
                "the other side asks for more",
                1,
                Some(ms(9_000)),
                0,
                ms(9_000),
            ),
            ("the other side asks for less", 4, Some(ms(1)), 0, ms(2_000)),
        ] {
            assert_eq!(back_off(policy, tries, asked, entropy), pause, "{name}");
        }
    }
}
