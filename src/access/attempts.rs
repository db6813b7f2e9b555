//! How often an address may show a key that is none. Pure: time is a value.
//!
//! Whoever shows a right key is let in all the same: others at the same address must not be able to keep
//! him out. So this guards the log and the machine, not the keys, which nobody can guess.
//!
//! **Invariant:** the table has a bound. Addresses for which there is no room share one place.

use std::{
    collections::HashMap,
    net::{IpAddr, Ipv6Addr},
    time::Duration,
};

use super::Bucket;

/// Most addresses that are told apart.
const MOST: usize = 8_192;
/// How often the table is cleared of those that may try again as often as anybody.
const SWEEP: Duration = Duration::from_secs(1);

/// An address has shown too many wrong keys.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TooMany {
    /// When it may try again.
    pub retry_after: Duration,
}

/// See the module.
#[derive(Debug)]
pub struct Attempts {
    a_minute: u64,
    places: HashMap<IpAddr, Bucket>,
    /// Of all for whom there is no place.
    others: Bucket,
    swept: Duration,
}

impl Attempts {
    /// So many in a minute.
    #[must_use]
    pub fn new(a_minute: u64) -> Self {
        Self {
            a_minute,
            places: HashMap::new(),
            others: Bucket::new(a_minute.saturating_mul(8)),
            swept: Duration::ZERO,
        }
    }

    /// Somebody at this address has shown a wrong key.
    ///
    /// # Errors
    /// When that was too often.
    pub fn failed(&mut self, from: IpAddr, now: Duration) -> Result<(), TooMany> {
        let place = place_of(from);
        if self.places.len() >= MOST && !self.places.contains_key(&place) {
            self.sweep(now);
        }
        let room = self.places.len() < MOST || self.places.contains_key(&place);
        let a_minute = self.a_minute;
        let bucket = if room {
            let bucket = self.places.entry(place);
            bucket.or_insert_with(|| Bucket::new(a_minute))
        } else {
            &mut self.others
        };
        bucket
            .take(now)
            .map_err(|retry_after| TooMany { retry_after })
    }

    fn sweep(&mut self, now: Duration) {
        if now < self.swept + SWEEP {
            return;
        }
        self.swept = now;
        self.places.retain(|_, bucket| !bucket.is_full(now));
    }
}

/// By what an address is counted: whoever has one of the newer kind has all of its network.
#[must_use]
pub fn place_of(address: IpAddr) -> IpAddr {
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
    fn an_address_may_be_wrong_so_often_in_a_minute() {
        let mut attempts = Attempts::new(10);
        let (one, other) = (address("10.0.0.1"), address("10.0.0.2"));
        for _ in 0..10 {
            attempts.failed(one, NOW).unwrap();
        }
        let TooMany { retry_after } = attempts.failed(one, NOW).unwrap_err();
        assert_eq!(retry_after, Duration::from_secs(6));
        attempts.failed(other, NOW).unwrap();
        assert!(attempts.failed(one, NOW + retry_after).is_ok());
        assert!(attempts.failed(one, NOW + retry_after).is_err());
    }

    #[test]
    fn a_network_of_the_newer_kind_counts_as_one_and_an_old_address_in_it_as_itself() {
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
    fn a_flood_of_addresses_finds_a_table_with_a_bound() {
        let mut attempts = Attempts::new(1);
        let flood = |attempts: &mut Attempts, now| {
            let all = (0..100_000_u32).map(|bits| IpAddr::V4(bits.into()));
            all.filter(|from| attempts.failed(*from, now).is_ok())
                .count()
        };
        assert_eq!(
            flood(&mut attempts, NOW),
            MOST + 8,
            "and a few in the common place"
        );
        assert_eq!(attempts.places.len(), MOST);
        let later = NOW + Duration::from_secs(120);
        assert_eq!(flood(&mut attempts, later), MOST + 8, "old ones make room");
        assert_eq!(attempts.places.len(), MOST);
    }
}
