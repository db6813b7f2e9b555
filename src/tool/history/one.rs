//! One commit, by its hash. Names of branches and the like are none: a hash is looked up among what begins
//! with it, so that nothing else is read out of what a model writes.

use std::ffi::OsString;

use tokio::time::Instant;

use super::{
    HistorySearchSettings,
    asking::{Told, telling},
    git::{Git, Log, refused},
};
use crate::tool::ToolError;

/// Least and most digits of a hash that can be asked for.
const DIGITS: std::ops::RangeInclusive<usize> = 4..=40;
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

/// What there is by a hash.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Found {
    /// Whether older commits were never fetched.
    Nothing { is_shallow: bool },
    /// It, with its files as git tells them.
    One(Log, Told),
    /// It changed nothing in the project, which is only a part of the repository.
    Elsewhere,
    /// The first of them, and how many there are.
    Several(Log, usize),
    /// More than are looked at.
    Countless,
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
        let alike = ["rev-parse".to_owned(), format!("--disambiguate={}", hash.0)];
        let alike = self.run(top, alike.map(OsString::from), until).await?;
        let objects = lines(&alike.output);
        if objects.len() > MOST_OBJECTS || alike.cut {
            return Ok(Found::Countless);
        }
        if alike.success != Some(true) {
            return Err(refused(&alike));
        }
        if objects.is_empty() {
            return Ok(Found::Nothing { is_shallow });
        }
        // Of objects that are no commits it tells nothing.
        let commits = ["rev-list", "--no-walk=unsorted"].map(OsString::from);
        let commits = commits
            .into_iter()
            .chain(objects.iter().map(OsString::from));
        let commits = self.run(top, commits, until).await?;
        if commits.success != Some(true) {
            return Err(refused(&commits));
        }
        let mut commits = lines(&commits.output);
        // A tag leads to a commit of another name.
        commits.retain(|commit| commit.starts_with(&hash.0));
        commits.dedup();
        let hashes: Vec<&str> = commits
            .iter()
            .map(String::as_str)
            .take(MOST_ALIKE)
            .collect();
        let is_top = top == self.root().path();
        let mut told = match commits.len() {
            0 => return Ok(Found::Nothing { is_shallow }),
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
        let log = Log {
            text: String::from_utf8_lossy(&log.output).into_owned(),
            is_shallow,
            cut: log.cut,
            ..Log::default()
        };
        Ok(match commits.len() {
            1 if log.text.is_empty() => Found::Elsewhere,
            1 => Found::One(log, told),
            several => Found::Several(log, several),
        })
    }
}

fn lines(output: &[u8]) -> Vec<String> {
    let text = String::from_utf8_lossy(output);
    text.lines().map(str::to_owned).collect()
}
