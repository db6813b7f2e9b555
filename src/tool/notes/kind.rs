//! What kind of note one is: a decision, a list of changes, the minutes of a meeting, or just a note.
//!
//! By the conventions that people follow: records of architecture decisions after Nygard and MADR,
//! change logs, meeting notes, in English and German. Pure.

use schemars::JsonSchema;
use serde::Deserialize;

use super::{
    date,
    note::{Note, Section},
};

/// A kind of note. The variants have no doc comments: those would turn a plain `enum` of the schema
/// into a `oneOf`, which not every provider takes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub(super) enum Kind {
    // None of the others.
    Note,
    // What was decided: a record of it, or such a section of a meeting's notes.
    Decision,
    // What changed from version to version.
    Changelog,
    // Minutes and agendas.
    Meeting,
}

const DECISION_FOLDERS: &[&str] = &[
    "adr",
    "adrs",
    "decisions",
    "decision",
    "decision-records",
    "decision_records",
    "decision-log",
    "architecture-decisions",
    "architecture_decisions",
    "architecture-decision-records",
    "entscheidungen",
    "rfc",
    "rfcs",
];
const CHANGELOG_NAMES: &[&str] = &[
    "changelog",
    "changelogs",
    "changes",
    "change-log",
    "change_log",
    "history",
    "news",
    "releases",
    "release-notes",
    "release_notes",
    "releasenotes",
    "whatsnew",
    "whats-new",
];
const MEETING_WORDS: &[&str] = &[
    "meeting",
    "meetings",
    "minutes",
    "standup",
    "standups",
    "retro",
    "retrospective",
    "besprechung",
    "besprechungen",
    "protokoll",
    "protokolle",
    "sitzung",
    "sitzungen",
];
const MEETING_HEADINGS: &[&str] = &[
    "agenda",
    "minutes",
    "attendees",
    "participants",
    "present",
    "action items",
    "actions",
    "decisions",
    "tagesordnung",
    "teilnehmer",
    "anwesend",
    "beschlusse",
    "beschlüsse",
    "beschluss",
    "entscheidungen",
    "aufgaben",
];
const DECISION_HEADINGS: &[&str] = &[
    "decision",
    "decisions",
    "decision outcome",
    "decisions made",
    "entscheidung",
    "entscheidungen",
    "beschluss",
    "beschlüsse",
    "beschlusse",
];
/// What stands beside a decision in its record.
const BESIDE_DECISION: &[&str] = &[
    "status",
    "context",
    "consequences",
    "context and problem statement",
    "considered options",
    "decision drivers",
    "alternatives",
    "rationale",
    "kontext",
    "konsequenzen",
    "begründung",
];

impl Kind {
    /// Of a note at this path, with `/` between its parts.
    pub(super) fn of(path: &str, note: &Note) -> Self {
        let path = path.to_lowercase();
        let (folders, name) = path.rsplit_once('/').unwrap_or(("", &path));
        let stem = stem(name);
        let headings: Vec<String> = own_headings(note).map(plain).collect();
        let has = |known: &[&str]| {
            headings
                .iter()
                .filter(|heading| known.contains(&heading.as_str()))
                .count()
        };
        let in_folder = |known: &[&str]| folders.split('/').any(|folder| known.contains(&folder));
        let is_list = matches!(stem, "readme" | "index" | "template" | "_index");
        if CHANGELOG_NAMES.contains(&stem)
            || stem.starts_with("changelog")
            || (in_folder(CHANGELOG_NAMES) && has_version(stem))
        {
            return Self::Changelog;
        }
        let recorded = has(DECISION_HEADINGS) > 0 && has(BESIDE_DECISION) > 0;
        let numbered = stem
            .trim_start_matches("adr")
            .trim_start_matches(['-', '_']);
        let counted = numbered.bytes().take_while(u8::is_ascii_digit).count() >= 2;
        let filed = in_folder(DECISION_FOLDERS) && (counted || note.front.status.is_some());
        let named = stem.starts_with("adr") && counted;
        if !is_list && (recorded || filed || named) {
            return Self::Decision;
        }
        let called = path
            .split(|c: char| !c.is_alphanumeric())
            .any(|word| MEETING_WORDS.contains(&word));
        let dated = note.front.date.is_some() || date::first_in(name).is_some();
        let met = has(MEETING_HEADINGS);
        if !is_list && ((called && (dated || met > 0)) || (dated && met > 0) || met > 1) {
            return Self::Meeting;
        }
        Self::Note
    }

    /// Of a section below this heading, in a note of this kind.
    pub(super) fn of_section(self, heading: Option<&str>) -> Self {
        match self {
            Self::Meeting | Self::Note if heading.is_some_and(decides) => Self::Decision,
            kind => kind,
        }
    }

    /// As it is called.
    pub(super) const fn name(self) -> &'static str {
        match self {
            Self::Note => "note",
            Self::Decision => "decision",
            Self::Changelog => "changelog",
            Self::Meeting => "meeting",
        }
    }
}

/// Whether a section of this heading holds what was decided.
pub(super) fn decides(heading: &str) -> bool {
    DECISION_HEADINGS.contains(&plain(heading).as_str())
}

fn own_headings(note: &Note) -> impl Iterator<Item = &str> {
    note.sections.iter().filter_map(Section::heading)
}

/// A heading in lower case, without number and colon.
pub(super) fn plain(heading: impl AsRef<str>) -> String {
    let heading = heading.as_ref().to_lowercase();
    heading
        .trim_start_matches(|c: char| c.is_ascii_digit() || matches!(c, '.' | ')' | ' '))
        .trim_end_matches([':', ' '])
        .to_owned()
}

/// The name without what stands after its last dot, unless that is a number.
pub(super) fn stem(name: &str) -> &str {
    match name.rsplit_once('.') {
        Some((stem, end)) if !stem.is_empty() && end.chars().all(char::is_alphabetic) => stem,
        Some(_) | None => name,
    }
}

/// Whether a version such as `1.2` is in it.
pub(super) fn has_version(text: &str) -> bool {
    let numbers = text.split(|c: char| !c.is_ascii_digit() && c != '.');
    numbers
        .map(|number| number.trim_matches('.'))
        .any(|number| number.contains('.') && number.len() <= 20)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn kind(path: &str, text: &str) -> Kind {
        Kind::of(path, &Note::read(text))
    }

    #[test]
    fn kinds_are_told_by_names_and_headings() {
        const NYGARD: &str = "# 3. Use SQLite\n\n## Status\n\nAccepted\n\n## Context\n\n## Decision\n\n## Consequences\n";
        const MADR: &str =
            "# Use SQLite\n\n## Context and Problem Statement\n\n## Decision Outcome\n";
        for (path, text, want) in [
            (
                "docs/adr/0003-use-sqlite.md",
                "# Use SQLite\n",
                Kind::Decision,
            ),
            ("docs/x/anything.md", NYGARD, Kind::Decision),
            ("doc/decisions/cache.md", MADR, Kind::Decision),
            ("adr-012.md", "x", Kind::Decision),
            (
                "doc/decisions/cache.md",
                "---\nstatus: accepted\n---\n",
                Kind::Decision,
            ),
            ("docs/adr/README.md", "# Decisions\n", Kind::Note),
            ("docs/adr/template.md", NYGARD, Kind::Note),
            ("CHANGELOG.md", "", Kind::Changelog),
            ("HISTORY", "", Kind::Changelog),
            ("docs/NEWS.markdown", "", Kind::Changelog),
            ("docs/releases/v1.2.3.md", "", Kind::Changelog),
            ("docs/releases/how-to.md", "", Kind::Note),
            ("2026-03-01-standup.md", "x", Kind::Meeting),
            (
                "meetings/kickoff.md",
                "# Kickoff\n## Agenda\n",
                Kind::Meeting,
            ),
            (
                "x.md",
                "---\ndate: 2026-03-01\n---\n## Beschlüsse\n",
                Kind::Meeting,
            ),
            ("x.md", "# Board\n## Attendees\n## Minutes\n", Kind::Meeting),
            ("meeting-rooms.md", "# How to book\n", Kind::Note),
            ("2026-03-01.md", "# Diary\n", Kind::Note),
            ("guide.md", "# Decision trees\n## Context\n", Kind::Note),
            ("", "", Kind::Note),
        ] {
            assert_eq!(kind(path, text), want, "{path} {text}");
        }
    }

    #[test]
    fn decisions_of_a_meeting_are_decisions() {
        for (kind, heading, want) in [
            (Kind::Meeting, "Decisions:", Kind::Decision),
            (Kind::Meeting, "2. Beschlüsse", Kind::Decision),
            (Kind::Meeting, "Agenda", Kind::Meeting),
            (Kind::Changelog, "Decisions", Kind::Changelog),
        ] {
            assert_eq!(kind.of_section(Some(heading)), want, "{heading}");
        }
    }

    #[test]
    fn versions_are_numbers_with_dots() {
        for (text, is) in [
            ("v1.2.3", true),
            ("[2.0]", true),
            ("1.0.0-rc.1", true),
            ("2026-03-01", false),
            ("12.", false),
            ("a.b", false),
        ] {
            assert_eq!(has_version(text), is, "{text}");
        }
    }
}
