//! The last line of a result, in which a tool says what it did and did not do, and how much of a question the best
//! place has. Pure.

use super::Judged;

/// Its notes. What was asked for stands in backticks there and may say anything: no note begins in it.
pub(super) fn notes(content: &str) -> Vec<&str> {
    let last = content.lines().last().unwrap_or_default();
    // Without pairs nobody knows what is in them.
    let has_pairs = last.matches('`').count().is_multiple_of(2);
    let mut notes = Vec::new();
    let mut begin = 0;
    for (at, mark) in last.match_indices("; ") {
        let is_within = !last[begin..at].matches('`').count().is_multiple_of(2);
        if !(has_pairs && is_within) {
            notes.push(&last[begin..at]);
            begin = at + mark.len();
        }
    }
    notes.push(&last[begin..]);
    notes
}

/// `the best place has 40 % of what was asked, not `a`, `b``.
pub(super) fn judged(note: &str) -> Option<Judged> {
    let (covered, rest) = note.strip_prefix("the best place has ")?.split_once(" %")?;
    let lacking = rest.split_once(", not ").map_or("", |(_, words)| words);
    let lacking = lacking
        .split(", ")
        .map(unquoted)
        .filter(|word| !word.is_empty());
    Some(Judged {
        covered: covered.parse().ok()?,
        lacking: lacking.collect(),
    })
}

pub(super) fn unquoted(word: &str) -> String {
    word.trim().trim_matches('`').to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_note_begins_in_what_was_asked_for() {
        for (last, want) in [
            ("all 1 commit", vec!["all 1 commit"]),
            (
                "a\nno commit with `x; there are more` in it; stopped at the deadline",
                vec![
                    "no commit with `x; there are more` in it",
                    "stopped at the deadline",
                ],
            ),
            ("it`s; odd", vec!["it`s", "odd"]),
            ("", vec![""]),
        ] {
            assert_eq!(notes(last), want, "{last}");
        }
    }
}
