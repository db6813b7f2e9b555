//! A rate limiter per minute with continuous refill. Pure: times are values, from any origin.
//!
//! It stores one time (GCRA): the moment at which everything taken will have been paid back. A full
//! bucket holds one minute's worth.

use std::time::Duration;

const MINUTE: u64 = 60_000_000_000;

/// A token bucket.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Bucket {
    /// Nanoseconds until one token is refilled.
    one: u64,
    /// Nanoseconds until all tokens are refilled.
    all: u64,
    /// Time at which everything taken is paid back, in nanoseconds.
    paid: u64,
}

impl Bucket {
    /// A full bucket of `per_minute` tokens; 0 counts as 1.
    pub const fn new(per_minute: u64) -> Self {
        Self::holding(per_minute, per_minute)
    }

    /// A full bucket of `most` tokens, with `per_minute` refilled; 0 counts as 1.
    pub const fn holding(most: u64, per_minute: u64) -> Self {
        // Rounded up: slightly slower rather than faster than the limit.
        let one = MINUTE.div_ceil(if per_minute == 0 { 1 } else { per_minute });
        Self {
            one,
            all: one.saturating_mul(if most == 0 { 1 } else { most }),
            paid: 0,
        }
    }

    /// Takes one token.
    ///
    /// # Errors
    /// The time until a token is available.
    pub fn take(&mut self, now: Duration) -> Result<(), Duration> {
        self.check(now)?;
        self.charge(now, 1);
        Ok(())
    }

    /// Checks that a token is available, without taking it.
    ///
    /// # Errors
    /// The time until a token is available.
    pub fn check(&self, now: Duration) -> Result<(), Duration> {
        match self.ready_at(1).saturating_sub(now) {
            Duration::ZERO => Ok(()),
            wait => Err(wait),
        }
    }

    /// The time at which `count` tokens are available; a full bucket satisfies any count.
    pub fn ready_at(&self, count: u64) -> Duration {
        let spare = self.all.saturating_sub(self.worth(count));
        Duration::from_nanos(self.paid.saturating_sub(spare))
    }

    const fn worth(&self, count: u64) -> u64 {
        self.one.saturating_mul(count)
    }

    /// Tokens that are available.
    pub fn left(&self, now: Duration) -> u64 {
        let owed = self.paid.saturating_sub(nanos(now));
        self.all.saturating_sub(owed) / self.one
    }

    /// Takes `count` tokens, even more than there are: later calls wait until the debt is repaid.
    pub fn charge(&mut self, now: Duration, count: u64) {
        self.paid = self.paid.max(nanos(now)).saturating_add(self.worth(count));
    }

    /// Corrects an earlier charge.
    pub fn settle(&mut self, charged: u64, used: u64) {
        let paid = self.paid.saturating_add(self.worth(used));
        self.paid = paid.saturating_sub(self.worth(charged));
    }

    /// Takes all but so many tokens.
    pub fn at_most(&mut self, now: Duration, left: u64) {
        let gone = self.all.saturating_sub(self.worth(left));
        self.paid = self.paid.max(nanos(now).saturating_add(gone));
    }

    /// The same debt in a bucket of another size.
    #[must_use]
    pub fn resized(self, other: Self) -> Self {
        let paid = self.paid;
        Self { paid, ..other }
    }

    /// Whether all tokens are available.
    pub fn is_full(&self, now: Duration) -> bool {
        self.paid <= nanos(now)
    }
}

fn nanos(time: Duration) -> u64 {
    u64::try_from(time.as_nanos()).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    const START: Duration = Duration::from_secs(1_000);

    #[test]
    fn bucket_holds_one_minute_and_refills_continuously() {
        for limit in [1, 2, 7, 60, 100_000] {
            let mut bucket = Bucket::new(limit);
            let all = (0..2 * limit).filter(|_| bucket.take(START).is_ok());
            assert_eq!(all.count() as u64, limit, "{limit}");
            let wait = bucket.take(START).unwrap_err();
            assert!(bucket.take(START + wait - Duration::from_nanos(1)).is_err());
            assert!(bucket.take(START + wait).is_ok());
            assert!(bucket.take(START + wait).is_err());
            let later = START + wait + Duration::from_secs(61);
            assert!(bucket.is_full(later));
            let again = (0..2 * limit).filter(|_| bucket.take(later).is_ok());
            assert_eq!(
                again.count() as u64,
                limit,
                "never more, however long it rested"
            );
        }
    }

    #[test]
    fn overdraft_delays_later_requests() {
        let mut bucket = Bucket::new(600);
        bucket.charge(START, 1_200);
        let wait = bucket.check(START).unwrap_err();
        assert!(
            wait > Duration::from_secs(60) && wait < Duration::from_secs(61),
            "{wait:?}"
        );
        assert!(bucket.check(START + wait).is_ok());
        bucket.charge(START, u64::MAX);
        assert!(bucket.check(START).is_err(), "no number wraps around");
    }
}
