//! So much in a minute, refilled continuously. Pure: times are values, since the gateway's start.
//!
//! Kept as one time (GCRA): the moment at which all that was taken will have been paid back. What is
//! taken at once is bounded to a small share of the minute, because providers count by windows that
//! begin when they like, and may cut the minute into shorter ones.

use std::time::Duration;

/// Nanoseconds in a minute.
const MINUTE: u64 = 60_000_000_000;

/// What is told to be more than this in a minute is no limit, and times would be too coarse for it.
const MOST: u64 = 1_000_000_000;

/// What is counted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    /// Calls, each as good as the other. A burst of a twentieth; the pace leaves room for it in any
    /// window of a minute, and as much again for calls that overtake one another on their way.
    Requests,
    /// Tokens, known only roughly beforehand. A burst of a quarter, because one call takes many.
    Tokens,
}

/// See the module.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Bucket {
    kind: Kind,
    limit: u64,
    /// Nanoseconds until one is refilled.
    one: u64,
    /// How many may be taken at once.
    burst: u64,
    /// When everything taken is paid back, in nanoseconds.
    paid: u64,
}

impl Bucket {
    /// A full one.
    pub(super) fn new(kind: Kind, limit: u64) -> Self {
        let limit = limit.clamp(1, MOST);
        let (burst, rate) = match kind {
            Kind::Requests => {
                let burst = (limit / 20).max(1);
                (burst, limit - 2 * (burst - 1))
            }
            Kind::Tokens => ((limit / 4).max(1), (limit - limit / 20).max(1)),
        };
        Self {
            kind,
            limit,
            // Rounded up: rather a little slower.
            one: MINUTE.div_ceil(rate.max(1)),
            burst,
            paid: 0,
        }
    }

    /// In a minute.
    pub(super) const fn limit(&self) -> u64 {
        self.limit
    }

    /// Another limit; what was taken stays taken.
    pub(super) fn set_limit(&mut self, limit: u64) {
        if limit.clamp(1, MOST) != self.limit {
            let paid = self.paid;
            *self = Self::new(self.kind, limit);
            self.paid = paid;
        }
    }

    /// When `count` may be taken. More than a burst at once may be taken when the bucket is full.
    pub(super) fn ready_at(&self, count: u64) -> Duration {
        let spare = self.burst - count.min(self.burst);
        Duration::from_nanos(self.paid.saturating_sub(self.worth(spare)))
    }

    /// Takes them, ready or not.
    pub(super) fn take(&mut self, now: Duration, count: u64) {
        self.paid = self.paid.max(nanos(now)).saturating_add(self.worth(count));
    }

    /// It was not as much as was taken, or more. One call is not believed to have used more than a minute's
    /// worth: servers miscount, and that must not end all calls.
    pub(super) fn settle(&mut self, taken: u64, used: u64) {
        let used = used.min(self.limit.max(taken));
        let paid = self.paid.saturating_add(self.worth(used));
        self.paid = paid.saturating_sub(self.worth(taken));
    }

    /// No more than this is left, says the other side.
    pub(super) fn at_most(&mut self, now: Duration, left: u64) {
        let gone = self.burst - left.min(self.burst);
        self.paid = self.paid.max(nanos(now).saturating_add(self.worth(gone)));
    }

    const fn worth(&self, count: u64) -> u64 {
        self.one.saturating_mul(count)
    }
}

fn nanos(time: Duration) -> u64 {
    u64::try_from(time.as_nanos()).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    const LONG: Duration = Duration::from_secs(600);

    /// When each of them starts, if they all want to at `from`.
    fn starts(bucket: &mut Bucket, from: Duration, calls: usize, each: u64) -> Vec<Duration> {
        let mut now = from;
        let start = |_| {
            now = now.max(bucket.ready_at(each));
            bucket.take(now, each);
            now
        };
        (0..calls).map(start).collect()
    }

    #[test]
    fn no_window_of_a_minute_sees_more_than_the_limit() {
        for limit in [1, 3, 10, 19, 20, 60, 600, 10_000] {
            let mut bucket = Bucket::new(Kind::Requests, limit);
            let many = usize::try_from(limit).unwrap() * 3 + 5;
            let mut all = starts(&mut bucket, LONG, many, 1);
            // And again after a rest.
            let rested = *all.last().unwrap() + LONG;
            all.extend(starts(&mut bucket, rested, many, 1));
            // How many lie in the minute that begins with each of them.
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
    fn it_is_refilled_continuously_and_never_beyond_a_burst() {
        let mut bucket = Bucket::new(Kind::Requests, 600);
        let first = starts(&mut bucket, LONG, 31, 1);
        assert!(first[..30].iter().all(|at| *at == LONG), "a burst");
        let one = first[30] - LONG;
        assert!(one > Duration::from_millis(100) && one < Duration::from_millis(120));
    }

    #[test]
    fn a_call_larger_than_the_bucket_is_made_when_it_is_full_and_paid_back_afterwards() {
        let mut bucket = Bucket::new(Kind::Tokens, 1_200);
        assert!(bucket.ready_at(50_000) <= LONG);
        bucket.take(LONG, 5_000);
        let next = bucket.ready_at(1) - LONG;
        assert!(next > Duration::from_secs(240), "{next:?}");
        bucket.settle(5_000, 200);
        assert!(bucket.ready_at(100) <= LONG, "it took less than a burst");
        bucket.settle(0, 300);
        assert!(bucket.ready_at(1) > LONG, "it took more than was thought");
    }

    #[test]
    fn absurd_figures_do_not_end_all_calls() {
        for kind in [Kind::Requests, Kind::Tokens] {
            let mut bucket = Bucket::new(kind, 60_000);
            for used in [u64::MAX, 10_000_000_000_000] {
                bucket.take(LONG, 500);
                bucket.settle(500, used);
            }
            let next = bucket.ready_at(1).saturating_sub(LONG);
            assert!(next < Duration::from_secs(180), "{kind:?}: {next:?}");
            let mut bucket = Bucket::new(kind, u64::MAX);
            bucket.at_most(LONG, 0);
            let next = bucket.ready_at(1).saturating_sub(LONG);
            assert!(next < Duration::from_secs(60), "{kind:?}: {next:?}");
        }
    }

    #[test]
    fn what_the_other_side_says_lowers_it_and_never_fills_it() {
        let mut bucket = Bucket::new(Kind::Requests, 600);
        bucket.at_most(LONG, 1_000);
        assert!(bucket.ready_at(30) <= LONG);
        bucket.at_most(LONG, 2);
        assert!(bucket.ready_at(2) <= LONG && bucket.ready_at(3) > LONG);
        bucket.at_most(LONG, 9);
        assert!(bucket.ready_at(3) > LONG, "not filled");
        bucket.set_limit(60_000);
        assert_eq!(bucket.limit(), 60_000);
        bucket.set_limit(60);
        assert!(bucket.ready_at(1) > LONG, "what was taken stays taken");
    }
}
