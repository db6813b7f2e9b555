//! Whole numbers within bounds.

use std::fmt;

use serde::{Deserialize, Deserializer, Serialize, de};

use super::NotAllowed;

/// A whole number from `MIN` to `MAX`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(transparent)]
pub struct Count<const MIN: u32, const MAX: u32>(u32);

impl<const MIN: u32, const MAX: u32> Count<MIN, MAX> {
    /// A number known when the program is compiled; one out of bounds does not compile.
    #[must_use]
    pub const fn of<const NUMBER: u32>() -> Self {
        const {
            assert!(
                MIN <= NUMBER && NUMBER <= MAX,
                "the number is out of bounds"
            )
        };
        Self(NUMBER)
    }

    /// A number within the bounds.
    ///
    /// # Errors
    /// The bounds.
    pub fn new(number: u32) -> Result<Self, NotAllowed> {
        if (MIN..=MAX).contains(&number) {
            return Ok(Self(number));
        }
        Err(NotAllowed(format!("a whole number from {MIN} to {MAX}")))
    }

    /// The number.
    #[must_use]
    pub const fn get(self) -> u32 {
        self.0
    }

    /// The number as a size.
    #[must_use]
    pub fn size(self) -> usize {
        usize::try_from(self.0).unwrap_or(usize::MAX)
    }
}

impl<const MIN: u32, const MAX: u32> fmt::Display for Count<MIN, MAX> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl<'de, const MIN: u32, const MAX: u32> Deserialize<'de> for Count<MIN, MAX> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        // What is no number of this size at all is as far out of bounds as can be.
        let number = i64::deserialize(deserializer).unwrap_or(-1);
        let bounds = || NotAllowed(format!("a whole number from {MIN} to {MAX}"));
        u32::try_from(number)
            .map_err(|_| bounds())
            .and_then(Self::new)
            .map_err(de::Error::custom)
    }
}
