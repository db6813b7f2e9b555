//! Usage of a call that ends without a reply: with its query, its session or its process.

use oracle_agent::{
    kernel::{InFlight, Report},
    model::{
        Attempt, Fault, Timestamp, Usage,
        record::{Admitted, Fact, LlmFact, RestartCause, WaitReason, Waiting},
    },
};

use super::{play::Play, script::*};

fn estimate(play: &Play) -> u64 {
    play.turn()
        .token_estimate
        .expect("every turn says what it sends")
}

fn used(play: &Play) -> (u64, u64) {
    let usage = play.session.query().unwrap().usage;
    (usage.input_tokens, usage.output_tokens)
}

fn sent(received: u64) -> InFlight {
    InFlight::Sent {
        tokens: 500,
        received,
        reported: Usage::default(),
    }
}

fn failed(play: &Play) -> usize {
    let failed = |record: &&oracle_agent::model::Record| {
        matches!(record.fact, Fact::Llm(LlmFact::Failed(_)))
    };
    play.log.iter().filter(failed).count()
}

fn waiting() -> Waiting {
    Waiting {
        attempt: Attempt(1),
        model: "p/one".into(),
        reason: WaitReason::RateLimit,
        until: Some(Timestamp::from_millis(9_000)),
    }
}

#[test]
fn call_cut_off_by_a_restart_counts_once() {
    for (name, in_flight, output) in [
        ("its process died", InFlight::Unknown, 0),
        ("its actor was killed", sent(800), 200),
    ] {
        for cause in [RestartCause::ProcessDeath, RestartCause::Crash] {
            let mut play = Play::asked(policy());
            let input = match in_flight {
                InFlight::Unknown => estimate(&play),
                _ => 500,
            };
            play.in_flight = in_flight;
            play.restart(cause);
            assert_eq!(used(&play), (input, output), "{name}");
            // The call is made again, and cut off again.
            play.restart(cause);
            assert_eq!(used(&play), (2 * input, 2 * output), "{name}");
            assert_eq!(failed(&play), 2, "{name}");
            play.in_flight = InFlight::Unsent;
            play.says(&done());
            assert_eq!(failed(&play), 2, "{name}: the reply counts by itself");
        }
    }
}

#[test]
fn unsent_call_counts_nothing() {
    let mut play = Play::asked(policy());
    play.in_flight = InFlight::Unsent;
    play.restart(RestartCause::Crash);
    assert_eq!((used(&play), failed(&play)), ((0, 0), 0));
}

#[test]
fn passivation_records_the_usage_of_its_call() {
    let mut play = Play::asked(policy());
    play.in_flight = sent(400);
    play.revive();
    assert_eq!(used(&play), (500, 100));
    // The next process does not know of it, and need not.
    play.in_flight = InFlight::Unknown;
    let again = estimate(&play);
    play.restart(RestartCause::ProcessDeath);
    assert_eq!(
        used(&play),
        (500 + again, 100),
        "the call that was made again"
    );
}

#[test]
fn queued_call_of_a_dead_process_counts_only_once_admitted() {
    let mut play = Play::asked(policy());
    let token = play.token();
    let input = estimate(&play);
    play.report(Report::CallWaits {
        token,
        waiting: waiting(),
    });
    assert_eq!(play.kinds(), ["llm.waiting"]);
    let mut admitted = play.clone();
    play.in_flight = InFlight::Unknown;
    play.restart(RestartCause::ProcessDeath);
    assert_eq!(used(&play), (0, 0));

    let waited = std::time::Duration::from_secs(3);
    admitted.report(Report::CallAdmitted { token, waited });
    let Some(Fact::Llm(LlmFact::Admitted(Admitted { waited_ms, .. }))) =
        admitted.log.last().map(|record| &record.fact)
    else {
        panic!("{:?}", admitted.kinds());
    };
    assert_eq!(*waited_ms, 3_000);
    admitted.in_flight = InFlight::Unknown;
    admitted.restart(RestartCause::ProcessDeath);
    assert_eq!(used(&admitted), (input, 0));
}

#[test]
fn wait_report_of_an_old_attempt_is_stale() {
    let mut play = Play::asked(policy());
    let token = play.token();
    play.restart(RestartCause::Crash);
    play.report(Report::CallWaits {
        token,
        waiting: waiting(),
    });
    assert!(play.kinds().is_empty());
}

#[test]
fn failed_call_counts_input_only_if_the_model_may_have_read_it() {
    for (code, counts) in [
        ("connect", false),
        ("dns", false),
        ("rate_limited", false),
        ("overloaded", false),
        ("hung_up", true),
        ("headers_timeout", true),
        ("cut", true),
        ("stall", true),
    ] {
        let mut play = Play::asked(policy());
        play.in_flight = sent(0);
        play.fails(Fault::unavailable(code, "it did not work"));
        let input = if counts { 500 } else { 0 };
        assert_eq!(used(&play), (input, 0), "{code}");
    }
    let mut play = Play::asked(policy());
    play.in_flight = sent(40);
    play.fails(Fault::retryable("server_error", "it broke off"));
    assert_eq!(used(&play), (500, 10), "what had come back was worked on");
}

#[test]
fn pauses_in_an_outage_grow_up_to_its_patience() {
    let mut policy = policy();
    policy.retry.outage = std::time::Duration::from_secs(60);
    let mut play = Play::asked(policy);
    let mut pauses = Vec::new();
    while play.end().is_none() {
        play.fails(Fault::unavailable("connect", "nobody is there"));
        if let Some(Fact::Llm(LlmFact::Retried(retried))) = play.log.last().map(|last| &last.fact) {
            pauses.push(retried.not_before.since(play.now().at).as_millis());
            let token = play.token();
            play.report(Report::RetryDue { token });
        }
    }
    assert_eq!(pauses[..6], [250, 500, 1_000, 2_000, 4_000, 4_000]);
    assert_eq!(
        pauses.last(),
        Some(&500),
        "no longer than the patience that is left"
    );
}

#[test]
fn outage_uses_patience_instead_of_attempts() {
    let mut policy = policy();
    policy.retry.attempts = 1;
    policy.retry.outage = std::time::Duration::from_secs(60);
    let mut play = Play::asked(policy);
    for tries in 1..20 {
        play.fails(Fault::unavailable("connect", "nobody is there"));
        assert_eq!(play.kinds(), ["llm.retried"], "{tries}");
        let token = play.token();
        play.report(Report::RetryDue { token });
    }
    for _ in 0..60 {
        play.fails(Fault::unavailable("connect", "nobody is there"));
        if play.end().is_some() {
            break;
        }
        let token = play.token();
        play.report(Report::RetryDue { token });
    }
    assert_eq!(play.end(), Some(("failed", "connect")));
}
