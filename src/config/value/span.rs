//! Spans of time within bounds, as people write them.

use std::{fmt, str::FromStr, time::Duration};

use serde::{Deserialize, Deserializer, Serialize, Serializer, de};

use super::NotAllowed;

/// Milliseconds in a second.
pub(in crate::config) const SECOND: u64 = 1_000;

/// The units, largest first, and their milliseconds.
const UNITS: [(&str, u64); 4] = [
    ("h", 3_600 * SECOND),
    ("m", 60 * SECOND),
    ("s", SECOND),
    ("ms", 1),
];

/// A span of time from `MIN` to `MAX` milliseconds; `30s`, `250ms`, `10m` or `1h` in text.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Span<const MIN: u64, const MAX: u64>(Duration);

impl<const MIN: u64, const MAX: u64> Span<MIN, MAX> {
    /// Milliseconds known when the program is compiled; out of bounds they do not compile.
    #[must_use]
    pub const fn of<const MILLIS: u64>() -> Self {
        const { assert!(MIN <= MILLIS && MILLIS <= MAX, "the span is out of bounds") };
        Self(Duration::from_millis(MILLIS))
    }

    /// A span within the bounds, in whole milliseconds.
    ///
    /// # Errors
    /// The bounds.
    pub fn new(span: Duration) -> Result<Self, NotAllowed> {
        let bounds = Duration::from_millis(MIN)..=Duration::from_millis(MAX);
        let whole = span.subsec_nanos().is_multiple_of(1_000_000);
        if whole && bounds.contains(&span) {
            Ok(Self(span))
        } else {
            Err(Self::allowed())
        }
    }

    /// The span.
    #[must_use]
    pub const fn get(self) -> Duration {
        self.0
    }

    fn allowed() -> NotAllowed {
        let text = |millis| Written(Duration::from_millis(millis));
        let (min, max) = (text(MIN), text(MAX));
        NotAllowed(format!(
            "a time from {min} to {max}, written like 250ms, 30s, 10m or 1h"
        ))
    }
}

impl<const MIN: u64, const MAX: u64> FromStr for Span<MIN, MAX> {
    type Err = NotAllowed;

    fn from_str(text: &str) -> Result<Self, NotAllowed> {
        let unit_at = text
            .find(|c: char| !c.is_ascii_digit())
            .unwrap_or(text.len());
        let (number, unit) = text.split_at(unit_at);
        let unit = UNITS.iter().find(|(name, _)| *name == unit);
        let millis = unit.zip(number.parse::<u64>().ok());
        let millis = millis.and_then(|((_, millis), number)| number.checked_mul(*millis));
        millis
            .map(Duration::from_millis)
            .ok_or_else(Self::allowed)
            .and_then(Self::new)
    }
}

/// A duration in the largest unit that holds it without a rest.
struct Written(Duration);

impl fmt::Display for Written {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let millis = self.0.as_millis();
        let fits = |(_, unit): &&(&str, u64)| millis > 0 && millis.is_multiple_of((*unit).into());
        let (name, unit) = UNITS.iter().find(fits).unwrap_or(&("ms", 1));
        write!(f, "{}{name}", millis / u128::from(*unit))
    }
}

impl<const MIN: u64, const MAX: u64> fmt::Display for Span<MIN, MAX> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        Written(self.0).fmt(f)
    }
}

impl<const MIN: u64, const MAX: u64> Serialize for Span<MIN, MAX> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de, const MIN: u64, const MAX: u64> Deserialize<'de> for Span<MIN, MAX> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        // What is no text has no unit, which is refused like any other missing unit.
        let text = String::deserialize(deserializer).unwrap_or_default();
        text.parse().map_err(de::Error::custom)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    type Day = Span<0, 86_400_000>;

    #[test]
    fn spans_are_read_and_written_in_the_largest_whole_unit() {
        for (text, millis, written) in [
            ("0ms", 0, "0ms"),
            ("250ms", 250, "250ms"),
            ("1000ms", 1_000, "1s"),
            ("30s", 30_000, "30s"),
            ("90s", 90_000, "90s"),
            ("900s", 900_000, "15m"),
            ("10m", 600_000, "10m"),
            ("1h", 3_600_000, "1h"),
            ("24h", 86_400_000, "24h"),
        ] {
            let span: Day = text.parse().unwrap();
            assert_eq!(span.get(), Duration::from_millis(millis), "{text}");
            assert_eq!(span.to_string(), written, "{text}");
            assert_eq!(written.parse(), Ok(span), "{text}");
        }
    }

    #[test]
    fn what_has_no_unit_or_another_form_is_refused() {
        for text in [
            "",
            "30",
            "s",
            "-1s",
            "1.5s",
            "1 s",
            "1S",
            "1d",
            "1m30s",
            "1s ",
            "25h",
            "9999999999999999999h",
        ] {
            let says = "a time from 0ms to 24h, written like 250ms, 30s, 10m or 1h";
            assert_eq!(text.parse::<Day>(), Err(NotAllowed(says.into())), "{text}");
        }
        assert!(
            Day::new(Duration::from_nanos(1)).is_err(),
            "less than a millisecond"
        );
    }
}
