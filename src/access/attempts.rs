//! A rate limiter for wrong keys, per client address. Pure: time is a value.
//!
//! A request with a valid key is always admitted, so that others at its address cannot lock it out.
//! The limiter protects the log and the machine; keys cannot be guessed anyway.
//!
//! **Invariant:** the table is bounded. Addresses that do not fit share one bucket.

use std::{
    collections::HashMap,
    net::{IpAddr, Ipv6Addr},
    time::Duration,
};

use super::Bucket;

const MAX_NETWORKS: usize = 8_192;
/// Least time between sweeps, which remove full buckets.
const SWEEP: Duration = Duration::from_secs(1);

/// Wrong keys per client address.
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
