//! How long something takes: always the same, or anything between two bounds.

use std::{str::FromStr, time::Duration};

use serde::Deserialize;

/// A duration, or two bounds of one: `20ms`, `20ms..80ms`, `0`.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize)]
#[serde(try_from = "String")]
pub struct Spread {
    from: Duration,
    to: Duration,
}

impl Spread {
    /// Always this long.
    #[must_use]
    pub const fn fixed(time: Duration) -> Self {
        Self {
            from: time,
            to: time,
        }
    }

    /// Whether it is nothing at all.
    #[must_use]
    pub const fn is_zero(&self) -> bool {
        self.to.is_zero()
    }

    /// One of the durations between the bounds, each as likely as the others.
    pub(super) fn at(&self, chance: u64) -> Duration {
        let width = u64::try_from((self.to - self.from).as_micros()).unwrap_or(u64::MAX - 1);
        self.from + Duration::from_micros(chance % (width + 1))
    }
}

/// A time that is not written as one.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error(
    "`{0}` is no time: write one with its unit, or two from the shorter to the longer, as `20ms` or `20ms..80ms` (units: us, ms, s, m)"
)]
pub struct SpreadError(String);

impl FromStr for Spread {
    type Err = SpreadError;

    fn from_str(text: &str) -> Result<Self, SpreadError> {
        let wrong = || SpreadError(text.to_owned());
        let (from, to) = text.split_once("..").unwrap_or((text, text));
        let from = duration(from).ok_or_else(wrong)?;
        let to = duration(to).ok_or_else(wrong)?;
        if from > to {
            return Err(wrong());
        }
        Ok(Self { from, to })
    }
}

impl TryFrom<String> for Spread {
    type Error = SpreadError;

    fn try_from(text: String) -> Result<Self, SpreadError> {
        text.parse()
    }
}

fn duration(text: &str) -> Option<Duration> {
    if text == "0" {
        return Some(Duration::ZERO);
    }
    // The longer units first: `ms` ends in `s`.
    let units = [
        ("us", 1),
        ("ms", 1_000),
        ("s", 1_000_000),
        ("m", 60_000_000),
    ];
    let (number, micros) = units
        .iter()
        .find_map(|(unit, micros)| Some((text.strip_suffix(unit)?, *micros)))?;
    let number: u64 = number.parse().ok()?;
    Some(Duration::from_micros(number.checked_mul(micros)?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_read_with_their_units() {
        let ms = Duration::from_millis;
        for (text, from, to) in [
            ("0", ms(0), ms(0)),
            ("20ms", ms(20), ms(20)),
            ("20ms..80ms", ms(20), ms(80)),
            ("0..2s", ms(0), ms(2_000)),
            ("1m", ms(60_000), ms(60_000)),
            (
                "500us",
                Duration::from_micros(500),
                Duration::from_micros(500),
            ),
        ] {
            assert_eq!(text.parse(), Ok(Spread { from, to }), "{text}");
        }
        for text in [
            "",
            "20",
            "ms",
            "-1ms",
            "2s..1s",
            "1.5s",
            "1s..",
            "99999999999999999m",
        ] {
            assert_eq!(text.parse::<Spread>(), Err(SpreadError(text.into())));
        }
    }

    #[test]
    fn a_spread_stays_within_its_bounds() {
        let spread: Spread = "1ms..2ms".parse().unwrap();
        assert_eq!(spread.at(0), Duration::from_millis(1));
        assert_eq!(spread.at(1_000), Duration::from_millis(2));
        assert_eq!(spread.at(1_001), Duration::from_millis(1));
        assert_eq!(Spread::default().at(u64::MAX), Duration::ZERO);
    }
}
