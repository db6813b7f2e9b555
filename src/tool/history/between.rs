//! The commits between which a search looks: behind one, up to one, or up to those that one is built on.
//!
//! **Invariant:** what git gets are whole hashes that it named itself, never what a model wrote.

use std::{ffi::OsString, path::Path};

use tokio::time::Instant;

use super::{
    Bound, Wanted,
    day::Day,
    git::Git,
    one::{Found, Hash, Named},
};
use crate::tool::ToolError;

/// What is said before a hash that is left out itself.
const BEFORE: &str = "the commit before ";
/// Digits alone are rather a year or a day, but for those of a hash that is long enough.
const TELLING: usize = 7;

/// What a search begins or ends with.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum At {
    Day(Day),
    Commit(Hash),
    /// What a commit is built on.
    Before(Hash),
}

impl At {
    /// None for what is no day and no hash.
    pub(super) fn read(text: &str) -> Option<Self> {
        if let Some(day) = Day::read(text) {
            return Some(Self::Day(day));
        }
        let text = text.trim().to_ascii_lowercase();
        match text.strip_prefix(BEFORE) {
            Some(hash) => Some(Self::Before(hash_in(hash)?)),
            None => Some(Self::Commit(hash_in(&text)?)),
        }
    }

    pub(super) const fn day(&self) -> Option<&Day> {
        match self {
            Self::Day(day) => Some(day),
            Self::Commit(_) | Self::Before(_) => None,
        }
    }

    pub(super) const fn is_before(&self) -> bool {
        matches!(self, Self::Before(_))
    }

    const fn hash(&self) -> Option<&Hash> {
        match self {
            Self::Day(_) => None,
            Self::Commit(hash) | Self::Before(hash) => Some(hash),
        }
    }
}

/// A hash that is no year and no day without its dashes.
fn hash_in(text: &str) -> Option<Hash> {
    let has_letters = text.bytes().any(|byte| byte.is_ascii_alphabetic());
    let is_day = text.len() == "20261120".len() && text.starts_with(['1', '2']);
    let is_telling = has_letters || (text.len() >= TELLING && !is_day);
    Hash::read(text).filter(|_| is_telling)
}

/// From where to where a search looks, by whole hashes.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Between {
    /// Those that this one has are left out.
    after: Option<String>,
    /// Only what this one has; without one, what is checked out.
    up_to: Option<String>,
    /// Whether only what that one is built on.
    is_before: bool,
    /// Whether the first one is on another branch than the last.
    pub(super) is_beside: bool,
}

impl Between {
    /// The same, for git.
    pub(super) fn revisions(&self) -> Vec<OsString> {
        let parents = if self.is_before { "^@" } else { "" };
        let end = match &self.up_to {
            Some(up_to) => format!("{up_to}{parents}"),
            None => HEAD.to_owned(),
        };
        let after = self.after.iter().map(|after| format!("^{after}"));
        [end].into_iter().chain(after).map(OsString::from).collect()
    }
}

/// What is checked out.
const HEAD: &str = "HEAD";

impl Git {
    /// The commits that bound a search; the hash that names none, or several, with what there is by it.
    pub(super) async fn between<'a>(
        &self,
        wanted: &'a Wanted,
        until: Instant,
    ) -> Result<Result<Between, (&'a Hash, Found)>, ToolError> {
        let hash = |bound: &'a Option<Bound>| bound.as_ref()?.at.hash();
        let (first, last) = (hash(&wanted.since), hash(&wanted.until));
        let mut between = Between::default();
        if first.is_none() && last.is_none() {
            return Ok(Ok(between));
        }
        let (top, is_shallow) = self.repository(until).await?;
        let ends = [(first, &mut between.after), (last, &mut between.up_to)];
        for (hash, whole) in ends {
            let Some(hash) = hash else { continue };
            let mut commits = match self.named(hash, top, until).await? {
                Named::Countless => return Ok(Err((hash, Found::Countless))),
                Named::Commits(commits) => commits,
            };
            if commits.len() > 1 {
                return Ok(Err((hash, Found::Countless)));
            }
            *whole = commits.pop();
            if whole.is_none() {
                return Ok(Err((hash, Found::Nothing { is_shallow })));
            }
        }
        between.is_before = wanted.until.as_ref().is_some_and(|it| it.at.is_before());
        self.put_in_order(&mut between, top, until).await?;
        Ok(Ok(between))
    }

    /// Of two commits, the older one is the first, however they were named.
    async fn put_in_order(
        &self,
        between: &mut Between,
        top: &Path,
        until: Instant,
    ) -> Result<(), ToolError> {
        let Some(after) = between.after.clone() else {
            return Ok(());
        };
        let up_to = between.up_to.clone().unwrap_or_else(|| HEAD.to_owned());
        if self.has(top, &up_to, &after, until).await? != Some(false) {
            return Ok(());
        }
        let is_named = between.up_to.is_some() && !between.is_before;
        if is_named && self.has(top, &after, &up_to, until).await? == Some(true) {
            std::mem::swap(&mut between.after, &mut between.up_to);
        } else {
            between.is_beside = true;
        }
        Ok(())
    }

    /// Whether a commit is another one, or built on it; none if that was not found out in time.
    pub(super) async fn has(
        &self,
        top: &Path,
        commit: &str,
        other: &str,
        until: Instant,
    ) -> Result<Option<bool>, ToolError> {
        let asked = ["merge-base", "--is-ancestor", other, commit].map(OsString::from);
        Ok(self.run(top, asked, until).await?.success)
    }
}
