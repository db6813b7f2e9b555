//! What `thread_search` may take.

use std::time::Duration;

use crate::tool::settings::{RangeCheck, SettingError};

/// Most places that a call may ask for.
pub(super) const MOST_PLACES: u32 = 20;

/// Settings of `thread_search`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ThreadSearchSettings {
    /// Places shown when the call names no number; 1–20.
    pub places: u32,
    /// How long a search may take; 10 ms–10 min.
    pub deadline: Duration,
}

impl Default for ThreadSearchSettings {
    fn default() -> Self {
        Self {
            places: 8,
            deadline: Duration::from_secs(5),
        }
    }
}

impl ThreadSearchSettings {
    /// Checks all ranges.
    ///
    /// # Errors
    /// Every setting that is out of its range.
    pub fn validate(&self) -> Result<(), Vec<SettingError>> {
        let mut check = RangeCheck::default();
        check.within("places", self.places, 1..=MOST_PLACES);
        let deadlines = Duration::from_millis(10)..=Duration::from_secs(600);
        check.within("deadline", self.deadline, deadlines);
        check.finish()
    }
}
