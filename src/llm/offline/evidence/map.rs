//! What a map of the project tells: how many files there are, its folders, and the files at its top. Pure.

use super::{Evidence, own};
use crate::model::ToolCall;

/// What a map of the whole begins with: how many files there are, and their folders, up to a blank line.
pub(super) fn begun(call: &ToolCall, content: &str) -> Option<(String, Vec<String>)> {
    if own::path_argument(call).is_some() {
        return None;
    }
    let mut lines = content.lines();
    let (size, _) = lines
        .next()?
        .strip_suffix(" with an outline")?
        .rsplit_once(", ")?;
    let folders = lines.take_while(|line| !line.trim().is_empty());
    Some((size.to_owned(), folders.map(str::to_owned).collect()))
}

impl Evidence {
    /// The files at the top of the project, as far as they were named.
    pub(in super::super) fn top_files(&self) -> Vec<&str> {
        let listed = self
            .folders
            .iter()
            .filter_map(|line| line.strip_prefix("./ "));
        let listed = listed.flat_map(|names| names.split(", "));
        let known = self.files.keys().map(String::as_str);
        let mut all: Vec<&str> = listed
            .chain(known.filter(|path| !path.contains('/')))
            .collect();
        all.sort_unstable();
        all.dedup();
        all
    }
}
