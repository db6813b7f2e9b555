//! Budget arithmetic, exact and in integers.

use std::{fmt, str::FromStr};

use serde::{Deserialize, Deserializer, Serialize, Serializer, de};

use crate::model::decimal;

/// A share in ten-thousandths: 0.70 is 7,000.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct BasisPoints(u16);

impl BasisPoints {
    /// The whole.
    pub const ONE: Self = Self(10_000);

    /// Creates a share from ten-thousandths, at most the whole.
    pub const fn new(points: u16) -> Self {
        Self(if points > Self::ONE.0 {
            Self::ONE.0
        } else {
            points
        })
    }

    /// floor(`whole` × this).
    pub const fn floor_of(self, whole: u64) -> u64 {
        (whole as u128 * self.0 as u128 / Self::ONE.0 as u128) as u64
    }

    /// The nearest fraction, for comparisons with a model's confidence.
    pub fn as_fraction(self) -> f64 {
        f64::from(self.0) / f64::from(Self::ONE.0)
    }
}

impl fmt::Display for BasisPoints {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{:04}", self.0 / Self::ONE.0, self.0 % Self::ONE.0)
    }
}

/// Refuses more than 4 decimals instead of rounding.
impl FromStr for BasisPoints {
    type Err = ParseBasisPointsError;

    fn from_str(text: &str) -> Result<Self, ParseBasisPointsError> {
        let points = decimal::scaled(text, 4).and_then(|points| u16::try_from(points).ok());
        let points = points.filter(|points| *points <= Self::ONE.0);
        points.map(Self).ok_or(ParseBasisPointsError)
    }
}

/// The error for a text that is not a share.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("a share is a number from 0.0 to 1.0 with at most 4 decimals")]
pub struct ParseBasisPointsError;

/// Writes the nearest fraction, whose shortest decimal is the share again.
impl Serialize for BasisPoints {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_f64(self.as_fraction())
    }
}

impl<'de> Deserialize<'de> for BasisPoints {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let digits = decimal::digits(deserializer)?;
        digits.parse().map_err(de::Error::custom)
    }
}

pub(super) const fn is_last_turn(turn: u32, max_turns: u32) -> bool {
    turn + 1 == max_turns
}

pub(super) const fn over_budget(turn: u32, max_turns: u32) -> bool {
    turn >= max_turns
}

/// Not before the first complete turn.
pub(super) fn warns(turn: u32, max_turns: u32, threshold: BasisPoints) -> bool {
    turn >= 1 && u64::from(turn) >= threshold.floor_of(u64::from(max_turns))
}

pub(super) fn percentage(turn: u32, max_turns: u32) -> f64 {
    if max_turns == 0 {
        100.0
    } else {
        f64::from(turn) / f64::from(max_turns) * 100.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn turns_remaining_last_and_over_follow_the_table() {
        for (name, turn, max, remaining, last, over) in [
            (
                "returns_success_when_turns_available",
                10,
                30,
                true,
                false,
                false,
            ),
            (
                "returns_failure_when_no_turns_available",
                30,
                30,
                false,
                false,
                true,
            ),
            (
                "returns_failure_when_over_max_turns",
                35,
                30,
                false,
                false,
                true,
            ),
            ("defaults_turn_to_zero", 0, 30, true, false, false),
            ("returns_success_at_last_turn", 29, 30, true, true, false),
            (
                "returns_failure_before_last_turn",
                28,
                30,
                true,
                false,
                false,
            ),
            ("respects_custom_max_turns: 4 of 5", 4, 5, true, true, false),
            (
                "respects_custom_max_turns: 5 of 5",
                5,
                5,
                false,
                false,
                true,
            ),
            ("a budget of one turn", 0, 1, true, true, false),
        ] {
            let found = (
                !over_budget(turn, max),
                is_last_turn(turn, max),
                over_budget(turn, max),
            );
            assert_eq!(found, (remaining, last, over), "{name}");
        }
    }

    #[test]
    fn the_warning_threshold_is_exact() {
        let seventy = BasisPoints::new(7_000);
        for (name, turn, max, threshold, warned) in [
            ("63 of 90", 63, 90, seventy, true),
            ("62 of 90", 62, 90, seventy, false),
            ("21 of 30", 21, 30, seventy, true),
            ("20 of 30", 20, 30, seventy, false),
            ("3 of 5", 3, 5, seventy, true),
            ("2 of 5", 2, 5, seventy, false),
            (
                "never before the first turn is complete",
                0,
                1,
                seventy,
                false,
            ),
            (
                "a threshold of nothing warns after the first",
                1,
                30,
                BasisPoints::new(0),
                true,
            ),
        ] {
            assert_eq!(warns(turn, max, threshold), warned, "{name}");
        }
    }

    #[test]
    fn confidence_thresholds_match_decimals_exactly() {
        assert!(0.3_f64 >= BasisPoints::new(3_000).as_fraction());
        assert!(0.299_999_f64 < BasisPoints::new(3_000).as_fraction());
        assert_eq!(BasisPoints::new(12_345), BasisPoints::ONE);
        assert_eq!(BasisPoints::new(7_000).to_string(), "0.7000");
    }
}
