//! One commit, by its hash. Names of branches and the like are none: a hash is looked up among what begins
//! with it, so that nothing else is read out of what a model writes.

use std::{ffi::OsString, path::Path};

use tokio::time::Instant;

use super::{
    HistorySearchSettings,
    asking::{Told, telling},
    git::{Git, Log, PART, PARTS, refused},
};
use crate::tool::ToolError;

/// Least and most digits of a hash that can be asked for.
const DIGITS: std::ops::RangeInclusive<usize> = 4..=64;
/// Most objects that are looked at for commits: an argument each.
const MOST_OBJECTS: usize = 500;
/// Most commits that are shown of those whose hashes begin so.
pub(super) const MOST_ALIKE: usize = 10;

/// The beginning of a hash, in small letters.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Hash(String);

impl Hash {
    /// None for what is no hash.
    pub(super) fn read(text: &str) -> Option<Self> {
        let text = text.trim();
        let is_hash =
            DIGITS.contains(&text.len()) && text.bytes().all(|byte| byte.is_ascii_hexdigit());
        is_hash.then(|| Self(text.to_ascii_lowercase()))
    }

    pub(super) fn as_str(&self) -> &str {
        &self.0
    }
}

/// The commits whose hashes begin so.
pub(super) enum Named {
    /// By their whole hashes.
    Commits(Vec<String>),
    /// More objects than are looked at.
    Countless,
}

/// What there is by a hash.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Found {
    /// Whether older commits were never fetched.
    Nothing {
        is_shallow: bool,
    },
    One(One),
    /// It changed nothing in the project, which is only a part of the repository.
    Elsewhere,
    /// The first of them, and how many there are.
    Several(Log, usize),
    /// More than are looked at.
    Countless,
}

/// A commit, with its files as git tells them.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct One {
    pub(super) log: Log,
    pub(super) told: Told,
    /// Whether those that it is built on were never fetched, so that it seems to add all that there is.
    pub(super) is_boundary: bool,
    /// Whether what is checked out has it, if that is known.
    pub(super) is_in_head: Option<bool>,
}

impl Git {
    /// The commit whose hash begins so.
    pub(super) async fn commit(
        &self,
        hash: &Hash,
        settings: HistorySearchSettings,
    ) -> Result<Found, ToolError> {
        let begin = Instant::now();
        let until = begin + settings.deadline;
        let (top, is_shallow) = self.repository(until).await?;
        let commits = match self.named(hash, top, until).await? {
            Named::Countless => return Ok(Found::Countless),
            Named::Commits(commits) => commits,
        };
        let hashes = commits.iter().map(String::as_str);
        let hashes: Vec<&str> = hashes.take(MOST_ALIKE).collect();
        let is_top = top == self.root().path();
        let is_boundary = match hashes[..] {
            [] => return Ok(Found::Nothing { is_shallow }),
            [only] if is_shallow => self.is_boundary(only, top, until).await?,
            _ => false,
        };
        let mut told = match hashes.len() {
            1 if is_boundary => Told::None,
            1 => Told::Lines,
            _ => Told::Names,
        };
        // To count lines takes the contents, which may be large or not here.
        let soon = begin + settings.deadline / 2;
        let by = if told == Told::Lines { soon } else { until };
        let mut log = self.run(top, telling(&hashes, is_top, told), by).await?;
        if told == Told::Lines && log.success != Some(true) && !log.cut {
            told = Told::Names;
            log = self.run(top, telling(&hashes, is_top, told), until).await?;
        }
        if log.success != Some(true) && !log.cut {
            return Err(refused(&log));
        }
        let text = String::from_utf8_lossy(&log.output).into_owned();
        let log = Log {
            text: match is_top || is_boundary {
                true => text,
                false => with_files(&text),
            },
            is_shallow,
            cut: log.cut,
            ..Log::default()
        };
        Ok(match hashes[..] {
            [_] if log.text.is_empty() => Found::Elsewhere,
            [only] => Found::One(One {
                is_in_head: self.has(top, "HEAD", only, until).await?,
                log,
                told,
                is_boundary,
            }),
            _ => Found::Several(log, commits.len()),
        })
    }

    /// The commits whose hashes begin so, whatever branch they are on.
    pub(super) async fn named(
        &self,
        hash: &Hash,
        top: &Path,
        until: Instant,
    ) -> Result<Named, ToolError> {
        let alike = ["rev-parse".to_owned(), format!("--disambiguate={}", hash.0)];
        let alike = self.run(top, alike.map(OsString::from), until).await?;
        let objects = lines(&alike.output);
        if objects.len() > MOST_OBJECTS || alike.cut {
            return Ok(Named::Countless);
        }
        if alike.success != Some(true) {
            return Err(refused(&alike));
        }
        if objects.is_empty() {
            return Ok(Named::Commits(Vec::new()));
        }
        // Of objects that are no commits it tells nothing.
        let commits = ["rev-list", "--no-walk=unsorted"].map(OsString::from);
        let objects = objects.iter().map(OsString::from);
        // A file may be called like one of them.
        let commits = commits.into_iter().chain(objects).chain(["--".into()]);
        let commits = self.run(top, commits, until).await?;
        if commits.success != Some(true) {
            return Err(refused(&commits));
        }
        let mut commits = lines(&commits.output);
        // A tag leads to a commit of another name.
        commits.retain(|commit| commit.starts_with(&hash.0));
        commits.dedup();
        Ok(Named::Commits(commits))
    }

    /// Whether a shallow clone begins with a commit: it is built on others, which git does not follow there.
    async fn is_boundary(
        &self,
        commit: &str,
        top: &Path,
        until: Instant,
    ) -> Result<bool, ToolError> {
        let followed = ["rev-list", "--no-walk", "--parents", commit, "--"].map(OsString::from);
        let followed = self.run(top, followed, until).await?;
        let written = ["cat-file", "commit", commit].map(OsString::from);
        let written = self.run(top, written, until).await?;
        let mut header = lines(&written.output).into_iter();
        let has_parents = header
            .by_ref()
            .take_while(|line| !line.is_empty())
            .any(|line| line.starts_with("parent "));
        let follows = lines(&followed.output)
            .iter()
            .any(|line| line.contains(' '));
        Ok(has_parents && !follows)
    }
}

/// Only those commits of a log that changed something in the project.
fn with_files(text: &str) -> String {
    let parts: Vec<&str> = text.split(PART).skip(1).collect();
    let commits = parts.chunks(PARTS);
    let commits =
        commits.filter(|parts| parts.last().is_some_and(|files| !files.trim().is_empty()));
    let parts = commits.flatten();
    parts.flat_map(|part| ["\0", part]).collect()
}

fn lines(output: &[u8]) -> Vec<String> {
    let text = String::from_utf8_lossy(output);
    text.lines().map(str::to_owned).collect()
}
