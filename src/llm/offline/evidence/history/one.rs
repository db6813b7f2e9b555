//! What a search of the history tells of a single commit: `changed 2 files: +3 -1`, and a line for each file,
//! `+3 -1 path`, set in by two. Pure.

use super::{super::told::notes, Commit, History, commits};
use crate::model::ToolCall;

/// What came of asking for a commit by its hash.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(in super::super::super) enum One {
    Told(Detail),
    /// What several hashes begin with, and the first of those.
    Alike(String, Vec<Commit>),
    /// What no hash begins with.
    Missing(String),
    /// It changed nothing in the project.
    Elsewhere,
}

/// A commit with what it changed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(in super::super::super) struct Detail {
    pub(in super::super::super) commit: Commit,
    /// How many files and lines in all, if that was counted: `2 files: +3 -1`.
    pub(in super::super::super) in_all: String,
    /// The lines of each file that is named, `+3 -1`, and its path.
    pub(in super::super::super) files: Vec<(String, String)>,
    /// Those that are not named: `3 more files`.
    pub(in super::super::super) more: String,
    /// Whether there are more than were looked at.
    pub(in super::super::super) is_cut: bool,
    /// Whether a shallow clone begins with it, so that nobody knows what it changed.
    pub(in super::super::super) is_boundary: bool,
    /// Whether it is in the history of what is checked out, if that is known.
    pub(in super::super::super) is_in_head: Option<bool>,
}

impl One {
    pub(in super::super::super) const fn is_missing(&self) -> bool {
        matches!(self, Self::Missing(_))
    }
}

/// Whether a call names a commit.
pub(super) fn asks_for_one(call: &ToolCall) -> bool {
    let arguments = call.parsed().unwrap_or_default();
    arguments.get("commit").is_some()
}

/// Whether a search was bounded by the hash of no commit, or of several.
pub(super) fn tells_no_commit(content: &str) -> bool {
    let notes = notes(content);
    let first = notes.first().copied().unwrap_or_default();
    first.starts_with(NONE) || first.starts_with("many hashes begin with `")
}

/// Begins what is said of a hash that names no commit.
const NONE: &str = "no commit has a hash that begins with `";

impl History {
    pub(super) fn take_one(&mut self, content: &str) {
        let notes = notes(content);
        let first = notes.first().copied().unwrap_or_default();
        let says = |begin: &str| notes.iter().any(|note| note.starts_with(begin));
        let mut commits = commits(content);
        self.is_told = true;
        self.is_shallow |= says("the clone is shallow");
        let hash = first.split('`').nth(1).unwrap_or_default().to_owned();
        self.one = if says(NONE) {
            Some(One::Missing(hash))
        } else if first.ends_with("changed nothing in this folder") {
            Some(One::Elsewhere)
        } else if first.ends_with("give more digits") {
            Some(One::Alike(hash, commits))
        } else {
            let commit = (!commits.is_empty()).then(|| commits.swap_remove(0));
            let is_in_head = match says("it is not in the history of HEAD") {
                true => Some(false),
                false => (!says("whether it is in the history of HEAD")).then_some(true),
            };
            commit.map(|commit| {
                One::Told(Detail {
                    is_cut: says("not all of its files"),
                    is_boundary: says("the shallow clone begins with it"),
                    is_in_head,
                    ..detail(commit, content)
                })
            })
        };
    }
}

fn detail(mut commit: Commit, content: &str) -> Detail {
    let lines = || content.lines().filter_map(|line| line.strip_prefix("  "));
    let in_all = lines().find_map(|line| line.strip_prefix("changed "));
    let more = lines().find_map(|line| line.strip_prefix("… "));
    let files: Vec<(String, String)> = lines().filter_map(file).collect();
    if !files.is_empty() {
        let paths: Vec<&str> = files.iter().map(|(_, path)| &**path).collect();
        commit.files = paths.join(", ");
    }
    Detail {
        commit,
        in_all: in_all.unwrap_or_default().to_owned(),
        files,
        more: more.unwrap_or_default().to_owned(),
        is_cut: false,
        is_boundary: false,
        is_in_head: None,
    }
}

/// `+3 -1 path` or `binary path`; what is set in farther is the message.
fn file(line: &str) -> Option<(String, String)> {
    let is_number = |text: &str, sign: char| {
        let digits = text.strip_prefix(sign);
        digits.is_some_and(|digits| digits.bytes().all(|byte| byte.is_ascii_digit()))
    };
    let (first, rest) = line.split_once(' ')?;
    if first == "binary" {
        return Some((first.to_owned(), rest.to_owned()));
    }
    let (second, path) = rest.split_once(' ')?;
    let is_counted = is_number(first, '+') && is_number(second, '-');
    is_counted.then(|| (format!("{first} {second}"), path.to_owned()))
}
