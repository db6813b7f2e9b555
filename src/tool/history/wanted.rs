//! What a call asks for: its arguments, and what is wanted by them.

use schemars::JsonSchema;
use serde::Deserialize;

use super::{HistorySearchSettings, between::At, day::Day, one::Hash, settings::MOST_COMMITS};
use crate::tool::{
    ProjectRoot, ToolError,
    text::{clipped, quoted},
};

/// Most words of a query.
const MAX_WORDS: usize = 12;
/// Longest word or text, in characters.
const MAX_TEXT: usize = 500;
/// Most commits that are passed over: those are read too.
const MOST_SKIPPED: u32 = 1_000;

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct Arguments {
    /// Words that must all stand in the message of a commit, in any case and order. Default: any
    /// message.
    #[serde(default)]
    #[schemars(with = "String")]
    query: Option<String>,
    /// Only commits that changed this file or folder, which need not exist any more.
    #[serde(default)]
    #[schemars(with = "String")]
    path: Option<String>,
    /// Only commits that added or removed this text, such as a line or a name as it stands in a file,
    /// in any case: a file has it more or less often since.
    #[serde(default)]
    #[schemars(with = "String")]
    text: Option<String>,
    /// Only commits that added, removed or changed a line that has this text, in any case. Finds more than `text` does:
    /// also what was done to the rest of such a line.
    #[serde(default)]
    #[schemars(with = "String")]
    line: Option<String>,
    /// Only commits of authors whose name or address has this, in any case.
    #[serde(default)]
    #[schemars(with = "String")]
    author: Option<String>,
    /// Only commits made on this day or later: `2026-11-20`, `today`, `yesterday`, `friday` (the last one),
    /// `november` (the latest one), `this year`, or counted back as in `3 days ago` (days, weeks, months,
    /// years); also `the day after friday`. Or the hash of a commit: only those that came after it.
    #[serde(default)]
    #[schemars(with = "String")]
    since: Option<String>,
    /// Only commits made on this day or earlier, written in the same way; also `the day before friday`. Or a hash:
    /// that commit and what it is built on; `the commit before 1a9e23a` is without it.
    #[serde(default)]
    #[schemars(with = "String")]
    until: Option<String>,
    /// Whether to say how many there are in all.
    #[serde(default)]
    count: bool,
    /// Whether to give the authors of all of them instead, with how many each made, the most first. `max_results` and
    /// `skip` are of authors then.
    #[serde(default)]
    by_author: bool,
    /// Whether the oldest come first, instead of the newest.
    #[serde(default)]
    oldest_first: bool,
    /// Most commits to show.
    #[serde(default)]
    #[schemars(with = "u32", range(min = 1, max = 50))]
    max_results: Option<u32>,
    /// How many to pass over first, such as those that were shown before.
    #[serde(default)]
    #[schemars(range(max = 1000))]
    skip: u32,
    /// This commit alone, by 4 to 64 digits of its hash, with how many lines it added to each file and removed from
    /// it. Goes with no other argument.
    #[serde(default)]
    #[schemars(with = "String")]
    commit: Option<String>,
}

/// What is asked for.
pub(super) enum Asked {
    Search(Box<Wanted>),
    One(Hash),
}

/// A call, understood.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Wanted {
    pub(super) words: Vec<String>,
    /// Relative to the project.
    pub(super) path: Option<String>,
    pub(super) changed: Option<Changed>,
    pub(super) author: Option<String>,
    pub(super) since: Option<Bound>,
    pub(super) until: Option<Bound>,
    pub(super) is_counted: bool,
    /// Whether their authors are told instead.
    pub(super) is_by_author: bool,
    pub(super) is_oldest_first: bool,
    pub(super) commits: usize,
    /// How many come before them that are not shown.
    pub(super) skipped: usize,
}

impl Wanted {
    pub(super) fn has_days(&self) -> bool {
        self.first_day().is_some() || self.last_day().is_some()
    }

    pub(super) fn first_day(&self) -> Option<&Day> {
        self.since.as_ref()?.at.day()
    }

    pub(super) fn last_day(&self) -> Option<&Day> {
        self.until.as_ref()?.at.day()
    }
}

/// What a commit did to a text.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Changed {
    /// A file has it more or less often since.
    Text(String),
    /// It stands in a line that was added, removed or changed.
    Line(String),
}

/// What bounds a search, with the words in which it was asked for.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Bound {
    pub(super) at: At,
    pub(super) asked: String,
}

impl Arguments {
    pub(super) fn asked(
        self,
        root: &ProjectRoot,
        settings: HistorySearchSettings,
    ) -> Result<Asked, ToolError> {
        let given = self
            .commit
            .as_deref()
            .filter(|given| !given.trim().is_empty());
        let Some(given) = given else {
            let wanted = self.wanted(root, settings)?;
            return Ok(Asked::Search(Box::new(wanted)));
        };
        let hash = Hash::read(given).ok_or_else(|| {
            ToolError::Tell(format!(
                "`commit` is {}, which is no hash of a commit: give 4 to 64 of its digits, 0–9 and a–f",
                quoted(clipped(given, MAX_TEXT).0)
            ))
        })?;
        let others = [
            self.query,
            self.path,
            self.text,
            self.line,
            self.author,
            self.since,
            self.until,
        ];
        let is_said = |other: &String| !other.trim().is_empty();
        let is_told_of_all = self.count || self.by_author || self.oldest_first;
        let is_listing = is_told_of_all || self.max_results.is_some() || self.skip > 0;
        match is_listing || others.iter().flatten().any(is_said) {
            true => Err(ToolError::tell(
                "`commit` names one commit, which is told whatever it has: leave out the other arguments",
            )),
            false => Ok(Asked::One(hash)),
        }
    }

    fn wanted(
        self,
        root: &ProjectRoot,
        settings: HistorySearchSettings,
    ) -> Result<Wanted, ToolError> {
        let commits = self.max_results.unwrap_or(settings.max_results);
        if !(1..=MOST_COMMITS).contains(&commits) {
            return Err(ToolError::Tell(format!(
                "`max_results` is {commits}, allowed is 1 to {MOST_COMMITS}: narrow the search instead"
            )));
        }
        if self.skip > MOST_SKIPPED {
            return Err(ToolError::Tell(format!(
                "`skip` is {}, allowed is 0 to {MOST_SKIPPED}: narrow the search instead",
                self.skip
            )));
        }
        let query = self.query.unwrap_or_default();
        let words: Vec<String> = query.split_whitespace().map(str::to_owned).collect();
        if words.len() > MAX_WORDS {
            return Err(ToolError::Tell(format!(
                "`query` has more than {MAX_WORDS} words, and a message would have to hold them all: give fewer"
            )));
        }
        let given = |text: Option<String>| text.filter(|text| !text.trim().is_empty());
        let (text, line) = (given(self.text), given(self.line));
        let author = self.author.map(|author| {
            let names: Vec<&str> = author.split_whitespace().collect();
            names.join(" ")
        });
        let author = author.filter(|author| !author.is_empty());
        for given in words.iter().chain(&text).chain(&line).chain(&author) {
            if given.contains('\0') || clipped(given, MAX_TEXT).1 {
                return Err(ToolError::Tell(format!(
                    "{} is too long, or holds a NUL character: give at most {MAX_TEXT} characters of a line",
                    quoted(given)
                )));
            }
        }
        let changed = changed(text, line)?;
        let path = given(self.path)
            .map(|path| named(root, &path))
            .transpose()?;
        let until = bound("until", self.until)?;
        let is_open = |it: &&Bound| it.at.day().is_some_and(|day| day.ends().is_none());
        if let Some(Bound { asked, .. }) = until.as_ref().filter(is_open) {
            return Err(ToolError::Tell(format!(
                "`until` is {}, whose last day depends on the year: write it as in `2026-02-28`",
                quoted(asked)
            )));
        }
        Ok(Wanted {
            words,
            path: path.filter(|path| path != "."),
            since: bound("since", self.since)?,
            until,
            is_counted: self.count,
            is_by_author: self.by_author,
            is_oldest_first: self.oldest_first,
            changed,
            author,
            commits: commits as usize,
            skipped: self.skip as usize,
        })
    }
}

/// What was done to which text: git looks for one of both.
fn changed(text: Option<String>, line: Option<String>) -> Result<Option<Changed>, ToolError> {
    match (text, line) {
        (Some(_), Some(_)) => Err(ToolError::tell(
            "`text` and `line` do not go together: `line` finds what `text` does, and more",
        )),
        (_, Some(line)) if line.contains(['\n', '\r']) => Err(ToolError::tell(
            "`line` has a line break: give a part of one line, or `text`, which may have several",
        )),
        (text, line) => Ok(text.map(Changed::Text).or(line.map(Changed::Line))),
    }
}

/// A path as git has it: a name that is shown otherwise than it is, by what is shown so.
fn named(root: &ProjectRoot, path: &str) -> Result<String, ToolError> {
    let inside = root.inside(path)?;
    let shown_so = || {
        let found = root.resolve(&inside).ok()?;
        let found = found.strip_prefix(root.path()).ok()?;
        found.to_str().map(str::to_owned)
    };
    // A link would lead to something else than its name.
    let is_escaped = inside.contains('\\') && !root.path().join(&inside).is_symlink();
    Ok(is_escaped.then(shown_so).flatten().unwrap_or(inside))
}

fn bound(name: &str, asked: Option<String>) -> Result<Option<Bound>, ToolError> {
    let Some(asked) = asked.filter(|asked| !asked.trim().is_empty()) else {
        return Ok(None);
    };
    let at = At::read(&asked).filter(|at| name == "until" || !at.is_before());
    match at {
        Some(at) => Ok(Some(Bound { at, asked })),
        None => Err(ToolError::Tell(format!(
            "`{name}` is {}, which is no day and no hash: write it as in `2026-11-20`, `yesterday`, `friday`, `november`, \
             `3 days ago` or `1a9e23a`",
            quoted(clipped(&asked, MAX_TEXT).0)
        ))),
    }
}
