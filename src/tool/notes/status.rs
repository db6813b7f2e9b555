//! How a decision stands, and of which day a note says that it is. Pure.

use super::{date, kind::plain, note::Note};
use crate::tool::text::{clipped, on_one_line};

/// Longest status that is kept, in characters.
const MAX_STATUS: usize = 80;
/// Lines of a note that may say its status or its date.
const HEAD: usize = 40;
/// Longest line that is looked at, in bytes: a status or a date stands in a short one.
const LONGEST_LINE: usize = 1_024;
/// Most lines below a heading such as "Status" that say no more than it.
const FEW: usize = 3;
/// What is said of a note rather than in it, as headings and before colons.
const LABELS: &[&str] = &[
    "status",
    "date",
    "deciders",
    "decision-makers",
    "decision makers",
    "author",
    "authors",
    "supersedes",
    "superseded by",
    "datum",
    "entscheider",
    "autor",
    "autoren",
];

/// How a decision stands: by its front matter, a section "Status", or a line `Status: accepted`.
pub(super) fn status(text: &str, note: &Note) -> Option<String> {
    let from_section = || {
        let is_status = |heading: &str| plain(heading) == "status";
        let section = note
            .sections
            .iter()
            .find(|section| section.heading().is_some_and(is_status))?;
        let below = (section.last - section.first) as usize;
        let lines = text.lines().skip(section.first as usize).take(below);
        lines
            .filter(|line| line.len() <= LONGEST_LINE)
            .map(unmarked)
            .find(|line| !line.is_empty() && !line.starts_with("---"))
    };
    let from_line = || labelled(text, "status");
    let front = note.front.status.clone();
    let status = front.or_else(from_section).or_else(from_line)?;
    let status = on_one_line(clipped(status.trim(), MAX_STATUS).0).to_lowercase();
    (!status.is_empty()).then_some(status)
}

/// What a line `Date: …` near the beginning says.
pub(super) fn dated(text: &str) -> Option<jiff::civil::Date> {
    labelled(text, "date").and_then(|day| date::first_in(&day))
}

/// Whether something else holds by now.
pub(super) fn is_over(status: &str) -> bool {
    let says = [
        "superseded",
        "deprecated",
        "rejected",
        "obsolete",
        "withdrawn",
        "abgelehnt",
        "veraltet",
    ];
    says.iter().any(|word| status.contains(word)) || is_replaced(status)
}

/// Whether it is replaced itself: "we replaced the old store" tells of something else.
fn is_replaced(status: &str) -> bool {
    let alone = |behind: &str| !behind.trim_start().starts_with(char::is_alphabetic);
    [("replaced", "by with"), ("ersetzt", "durch von")]
        .into_iter()
        .any(|(word, by)| {
            let mut places = status.match_indices(word);
            places.any(|(at, _)| {
                let behind = &status[at + word.len()..];
                let next = behind.split_whitespace().next().unwrap_or_default();
                by.split(' ').any(|by| by == next) || (at == 0 && alone(behind))
            })
        })
}

/// Whether a section, its heading first, says nothing: it is empty, or tells no more than how and of
/// when its note is. In the record of a decision a heading such as "Status" is enough for that.
pub(super) fn is_bare(heading: &str, lines: &[&str], is_record: bool) -> bool {
    let says = |line: &&&str| line.contains(char::is_alphanumeric);
    let below = || lines.iter().filter(says).skip(1);
    let is_label = |text: &str| LABELS.contains(&plain(text).as_str());
    let is_labelled = |line: &&str| {
        let short = line.len() <= LONGEST_LINE;
        short
            && unmarked(line)
                .split_once(':')
                .is_some_and(|(key, _)| is_label(key.trim()))
    };
    below().all(is_labelled) || (is_record && is_label(heading) && below().count() <= FEW)
}

fn labelled(text: &str, label: &str) -> Option<String> {
    let mut short = text
        .lines()
        .take(HEAD)
        .filter(|line| line.len() <= LONGEST_LINE);
    short.find_map(|line| {
        let line = unmarked(line);
        let (key, value) = line.split_once(':')?;
        let fits = key.trim().eq_ignore_ascii_case(label);
        (fits && !value.trim().is_empty()).then(|| value.trim().to_owned())
    })
}

/// A line without the marks of lists and emphasis, links by their words.
fn unmarked(line: &str) -> String {
    let line = line.trim().trim_start_matches(['-', '*', '+', '>', ' ']);
    let mut plain = String::new();
    let mut rest = line;
    while let Some((before, after)) = rest.split_once('[') {
        plain.push_str(before);
        let (words, more) = after.split_once(']').unwrap_or((after, ""));
        plain.push_str(words);
        rest = match more
            .strip_prefix('(')
            .and_then(|target| target.split_once(')'))
        {
            Some((_, more)) => more,
            None => more,
        };
    }
    plain.push_str(rest);
    plain.replace(['*', '`', '['], "").trim().to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_status_is_found_where_people_write_it() {
        for (name, text, want) in [
            (
                "front matter",
                "---\nstatus: Accepted\n---\n",
                Some("accepted"),
            ),
            (
                "a section",
                "# A\n## Status\n\nSuperseded by [12. Other](0012-other.md)\n\nmore\n## Context\n",
                Some("superseded by 12. other"),
            ),
            (
                "a line",
                "# A\n\n* **Status:** proposed\n",
                Some("proposed"),
            ),
            ("none", "# A\nText.\n", None),
            ("a section without words", "# A\n## Status\n", None),
        ] {
            assert_eq!(status(text, &Note::read(text)).as_deref(), want, "{name}");
        }
        for (status, is) in [
            ("superseded by 12", true),
            ("accepted", false),
            ("replaced", true),
            ("replaced (2025-01-15)", true),
            ("replaced by 12", true),
            ("accepted, later replaced by 12", true),
            ("ersetzt", true),
            ("ersetzt durch 12", true),
            ("we replaced the old store", false),
            ("accepted, it replaced 3", false),
            ("ersetzt den alten speicher", false),
        ] {
            assert_eq!(is_over(status), is, "{status}");
        }
        let day = "2024-05-06".parse().ok();
        assert_eq!(dated("# 1. A\n\nDate: 2024-05-06\n"), day);
    }

    #[test]
    fn a_section_of_status_and_date_alone_is_bare() {
        for (text, want) in [
            ("# A", true),
            ("A\n===", true),
            ("# A\n\nDate: 2025-06-01\n", true),
            ("# A\n\n* **Status:** accepted\n* Deciders: she, he\n", true),
            (
                "## Status\n\nAccepted\n\nSupersedes [2. B](0002-b.md)\n",
                true,
            ),
            ("## 1. Status:\n\nAccepted\n", true),
            ("## Status\n\none\ntwo\nthree\nfour\n", false),
            ("# A\n\nDate: 2025-06-01\n\nText.\n", false),
            ("## Decision\n\nSQLite.\n", false),
            ("## Ports\n\nHTTP: 80\n", false),
        ] {
            let lines: Vec<&str> = text.lines().collect();
            let heading = lines[0].trim_start_matches(['#', ' ']);
            assert_eq!(is_bare(heading, &lines, true), want, "{text}");
        }
        let elsewhere = ["## Status", "", "It works."];
        assert!(!is_bare("Status", &elsewhere, false));
    }

    /// It would take minutes if its time grew with the square of its length.
    #[test]
    fn a_line_of_any_length_is_read_at_once() {
        let line = "[](".repeat(400_000);
        for text in [line.clone(), format!("# A\n## Status\n{line}\naccepted\n")] {
            let status = status(&text, &Note::read("# A\n## Status\nx\ny\n"));
            assert_eq!(
                (dated(&text), status.is_some()),
                (None, text.contains("accepted"))
            );
        }
    }
}
