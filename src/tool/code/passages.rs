//! A shard of the index: files with their passages, and for each term the passages that contain it.

use std::{collections::HashMap, path::PathBuf};

use super::{kind::FileKind, words::lexemes};
use crate::tool::{
    outline::{self, Symbol, SymbolKind},
    walk::{FileStamp, SkipReason},
};

/// Weights of a term by its position, in quarters of a word of plain text.
const BODY: u32 = 4;
const OWN_NAME: u32 = 22;
const OUTER_NAME: u32 = 8;
const FILE_NAME: u32 = 12;
const FOLDER: u32 = 3;
pub(crate) const PLAIN: f32 = BODY as f32;

/// Lengths in lines from which a passage ends at the next definition, at the next blank line, or at
/// once.
const SPLIT_AT_DEFINITION: usize = 8;
const SPLIT_AT_BLANK_LINE: usize = 28;
const SPLIT_ANYWHERE: usize = 40;
/// Maximum passages of a shard: a number has three bytes beside a weight.
const MAX_PASSAGES: usize = (1 << 24) - 1;
/// Maximum lines of a file and words of a line to read; anything beyond is data.
pub(crate) const MAX_LINES: usize = 500_000;
pub(crate) const LINE_WORDS: usize = 400;
const MAX_WORD_BYTES: usize = 64;
/// Capacity of a reader's cache of spellings.
const SPELLING_CACHE: usize = 100_000;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum FileStatus {
    Text,
    LeftOut,
    Skipped(SkipReason),
}

#[derive(Debug, Clone)]
pub(crate) struct IndexedFile {
    pub(crate) path: PathBuf,
    pub(crate) stamp: FileStamp,
    pub(crate) status: FileStatus,
    pub(crate) kind: FileKind,
}

#[derive(Debug, Clone, Copy)]
pub(crate) struct Passage {
    pub(crate) file: u32,
    pub(crate) first: u32,
    pub(crate) last: u32,
    pub(crate) words: u32,
    pub(crate) is_test: bool,
}

/// Files and their passages, ordered by path.
#[derive(Debug, Default)]
pub(crate) struct Shard {
    pub(crate) files: Vec<IndexedFile>,
    pub(crate) passages: Vec<Passage>,
    terms: HashMap<Box<str>, u32>,
    postings: Vec<Vec<u32>>,
    count: usize,
    bytes_of_terms: usize,
}

#[derive(Default)]
pub(crate) struct TermCache {
    terms: HashMap<Box<str>, Vec<String>>,
    /// Numbers of the terms in one shard; cleared before another one is read.
    pub(crate) numbers: HashMap<Box<str>, Box<[u32]>>,
}

impl Shard {
    pub(crate) fn bytes(&self) -> usize {
        // Growing vectors reserve a third more than they use.
        self.count * 6
            + self.passages.len() * 20
            + self.postings.len() * 110
            + self.bytes_of_terms
            + self.files.len() * 250
    }

    pub(crate) fn matching(&self, term: &str) -> impl Iterator<Item = (usize, f32)> {
        let parted = |one: &u32| ((one >> 8) as usize, (one & 0xff) as f32);
        self.postings_of(term).iter().map(parted)
    }

    pub(crate) fn count(&self, term: &str) -> usize {
        self.postings_of(term).len()
    }

    fn postings_of(&self, term: &str) -> &[u32] {
        let number = self.terms.get(term);
        number.map_or(&[], |number| &self.postings[*number as usize])
    }

    pub(crate) fn terms(&self) -> impl Iterator<Item = &str> {
        self.terms.keys().map(|term| &**term)
    }

    /// Adds the text of a file while the shard has fewer than `most` bytes. `shown` is its path;
    /// `note` has its sections and title.
    pub(crate) fn read(
        &mut self,
        spellings: &mut TermCache,
        (shown, text): (&str, &str),
        mut entry: IndexedFile,
        most: usize,
        note: Option<(Vec<(usize, usize)>, &str)>,
    ) {
        let file = self.files.len() as u32;
        let lines: Vec<&str> = text.lines().take(MAX_LINES).collect();
        let symbols = outline::outline(shown, text);
        let (cuts, title) = note.unwrap_or_else(|| (pieces(&lines, &symbols), ""));
        for (first, end) in cuts {
            let (first, end) = (first.min(lines.len()), end.min(lines.len()));
            if self.bytes() >= most || self.passages.len() >= MAX_PASSAGES {
                entry.status = FileStatus::LeftOut;
                break;
            }
            let passage = self.passages.len() as u32;
            let mut words = 0;
            for line in &lines[first..end] {
                words += self.take(spellings, passage, line, BODY);
            }
            let own = symbols.partition_point(|symbol| symbol.line as usize <= first);
            let own = symbols[own..].iter();
            for symbol in own.take_while(|symbol| symbol.line as usize <= end) {
                self.take(spellings, passage, &symbol.name, OWN_NAME);
            }
            let inner = outline::enclosing(&symbols, first as u32 + 1).into_iter();
            let mut is_test = false;
            for symbol in inner.flat_map(|one| outline::lineage(&symbols, one)) {
                is_test |= &*symbol.name == "tests";
                if symbol.line as usize <= first {
                    self.take(spellings, passage, &symbol.name, OUTER_NAME);
                }
            }
            let (folders, name) = shown.rsplit_once('/').unwrap_or(("", shown));
            let stem = name.rsplit_once('.').map_or(name, |(stem, _)| stem);
            self.take(spellings, passage, title, OUTER_NAME);
            self.take(spellings, passage, stem, FILE_NAME);
            self.take(spellings, passage, folders, FOLDER);
            self.passages.push(Passage {
                file,
                first: first as u32 + 1,
                last: end as u32,
                words: words as u32,
                is_test,
            });
        }
        self.files.push(entry);
    }

    fn take(&mut self, spellings: &mut TermCache, passage: u32, text: &str, weight: u32) -> usize {
        let mut count = 0;
        for run in lexemes(text).take(LINE_WORDS) {
            count += 1;
            let spelt = run.text();
            if spelt.len() > MAX_WORD_BYTES {
                continue;
            }
            let numbers = match spellings.numbers.get(spelt) {
                Some(known) => known,
                None => {
                    if spellings.terms.len() >= SPELLING_CACHE {
                        spellings.terms.clear();
                        spellings.numbers.clear();
                    }
                    let terms = spellings.terms.entry(spelt.into());
                    let terms = terms.or_insert_with(|| run.terms());
                    let numbers = terms.iter().map(|term| self.term(term)).collect();
                    spellings.numbers.entry(spelt.into()).or_insert(numbers)
                }
            };
            for term in numbers {
                self.add_posting(*term, passage, weight);
            }
        }
        count
    }

    /// Copies a file with its passages from an older shard, and enters their new numbers in
    /// `moved`.
    pub(crate) fn keep(&mut self, old: &Self, file: usize, moved: &mut [Option<u32>]) {
        let passages = &old.passages;
        let from = passages.partition_point(|one| (one.file as usize) < file);
        let passages = passages.iter().zip(moved).skip(from);
        for (passage, moved) in passages.take_while(|(one, _)| one.file as usize == file) {
            *moved = Some(self.passages.len() as u32);
            self.passages.push(Passage {
                file: self.files.len() as u32,
                ..*passage
            });
        }
        self.files.push(old.files[file].clone());
    }

    pub(crate) fn copy_terms(&mut self, old: &Self, moved: &[Option<u32>]) {
        for (term, number) in &old.terms {
            let postings = old.postings[*number as usize].iter();
            let mut kept = postings
                .filter_map(|one| Some(moved[(one >> 8) as usize]? << 8 | one & 0xff))
                .peekable();
            if kept.peek().is_some() {
                let number = self.term(term) as usize;
                let before = self.postings[number].len();
                self.postings[number].extend(kept);
                self.count += self.postings[number].len() - before;
            }
        }
    }

    fn term(&mut self, text: &str) -> u32 {
        if let Some(known) = self.terms.get(text) {
            return *known;
        }
        let number = self.postings.len() as u32;
        self.postings.push(Vec::new());
        self.bytes_of_terms += text.len();
        self.terms.insert(text.into(), number);
        number
    }

    fn add_posting(&mut self, term: u32, passage: u32, weight: u32) {
        let postings = &mut self.postings[term as usize];
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

/// Splits a text into ranges of lines, from 0 and without the end, at definitions and headings if
/// possible.
fn pieces(lines: &[&str], symbols: &[Symbol]) -> Vec<(usize, usize)> {
    let mut opens: HashMap<usize, usize> = HashMap::new();
    for symbol in symbols {
        let depth = match symbol.kind {
            SymbolKind::Heading => 0,
            _ => 1 + symbol.depth as usize,
        };
        let line = (symbol.first_line as usize).saturating_sub(1);
        opens.entry(line).or_insert(depth);
    }
    let (mut pieces, mut first, mut depth) = (Vec::new(), 0, usize::MAX);
    for (at, line) in lines.iter().enumerate() {
        let long = at - first;
        let opened = opens.get(&at).copied();
        let at_symbol = opened.is_some_and(|opened| opened <= depth || long >= SPLIT_AT_DEFINITION);
        let at_blank = long >= SPLIT_AT_BLANK_LINE && line.trim().is_empty();
        if at > 0 && (at_symbol || at_blank || long >= SPLIT_ANYWHERE) {
            pieces.push((first, at));
            first = at;
            depth = usize::MAX;
        }
        depth = opened.filter(|_| at_symbol).unwrap_or(depth);
    }
    pieces.push((first, lines.len()));
    let has_text = |line: &&str| !line.trim().is_empty();
    pieces.retain(|(first, end)| lines[*first..*end].iter().any(has_text));
    pieces
}
