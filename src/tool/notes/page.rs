//! A file of notes as it is searched: its sections as bags of words, with what is known of them.
//!
//! The text itself is not kept; whoever shows lines reads the file again. Pure.

use std::{collections::HashMap, fs::Metadata, path::Path, time::SystemTime};

use jiff::civil::Date;

use super::{
    bm25::Often,
    date,
    kind::{self, Kind},
    note::{Link, Note, Section, Target},
    piece, status,
    task::{self, Task},
    words::{self, Key},
};

/// How often a word counts by where it stands.
const IN_TEXT: f32 = 1.0;
const IN_HEADING: f32 = 4.0;
const IN_OUTER_HEADING: f32 = 1.5;
const IN_TITLE: f32 = 2.0;
const IN_TAG: f32 = 2.0;
const IN_PATH: f32 = 1.5;
/// Most different words of one unit: what has more is data.
const MOST_WORDS: usize = 100_000;

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
    /// Where it lies, if it is shown otherwise.
    pub(super) real: Option<Box<Path>>,
    pub(super) stamp: Stamp,
    pub(super) note: Note,
    pub(super) kind: Kind,
    pub(super) status: Option<String>,
    pub(super) date: Option<Date>,
    /// What is searched, in order: sections, long ones in pieces.
    pub(super) units: Vec<Unit>,
    /// Whether that is all of it.
    pub(super) is_whole: bool,
    /// Its to-dos, in order.
    pub(super) tasks: Box<[Task]>,
    /// The words that all units share, of path, title, tags and aliases: kept once, as units may be very many.
    shared: Words,
}

/// Words, sorted, and how much each counts.
#[derive(Debug)]
struct Words(Box<[(Key, f32)]>);

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
    /// Its own words.
    words: Words,
    /// Those of the headings that it lies below.
    outer: Words,
    pub(super) length: f32,
    /// Whether it is a heading without text, or with nothing below it but how and of when the note is.
    pub(super) bare: bool,
    /// Whether its heading says that it is what was decided.
    pub(super) decides: bool,
}

impl Page {
    /// Reads a file. Who calls is told after each unit how much it takes ([`Self::weight`]), and says
    /// whether there is room for more.
    pub(super) fn read(
        path: String,
        stamp: Stamp,
        text: &str,
        mut has_room: impl FnMut(usize) -> bool,
    ) -> Self {
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
        let (mut units, mut is_whole) = (Vec::new(), true);
        'all: for (at, section) in note.sections.iter().enumerate() {
            let day = section
                .path
                .iter()
                .rev()
                .find_map(|heading| date::first_in(heading));
            let known = (kind.of_section(section.heading()), day.or(date));
            for piece in piece::pieces(&lines, section.first, section.last) {
                if piece.0 > section.first && is_blank(&lines, piece) {
                    continue;
                }
                if units
                    .last()
                    .is_some_and(|last: &Unit| !has_room(last.weight()))
                {
                    is_whole = false;
                    break 'all;
                }
                let unit = Unit::of((at, section), piece, &lines, known);
                is_whole &= unit.words.0.len() < MOST_WORDS;
                units.push(unit);
            }
        }
        Self {
            shared: shared(&path, &note),
            is_whole,
            tasks: task::tasks(text, note.front.lines).into(),
            real: None,
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
        let units = self.units.iter().map(Unit::weight);
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
        let real = self.real.as_ref().map_or(0, |real| real.as_os_str().len());
        let tasks = size_of_val(&*self.tasks);
        let own = (size_of::<Self>() + self.path.len() + real + tasks) / WORD + self.shared.0.len();
        own + units.sum::<usize>()
            + sections.sum::<usize>()
            + links.sum::<usize>()
            + texts.sum::<usize>()
    }

    /// How much a word counts in each of its units, whatever stands there; nothing if it does not.
    pub(super) fn shares(&self, word: Key) -> f32 {
        self.shared.often(word)
    }
}

/// The words that all sections of a note share.
fn shared(path: &str, note: &Note) -> Words {
    let mut shared: HashMap<Key, f32> = HashMap::new();
    let mut add = |text: &str, weight: f32| {
        words::each(text, |word| {
            *shared.entry(words::key(word)).or_default() += weight;
        });
    };
    add(path, IN_PATH);
    note.front
        .aliases
        .iter()
        .for_each(|alias| add(alias, IN_TITLE));
    note.tags.iter().for_each(|tag| add(tag, IN_TAG));
    add(note.title.as_deref().unwrap_or_default(), IN_TITLE);
    shared.into()
}

fn is_blank(lines: &[&str], (first, last): (u32, u32)) -> bool {
    let mut lines = lines.iter().take(last as usize).skip(first as usize - 1);
    lines.all(|line| line.trim().is_empty())
}

impl From<HashMap<Key, f32>> for Words {
    fn from(counts: HashMap<Key, f32>) -> Self {
        let mut words: Vec<(Key, f32)> = counts.into_iter().collect();
        words.sort_unstable_by_key(|(word, _)| *word);
        Self(words.into())
    }
}

impl Words {
    fn often(&self, word: Key) -> f32 {
        let at = self.0.binary_search_by_key(&word, |(known, _)| *known);
        at.ok()
            .and_then(|at| self.0.get(at))
            .map_or(0.0, |(_, often)| *often)
    }
}

/// In what [`Page::weight`] counts.
const WORD: usize = size_of::<(Key, f32)>();

impl Unit {
    fn of(
        (at, section): (usize, &Section),
        (first, last): (u32, u32),
        lines: &[&str],
        (kind, date): (Kind, Option<Date>),
    ) -> Self {
        let own = section.heading();
        let (mut counts, mut around) = (HashMap::new(), HashMap::new());
        let mut length = 0.0_f32;
        let mut add = |counts: &mut HashMap<Key, f32>, text: &str, weight: f32| {
            words::each(text, |word| {
                let word = words::key(word);
                if counts.len() < MOST_WORDS || counts.contains_key(&word) {
                    *counts.entry(word).or_default() += weight;
                }
                length += 1.0;
            });
        };
        let from = (first as usize).saturating_sub(1).min(lines.len());
        let lines = &lines[from..(last as usize).clamp(from, lines.len())];
        lines
            .iter()
            .for_each(|line| add(&mut counts, line, IN_TEXT));
        // Where the heading's own line is in it, that is counted as text already.
        let begins = first == section.first;
        let counted = if begins { IN_TEXT } else { 0.0 };
        add(&mut counts, own.unwrap_or_default(), IN_HEADING - counted);
        let outer = section.path.iter().rev().skip(1);
        outer.for_each(|heading| add(&mut around, heading, IN_OUTER_HEADING));
        Self {
            section: at,
            first,
            last,
            kind,
            date,
            words: counts.into(),
            outer: around.into(),
            length,
            bare: begins
                && own.is_some_and(|own| status::is_bare(own, lines, kind == Kind::Decision)),
            decides: own.is_some_and(kind::decides),
        }
    }

    /// How much a word counts in it, with what its page shares ([`Page::shares`]).
    pub(super) fn often(&self, word: Key, shared: f32) -> Often {
        Often {
            around: shared + self.outer.often(word),
            within: self.words.often(word),
        }
    }

    fn weight(&self) -> usize {
        size_of::<Self>() / WORD + self.words.0.len() + self.outer.0.len()
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
mod tests;
