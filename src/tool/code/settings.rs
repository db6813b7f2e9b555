//! What `code_search` may take.

use std::time::Duration;

use crate::tool::settings::{RangeCheck, SettingError};

const MIB: usize = 1024 * 1024;

/// Most matches that a call may ask for.
pub(super) const MOST_RESULTS: u32 = 100;

/// Settings of `code_search`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CodeSearchSettings {
    /// Matches shown when the call names no number; 1–100.
    pub max_results: u32,
    /// Most matches shown of one file; 1–100.
    pub max_per_file: usize,
    /// Longest piece of a line that is shown, in characters; 40–1,000.
    pub max_line_chars: usize,
    /// Largest result, in bytes; 16 KiB–1 MiB.
    pub max_output_bytes: usize,
    /// Larger files are skipped, in bytes; 1 KiB–64 MiB.
    pub max_file_bytes: u64,
    /// How long a search may take, from 10 ms to 60 s; what was found by then is shown.
    pub deadline: Duration,
    /// Searches that run at the same time; 1–64.
    pub concurrent: usize,
    /// Most files that the index for plain questions has; 0 for none, at most 1,000,000. The other
    /// modes search all files.
    pub index_files: usize,
    /// About how much memory the index takes at most, in bytes; 1 MiB–16 GiB.
    pub index_bytes: usize,
}

impl Default for CodeSearchSettings {
    fn default() -> Self {
        Self {
            max_results: 50,
            max_per_file: 10,
            max_line_chars: 240,
            max_output_bytes: 24 * 1024,
            max_file_bytes: 2 * 1024 * 1024,
            deadline: Duration::from_secs(5),
            concurrent: 2,
            index_files: 100_000,
            index_bytes: 512 * 1024 * 1024,
        }
    }
}

impl CodeSearchSettings {
    /// Checks all ranges.
    ///
    /// # Errors
    /// Every setting that is out of its range.
    pub fn validate(&self) -> Result<(), Vec<SettingError>> {
        let mut check = RangeCheck::default();
        check.within("max_results", self.max_results, 1..=MOST_RESULTS);
        check.within("max_per_file", self.max_per_file, 1..=100);
        check.within("max_line_chars", self.max_line_chars, 40..=1_000);
        check.within(
            "max_output_bytes",
            self.max_output_bytes,
            16 * 1024..=1024 * 1024,
        );
        check.within(
            "max_file_bytes",
            self.max_file_bytes,
            1024..=64 * 1024 * 1024,
        );
        let deadlines = Duration::from_millis(10)..=Duration::from_secs(60);
        check.within("deadline", self.deadline, deadlines);
        check.within("concurrent", self.concurrent, 1..=64);
        check.within("index_files", self.index_files, 0..=1_000_000);
        check.within("index_bytes", self.index_bytes, MIB..=16 * 1024 * MIB);
        check.finish()
    }
}
