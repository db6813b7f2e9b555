//! Who made commits, and how many each.

use std::collections::HashMap;

use tokio::time::Instant;

use super::{
    Wanted,
    asking::{Since, authors},
    between::Between,
    git::{Git, PART},
};
use crate::tool::ToolError;

/// Most output that is read of names, in bytes: about a million of them.
const MAX_NAMES: u64 = 16 * 1024 * 1024;

/// Who made commits.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Authors {
    /// How many each made; who made most comes first, of equals whose name is first.
    pub(super) all: Vec<(u64, String)>,
    /// Whether older commits were never fetched.
    pub(super) is_shallow: bool,
    /// Whether it ended before it came to older ones.
    pub(super) stopped: bool,
    /// Whether there were more names than are read.
    pub(super) cut: bool,
    /// Whether a commit that is dated before the first day may have hidden those behind it.
    pub(super) may_hide: bool,
    /// Whether the commit behind which they come is on another branch.
    pub(super) is_beside: bool,
}

impl Git {
    /// The authors of all commits that are wanted.
    pub(super) async fn authors(
        &self,
        wanted: &Wanted,
        between: &Between,
        until: Instant,
    ) -> Result<Authors, ToolError> {
        let (top, is_shallow) = self.repository(until).await?;
        let is_top = top == self.root().path();
        let asked = |since| authors(wanted, between, is_top, since);
        let room = (until, MAX_NAMES);
        let (names, since) = self.in_its_words(wanted, top, asked, room).await?;
        Ok(Authors {
            all: tally(&String::from_utf8_lossy(&names.output)),
            is_shallow,
            stopped: names.success.is_none() && !names.cut,
            cut: names.cut,
            may_hide: since == Since::UpToOlder,
            is_beside: between.is_beside,
        })
    }
}

/// How often each name was written that came to its end.
fn tally(written: &str) -> Vec<(u64, String)> {
    let mut counts: HashMap<&str, u64> = HashMap::new();
    let whole = written.rsplit_once(PART);
    for name in whole.iter().flat_map(|(whole, _)| whole.split(PART)) {
        *counts.entry(name.trim()).or_default() += 1;
    }
    let counts = counts.into_iter();
    let mut all: Vec<(u64, String)> = counts
        .map(|(name, count)| (count, name.to_owned()))
        .collect();
    all.sort_by(|(many, one), (few, other)| few.cmp(many).then_with(|| one.cmp(other)));
    all
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_counted_as_far_as_they_were_written() {
        for (name, written, want) in [
            ("none", "", vec![]),
            ("one", "Ann\0\n", vec![(1, "Ann")]),
            (
                "who made most first",
                "Bo\0\nAnn\0\nBo\0\n",
                vec![(2, "Bo"), (1, "Ann")],
            ),
            (
                "equals by their names",
                "Bo\0\nAnn\0\n",
                vec![(1, "Ann"), (1, "Bo")],
            ),
            ("a part of a name", "Ann\0\nBo", vec![(1, "Ann")]),
            ("no whole name", "An", vec![]),
            ("somebody without a name", "\0\n", vec![(1, "")]),
        ] {
            let want: Vec<(u64, String)> = want
                .into_iter()
                .map(|(count, name)| (count, name.to_owned()))
                .collect();
            assert_eq!(tally(written), want, "{name}");
        }
    }
}
