//! What `repo_map` may take.

use std::time::Duration;

use crate::tool::settings::{RangeCheck, SettingError};

/// Fewest tokens that a call may ask for.
pub(super) const FEWEST_TOKENS: u32 = 200;
/// Most tokens that a call may ask for.
pub(super) const MOST_TOKENS: u32 = 16_000;

/// Settings of `repo_map`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RepoMapSettings {
    /// Tokens when the call names no number; 200–16,000.
    pub max_tokens: u32,
    /// Most files that are looked at; 100–1,000,000.
    pub max_files: usize,
    /// Most files that are read for their outlines, those that fit best; 10–20,000.
    pub max_outlined: usize,
    /// Larger files are not read, in bytes; 1 KiB–8 MiB.
    pub max_file_bytes: u64,
    /// Longest line that is shown, in characters; 40–400.
    pub max_line_chars: usize,
    /// How long a call may take, from 10 ms to 60 s; what was found by then is shown.
    pub deadline: Duration,
    /// Calls that run at the same time; 1–64.
    pub concurrent: usize,
}

impl Default for RepoMapSettings {
    fn default() -> Self {
        Self {
            max_tokens: 2_000,
            max_files: 200_000,
            max_outlined: 2_000,
            max_file_bytes: 512 * 1024,
            max_line_chars: 120,
            deadline: Duration::from_secs(5),
            concurrent: 2,
        }
    }
}

impl RepoMapSettings {
    /// Checks all ranges.
    ///
    /// # Errors
    /// Every setting that is out of its range.
    pub fn validate(&self) -> Result<(), Vec<SettingError>> {
        let mut check = RangeCheck::default();
        check.within("max_tokens", self.max_tokens, FEWEST_TOKENS..=MOST_TOKENS);
        check.within("max_files", self.max_files, 100..=1_000_000);
        check.within("max_outlined", self.max_outlined, 10..=20_000);
        check.within(
            "max_file_bytes",
            self.max_file_bytes,
            1024..=8 * 1024 * 1024,
        );
        check.within("max_line_chars", self.max_line_chars, 40..=400);
        let deadlines = Duration::from_millis(10)..=Duration::from_secs(60);
        check.within("deadline", self.deadline, deadlines);
        check.within("concurrent", self.concurrent, 1..=64);
        check.finish()
    }
}
