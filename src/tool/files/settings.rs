//! What `file_read` may take.

use std::time::Duration;

use crate::tool::settings::{RangeCheck, SettingError};

/// Settings of `file_read`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FileReadSettings {
    /// Lines when no range is given; 1–2,000, and not more than `max_lines`.
    pub default_lines: u64,
    /// Most lines a call; 1–2,000.
    pub max_lines: u64,
    /// Most text a call, in bytes; 4 KiB–1 MiB.
    pub max_bytes: usize,
    /// Longest line that is shown whole, in characters; 40–10,000.
    pub max_line_chars: usize,
    /// Lines are counted to the end in files up to this size, in bytes; at most 1 GiB.
    pub count_bytes: u64,
    /// How long a call may take; 10 ms–60 s.
    pub deadline: Duration,
    /// Calls that run at the same time; 1–64.
    pub concurrent: usize,
}

impl Default for FileReadSettings {
    fn default() -> Self {
        Self {
            default_lines: 200,
            max_lines: 400,
            max_bytes: 48 * 1024,
            max_line_chars: 1_000,
            count_bytes: 8 * 1024 * 1024,
            deadline: Duration::from_secs(5),
            concurrent: 4,
        }
    }
}

impl FileReadSettings {
    /// Checks all ranges.
    ///
    /// # Errors
    /// Every setting that is out of its range.
    pub fn validate(&self) -> Result<(), Vec<SettingError>> {
        let mut check = RangeCheck::default();
        check.within("max_lines", self.max_lines, 1..=2_000);
        check.within(
            "default_lines",
            self.default_lines,
            1..=self.max_lines.clamp(1, 2_000),
        );
        check.within("max_bytes", self.max_bytes, 4 * 1024..=1024 * 1024);
        check.within("max_line_chars", self.max_line_chars, 40..=10_000);
        check.within("count_bytes", self.count_bytes, 0..=1024 * 1024 * 1024);
        let deadlines = Duration::from_millis(10)..=Duration::from_secs(60);
        check.within("deadline", self.deadline, deadlines);
        check.within("concurrent", self.concurrent, 1..=64);
        check.finish()
    }
}
