//! Times and durations as values; no clock.

use std::{fmt, time::Duration};

use serde::{Deserialize, Deserializer, Serialize, Serializer, de};

/// Milliseconds since 1970-01-01 UTC; written as RFC 3339 with milliseconds.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Timestamp(i64);

impl Timestamp {
    /// From milliseconds since 1970-01-01 UTC.
    pub const fn from_millis(millis: i64) -> Self {
        Self(millis)
    }

    /// Milliseconds since 1970-01-01 UTC.
    pub const fn as_millis(self) -> i64 {
        self.0
    }

    /// Time since `earlier`, or zero.
    pub fn since(self, earlier: Self) -> Duration {
        Duration::from_millis(u64::try_from(self.0.saturating_sub(earlier.0)).unwrap_or(0))
    }

    /// The time `later` after this one, saturating.
    #[must_use]
    pub fn plus(self, later: Duration) -> Self {
        let later = i64::try_from(later.as_millis()).unwrap_or(i64::MAX);
        Self(self.0.saturating_add(later))
    }
}

impl fmt::Display for Timestamp {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match jiff::Timestamp::from_millisecond(self.0) {
            Ok(time) => write!(f, "{time:.3}"),
            // Outside the range of the calendar.
            Err(_) => write!(f, "@{}ms", self.0),
        }
    }
}

/// A duration for display, rounded up: `250 ms`, `45 s`, `12 min`, `3 h`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Span(pub Duration);

impl fmt::Display for Span {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let millis = self.0.as_nanos().div_ceil(1_000_000);
        let (of, unit) = match millis {
            0..=999 => (1, "ms"),
            1_000..=120_000 => (1_000, "s"),
            120_001..=7_200_000 => (60_000, "min"),
            _ => (3_600_000, "h"),
        };
        write!(f, "{} {unit}", millis.div_ceil(of))
    }
}

impl Serialize for Timestamp {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for Timestamp {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = std::borrow::Cow::<'de, str>::deserialize(deserializer)?;
        let time: jiff::Timestamp = text.parse().map_err(de::Error::custom)?;
        Ok(Self(time.as_millisecond()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn round_trips_as_rfc_3339() {
        let time = Timestamp::from_millis(1_767_225_600_123);
        let text = serde_json::to_string(&time).unwrap();
        assert_eq!(text, "\"2026-01-01T00:00:00.123Z\"");
        assert_eq!(serde_json::from_str::<Timestamp>(&text).unwrap(), time);
    }

    #[test]
    fn spans_display_in_a_readable_unit() {
        for (span, told) in [
            (Duration::ZERO, "0 ms"),
            (Duration::from_micros(249_100), "250 ms"),
            (Duration::from_nanos(999_999_999), "1 s"),
            (Duration::from_micros(4_999_812), "5 s"),
            (Duration::from_secs(120), "120 s"),
            (Duration::from_secs(600), "10 min"),
            (Duration::from_secs(10_800), "3 h"),
            (Duration::from_secs(86_400), "24 h"),
        ] {
            assert_eq!(Span(span).to_string(), told);
        }
    }

    #[test]
    fn arithmetic_saturates() {
        let (early, late) = (Timestamp::from_millis(5), Timestamp::from_millis(1_005));
        assert_eq!(late.since(early), Duration::from_secs(1));
        assert_eq!(early.since(late), Duration::ZERO);
        assert_eq!(
            Timestamp::from_millis(i64::MAX)
                .plus(Duration::MAX)
                .as_millis(),
            i64::MAX
        );
    }
}
