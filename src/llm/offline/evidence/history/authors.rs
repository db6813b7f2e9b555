//! What a search of the history tells of authors: `3 commits by Ann`, a line for each, and `all 2 authors of 5 commits`
//! or `the first 3 of 9 authors of 40 commits`. Pure.

/// Who made commits.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(in super::super::super) struct Authors {
    /// How many each of the first made; who made most comes first.
    pub(in super::super::super) first: Vec<(u64, String)>,
    /// How many authors there are.
    pub(in super::super::super) people: u64,
    /// How many commits they made together.
    pub(in super::super::super) commits: u64,
    /// Whether older commits were not looked at.
    pub(in super::super::super) is_cut: bool,
}

impl Authors {
    /// None if there are none.
    pub(super) fn read(content: &str, notes: &[&str]) -> Option<Self> {
        let (people, commits) = notes.first().and_then(|note| totals(note))?;
        let first: Vec<(u64, String)> = content.lines().map_while(author).collect();
        let cuts = [
            "stopped at the deadline",
            "too many names",
            "the clone is shallow",
            "this git stops",
        ];
        let is_cut = |note: &&str| cuts.iter().any(|cut| note.starts_with(cut));
        (!first.is_empty()).then(|| Self {
            first,
            people,
            commits,
            is_cut: notes.iter().any(is_cut),
        })
    }
}

fn author(line: &str) -> Option<(u64, String)> {
    let (count, said) = line.split_once(' ')?;
    let name = said
        .strip_prefix("commits by ")
        .or_else(|| said.strip_prefix("commit by "))?;
    Some((count.parse().ok()?, name.to_owned()))
}

/// How many authors, and how many commits.
fn totals(note: &str) -> Option<(u64, u64)> {
    let words: Vec<&str> = note.split([' ', ',']).take(9).collect();
    let at = words
        .iter()
        .position(|word| matches!(*word, "author" | "authors"))?;
    let people = words.get(at.checked_sub(1)?)?.parse().ok()?;
    let commits = words.get(at + 2)?.parse().ok()?;
    Some((people, commits))
}
