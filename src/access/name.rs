//! Names of keys.

use std::{fmt, str::FromStr};

use serde::{Deserialize, Deserializer, Serialize, de};

use crate::model::Principal;

const MAX_LENGTH: usize = 64;

/// The name of a key: 1–64 characters from `A–Z a–z 0–9 . _ : @ -`. It appears in logs and events.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize)]
#[serde(transparent)]
pub struct KeyName(String);

/// A text is not valid as the name of a key.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum InvalidKeyName {
    /// Too long, empty, or with other characters.
    #[error("a key name has 1 to {MAX_LENGTH} characters from A-Z a-z 0-9 . _ : @ -")]
    Form,
    /// Reserved for the principal of callers without a key.
    #[error("this name is reserved for callers without a key: choose another one")]
    Reserved,
}

impl KeyName {
    /// The name.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl FromStr for KeyName {
    type Err = InvalidKeyName;

    fn from_str(text: &str) -> Result<Self, InvalidKeyName> {
        let good = |c: char| c.is_ascii_alphanumeric() || "._:@-".contains(c);
        if !(1..=MAX_LENGTH).contains(&text.len()) || !text.chars().all(good) {
            return Err(InvalidKeyName::Form);
        }
        if text == &*Principal::local().name {
            return Err(InvalidKeyName::Reserved);
        }
        Ok(Self(text.to_owned()))
    }
}

impl fmt::Display for KeyName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl<'de> Deserialize<'de> for KeyName {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        text.parse().map_err(de::Error::custom)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn key_names_are_short_plain_and_not_reserved() {
        let long = "x".repeat(64);
        for good in ["a", "ci.build-7", "ann@shop", long.as_str()] {
            assert_eq!(good.parse::<KeyName>().unwrap().as_str(), good);
        }
        let too_long = "x".repeat(65);
        for (bad, why) in [
            ("", InvalidKeyName::Form),
            ("two words", InvalidKeyName::Form),
            ("é", InvalidKeyName::Form),
            ("a\nb", InvalidKeyName::Form),
            (too_long.as_str(), InvalidKeyName::Form),
            ("local", InvalidKeyName::Reserved),
        ] {
            assert_eq!(bad.parse::<KeyName>(), Err(why), "{bad:?}");
        }
    }
}
