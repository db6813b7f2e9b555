//! A part of the index: passages of files, and for each word the passages that have it.
//!
//! Only ever added to. A file that changed is read anew into another segment; what is still here of
//! it is dead, which its entry in the list of files says (`state`).

use std::collections::HashMap;

use super::{
    pieces::{Piece, pieces},
    shape::{self, Mark},
};
use crate::words::{Run, Tongue, letters, parts, stem, words};

/// How much a word weighs by where it stands, in quarters of a word of plain text.
mod weight {
    pub(super) const BODY: u32 = 4;
    pub(super) const NOTE: u32 = 5;
    pub(super) const OWN_NAME: u32 = 22;
    pub(super) const OUTER_NAME: u32 = 8;
    pub(super) const FILE_NAME: u32 = 12;
    pub(super) const FOLDER: u32 = 3;
}

/// A plain word's weight.
pub(super) const PLAIN: f32 = weight::BODY as f32;
/// Most passages of a segment: their numbers have three bytes beside a weight.
pub(super) const MOST_PASSAGES: usize = (1 << 24) - 1;
/// Most lines of a file that are looked at, and most words of a line and of a passage: what is longer is
/// data.
pub(super) const MOST_LINES: usize = 500_000;
pub(super) const LINE_WORDS: usize = 400;
const PASSAGE_WORDS: usize = 2_000;
/// Longest word, in bytes; what is longer is data.
const LONGEST_WORD: usize = 64;
/// How many spellings are kept at hand while reading.
const SPELLINGS: usize = 100_000;

/// A file to be read in.
#[derive(Debug, Clone, Copy)]
pub(super) struct Text<'a> {
    pub(super) number: u32,
    pub(super) path: &'a str,
    pub(super) text: &'a str,
    pub(super) prose: bool,
}

/// How much of a file was read in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Extent {
    Whole,
    /// All lines that are looked at of any file; it has more.
    Cut,
    /// As much as there was room for.
    NoRoom,
}

/// A piece of a file.
#[derive(Debug, Clone, Copy)]
pub(super) struct Passage {
    pub(super) file: u32,
    /// Lines from 1.
    pub(super) first: u32,
    pub(super) last: u32,
    /// How many words it has.
    pub(super) words: u32,
}

/// See the module.
#[derive(Debug, Default)]
pub(super) struct Segment {
    pub(super) passages: Vec<Passage>,
    terms: HashMap<Box<str>, Term>,
    /// For each word: passages, each with its weight in the lowest byte.
    postings: Vec<Vec<u32>>,
    count: usize,
    bytes_of_terms: usize,
}

/// A word: its number, and its letters as bits.
#[derive(Debug, Clone, Copy)]
struct Term {
    number: u32,
    letters: u32,
}

/// What is kept at hand while files are read into a segment: the terms of spellings.
#[derive(Debug, Default)]
pub(super) struct Spellings(HashMap<Box<str>, Box<[u32]>>);

impl Segment {
    /// About how many bytes it takes.
    pub(super) fn bytes(&self) -> usize {
        // Vectors that grow have a third more than they use.
        self.count * 6 + self.passages.len() * 20 + self.terms.len() * 110 + self.bytes_of_terms
    }

    /// The passages that have a word, each with its weight in quarters.
    pub(super) fn having(&self, term: &str) -> &[u32] {
        let postings = self
            .terms
            .get(term)
            .and_then(|term| self.postings.get(term.number as usize));
        postings.map_or(&[], Vec::as_slice)
    }

    /// All words that it has, each with its letters as bits.
    pub(super) fn terms(&self) -> impl Iterator<Item = (&str, u32)> {
        self.terms
            .iter()
            .map(|(text, term)| (&**text, term.letters))
    }

    /// Reads a file in; gives the range of its passages, and how much of it they are. Who calls is asked
    /// after each passage whether there is room for more, and told how many bytes it took.
    pub(super) fn read(
        &mut self,
        spellings: &mut Spellings,
        file: Text<'_>,
        mut has_room: impl FnMut(usize) -> bool,
    ) -> ((u32, u32), Extent) {
        let start = self.passages.len() as u32;
        let mut bytes = self.bytes();
        let mut text = file.text.lines();
        let lines: Vec<&str> = text.by_ref().take(MOST_LINES).collect();
        let mut extent = match text.next() {
            None => Extent::Whole,
            Some(_) => Extent::Cut,
        };
        let marks = shape::marks(&lines, (!file.prose).then(|| Tongue::of(file.path)));
        let of_path = self.path_terms(spellings, file.path);
        let mut pieces = pieces(&marks);
        if pieces.is_empty() {
            // Its name may still be asked for.
            pieces.push(Piece {
                first: 0,
                last: lines.len().saturating_sub(1),
                within: Vec::new(),
            });
        }
        let mut room = true;
        for piece in pieces {
            if !room || self.passages.len() >= MOST_PASSAGES {
                extent = Extent::NoRoom;
                break;
            }
            self.take(spellings, file.number, &lines, &marks, &piece, &of_path);
            let now = self.bytes();
            room = has_room(now - bytes);
            bytes = now;
        }
        ((start, self.passages.len() as u32), extent)
    }

    fn take(
        &mut self,
        spellings: &mut Spellings,
        file: u32,
        lines: &[&str],
        marks: &[Mark],
        piece: &Piece,
        of_path: &[(u32, u32)],
    ) {
        let passage = self.passages.len() as u32;
        let mut count = 0;
        for line in piece.first..=piece.last {
            if count > PASSAGE_WORDS {
                break;
            }
            let (Some(text), Some(mark)) = (lines.get(line), marks.get(line).copied()) else {
                break;
            };
            let plain = match mark {
                Mark::Note => weight::NOTE,
                Mark::Blank | Mark::Text | Mark::Def { .. } | Mark::Head { .. } => weight::BODY,
            };
            count += self.take_text(spellings, passage, text, plain);
            if let Some(name) = name_of(text, mark) {
                self.take_text(spellings, passage, name, weight::OWN_NAME);
            }
        }
        for line in piece
            .within
            .iter()
            .filter(|line| !(piece.first..=piece.last).contains(*line))
        {
            if let Some(name) = name_of(lines[*line], marks[*line]) {
                self.take_text(spellings, passage, name, weight::OUTER_NAME);
            }
        }
        for (term, weight) in of_path {
            self.post(*term, passage, *weight);
        }
        self.passages.push(Passage {
            file,
            first: piece.first as u32 + 1,
            last: piece.last as u32 + 1,
            words: count as u32,
        });
    }

    fn take_text(
        &mut self,
        spellings: &mut Spellings,
        passage: u32,
        text: &str,
        weight: u32,
    ) -> usize {
        let mut count = 0;
        for run in words(text).take(LINE_WORDS) {
            count += 1;
            let (Run::Word(spelt) | Run::Version(spelt)) = run;
            if spelt.len() > LONGEST_WORD {
                continue;
            }
            if let Some(terms) = spellings.0.get(spelt) {
                for term in terms {
                    self.post(*term, passage, weight);
                }
                continue;
            }
            let terms: Box<[u32]> = terms_of(run).iter().map(|term| self.term(term)).collect();
            for term in &terms {
                self.post(*term, passage, weight);
            }
            if spellings.0.len() >= SPELLINGS {
                spellings.0.clear();
            }
            spellings.0.insert(spelt.into(), terms);
        }
        count
    }

    fn path_terms(&mut self, spellings: &mut Spellings, path: &str) -> Vec<(u32, u32)> {
        let (folders, file) = path.rsplit_once('/').unwrap_or(("", path));
        // The extension says nothing that the folder of a language would not.
        let stem = file.rsplit_once('.').map_or(file, |(stem, _)| stem);
        let mut of_path: Vec<(u32, u32)> = Vec::new();
        for (text, weight) in [(stem, weight::FILE_NAME), (folders, weight::FOLDER)] {
            for run in words(text) {
                let terms = terms_of(run);
                of_path.extend(terms.iter().map(|term| (self.term(term), weight)));
            }
        }
        // The spellings belong to this segment alone, as their numbers do.
        debug_assert!(spellings.0.len() <= SPELLINGS);
        of_path
    }

    fn term(&mut self, text: &str) -> u32 {
        if let Some(known) = self.terms.get(text) {
            return known.number;
        }
        let number = self.postings.len() as u32;
        self.postings.push(Vec::new());
        self.bytes_of_terms += text.len();
        let letters = letters(text);
        self.terms.insert(text.into(), Term { number, letters });
        number
    }

    fn post(&mut self, term: u32, passage: u32, weight: u32) {
        let Some(postings) = self.postings.get_mut(term as usize) else {
            return;
        };
        match postings.last_mut() {
            Some(last) if *last >> 8 == passage => {
                *last = passage << 8 | ((*last & 0xff) + weight).min(0xff);
            }
            Some(_) | None => {
                postings.push(passage << 8 | weight);
                self.count += 1;
            }
        }
    }
}

fn name_of(line: &str, mark: Mark) -> Option<&str> {
    match mark {
        Mark::Def {
            name: (start, end), ..
        } => line.get(start..end),
        Mark::Head { .. } => Some(line),
        Mark::Blank | Mark::Text | Mark::Note => None,
    }
}

/// By what a word of a text can be found: its stem; of a name also its parts' stems; of a version
/// also its beginning.
pub(super) fn terms_of(run: Run<'_>) -> Vec<String> {
    match run {
        Run::Version(version) => {
            let mut terms = vec![version.to_owned()];
            let mut dots = version.match_indices('.').map(|(at, _)| at);
            if let (Some(_), Some(second)) = (dots.next(), dots.next()) {
                terms.push(version[..second].to_owned());
            }
            terms
        }
        Run::Word(word) => {
            let parts = parts(word);
            let mut terms: Vec<String> = Vec::new();
            if parts.len() > 1 {
                terms.push(parts.concat());
            }
            for part in &parts {
                let stem = stem(part);
                if !stem.is_empty() && !terms.contains(&stem) {
                    terms.push(stem);
                }
            }
            terms
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn segment(path: &str, text: &str) -> Segment {
        let mut segment = Segment::default();
        let file = Text {
            number: 7,
            path,
            text,
            prose: path.ends_with(".md"),
        };
        segment.read(&mut Spellings::default(), file, |_| true);
        segment
    }

    #[test]
    fn words_are_found_by_their_stems_and_the_parts_of_names() {
        for (run, terms) in [
            (Run::Word("caching"), vec!["cach"]),
            (Run::Word("maxTurns"), vec!["maxturns", "maximum", "turn"]),
            (Run::Word("max_turns"), vec!["maxturns", "maximum", "turn"]),
            (Run::Version("0.8.1"), vec!["0.8.1", "0.8"]),
            (Run::Version("8.2"), vec!["8.2"]),
            (Run::Word("_"), vec![]),
        ] {
            assert_eq!(terms_of(run), terms, "{run:?}");
        }
    }

    #[test]
    fn names_weigh_more_than_text_and_paths_weigh_too() {
        let segment = segment("src/gateway.rs", "fn admit() {\n    count(call);\n}\n");
        let weight = |term: &str| segment.having(term).first().map(|posting| posting & 0xff);
        assert_eq!(weight("admit"), Some(weight::BODY + weight::OWN_NAME));
        assert_eq!(weight("count"), Some(weight::BODY));
        assert_eq!(weight("gateway"), Some(weight::FILE_NAME));
        assert_eq!(weight("sourc"), Some(weight::FOLDER));
        assert_eq!(weight("nowher"), None);
    }

    #[test]
    fn a_section_is_found_by_the_headings_above_it() {
        let text = format!("# Budgets\n\n## Turns\n\n{}", "word\n\n".repeat(40));
        let segment = segment("a.md", &text);
        assert!(segment.having("budget").len() > 2);
        assert!(segment.passages.iter().all(|passage| passage.file == 7));
        assert!(segment.bytes() > 0);
    }

    #[test]
    fn a_file_is_read_as_far_as_there_is_room() {
        let text: String = (0..50_000).map(|at| format!("word{at}x y\n")).collect();
        let file = Text {
            number: 7,
            path: "a.txt",
            text: &text,
            prose: false,
        };
        let (mut segment, mut taken) = (Segment::default(), 0);
        let has_room = |more: usize| {
            taken += more;
            taken < 100_000
        };
        let (passages, extent) = segment.read(&mut Spellings::default(), file, has_room);
        assert!(extent == Extent::NoRoom && passages.1 > 10, "{passages:?}");
        assert!(segment.bytes() < 120_000, "{}", segment.bytes());
        assert_eq!(segment.bytes(), taken);

        let lines = "\n".repeat(MOST_LINES + 1);
        let file = Text {
            text: &lines,
            ..file
        };
        let (_, extent) = Segment::default().read(&mut Spellings::default(), file, |_| true);
        assert_eq!(extent, Extent::Cut, "too many lines");
    }

    #[test]
    fn an_empty_file_is_found_by_its_name() {
        let segment = segment("src/gateway.rs", "");
        assert_eq!(segment.having("gateway").len(), 1);
        assert!(segment.terms().any(|(term, _)| term == "gateway"));
    }
}
