//! `history_search`: what was changed when, by whom and why, out of the log of the project's git
//! repository.
//!
//! It runs `git` itself, by arguments without a shell, and reads: nothing is fetched, written or
//! checked out. It shows no differences; what a commit changed is named by its files, and of one that is
//! asked for by its hash also by their numbers of lines.
//!
//! It is there in every project, so that the list of tools is stable and a profile may name it
//! anywhere; where there is no repository, or no git, the call says so.
//!
//! **Invariants:** what a model writes is never an option, a pattern or a command; only what
//! concerns the project folder is shown, also where the repository is larger; a call ends with its
//! deadline or its cancellation, and its process with it; the size of a result is bounded.

mod asking;
mod day;
mod git;
mod one;
mod report;
mod settings;
#[cfg(unix)]
#[cfg(test)]
mod tests;

use std::sync::Arc;

use futures_util::future::BoxFuture;
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::Value;
use tokio::{sync::Semaphore, time::sleep};

use super::{
    ProjectRoot, Tool, ToolContext, ToolError, arguments,
    blocking::withdrawn,
    text::{clipped, quoted},
};
use crate::model::tool::{ToolNeed, ToolSpec};

use day::Day;
use git::Git;
use one::Hash;
pub use settings::HistorySearchSettings;
use settings::MOST_COMMITS;

/// Most words of a query.
const MAX_WORDS: usize = 12;
/// Longest word or text, in characters.
const MAX_TEXT: usize = 500;
/// Most commits that are passed over: those are read too.
const MOST_SKIPPED: u32 = 1_000;

/// The tool `history_search`.
#[derive(Debug)]
pub struct HistorySearch {
    spec: ToolSpec,
    git: Arc<Git>,
    settings: HistorySearchSettings,
    permits: Arc<Semaphore>,
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Arguments {
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
    /// in any case.
    #[serde(default)]
    #[schemars(with = "String")]
    text: Option<String>,
    /// Only commits of authors whose name or address has this, in any case.
    #[serde(default)]
    #[schemars(with = "String")]
    author: Option<String>,
    /// Only commits made on this day or later: `2026-11-20`, `today`, `yesterday`, `friday` (the last one),
    /// `november` (the latest one), `this year`, or counted back as in `3 days ago` (days, weeks, months,
    /// years); also `the day after friday`.
    #[serde(default)]
    #[schemars(with = "String")]
    since: Option<String>,
    /// Only commits made on this day or earlier, written in the same way; also `the day before friday`.
    #[serde(default)]
    #[schemars(with = "String")]
    until: Option<String>,
    /// Whether to say how many there are in all.
    #[serde(default)]
    count: bool,
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
    /// This commit alone, by 4 to 40 digits of its hash, with how many lines it added to each file and removed from
    /// it. Goes with no other argument.
    #[serde(default)]
    #[schemars(with = "String")]
    commit: Option<String>,
}

/// What is asked for.
enum Asked {
    Search(Box<Wanted>),
    One(Hash),
}

/// A call, understood.
#[derive(Debug, PartialEq, Eq)]
struct Wanted {
    words: Vec<String>,
    /// Relative to the project.
    path: Option<String>,
    text: Option<String>,
    author: Option<String>,
    since: Option<Bound>,
    until: Option<Bound>,
    is_counted: bool,
    is_oldest_first: bool,
    commits: usize,
    /// How many come before them that are not shown.
    skipped: usize,
}

impl Wanted {
    const fn has_days(&self) -> bool {
        self.since.is_some() || self.until.is_some()
    }
}

/// A day that bounds a search, with the words in which it was asked for.
#[derive(Debug, PartialEq, Eq)]
struct Bound {
    day: Day,
    asked: String,
}

impl HistorySearch {
    /// A tool for one project. Check the settings first ([`HistorySearchSettings::validate`]).
    #[must_use]
    pub fn new(root: ProjectRoot, settings: HistorySearchSettings) -> Self {
        let description = format!(
            "Finds commits in the project's git history by words of their messages, by the path that \
             they changed, by a text that they added or removed, by their author, or by days; or tells of one by its \
             hash. Each comes with its date, author, message and files, the newest first, {} at most unless max_results \
             says otherwise. Without arguments it gives the latest ones.",
            settings.max_results
        );
        let spec = arguments::reading::<Arguments>("history_search", description, ToolNeed::Code);
        Self {
            spec,
            git: Arc::new(Git::new(root)),
            settings,
            permits: Arc::new(Semaphore::new(settings.concurrent)),
        }
    }
}

impl Tool for HistorySearch {
    fn spec(&self) -> &ToolSpec {
        &self.spec
    }

    fn call(
        &self,
        arguments: Value,
        context: ToolContext,
    ) -> BoxFuture<'static, Result<String, ToolError>> {
        let (git, settings) = (Arc::clone(&self.git), self.settings);
        let permits = Arc::clone(&self.permits);
        Box::pin(async move {
            let arguments: Arguments = arguments::arguments(arguments)?;
            let asked = arguments.asked(git.root(), settings)?;
            let turn = async {
                tokio::select! {
                    permit = permits.acquire() => permit.ok(),
                    () = sleep(settings.deadline) => None,
                }
            };
            let search = async {
                let Some(_permit) = turn.await else {
                    return Err(ToolError::tell(
                        "too many calls of this tool are running: try again, or go on without it",
                    ));
                };
                Ok(match asked {
                    Asked::Search(wanted) => {
                        let log = git.log(&wanted, settings).await?;
                        report::report(&wanted, &log, settings)
                    }
                    Asked::One(hash) => {
                        let found = git.commit(&hash, settings).await?;
                        report::of_one(&hash, &found, settings)
                    }
                })
            };
            tokio::select! {
                biased;
                () = context.cancelled.cancelled() => Err(withdrawn()),
                searched = search => searched,
            }
        })
    }
}

impl Arguments {
    fn asked(
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
                "`commit` is {}, which is no hash of a commit: give 4 to 40 of its digits, 0–9 and a–f",
                quoted(clipped(given, MAX_TEXT).0)
            ))
        })?;
        let others = [
            self.query,
            self.path,
            self.text,
            self.author,
            self.since,
            self.until,
        ];
        match others
            .iter()
            .flatten()
            .any(|other| !other.trim().is_empty())
        {
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
        let text = self.text.filter(|text| !text.trim().is_empty());
        let author = self.author.map(|author| {
            let names: Vec<&str> = author.split_whitespace().collect();
            names.join(" ")
        });
        let author = author.filter(|author| !author.is_empty());
        for given in words.iter().chain(&text).chain(&author) {
            if given.contains('\0') || clipped(given, MAX_TEXT).1 {
                return Err(ToolError::Tell(format!(
                    "{} is too long, or holds a NUL character: give at most {MAX_TEXT} characters of a line",
                    quoted(given)
                )));
            }
        }
        let path = self.path.filter(|path| !path.trim().is_empty());
        let path = path.map(|path| named(root, &path)).transpose()?;
        let until = bound("until", self.until)?;
        if let Some(Bound { asked, .. }) = until.as_ref().filter(|it| it.day.ends().is_none()) {
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
            is_oldest_first: self.oldest_first,
            text,
            author,
            commits: commits as usize,
            skipped: self.skip as usize,
        })
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
    match Day::read(&asked) {
        Some(day) => Ok(Some(Bound { day, asked })),
        None => Err(ToolError::Tell(format!(
            "`{name}` is {}, which is no day: write it as in `2026-11-20`, `yesterday`, `friday`, `november` or `3 days ago`",
            quoted(clipped(&asked, MAX_TEXT).0)
        ))),
    }
}
