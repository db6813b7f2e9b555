//! Decimal numbers, kept exactly: shares and money.

use std::{fmt, str::FromStr};

use serde::{Deserialize, Deserializer, Serialize, Serializer, de};

use super::NotAllowed;
use crate::model::NanoUsd;

/// A share from 0.0 to 1.0 in ten-thousandths: 0.7 is 7000, exactly (spec 13).
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Share(u16);

impl Share {
    /// The whole.
    pub const ONE: Self = Self(10_000);

    /// A number of ten-thousandths known when the program is compiled; more than 10,000 do not
    /// compile.
    #[must_use]
    pub const fn of<const POINTS: u16>() -> Self {
        const {
            assert!(
                POINTS <= Self::ONE.0,
                "a share is at most 10,000 basis points"
            )
        };
        Self(POINTS)
    }

    /// The ten-thousandths.
    #[must_use]
    pub const fn get(self) -> u16 {
        self.0
    }
}

impl FromStr for Share {
    type Err = NotAllowed;

    fn from_str(text: &str) -> Result<Self, NotAllowed> {
        let points = scaled(text, 4)
            .and_then(|points| u16::try_from(points).ok())
            .map(Self);
        points.filter(|&points| points <= Self::ONE).ok_or_else(|| {
            NotAllowed("a number from 0.0 to 1.0 with at most 4 decimals".to_owned())
        })
    }
}

impl fmt::Display for Share {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        (f64::from(self.0) / 10_000.0).fmt(f)
    }
}

impl Serialize for Share {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        // The nearest float to the share: its shortest decimal is the share again.
        serializer.serialize_f64(f64::from(self.0) / 10_000.0)
    }
}

impl<'de> Deserialize<'de> for Share {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        digits(deserializer)?.parse().map_err(de::Error::custom)
    }
}

/// Money in US dollars, to a millionth; more than nothing.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Usd(u64);

/// What a million tokens cost, in US dollars, to a millionth; may be nothing.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Rate(u64);

impl Rate {
    /// The amount as it is counted elsewhere.
    #[must_use]
    pub const fn nanos(self) -> NanoUsd {
        NanoUsd(self.0 * 1_000)
    }
}

impl FromStr for Rate {
    type Err = NotAllowed;

    fn from_str(text: &str) -> Result<Self, NotAllowed> {
        let micros = scaled(text, 6).filter(|micros| *micros <= Usd::MAX_MICROS);
        micros.map(Self).ok_or_else(|| {
            NotAllowed("US dollars from 0 to 1000000, with at most 6 decimals".to_owned())
        })
    }
}

impl fmt::Display for Rate {
    #[expect(
        clippy::cast_precision_loss,
        reason = "13 digits at most; a float holds 15"
    )]
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        (self.0 as f64 / 1_000_000.0).fmt(f)
    }
}

impl Serialize for Rate {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        Usd(self.0).serialize(serializer)
    }
}

impl<'de> Deserialize<'de> for Rate {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        digits(deserializer)?.parse().map_err(de::Error::custom)
    }
}

impl Usd {
    const MAX_MICROS: u64 = 1_000_000 * 1_000_000;

    /// The amount as it is counted elsewhere.
    #[must_use]
    pub const fn nanos(self) -> NanoUsd {
        NanoUsd(self.0 * 1_000)
    }
}

impl FromStr for Usd {
    type Err = NotAllowed;

    fn from_str(text: &str) -> Result<Self, NotAllowed> {
        let micros = scaled(text, 6).filter(|micros| (1..=Self::MAX_MICROS).contains(micros));
        micros.map(Self).ok_or_else(|| {
            NotAllowed(
                "US dollars, more than 0 and up to 1000000, with at most 6 decimals".to_owned(),
            )
        })
    }
}

impl Serialize for Usd {
    #[expect(
        clippy::cast_precision_loss,
        reason = "13 digits at most; a float holds 15"
    )]
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_f64(self.0 as f64 / 1_000_000.0)
    }
}

impl<'de> Deserialize<'de> for Usd {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        digits(deserializer)?.parse().map_err(de::Error::custom)
    }
}

/// Money from nothing to a million dollars, as text or as a number; none if it is not.
pub(in crate::config) fn money<'de, D: Deserializer<'de>>(
    deserializer: D,
) -> Result<Option<NanoUsd>, D::Error> {
    let micros = scaled(&digits(deserializer)?, 6);
    let micros = micros.filter(|micros| *micros <= Usd::MAX_MICROS);
    Ok(micros.map(|micros| NanoUsd(micros * 1_000)))
}

/// A decimal number as text, whether it was written as text or as a number.
fn digits<'de, D: Deserializer<'de>>(deserializer: D) -> Result<String, D::Error> {
    Ok(match toml::Value::deserialize(deserializer)? {
        toml::Value::String(text) => text,
        toml::Value::Integer(number) => number.to_string(),
        toml::Value::Float(number) => number.to_string(),
        // Refused by whoever parses it, with what is allowed.
        _ => String::new(),
    })
}

/// `1.25` with 4 places is 12500. None where it is not `digits` or `digits.digits`, or has more
/// decimals than places that are not 0, or does not fit.
fn scaled(text: &str, places: u32) -> Option<u64> {
    let (whole, decimals) = text.split_once('.').unwrap_or((text, "0"));
    let all_digits = |part: &str| !part.is_empty() && part.bytes().all(|b| b.is_ascii_digit());
    if !all_digits(whole) || !all_digits(decimals) {
        return None;
    }
    let decimals = decimals.trim_end_matches('0');
    let missing = places.checked_sub(u32::try_from(decimals.len()).ok()?)?;
    let fraction = if decimals.is_empty() {
        0
    } else {
        decimals.parse::<u64>().ok()?
    };
    let whole = whole.parse::<u64>().ok()?.checked_mul(10_u64.pow(places))?;
    whole.checked_add(fraction.checked_mul(10_u64.pow(missing))?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shares_are_exact() {
        for (text, points) in [
            ("0", Some(0)),
            ("0.0", Some(0)),
            ("0.7", Some(7_000)),
            ("0.70", Some(7_000)),
            ("0.7000000000", Some(7_000)),
            ("0.0001", Some(1)),
            ("0.3333", Some(3_333)),
            ("1", Some(10_000)),
            ("1.0", Some(10_000)),
            ("0.33333", None),
            ("0.30000000000000004", None),
            ("1.0001", None),
            ("7", None),
            ("-0.1", None),
            ("-0", None),
            ("+0.5", None),
            (".5", None),
            ("0.", None),
            ("", None),
            ("0,7", None),
            ("7e-1", None),
            ("NaN", None),
            ("inf", None),
            ("70%", None),
            ("99999999999999999999", None),
            ("1844674407370955.2", None),
        ] {
            assert_eq!(text.parse::<Share>().ok().map(Share::get), points, "{text}");
        }
    }

    #[test]
    fn every_share_survives_being_written_and_read() {
        for points in 0..=10_000 {
            let share = Share(points);
            let json = serde_json::to_string(&share).unwrap();
            assert_eq!(
                serde_json::from_str::<Share>(&json).unwrap(),
                share,
                "{json}"
            );
            assert_eq!(share.to_string().parse(), Ok(share));
        }
    }

    #[test]
    fn money_is_exact() {
        for (text, nanos) in [
            ("0.000001", Some(1_000)),
            ("2.5", Some(2_500_000_000)),
            ("1000000", Some(1_000_000_000_000_000)),
            ("999999.999999", Some(999_999_999_999_000)),
            ("0", None),
            ("1000000.000001", None),
            ("0.0000001", None),
            ("$5", None),
        ] {
            let usd = text.parse::<Usd>().ok();
            assert_eq!(usd.map(Usd::nanos), nanos.map(NanoUsd), "{text}");
            if let Some(usd) = usd {
                let json = serde_json::to_string(&usd).unwrap();
                assert_eq!(serde_json::from_str::<Usd>(&json).unwrap(), usd, "{json}");
            }
        }
    }
}
