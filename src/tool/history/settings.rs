//! What `history_search` may take.

use std::time::Duration;

use crate::tool::settings::{RangeCheck, SettingError};

/// Most commits that a call may ask for.
pub(super) const MOST_COMMITS: u32 = 50;

/// Settings of `history_search`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct HistorySearchSettings {
    /// Commits shown when the call names no number; 1–50.
    pub max_results: u32,
    /// Most lines shown of a message; 1–200.
    pub max_message_lines: usize,
    /// Most files named of a commit; 1–200.
    pub max_files: usize,
    /// Longest line that is shown, in characters; 40–1,000.
    pub max_line_chars: usize,
    /// Largest result, in bytes; 4 KiB–1 MiB.
    pub max_output_bytes: usize,
    /// How long a call may take, from 10 ms to 60 s; what was found by then is shown.
    pub deadline: Duration,
    /// Calls that run at the same time; 1–64.
    pub concurrent: usize,
}

impl Default for HistorySearchSettings {
    fn default() -> Self {
        Self {
            max_results: 10,
            max_message_lines: 12,
            max_files: 8,
            max_line_chars: 240,
            max_output_bytes: 24 * 1024,
            deadline: Duration::from_secs(8),
            concurrent: 2,
        }
    }
}

impl HistorySearchSettings {
    /// Checks all ranges.
    ///
    /// # Errors
    /// Every setting that is out of its range.
    pub fn validate(&self) -> Result<(), Vec<SettingError>> {
        let mut check = RangeCheck::default();
        check.within("max_results", self.max_results, 1..=MOST_COMMITS);
        check.within("max_message_lines", self.max_message_lines, 1..=200);
        check.within("max_files", self.max_files, 1..=200);
        check.within("max_line_chars", self.max_line_chars, 40..=1_000);
        check.within(
            "max_output_bytes",
            self.max_output_bytes,
            4 * 1024..=1024 * 1024,
        );
        let deadlines = Duration::from_millis(10)..=Duration::from_secs(60);
        check.within("deadline", self.deadline, deadlines);
        check.within("concurrent", self.concurrent, 1..=64);
        check.finish()
    }
}
