//! Range checks that the settings of all tools share. Knows no file format: `config` maps.

use std::{fmt, ops::RangeInclusive};

/// A setting outside its range.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{key}` is `{value}`, allowed is {low} to {high}")]
pub struct SettingError {
    /// The setting's name within its struct.
    pub key: &'static str,
    /// What was given.
    pub value: String,
    /// Smallest value allowed.
    pub low: String,
    /// Largest value allowed.
    pub high: String,
}

/// Collects what is wrong, so that all of it is said at once (spec 13).
#[derive(Debug, Default)]
pub(super) struct RangeCheck(Vec<SettingError>);

impl RangeCheck {
    pub(super) fn within<T>(&mut self, key: &'static str, value: T, allowed: RangeInclusive<T>)
    where
        T: PartialOrd + fmt::Debug,
    {
        if !allowed.contains(&value) {
            self.0.push(SettingError {
                key,
                value: format!("{value:?}"),
                low: format!("{:?}", allowed.start()),
                high: format!("{:?}", allowed.end()),
            });
        }
    }

    pub(super) fn finish(self) -> Result<(), Vec<SettingError>> {
        if self.0.is_empty() {
            Ok(())
        } else {
            Err(self.0)
        }
    }
}
