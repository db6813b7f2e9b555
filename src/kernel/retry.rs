//! A try at a model call failed: again, the next model, or the end (spec 12). And what a call has used that
//! ends without a reply.

use std::time::Duration;

use super::{
    compaction, doubt,
    draft::Draft,
    effect::{CallToken, Decision, Effect},
    input::InFlight,
    phase::Step,
    policy::RetryPolicy,
    turn_end,
};
use crate::model::{
    Attempt, Fault, FaultClass, Span, Usage,
    record::{
        Admitted, Failed, FailedOver, LlmFact, Retried, TurnFact, TurnRestartCause, TurnRestarted,
        Waiting,
    },
};

/// What the fault asks for.
pub(super) fn failed(
    mut draft: Draft<'_>,
    token: CallToken,
    fault: Fault,
    usage: Usage,
) -> Decision {
    let usage = used(&draft, &draft.query.model, &fault, usage);
    let Step::Calling { tries, .. } = draft.query.step else {
        return Decision::nothing();
    };
    let plan = compaction::instead_of_failing(&draft, &fault);
    // An answer that lacks its signal alone is not worth a summary.
    match plan.filter(|_| draft.query.kept.is_none()) {
        // It is found too long once more when the session goes on.
        Some(_) if draft.session.is_paused() => {
            draft.emit(LlmFact::Retried(Retried {
                attempt: token.attempt,
                model: draft.query.model.to_string(),
                fault,
                not_before: draft.now.at,
                usage,
            }));
            return draft.wait();
        }
        Some(plan) => {
            spent(&mut draft, token.attempt, fault, usage);
            return compaction::within_turn(draft, plan, token.attempt);
        }
        None => {}
    }
    let pause = pause(&draft, &draft.query.model, &fault, tries);
    // A kept reply is already an answer, so the turn that asks for its signal is not retried.
    if let Some(pause) = pause.filter(|_| draft.query.kept.is_none()) {
        let not_before = draft.now.at.plus(pause);
        draft.emit(LlmFact::Retried(Retried {
            attempt: token.attempt,
            model: draft.query.model.to_string(),
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
    next_model(draft, token, fault, usage)
}

/// What a failed try used, where what follows has no place for it.
fn spent(draft: &mut Draft<'_>, attempt: Attempt, fault: Fault, usage: Usage) {
    if usage.is_none() {
        return;
    }
    let model = draft.query.model.to_string();
    draft.emit(LlmFact::Failed(Failed {
        attempt,
        model,
        fault,
        usage,
    }));
}

/// What a failed call used: what the provider says of it, else an estimate where the model may have worked
/// on it.
pub(super) fn used(draft: &Draft<'_>, model: &str, fault: &Fault, told: Usage) -> Usage {
    let begun = matches!(draft.now.call, InFlight::Sent { received: 1.., .. });
    let estimate = uncounted(draft, model).filter(|_| begun || fault.may_have_cost());
    estimate.unwrap_or_else(|| turn_end::priced(draft, model, told))
}

/// What the call in flight has used so far, if there is one: as far as the provider says, else by an
/// estimate.
pub(super) fn uncounted(draft: &Draft<'_>, model: &str) -> Option<Usage> {
    if !draft.query.in_flight {
        return None;
    }
    let (tokens, received, told) = match draft.now.call {
        InFlight::Unsent => return None,
        InFlight::Unknown if draft.query.waits => return None,
        InFlight::Sent {
            tokens,
            received,
            told,
        } => (tokens, received, told),
        InFlight::Unknown => (tokens_sent(draft), 0, Usage::default()),
    };
    let estimate = draft.session.calibration().applied_to(tokens);
    let usage = Usage {
        input_tokens: match told.input_tokens {
            0 => estimate,
            told => told,
        },
        output_tokens: told.output_tokens.max(received / 4),
        ..told
    };
    Some(turn_end::priced(draft, model, usage))
}

/// About how many tokens the call in flight has sent, by the records alone.
fn tokens_sent(draft: &Draft<'_>) -> u64 {
    match &draft.query.step {
        Step::Doubting { .. } => doubt::tokens_sent(draft),
        Step::Compacting { what, .. } => compaction::tokens_sent(draft, what),
        _ => draft.query.estimate,
    }
}

/// Records what the call in flight has used: it ends without a reply, with its query, its session or its
/// process.
pub(super) fn count_cut_off(draft: &mut Draft<'_>) {
    let (attempt, model) = match &draft.query.step {
        Step::Calling { attempt, .. } => (*attempt, draft.query.model.to_string()),
        Step::Doubting { what } => (doubt::token(draft).attempt, what.model.clone()),
        Step::Compacting {
            what, pause: None, ..
        } => (what.attempt, what.model.clone()),
        _ => return,
    };
    let Some(usage) = uncounted(draft, &model) else {
        return;
    };
    let fault = Fault {
        class: FaultClass::Cancelled,
        code: "cancelled".to_owned(),
        detail: "the call was cut off before its reply was whole".to_owned(),
    };
    draft.emit(LlmFact::Failed(Failed {
        attempt,
        model,
        fault,
        usage,
    }));
}

/// A call has waited for its turn for a while, and nothing of it was sent.
pub(super) fn waits(mut draft: Draft<'_>, waiting: Waiting) -> Decision {
    draft.emit(LlmFact::Waiting(waiting));
    draft.wait()
}

/// A call that was recorded as waiting is sent.
pub(super) fn admitted(mut draft: Draft<'_>, attempt: Attempt, waited: Duration) -> Decision {
    let waited_ms = u64::try_from(waited.as_millis()).unwrap_or(u64::MAX);
    draft.emit(LlmFact::Admitted(Admitted { attempt, waited_ms }));
    draft.wait()
}

/// How long to wait until the same model is asked again, after so many tries; none if it is not.
pub(super) fn pause(draft: &Draft<'_>, model: &str, fault: &Fault, tries: u32) -> Option<Duration> {
    let class = fault.class;
    let (policy, now, refusals) = (draft.policy(), draft.now, draft.query.refusals);
    let alone = policy.after(model).is_none();
    let away = alone && fault.is_outage();
    // Whether a server is back, probes find out: no time that it names is waited for.
    let asked = class.after().filter(|_| !away);
    let waited = refusals.lasting(now.at, fault.is_outage());
    let refused = refusals.of(fault.is_outage()).count.saturating_add(1);
    let (tries, waited) = match class {
        FaultClass::Retryable { .. } if tries < policy.retry.attempts => (tries, Duration::ZERO),
        // Nothing was sent, and why is no matter of this call: another model can be asked at once, and
        // where there is none it is no try but a matter of time.
        FaultClass::Overloaded { .. } if alone => (refused, waited),
        // The gateway holds the calls of a model that is away, and probes it: the pause here stays short.
        FaultClass::Unavailable { .. } if alone => (1, waited),
        FaultClass::Unavailable { .. } if refused < policy.retry.attempts => (refused, waited),
        _ => return None,
    };
    let most = match away {
        true => policy.retry.outage,
        false => policy.longest_wait(model),
    };
    let in_time = waited.saturating_add(asked.unwrap_or_default()) <= most;
    in_time.then(|| back_off(policy.retry, tries, asked, now.entropy))
}

/// The model is given up for this turn: the next one of the chain, or the end.
pub(super) fn next_model(
    mut draft: Draft<'_>,
    token: CallToken,
    fault: Fault,
    usage: Usage,
) -> Decision {
    let next = draft.policy().after(&draft.query.model);
    let next = next.filter(|_| draft.query.kept.is_none());
    let Some(to) = next.map(|next| next.name.to_string()) else {
        let (code, detail) = (fault.code.clone(), given_up(&draft, &fault));
        spent(&mut draft, token.attempt, fault, usage);
        return draft.give_up(&code, detail);
    };
    let from = draft.query.model.to_string();
    draft.emit(LlmFact::FailedOver(FailedOver {
        attempt: token.attempt,
        fault,
        from,
        to,
        usage,
    }));
    due(draft, token)
}

/// What was the matter, and what can be done where that is a matter of time.
fn given_up(draft: &Draft<'_>, fault: &Fault) -> String {
    let detail = &fault.detail;
    let patience = draft.policy().retry.patience;
    let outage = fault.is_outage();
    let asked = fault.class.after().filter(|_| !outage).unwrap_or_default();
    let waited = draft.query.refusals.lasting(draft.now.at, outage);
    if asked > patience {
        let asked = Span(asked);
        return format!(
            "{detail}; it is not to be asked for {asked}: try again then, or add a model to `model.chain`"
        );
    }
    match fault.class {
        FaultClass::Overloaded { .. } | FaultClass::Unavailable { .. } => {
            let waited = Span(waited);
            format!(
                "{detail}; that went on for {waited}: try again later, or add a model to `model.chain`"
            )
        }
        FaultClass::Retryable { .. }
        | FaultClass::Permanent
        | FaultClass::Cancelled
        | FaultClass::Bug => detail.clone(),
    }
}

/// The back-off is over. While the session is paused nothing is asked; the back-off is owed again
/// when it is resumed.
pub(super) fn due(draft: Draft<'_>, token: CallToken) -> Decision {
    if draft.session.is_paused() {
        return draft.wait();
    }
    let Step::BackingOff { code, .. } = &draft.query.step else {
        return draft.wait();
    };
    let code = code.to_string();
    again(draft, token.attempt, TurnRestartCause::Fault { code })
}

/// A new try of the turn's call.
pub(super) fn again(mut draft: Draft<'_>, before: Attempt, cause: TurnRestartCause) -> Decision {
    let attempt = before.next();
    let model = draft.query.model.to_string();
    draft.emit(TurnFact::Restarted(TurnRestarted {
        attempt,
        model: model.clone(),
        cause,
    }));
    let token = CallToken {
        query: draft.query.id,
        turn: draft.query.turn,
        attempt,
    };
    let mode = draft.query.mode;
    draft.effect(Effect::CallModel {
        token,
        model: model.into(),
        mode,
    });
    draft.wait()
}

/// base × 2^(tries − 1), at most `cap`, then between half and all of it by the entropy given; never
/// less than the other side asked for.
fn back_off(policy: RetryPolicy, tries: u32, asked: Option<Duration>, entropy: u64) -> Duration {
    let doublings = tries.saturating_sub(1).min(16);
    let full = policy.base.saturating_mul(1 << doublings).min(policy.cap);
    let half = full / 2;
    let spread = u64::try_from(half.as_millis())
        .unwrap_or(u64::MAX)
        .saturating_add(1);
    let jittered = half + Duration::from_millis(entropy % spread);
    asked.unwrap_or_default().max(jittered)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pauses_double_up_to_the_cap_and_honour_what_is_asked() {
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
