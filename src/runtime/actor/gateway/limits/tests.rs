//! Configured and announced limits, and holds after a 429.

use super::*;

fn at(seconds: u64) -> Duration {
    Duration::from_secs(seconds)
}

fn request_limits(limit: u64, remaining: u64, reset: u64) -> RateLimits {
    RateLimits {
        requests: Allowance {
            limit: Some(limit),
            remaining: Some(remaining),
            reset: Some(at(reset)),
        },
        ..RateLimits::default()
    }
}

/// A 429 with the longest jitter, while ten calls run.
fn refused(started: Duration, after: Option<Duration>) -> Refused {
    Refused {
        started,
        after,
        running: 10,
        entropy: 1_023,
    }
}

/// Number of calls that start within a period under unlimited demand.
fn starts(limiter: &mut RateLimiter, from: Duration, to: Duration) -> u64 {
    let (mut now, mut started) = (from, 0);
    while now < to && started < 100_000 {
        now = now.max(limiter.ready_at(0));
        if now < to {
            limiter.take(now, 0);
            started += 1;
        }
    }
    started
}

#[test]
fn unlimited_calls_start_at_once() {
    let mut limiter = RateLimiter::default();
    for _ in 0..10_000 {
        assert_eq!(limiter.ready_at(100_000), Duration::ZERO);
        limiter.take(at(5), 100_000);
    }
    assert_eq!(limiter.limits(), Limits::default());
}

#[test]
fn extreme_provider_limit_counts_as_unlimited() {
    let mut limiter = RateLimiter::default();
    limiter.reported(
        at(100),
        &request_limits(u64::MAX, 5, 1),
        InFlightLoad::default(),
    );
    limiter.refused(at(101), refused(at(100), Some(at(2))));
    limiter.take(at(103), u64::MAX);
    limiter.settle(u64::MAX, 1);
    assert!(starts(&mut limiter, at(160), at(161)) > 10_000);
}

#[test]
fn provider_limit_replaces_the_current_one() {
    let mut limiter = RateLimiter::default();
    limiter.reported(at(100), &request_limits(60, 59, 1), InFlightLoad::default());
    assert_eq!(limiter.limits().requests, Some(60));
    assert!(starts(&mut limiter, at(100), at(160)) <= 60);
    limiter.reported(
        at(160),
        &request_limits(6_000, 5_999, 1),
        InFlightLoad::default(),
    );
    assert!(starts(&mut limiter, at(160), at(220)) > 5_000, "raised");
    limiter.reported(at(220), &request_limits(60, 59, 1), InFlightLoad::default());
    assert!(starts(&mut limiter, at(280), at(340)) <= 60, "lowered");
}

#[test]
fn remaining_allowance_subtracts_requests_in_flight() {
    let in_flight = InFlightLoad {
        requests: 5,
        tokens: 0,
    };
    for (name, limits, ready) in [
        ("enough is left", request_limits(600, 500, 10), at(100)),
        (
            "on its way already, and the window ends soon",
            request_limits(600, 5, 7),
            at(107),
        ),
        (
            "nothing is left, and the window ends soon",
            request_limits(600, 0, 7),
            at(107),
        ),
    ] {
        let mut limiter = RateLimiter::default();
        limiter.reported(at(100), &limits, in_flight);
        assert_eq!(limiter.ready_at(0).max(at(100)), ready, "{name}");
    }
    let mut limiter = RateLimiter::default();
    limiter.reported(at(100), &request_limits(600, 0, 60), in_flight);
    let next = limiter.ready_at(0);
    assert!(
        next > at(100) && next < at(101),
        "refilled continuously: {next:?}"
    );
}

#[test]
fn token_estimates_are_settled_by_actual_usage() {
    let settings = GatewaySettings {
        tokens_per_minute: Some(60_000),
        ..GatewaySettings::default()
    };
    let mut limiter = RateLimiter::configured(&settings);
    limiter.take(at(100), 15_000);
    assert!(limiter.ready_at(1_000) > at(100));
    limiter.settle(15_000, 2_000);
    assert!(
        limiter.ready_at(1_000) <= at(100),
        "most of it was not used"
    );
    let reported = RateLimits {
        tokens: Allowance {
            limit: Some(40_000),
            remaining: Some(1_000),
            reset: None,
        },
        ..RateLimits::default()
    };
    let in_flight = InFlightLoad {
        requests: 1,
        tokens: 600,
    };
    limiter.reported(at(101), &reported, in_flight);
    assert_eq!(limiter.limits().tokens, Some(40_000));
    assert!(limiter.ready_at(400) <= at(101) && limiter.ready_at(401) > at(101));
}

#[test]
fn refusal_pauses_for_the_providers_retry_after_or_briefly() {
    for (name, after, held) in [
        ("the provider says when", Some(at(20)), at(20)),
        ("it says nothing", None, Duration::from_millis(500)),
        ("it says a day", Some(at(86_400)), LONGEST_HOLD),
    ] {
        let mut limiter = RateLimiter::default();
        let hold = limiter.refused(at(100), refused(at(99), after));
        assert_eq!(hold, Some(held), "{name}");
        assert_eq!(
            (limiter.held_for(at(100)), limiter.ready_at(0)),
            (held, at(100) + held),
            "{name}"
        );
        assert_eq!(limiter.aimd.limit(), Some(5), "{name}");
        assert_eq!(limiter.aimd.lifted_at(), Some(at(160) + held), "{name}");
    }
}

#[test]
fn back_off_doubles_per_window_of_refusals() {
    let (mut limiter, ms) = (RateLimiter::default(), Duration::from_millis);
    let mut now = at(100);
    for held in [500, 1_000, 2_000, 4_000, 8_000, 10_000, 10_000] {
        let started = now - ms(1);
        assert_eq!(limiter.refused(now, refused(started, None)), Some(ms(held)));
        for _ in 0..50 {
            assert_eq!(limiter.refused(now, refused(started, None)), None);
        }
        assert_eq!(limiter.held_for(now), ms(held));
        now = limiter.ready_at(0) + ms(5);
    }
    assert_eq!(limiter.aimd.limit(), Some(1), "halved with each");
    limiter.answered(at(99));
    let still = limiter.refused(now, refused(now - ms(1), None));
    assert_eq!(still, Some(ms(10_000)), "an answer to an older call");
    limiter.answered(now + ms(1));
    let again = limiter.refused(now + ms(9), refused(now + ms(2), None));
    assert_eq!(again, Some(ms(500)), "an answer since the last refusal");
}

#[test]
fn back_off_is_jittered_between_half_and_full() {
    for (entropy, held) in [(0, 250), (1_023, 500), (1_024, 250), (u64::MAX, 500)] {
        assert_eq!(back_off(1, entropy), Duration::from_millis(held));
    }
}

const LONG: Duration = Duration::from_secs(600);

fn taken(pace: &mut PaceLimit, from: Duration, calls: usize, each: u64) -> Vec<Duration> {
    let mut now = from;
    let start = |_| {
        now = now.max(pace.bucket.ready_at(each));
        pace.bucket.charge(now, each);
        now
    };
    (0..calls).map(start).collect()
}

#[test]
fn sliding_minute_never_exceeds_the_limit() {
    for limit in [1, 3, 10, 19, 20, 60, 600, 10_000] {
        let mut pace = PaceLimit::new(Kind::Requests, limit);
        let many = usize::try_from(limit).unwrap() * 3 + 5;
        let mut all = taken(&mut pace, LONG, many, 1);
        // Again after an idle period.
        let rested = *all.last().unwrap() + LONG;
        all.extend(taken(&mut pace, rested, many, 1));
        let (mut most, mut first) = (0, 0);
        for (index, at) in all.iter().enumerate() {
            while *at - all[first] >= Duration::from_secs(60) {
                first += 1;
            }
            most = most.max((index + 1 - first) as u64);
        }
        assert!(most <= limit, "{limit}: {most}");
        assert!(most * 10 >= limit * 9, "{limit}: only {most}");
    }
}

#[test]
fn bucket_refills_continuously_up_to_a_burst() {
    let mut pace = PaceLimit::new(Kind::Requests, 600);
    let first = taken(&mut pace, LONG, 31, 1);
    assert!(first[..30].iter().all(|at| *at == LONG), "a burst");
    let one = first[30] - LONG;
    assert!(one > Duration::from_millis(100) && one < Duration::from_millis(120));
}

#[test]
fn oversized_call_waits_for_a_full_bucket_and_overdraws_it() {
    let mut pace = PaceLimit::new(Kind::Tokens, 1_200);
    assert!(pace.bucket.ready_at(50_000) <= LONG);
    pace.bucket.charge(LONG, 5_000);
    let next = pace.bucket.ready_at(1) - LONG;
    assert!(next > Duration::from_secs(240), "{next:?}");
    pace.settle(5_000, 200);
    assert!(
        pace.bucket.ready_at(100) <= LONG,
        "it took less than a burst"
    );
    pace.settle(0, 300);
    assert!(
        pace.bucket.ready_at(1) > LONG,
        "it took more than was thought"
    );
}

#[test]
fn extreme_token_counts_do_not_block_the_bucket() {
    for kind in [Kind::Requests, Kind::Tokens] {
        let mut pace = PaceLimit::new(kind, 60_000);
        for used in [u64::MAX, 10_000_000_000_000] {
            pace.bucket.charge(LONG, 500);
            pace.settle(500, used);
        }
        let next = pace.bucket.ready_at(1).saturating_sub(LONG);
        assert!(next < Duration::from_secs(180), "{kind:?}: {next:?}");
        let mut pace = PaceLimit::new(kind, u64::MAX);
        pace.bucket.at_most(LONG, 0);
        let next = pace.bucket.ready_at(1).saturating_sub(LONG);
        assert!(next < Duration::from_secs(60), "{kind:?}: {next:?}");
    }
}

#[test]
fn provider_remaining_lowers_the_bucket_and_never_fills_it() {
    let mut pace = PaceLimit::new(Kind::Requests, 600);
    pace.bucket.at_most(LONG, 1_000);
    assert!(pace.bucket.ready_at(30) <= LONG);
    pace.bucket.at_most(LONG, 2);
    assert!(pace.bucket.ready_at(2) <= LONG && pace.bucket.ready_at(3) > LONG);
    pace.bucket.at_most(LONG, 9);
    assert!(pace.bucket.ready_at(3) > LONG, "not filled");
    pace.set_limit(60_000);
    assert_eq!(pace.limit, 60_000);
    pace.set_limit(60);
    assert!(pace.bucket.ready_at(1) > LONG, "what was taken stays taken");
}

#[test]
fn refusal_halves_concurrency_and_successes_raise_it_by_one() {
    let mut aimd = Aimd::default();
    assert!(aimd.allows(1_000_000), "no limit before the first 429");
    for (name, running, limit) in [
        ("half of what ran", 50, 25),
        ("half of the limit, however many still ran", 40, 12),
        ("half of what ran, if that was less", 7, 3),
        ("rounded down", 3, 1),
        ("never under one", 1, 1),
    ] {
        aimd.refused(at(1), running);
        assert_eq!(aimd.limit(), Some(limit), "{name}");
    }
    for (successes, limit) in [(1, 2), (2, 3), (3, 4), (3, 4), (1, 5)] {
        (0..successes).for_each(|_| aimd.answered());
        assert_eq!(aimd.limit(), Some(limit));
    }
    assert!(aimd.allows(4) && !aimd.allows(5));
}

#[test]
fn concurrency_limit_is_lifted_a_minute_after_the_last_refusal() {
    let mut aimd = Aimd::default();
    assert!(!aimd.lift(at(1_000)), "there is none");
    aimd.refused(at(10), 8);
    aimd.refused(at(20), 8);
    assert_eq!(aimd.lifted_at(), Some(at(80)));
    assert!(!aimd.lift(at(79)));
    assert!(aimd.lift(at(80)));
    assert_eq!(aimd.limit(), None);
}

#[test]
fn configured_limits_are_divided_by_the_nodes() {
    let settings = GatewaySettings {
        requests_per_minute: Some(600),
        tokens_per_minute: Some(2),
        ..GatewaySettings::default()
    };
    let mut limiter = RateLimiter::configured(&settings);
    for (nodes, requests, tokens) in [(3, 200, 1), (1, 600, 2), (1_000, 1, 1)] {
        limiter.divide(&settings, nodes);
        let limits = Limits {
            requests: Some(requests),
            tokens: Some(tokens),
        };
        assert_eq!(limiter.limits(), limits, "{nodes}");
    }
}
