//! What the tools for notes may take.

use std::time::Duration;

use crate::tool::settings::{RangeCheck, SettingError};

/// Most results that a call may ask for.
pub(super) const MOST_RESULTS: u32 = 50;

/// Settings of the tools for notes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct NotesSettings {
    /// Most notes that are kept ready to be searched; 1–200,000.
    pub max_files: usize,
    /// Larger files are left out, in bytes; 1 KiB–64 MiB.
    pub max_file_bytes: u64,
    /// Most bytes of notes that are kept ready; 1 KiB–1 GiB.
    pub max_total_bytes: u64,
    /// Sections shown when a search names no number; 1–50.
    pub max_results: u32,
    /// Most lines of a note that are shown at once; 1–2,000.
    pub max_lines: usize,
    /// Longest piece of a line that is shown, in characters; 40–2,000.
    pub max_line_chars: usize,
    /// Largest result, in bytes; 16 KiB–1 MiB.
    pub max_output_bytes: usize,
    /// How long a call may take, from 10 ms to 60 s; what was read by then is shown.
    pub deadline: Duration,
    /// Calls of one tool that run at the same time; 1–64.
    pub concurrent: usize,
}

impl Default for NotesSettings {
    fn default() -> Self {
        Self {
            max_files: 20_000,
            max_file_bytes: 1024 * 1024,
            max_total_bytes: 64 * 1024 * 1024,
            max_results: 10,
            max_lines: 400,
            max_line_chars: 400,
            max_output_bytes: 24 * 1024,
            deadline: Duration::from_secs(5),
            concurrent: 2,
        }
    }
}

impl NotesSettings {
    /// Checks all ranges.
    ///
    /// # Errors
    /// Every setting that is out of its range.
    pub fn validate(&self) -> Result<(), Vec<SettingError>> {
        const MIB: u64 = 1024 * 1024;
        let mut check = RangeCheck::default();
        check.within("max_files", self.max_files, 1..=200_000);
        check.within("max_file_bytes", self.max_file_bytes, 1024..=64 * MIB);
        check.within("max_total_bytes", self.max_total_bytes, 1024..=1024 * MIB);
        check.within("max_results", self.max_results, 1..=MOST_RESULTS);
        check.within("max_lines", self.max_lines, 1..=2_000);
        check.within("max_line_chars", self.max_line_chars, 40..=2_000);
        check.within(
            "max_output_bytes",
            self.max_output_bytes,
            16 * 1024..=1024 * 1024,
        );
        let deadlines = Duration::from_millis(10)..=Duration::from_secs(60);
        check.within("deadline", self.deadline, deadlines);
        check.within("concurrent", self.concurrent, 1..=64);
        check.finish()
    }
}
