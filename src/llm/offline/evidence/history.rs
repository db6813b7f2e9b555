//! Commits, as a search of the history tells them: `commit hash date author`, the message set in by
//! four, `changed: files` set in by two. Pure.

use super::super::toolbox::HISTORY_SEARCH;
use crate::model::ToolCall;

/// Shortest hash that is taken for one.
const SHORTEST_HASH: usize = 7;

/// What a history told.
#[derive(Debug, Default, PartialEq, Eq)]
pub(in super::super) struct History {
    /// The newest first.
    pub(in super::super) commits: Vec<Commit>,
    /// Whether there are older ones that were not shown.
    pub(in super::super) is_cut: bool,
    /// How many there are in all, if that was told.
    pub(in super::super) total: Option<u64>,
    /// Whether it was asked for any, and told of those or that there are none.
    pub(in super::super) is_told: bool,
    /// Whether a search ended at its deadline before it found any.
    pub(in super::super) is_stopped: bool,
    /// Whether the clone is a shallow one, which has only the newest commits.
    pub(in super::super) is_shallow: bool,
    /// What was asked for that all of them have: words of their messages, a text or a path that they
    /// changed.
    pub(in super::super) sought: String,
    /// Of that, what they changed.
    pub(in super::super) changed: String,
}

/// A change that somebody made.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(in super::super) struct Commit {
    pub(in super::super) hash: String,
    /// The day, with the time if it was told.
    pub(in super::super) date: String,
    pub(in super::super) author: String,
    /// The lines of its message.
    pub(in super::super) message: Vec<String>,
    /// The files it changed, in one line.
    pub(in super::super) files: String,
}

impl History {
    /// Takes the commits of a result, if it tells any and none came before: searches are made from
    /// the narrowest on.
    pub(super) fn take(&mut self, call: &ToolCall, content: &str) {
        if !self.commits.is_empty() {
            return;
        }
        self.is_told |= call.name == HISTORY_SEARCH;
        let last = content.lines().last().unwrap_or_default();
        self.is_stopped |= call.name == HISTORY_SEARCH && last.contains("stopped at the deadline");
        self.is_shallow |= call.name == HISTORY_SEARCH && last.contains("the clone is shallow");
        let mut taken: Vec<Commit> = Vec::new();
        for line in content.lines() {
            if let Some(commit) = commit(line) {
                taken.push(commit);
            } else if let Some(last) = taken.last_mut() {
                if let Some(message) = line.strip_prefix("    ") {
                    last.message.push(message.to_owned());
                } else if let Some(files) = line.strip_prefix("  changed: ") {
                    files.clone_into(&mut last.files);
                }
            }
        }
        if taken.is_empty() {
            return;
        }
        self.is_cut = last.contains("there are more") || last.contains("older commits");
        self.total = total(last);
        self.commits = taken;
        self.sought = sought(call, &["query", "text", "path"]);
        self.changed = sought(call, &["text", "path"]);
    }
}

fn sought(call: &ToolCall, names: &[&str]) -> String {
    let arguments = call.parsed().unwrap_or_default();
    let text = |name: &&str| arguments.get(*name)?.as_str().map(str::to_owned);
    names.iter().filter_map(text).collect::<Vec<_>>().join(" ")
}

/// `all 4 commits`, `the newest 3 commits of 4; there are more`.
fn total(note: &str) -> Option<u64> {
    // Not those that were never fetched.
    if note.contains("older commits") {
        return None;
    }
    let first = note.split("; ").next()?;
    let number = match first.strip_prefix("all ") {
        Some(all) => all,
        None => first.strip_prefix("the newest ")?.split_once(" of ")?.1,
    };
    number.split(' ').next()?.parse().ok()
}

fn commit(line: &str) -> Option<Commit> {
    let (hash, rest) = line.strip_prefix("commit ")?.split_once(' ')?;
    let is_hash = hash.len() >= SHORTEST_HASH && hash.bytes().all(|byte| byte.is_ascii_hexdigit());
    let (date, author) = rest.split_once(' ')?;
    let is_date = date.len() >= 10 && date.starts_with(|c: char| c.is_ascii_digit());
    (is_hash && is_date).then(|| Commit {
        hash: hash.to_owned(),
        date: date.to_owned(),
        author: author.to_owned(),
        message: Vec::new(),
        files: String::new(),
    })
}
