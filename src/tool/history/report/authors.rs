//! The report of authors: a line for each, with how many commits that is.

use super::{
    super::{HistorySearchSettings, Wanted, authors::Authors},
    NOTES, beside, chosen, line, out_of_sight,
};
use crate::tool::text::counted;

/// Writes who made the commits that are wanted.
pub(in super::super) fn of_authors(
    wanted: &Wanted,
    authors: &Authors,
    settings: HistorySearchSettings,
) -> String {
    let mut text = String::new();
    let mut shown = 0;
    let room = settings.max_output_bytes.max(NOTES + 1_000) - NOTES;
    let asked_for = authors.all.iter().skip(wanted.skipped);
    for (count, name) in asked_for.take(wanted.commits) {
        let commits = counted(*count, "commit", "commits");
        let name = if name.is_empty() { "(no name)" } else { name };
        let told = format!("{commits} by {}\n", line(name, settings));
        if text.len() + told.len() > room {
            break;
        }
        text.push_str(&told);
        shown += 1;
    }
    if shown > 0 {
        text.push('\n');
    }
    text.push_str(&last_line(wanted, authors, shown));
    text
}

/// Says how many there are, of how many commits, and what was not looked at.
fn last_line(wanted: &Wanted, authors: &Authors, shown: usize) -> String {
    let total: u64 = authors.all.iter().map(|(count, _)| count).sum();
    let many = authors.all.len();
    let people = counted(many as u64, "author", "authors");
    let commits = counted(total, "commit", "commits");
    let of = chosen(wanted);
    let passed = many.min(wanted.skipped);
    let mut notes = vec![match (many, passed) {
        (0, _) => format!("no commit{of}"),
        (_, 0) if shown == many => format!("all {people} of {commits}{of}"),
        (_, 0) => format!("the first {shown} of {people} of {commits}{of}"),
        (_, _) => {
            format!("the next {shown} of {people} of {commits}{of}, behind the first {passed}")
        }
    }];
    if authors.stopped {
        notes.push("stopped at the deadline: older commits were not looked at".to_owned());
    }
    if authors.cut {
        notes.push("too many names to read: older commits were not looked at".to_owned());
    }
    notes.extend(beside(wanted, authors.is_beside));
    notes.extend(out_of_sight(authors.may_hide, authors.is_shallow));
    notes.join("; ")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn wanted(commits: usize, skipped: usize) -> Wanted {
        Wanted {
            words: Vec::new(),
            path: None,
            changed: None,
            author: None,
            since: None,
            until: None,
            is_counted: false,
            is_by_author: true,
            is_oldest_first: false,
            commits,
            skipped,
        }
    }

    #[test]
    fn authors_are_told_with_what_is_left_out() {
        let all = vec![(3, "Ann\u{1b}".to_owned()), (1, "Bo".to_owned())];
        let some = |is_shallow, stopped| Authors {
            all: all.clone(),
            is_shallow,
            stopped,
            cut: false,
            is_beside: false,
            may_hide: false,
        };
        let (first, second) = ("3 commits by Ann\\u{1b}\n", "1 commit by Bo\n");
        for (name, wanted, authors, want) in [
            (
                "all",
                wanted(9, 0),
                some(false, false),
                format!("{first}{second}\nall 2 authors of 4 commits"),
            ),
            (
                "the first",
                wanted(1, 0),
                some(true, false),
                format!(
                    "{first}\nthe first 1 of 2 authors of 4 commits; the clone is shallow: older commits are not here"
                ),
            ),
            (
                "the next",
                wanted(1, 1),
                some(false, true),
                format!(
                    "{second}\nthe next 1 of 2 authors of 4 commits, behind the first 1; stopped at the deadline: \
                     older commits were not looked at"
                ),
            ),
            (
                "more than are read, of somebody without a name",
                wanted(9, 0),
                Authors {
                    all: vec![(2, String::new())],
                    cut: true,
                    ..Authors::default()
                },
                "2 commits by (no name)\n\nall 1 author of 2 commits; too many names to read: older commits were not \
                 looked at"
                    .to_owned(),
            ),
            (
                "none",
                wanted(9, 0),
                Authors::default(),
                "no commit".to_owned(),
            ),
        ] {
            let told = of_authors(&wanted, &authors, HistorySearchSettings::default());
            assert_eq!(told, want, "{name}");
        }
    }
}
