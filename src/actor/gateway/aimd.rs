//! Concurrency under rate limits that nobody has stated: additive increase, multiplicative decrease.
//!
//! A 429 halves the number of calls that may run at a time, and each window of successes (as many as may
//! run) allows one more. Only the first 429 of a window decreases the limit: those of calls that started
//! before the last decrease report the same congestion, and [`Pace`](super::pace::Pace) drops them. A
//! limit that no 429 has confirmed for a minute is lifted. Source: Chiu and Jain, "Analysis of the
//! Increase and Decrease Algorithms for Congestion Avoidance in Computer Networks" (1989), as TCP applies
//! it (RFC 5681, section 3.1). Pure: times are values, since the gateway's start.

use std::time::Duration;

/// A limit is lifted when no 429 has confirmed it for this long.
const LIFTED_AFTER: Duration = Duration::from_secs(60);

/// The concurrency limit of one model; none until a 429 is met.
#[derive(Debug, Default)]
pub(super) struct Aimd(Option<Window>);

#[derive(Debug)]
struct Window {
    /// Calls that may run at a time; at least one.
    limit: usize,
    /// Successes since the last increase.
    successes: usize,
    /// When it is lifted, unless a 429 confirms it.
    lifted_at: Duration,
}

impl Aimd {
    /// Whether one more call may start while `running` calls run.
    pub(super) fn allows(&self, running: usize) -> bool {
        self.limit().is_none_or(|limit| running < limit)
    }

    /// The hold is longer than was thought: the limit cannot be confirmed before it ends.
    pub(super) fn held_until(&mut self, held: Duration) {
        if let Some(window) = &mut self.0 {
            window.lifted_at = window.lifted_at.max(held + LIFTED_AFTER);
        }
    }

    /// Calls that may run at a time, where that is limited.
    pub(super) fn limit(&self) -> Option<usize> {
        self.0.as_ref().map(|window| window.limit)
    }

    /// When the limit is lifted, where there is one.
    pub(super) fn lifted_at(&self) -> Option<Duration> {
        self.0.as_ref().map(|window| window.lifted_at)
    }

    /// A call was answered.
    pub(super) fn answered(&mut self) {
        if let Some(window) = &mut self.0 {
            window.successes += 1;
            if window.successes >= window.limit {
                (window.limit, window.successes) = (window.limit + 1, 0);
            }
        }
    }

    /// A window met a 429 while `running` calls ran, the refused one included. Nothing starts before
    /// `held`, so the limit cannot be confirmed before then.
    pub(super) fn refused(&mut self, held: Duration, running: usize) {
        let ran = self.limit().map_or(running, |limit| limit.min(running));
        self.0 = Some(Window {
            limit: (ran / 2).max(1),
            successes: 0,
            lifted_at: held + LIFTED_AFTER,
        });
    }

    /// Lifts the limit if it is time; whether it was.
    pub(super) fn lift(&mut self, now: Duration) -> bool {
        let due = self.lifted_at().is_some_and(|at| at <= now);
        if due {
            self.0 = None;
        }
        due
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(seconds: u64) -> Duration {
        Duration::from_secs(seconds)
    }

    #[test]
    fn a_refusal_halves_and_a_window_of_successes_adds_one() {
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
    fn a_limit_is_lifted_a_minute_after_the_last_hold() {
        let mut aimd = Aimd::default();
        assert!(!aimd.lift(at(1_000)), "there is none");
        aimd.refused(at(10), 8);
        aimd.refused(at(20), 8);
        assert_eq!(aimd.lifted_at(), Some(at(80)));
        assert!(!aimd.lift(at(79)));
        assert!(aimd.lift(at(80)));
        assert_eq!(aimd.limit(), None);
    }
}
