//! Commits, as a search of the history tells them: `commit hash date author`, the message set in by
//! four, `changed: files` set in by two. Pure.

use serde_json::Value;

use super::{super::toolbox::HISTORY_SEARCH, told::notes};
use crate::model::ToolCall;

mod authors;
mod one;

pub(in super::super) use authors::Authors;
pub(in super::super) use one::{Detail, One};
use one::{asks_for_one, tells_no_commit};

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
    /// Whether older ones may be hidden behind one with an earlier date.
    pub(in super::super) may_hide: bool,
    /// Whether the commit behind which they come is on another branch.
    pub(in super::super) is_beside: bool,
    /// What was asked for that all of them have: words of their messages, a text or a path that they
    /// changed.
    pub(in super::super) sought: String,
    /// Of that, what they changed.
    pub(in super::super) changed: String,
    /// How many were passed over, as they were told before.
    pub(in super::super) skipped: u64,
    /// Whether none came behind those.
    pub(in super::super) is_over: bool,
    /// Whether nobody of the name that was asked for made any commit.
    pub(in super::super) lacks_author: bool,
    /// Who made them, if that was asked for and there are any.
    pub(in super::super) by_author: Option<Authors>,
    /// What was told of a single one that was asked for by its hash.
    pub(in super::super) one: Option<One>,
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
        let is_own = call.name == HISTORY_SEARCH;
        if is_own && (asks_for_one(call) || tells_no_commit(content)) {
            self.take_one(content);
            return;
        }
        if !self.commits.is_empty() || self.is_over || self.by_author.is_some() {
            return;
        }
        let notes = notes(content);
        let says = |begin: &str| notes.iter().any(|note| note.starts_with(begin));
        let is_asked_again = self.is_told && asks_for_author(call);
        self.is_told |= is_own;
        self.is_stopped |= is_own && says("stopped at the deadline");
        self.is_shallow |= is_own && says("the clone is shallow");
        self.may_hide |= is_own && says("this git stops");
        self.by_author = Authors::read(content, &notes).filter(|_| is_own);
        if self.by_author.is_some() {
            self.take_sought(call);
        }
        self.is_beside |= is_own && notes.iter().any(|note| note.contains(BESIDE));
        let mut taken = commits(content);
        let is_none = taken.is_empty() && says("no commit") && !says("stopped");
        self.lacks_author |= is_own && is_none && asks_for_author(call);
        if is_own {
            self.skipped = skipped(call);
            let first = notes.first().copied().unwrap_or_default();
            self.is_over = is_none && self.skipped > 0 && is_behind(first);
        }
        // Whether there is such an author at all, is no answer.
        if taken.is_empty() || is_asked_again {
            return;
        }
        let is_oldest_first = asks_for_oldest(call);
        if is_oldest_first {
            taken.reverse();
        }
        // Of the oldest ones, those that are not shown are newer.
        let has_older = says("there are more") || says("stopped at the deadline");
        let is_whole = !says("the clone is shallow") && !says("this git stops");
        self.is_cut = (has_older && !is_oldest_first) || !is_whole;
        self.total = notes.first().and_then(|note| total(note));
        self.total = self.total.filter(|_| is_whole && !says("stopped"));
        self.commits = taken;
        self.take_sought(call);
    }

    fn take_sought(&mut self, call: &ToolCall) {
        self.sought = sought(call, &["query", "text", "line", "path"]);
        self.changed = sought(call, &["text", "line", "path"]);
    }
}

/// What is said of a commit behind which others were asked for.
const BESIDE: &str = "is not among those before them";

/// Whether it asks for an author and for nothing else of a commit.
fn asks_for_author(call: &ToolCall) -> bool {
    let arguments = call.parsed().unwrap_or_default();
    let has = |name: &str| arguments.get(name).is_some();
    let others = ["query", "path", "text", "line", "since", "until", "skip"];
    has("author") && !others.into_iter().any(has)
}

fn skipped(call: &ToolCall) -> u64 {
    let arguments = call.parsed().unwrap_or_default();
    arguments.get("skip").and_then(Value::as_u64).unwrap_or(0)
}

/// Whether there were some, all of which were passed over: what was asked for stands in backticks before it.
fn is_behind(note: &str) -> bool {
    let end = note.rsplit('`').next().unwrap_or_default();
    end.contains(" behind the ")
}

fn sought(call: &ToolCall, names: &[&str]) -> String {
    let arguments = call.parsed().unwrap_or_default();
    let text = |name: &&str| arguments.get(*name)?.as_str().map(str::to_owned);
    names.iter().filter_map(text).collect::<Vec<_>>().join(" ")
}

/// Whether the oldest ones come first.
fn asks_for_oldest(call: &ToolCall) -> bool {
    let arguments = call.parsed().unwrap_or_default();
    arguments.get("oldest_first") == Some(&Value::Bool(true))
}

/// `all 4 commits`, `the newest 3 commits of 4`.
fn total(note: &str) -> Option<u64> {
    let words: Vec<&str> = note.split(' ').take(6).collect();
    match words[..] {
        ["all", number, ..] | ["the", _, _, "commit" | "commits", "of", number] => {
            number.parse().ok()
        }
        _ => None,
    }
}

/// The commits of a result, in its order.
fn commits(content: &str) -> Vec<Commit> {
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
    taken
}

/// Whether it can be the hash of a commit as it is told.
pub(in super::super) fn is_short_hash(text: &str) -> bool {
    text.len() >= SHORTEST_HASH && text.bytes().all(|byte| byte.is_ascii_hexdigit())
}

fn commit(line: &str) -> Option<Commit> {
    let (hash, rest) = line.strip_prefix("commit ")?.split_once(' ')?;
    let (date, author) = rest.split_once(' ')?;
    let is_date = date.len() >= 10 && date.starts_with(|c: char| c.is_ascii_digit());
    (is_short_hash(hash) && is_date).then(|| Commit {
        hash: hash.to_owned(),
        date: date.to_owned(),
        author: author.to_owned(),
        message: Vec::new(),
        files: String::new(),
    })
}
