//! What `code_search` may take.

use std::time::Duration;

/// Most matches that a call may ask for.
pub(super) const MOST_RESULTS: u32 = 100;

/// Settings of `code_search`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CodeSearchSettings {
    /// Matches shown when the call names no number.
    pub max_results: u32,
    /// Most matches shown of one file.
    pub max_per_file: u32,
    /// Longest piece of a line that is shown, in characters.
    pub max_line_chars: usize,
    /// Largest result, in bytes.
    pub max_output_bytes: usize,
    /// Larger files are skipped, in bytes.
    pub max_file_bytes: u64,
    /// How long a search may take; what was found by then is shown.
    pub deadline: Duration,
    /// Most files that the index for plain questions has. The other modes search all files.
    pub index_files: usize,
    /// About how much memory the index takes at most, in bytes.
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
            index_files: 100_000,
            index_bytes: 512 * 1024 * 1024,
        }
    }
}
