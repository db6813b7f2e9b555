//! Rate limiters per minute with continuous refill. Pure: times are values, from any origin.

use std::{
    collections::HashMap,
    net::{IpAddr, Ipv6Addr},
    time::Duration,
};

const MINUTE: u64 = 60_000_000_000;
const MAX_NETWORKS: usize = 8_192;
/// Least time between sweeps, which remove full buckets.
const SWEEP: Duration = Duration::from_secs(1);

/// A token bucket. A full one holds one minute's worth.
///
/// It stores one time (GCRA): the moment at which everything taken will have been paid back.
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

/// Wrong keys per client address.
///
/// A request with a valid key is always admitted, so that others at its address cannot lock it out.
/// This protects the log and the machine; keys cannot be guessed anyway.
///
/// **Invariant:** the table is bounded. Addresses that do not fit share one bucket.
#[derive(Debug)]
pub struct Attempts {
    per_minute: u64,
    buckets: HashMap<IpAddr, Bucket>,
    /// Shared by all addresses that do not fit into `buckets`.
    others: Bucket,
    swept: Duration,
}

impl Attempts {
    /// A limiter that allows `per_minute` wrong keys per minute and address.
    pub fn new(per_minute: u64) -> Self {
        Self {
            per_minute,
            buckets: HashMap::new(),
            others: Bucket::new(per_minute.saturating_mul(8)),
            swept: Duration::ZERO,
        }
    }

    /// Records a wrong key from this address. `now` is monotonic, from any origin.
    ///
    /// # Errors
    /// The time until the address may send another wrong key, if its attempts are used up.
    pub fn failed(&mut self, from: IpAddr, now: Duration) -> Result<(), Duration> {
        let network = network_of(from);
        let no_room = self.buckets.len() >= MAX_NETWORKS && !self.buckets.contains_key(&network);
        if no_room && now >= self.swept + SWEEP {
            self.swept = now;
            self.buckets.retain(|_, bucket| !bucket.is_full(now));
        }
        let room = self.buckets.len() < MAX_NETWORKS || self.buckets.contains_key(&network);
        let per_minute = self.per_minute;
        let own = room.then(|| self.buckets.entry(network));
        let bucket = match own {
            Some(own) => own.or_insert_with(|| Bucket::new(per_minute)),
            None => &mut self.others,
        };
        bucket.take(now)
    }
}

/// The unit that an address is counted by: an IPv4 address, or the /64 network of an IPv6 address.
pub fn network_of(address: IpAddr) -> IpAddr {
    match address.to_canonical() {
        IpAddr::V6(address) => {
            let network = address.to_bits() & !u128::from(u64::MAX);
            IpAddr::V6(Ipv6Addr::from_bits(network))
        }
        address @ IpAddr::V4(_) => address,
    }
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

    const NOW: Duration = Duration::from_secs(100);

    fn address(text: &str) -> IpAddr {
        text.parse().unwrap()
    }

    #[test]
    fn failed_attempts_per_address_are_rate_limited() {
        let mut attempts = Attempts::new(10);
        let (one, other) = (address("10.0.0.1"), address("10.0.0.2"));
        for _ in 0..10 {
            attempts.failed(one, NOW).unwrap();
        }
        let retry_after = attempts.failed(one, NOW).unwrap_err();
        assert_eq!(retry_after, Duration::from_secs(6));
        attempts.failed(other, NOW).unwrap();
        assert!(attempts.failed(one, NOW + retry_after).is_ok());
        assert!(attempts.failed(one, NOW + retry_after).is_err());
    }

    #[test]
    fn ipv6_network_shares_a_limit_and_mapped_ipv4_counts_as_ipv4() {
        let mut attempts = Attempts::new(2);
        attempts.failed(address("2001:db8::1"), NOW).unwrap();
        attempts.failed(address("2001:db8::2:3:4:5"), NOW).unwrap();
        assert!(attempts.failed(address("2001:db8::9"), NOW).is_err());
        assert!(attempts.failed(address("2001:db8:0:1::1"), NOW).is_ok());
        attempts.failed(address("10.0.0.1"), NOW).unwrap();
        attempts.failed(address("::ffff:10.0.0.1"), NOW).unwrap();
        assert!(attempts.failed(address("10.0.0.1"), NOW).is_err());
    }

    #[test]
    fn attempts_table_is_bounded_under_a_flood_of_addresses() {
        let mut attempts = Attempts::new(1);
        let flood = |attempts: &mut Attempts, now| {
            let all = (0..100_000_u32).map(|bits| IpAddr::V4(bits.into()));
            all.filter(|from| attempts.failed(*from, now).is_ok())
                .count()
        };
        assert_eq!(
            flood(&mut attempts, NOW),
            MAX_NETWORKS + 8,
            "and a few in the common network"
        );
        assert_eq!(attempts.buckets.len(), MAX_NETWORKS);
        let later = NOW + Duration::from_secs(120);
        assert_eq!(
            flood(&mut attempts, later),
            MAX_NETWORKS + 8,
            "old ones make room"
        );
        assert_eq!(attempts.buckets.len(), MAX_NETWORKS);
    }
}
