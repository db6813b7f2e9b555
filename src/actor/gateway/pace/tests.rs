//! Limits that are configured, told, and only felt.

use super::*;

fn at(seconds: u64) -> Duration {
    Duration::from_secs(seconds)
}

fn told_requests(limit: u64, remaining: u64, reset: u64) -> RateLimits {
    RateLimits {
        requests: Allowance {
            limit: Some(limit),
            remaining: Some(remaining),
            reset: Some(at(reset)),
        },
        ..RateLimits::default()
    }
}

/// How many calls start in the time from one to the other, if very many want to.
fn starts(pace: &mut Pace, from: Duration, to: Duration) -> u64 {
    let (mut now, mut started) = (from, 0);
    while now < to && started < 100_000 {
        now = now.max(pace.ready_at(0));
        if now < to {
            pace.take(now, 0);
            started += 1;
        }
    }
    started
}

#[test]
fn without_limits_everything_starts_at_once() {
    let mut pace = Pace::default();
    for _ in 0..10_000 {
        assert_eq!(pace.ready_at(100_000), Duration::ZERO);
        pace.take(at(5), 100_000);
    }
    assert_eq!(pace.lately(at(5)), 10_000);
    assert_eq!(pace.limits(), Limits::default());
}

#[test]
fn what_was_refused_is_no_part_of_what_a_guess_allows() {
    let mut pace = Pace::default();
    (0..100).for_each(|_| pace.take(at(100), 0));
    (0..60).for_each(|_| pace.refused(at(101), at(100), Some(at(5))));
    // Thirty-one in a minute, after the way back.
    let started = starts(&mut pace, at(121), at(131));
    assert!((4..=6).contains(&started), "{started}");
}

#[test]
fn an_absurd_limit_is_none() {
    let mut pace = Pace::default();
    pace.told(at(100), &told_requests(u64::MAX, 5, 1), InFlight::default());
    pace.refused(at(101), at(100), Some(at(2)));
    pace.take(at(103), u64::MAX);
    pace.settle(u64::MAX, 1);
    assert!(starts(&mut pace, at(160), at(161)) > 10_000);
}

#[test]
fn what_is_told_becomes_the_limit_and_may_change() {
    let mut pace = Pace::default();
    pace.told(at(100), &told_requests(60, 59, 1), InFlight::default());
    assert_eq!(pace.limits().requests, Some(60));
    assert!(starts(&mut pace, at(100), at(160)) <= 60);
    pace.told(
        at(160),
        &told_requests(6_000, 5_999, 1),
        InFlight::default(),
    );
    assert!(starts(&mut pace, at(160), at(220)) > 5_000, "raised");
    pace.told(at(220), &told_requests(60, 59, 1), InFlight::default());
    assert!(starts(&mut pace, at(280), at(340)) <= 60, "lowered");
}

#[test]
fn what_is_left_counts_with_what_is_on_its_way_and_a_window_is_waited_for() {
    let in_flight = InFlight {
        requests: 5,
        tokens: 0,
    };
    for (name, limits, ready) in [
        ("enough is left", told_requests(600, 500, 10), at(100)),
        (
            "on its way already, and the window ends soon",
            told_requests(600, 5, 7),
            at(107),
        ),
        (
            "nothing is left, and the window ends soon",
            told_requests(600, 0, 7),
            at(107),
        ),
    ] {
        let mut pace = Pace::default();
        pace.told(at(100), &limits, in_flight);
        assert_eq!(pace.ready_at(0).max(at(100)), ready, "{name}");
    }
    let mut pace = Pace::default();
    pace.told(at(100), &told_requests(600, 0, 60), in_flight);
    let next = pace.ready_at(0);
    assert!(
        next > at(100) && next < at(101),
        "refilled continuously: {next:?}"
    );
}

#[test]
fn tokens_are_taken_by_estimate_and_settled_by_use() {
    let settings = GatewaySettings {
        tokens_per_minute: Some(60_000),
        ..GatewaySettings::default()
    };
    let mut pace = Pace::configured(&settings);
    pace.take(at(100), 15_000);
    assert!(pace.ready_at(1_000) > at(100));
    pace.settle(15_000, 2_000);
    assert!(pace.ready_at(1_000) <= at(100), "most of it was not used");
    let told = RateLimits {
        tokens: Allowance {
            limit: Some(40_000),
            remaining: Some(1_000),
            reset: None,
        },
        ..RateLimits::default()
    };
    let in_flight = InFlight {
        requests: 1,
        tokens: 600,
    };
    pace.told(at(101), &told, in_flight);
    assert_eq!(pace.limits().tokens, Some(40_000));
    assert!(pace.ready_at(400) <= at(101) && pace.ready_at(401) > at(101));
}

#[test]
fn a_refusal_holds_until_it_may_come_again() {
    for (name, after, held) in [
        ("the provider says when", Some(at(20)), at(20)),
        ("it says nothing", None, at(1)),
        ("it says a day", Some(at(86_400)), LONGEST_HOLD),
    ] {
        let mut pace = Pace::default();
        pace.refused(at(100), at(99), after);
        assert_eq!(
            (pace.held_for(at(100)), pace.ready_at(0)),
            (held, at(100) + held),
            "{name}"
        );
    }
}

#[test]
fn refusals_without_a_hint_double_and_those_of_one_burst_count_once() {
    let mut pace = Pace::default();
    let mut now = at(100);
    for held in [1, 2, 4, 8, 16, 32, 64, 64] {
        for _ in 0..50 {
            pace.refused(now, now - Duration::from_millis(1), None);
        }
        assert_eq!(pace.held_for(now), at(held));
        now = pace.ready_at(0) + Duration::from_millis(5);
    }
    pace.answered();
    pace.refused(now, now - Duration::from_millis(1), None);
    assert_eq!(pace.held_for(now), at(1), "an answer in between");
}

#[test]
fn after_a_hold_calls_come_back_step_by_step() {
    // Known: to the whole of it within the ramp.
    let mut pace = Pace::default();
    pace.told(at(100), &told_requests(600, 599, 1), InFlight::default());
    pace.refused(at(100), at(99), Some(at(10)));
    let first = starts(&mut pace, at(100), at(115));
    assert!(
        (10..25).contains(&first),
        "{first} in the first five seconds"
    );
    starts(&mut pace, at(115), at(130));
    let later = starts(&mut pace, at(130), at(190));
    assert!((500..=600).contains(&later), "{later}");
    // Only felt: a little less than before, and then more and more.
    let mut pace = Pace::default();
    for second in 40..100 {
        (0..10).for_each(|_| pace.take(at(second), 0));
    }
    pace.refused(at(100), at(99), Some(at(10)));
    starts(&mut pace, at(100), at(126));
    let minute = starts(&mut pace, at(126), at(186));
    assert!((500..=800).contains(&minute), "{minute}");
    starts(&mut pace, at(186), at(500));
    assert!(pace.gentle.is_none(), "it was no limit after all");
}
