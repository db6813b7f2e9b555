//! A file of notes as it is searched: its sections as bags of words, with what is known of them.
//!
//! The text itself is not kept; whoever shows lines reads the file again. Pure.

use std::{collections::HashMap, fs::Metadata, time::SystemTime};

use jiff::civil::Date;

use super::{
    date,
    kind::{self, Kind},
    note::{Link, Note, Section, Target},
    piece, status,
    words::{self, Key},
};

/// How often a word counts by where it stands.
const IN_TEXT: f32 = 1.0;
const IN_HEADING: f32 = 4.0;
const IN_OUTER_HEADING: f32 = 1.5;
const IN_TITLE: f32 = 2.0;
const IN_TAG: f32 = 2.0;
const IN_PATH: f32 = 1.5;

/// Which version of a file it was.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Stamp {
    pub(super) changed: Option<SystemTime>,
    pub(super) size: u64,
}

impl Stamp {
    /// Of what the system says of a file.
    pub(super) fn of(about: &Metadata) -> Self {
        Self {
            changed: about.modified().ok(),
            size: about.len(),
        }
    }
}

/// A file of notes.
#[derive(Debug)]
pub(super) struct Page {
    /// As the model knows it.
    pub(super) path: String,
    pub(super) stamp: Stamp,
    pub(super) note: Note,
    pub(super) kind: Kind,
    pub(super) status: Option<String>,
    pub(super) date: Option<Date>,
    /// What is searched, in order: sections, long ones in pieces.
    pub(super) units: Vec<Unit>,
}

/// A section or a piece of one, as it is searched.
#[derive(Debug)]
pub(super) struct Unit {
    /// Of which section of the note.
    pub(super) section: usize,
    /// Its first and last line, from 1.
    pub(super) first: u32,
    pub(super) last: u32,
    pub(super) kind: Kind,
    pub(super) date: Option<Date>,
    /// Its words, sorted, and how much each counts.
    words: Box<[(Key, f32)]>,
    pub(super) length: f32,
    /// Whether it is a heading without text.
    pub(super) bare: bool,
}

impl Page {
    /// Reads a file.
    pub(super) fn read(path: String, stamp: Stamp, text: &str) -> Self {
        let note = if is_markdown(&path) {
            Note::read(text)
        } else {
            Note::read_plain(text)
        };
        let kind = Kind::of(&path, &note);
        let status = status::status(text, &note)
            .filter(|_| kind == Kind::Decision || note.front.status.is_some());
        let date = note
            .front
            .date
            .or_else(|| date::first_in(file_name(&path)))
            .or_else(|| status::dated(text))
            .or_else(|| date::first_in(&path));
        let lines: Vec<&str> = text.lines().collect();
        let about = About::of(&path, &note);
        let mut units = Vec::new();
        for (at, section) in note.sections.iter().enumerate() {
            let day = section
                .path
                .iter()
                .rev()
                .find_map(|heading| date::first_in(heading));
            let known = (kind.of_section(section.heading()), day.or(date));
            let unit = |piece| Unit::of((at, section), piece, &lines, known, &about);
            units.extend(
                piece::pieces(&lines, section.first, section.last)
                    .into_iter()
                    .map(unit),
            );
        }
        Self {
            path,
            stamp,
            kind,
            status,
            date,
            units,
            note,
        }
    }

    /// The folder that it is in, without a slash at its end.
    pub(super) fn folder(&self) -> &str {
        self.path.rsplit_once('/').map_or("", |(folder, _)| folder)
    }

    /// Its name without its ending.
    pub(super) fn stem(&self) -> &str {
        kind::stem(file_name(&self.path))
    }

    /// Its title, or else its name; the first heading of a list of changes may be a version.
    pub(super) fn title(&self) -> &str {
        let of_version = |title: &&str| self.kind == Kind::Changelog && kind::has_version(title);
        let title = self
            .note
            .title
            .as_deref()
            .filter(|title| !of_version(title));
        title.unwrap_or_else(|| self.stem())
    }

    /// How much memory it takes, about, in words of an index.
    pub(super) fn weight(&self) -> usize {
        const WORD: usize = size_of::<(Key, f32)>();
        let units = self.units.iter();
        let units = units.map(|unit| size_of::<Unit>() / WORD + unit.words.len());
        // A heading is kept once, however many sections stand below it.
        let sections = self.note.sections.iter().map(|section| {
            let shared = size_of_val(&*section.path) + section.heading().map_or(0, str::len);
            (size_of::<Section>() + shared) / WORD
        });
        let links = self.note.links.iter().map(|link| {
            let (Target::Path(to) | Target::Name(to)) = &link.to;
            (size_of::<Link>() + to.len()) / WORD
        });
        let front = &self.note.front;
        let texts = self
            .note
            .tags
            .iter()
            .chain(&front.tags)
            .chain(&front.aliases);
        let texts = texts.map(|text| (size_of::<String>() + text.len()) / WORD);
        let own = (size_of::<Self>() + self.path.len()) / WORD;
        own + units.sum::<usize>()
            + sections.sum::<usize>()
            + links.sum::<usize>()
            + texts.sum::<usize>()
    }
}

/// The words that all sections of a note share.
struct About(Vec<(Key, f32)>);

impl About {
    fn of(path: &str, note: &Note) -> Self {
        let mut shared = Vec::new();
        let mut add =
            |text: &str, weight| words::each(text, |word| shared.push((words::key(word), weight)));
        add(path, IN_PATH);
        note.front
            .aliases
            .iter()
            .for_each(|alias| add(alias, IN_TITLE));
        note.tags.iter().for_each(|tag| add(tag, IN_TAG));
        add(note.title.as_deref().unwrap_or_default(), IN_TITLE);
        Self(shared)
    }
}

impl Unit {
    fn of(
        (at, section): (usize, &Section),
        (first, last): (u32, u32),
        lines: &[&str],
        (kind, date): (Kind, Option<Date>),
        about: &About,
    ) -> Self {
        let own = section.heading();
        let mut counts: HashMap<Key, f32> = HashMap::new();
        let mut length = 0.0_f32;
        let mut add = |text: &str, weight: f32| {
            words::each(text, |word| {
                *counts.entry(words::key(word)).or_default() += weight;
                length += 1.0;
            });
        };
        let mut full = 0;
        for line in lines
            .iter()
            .take(last as usize)
            .skip((first as usize).saturating_sub(1))
        {
            add(line, IN_TEXT);
            full += usize::from(line.contains(char::is_alphanumeric));
        }
        // Where the heading's own line is in it, that is counted as text already.
        let counted = if first == section.first { IN_TEXT } else { 0.0 };
        add(own.unwrap_or_default(), IN_HEADING - counted);
        let outer = section.path.iter().rev().skip(1);
        outer.for_each(|heading| add(heading, IN_OUTER_HEADING));
        for (word, weight) in &about.0 {
            *counts.entry(*word).or_default() += weight;
        }
        let mut words: Vec<(Key, f32)> = counts.into_iter().collect();
        words.sort_unstable_by_key(|(word, _)| *word);
        Self {
            section: at,
            first,
            last,
            kind,
            date,
            words: words.into(),
            length,
            bare: own.is_some() && full <= 1 && first == section.first,
        }
    }

    /// How much a word counts in it; nothing if it is not there.
    pub(super) fn often(&self, word: Key) -> f32 {
        let at = self.words.binary_search_by_key(&word, |(known, _)| *known);
        at.ok()
            .and_then(|at| self.words.get(at))
            .map_or(0.0, |(_, often)| *often)
    }
}

fn file_name(path: &str) -> &str {
    path.rsplit('/').next().unwrap_or(path)
}

/// What stands after the last dot of a file's name.
pub(super) fn ending(path: &str) -> Option<&str> {
    file_name(path).rsplit_once('.').map(|(_, ending)| ending)
}

/// Whether a file of this name is Markdown.
pub(super) fn is_markdown(path: &str) -> bool {
    let known = ["md", "markdown", "mdown", "mkd", "mdx"];
    ending(path).is_some_and(|ending| known.iter().any(|one| ending.eq_ignore_ascii_case(one)))
}

/// Whether a file of this name is a note: Markdown, reStructuredText, or a list of changes.
pub(super) fn is_note(path: &str) -> bool {
    let plain = |ending: &str| ending.eq_ignore_ascii_case("rst");
    is_markdown(path)
        || ending(path).is_some_and(plain)
        || (ending(path).is_none_or(|ending| ending.eq_ignore_ascii_case("txt"))
            && Kind::of(file_name(path), &Note::default()) == Kind::Changelog)
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;

    const STAMP: Stamp = Stamp {
        changed: None,
        size: 0,
    };

    fn page(path: &str, text: &str) -> Page {
        Page::read(path.to_owned(), STAMP, text)
    }

    fn often(unit: &Unit, text: &str) -> f32 {
        let mut found = 0.0;
        words::each(text, |word| found = unit.often(words::key(word)));
        found
    }

    #[test]
    fn words_count_by_where_they_stand() {
        let text = "---\ntags: [storage]\n---\n# Journal\nintro\n## SQLite\nsqlite keeps records\n";
        let page = page("docs/data.md", text);
        let [intro, sqlite] = &page.units[..] else {
            panic!("{page:?}");
        };
        for (word, in_intro, in_sqlite) in [
            ("records", 0.0, 1.0),
            ("sqlite", 0.0, 5.0),
            ("journal", 6.0, 3.5),
            ("storage", 2.0, 2.0),
            ("data", 1.5, 1.5),
            ("absent", 0.0, 0.0),
        ] {
            assert_eq!(
                (often(intro, word), often(sqlite, word)),
                (in_intro, in_sqlite),
                "{word}"
            );
        }
    }

    #[test]
    fn a_day_is_the_nearest_one_named() {
        for (path, text, want) in [
            (
                "2024-01-01-x.md",
                "---\ndate: 2025-01-01\n---\n# A\n",
                "2025-01-01",
            ),
            ("2024-01-01-x.md", "# A\nDate: 2023-01-01\n", "2024-01-01"),
            ("x.md", "# A\nDate: 2023-01-01\n", "2023-01-01"),
            ("2022/02/02.md", "# A\n", "2022-02-02"),
            ("2024-01-01-x.md", "# A (2020-01-01)\n", "2020-01-01"),
        ] {
            let day = page(path, text).units[0].date;
            assert_eq!(day, want.parse().ok(), "{path} {text}");
        }
    }

    /// A small file whose headings would take much memory, had each section all of them.
    #[test]
    fn headings_are_kept_once_and_weighed() {
        let long = "🦀".repeat(200);
        let mut text = String::new();
        for level in 1..=5 {
            text += &format!("{} {long}\n", "#".repeat(level));
        }
        text += &"###### x\n".repeat(1_900);
        let page = page("a.md", &text);
        let sections = &page.note.sections;
        assert_eq!(sections.len(), 1_905);
        assert!(Arc::ptr_eq(&sections[5].path[0], &sections[1_904].path[0]));
        let text = format!("# {long}\n").repeat(1_900);
        assert!(self::page("a.md", &text).weight() * size_of::<(Key, f32)>() > text.len());
    }

    #[test]
    fn some_files_are_notes() {
        for (path, is) in [
            ("a.md", true),
            ("a/B.Markdown", true),
            ("docs/index.rst", true),
            ("CHANGELOG", true),
            ("HISTORY.txt", true),
            ("a.txt", false),
            ("LICENSE", false),
            ("news.rs", false),
            ("md", false),
        ] {
            assert_eq!(is_note(path), is, "{path}");
        }
    }
}
