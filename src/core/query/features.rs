//! Features of a text for the weights, as 32-bit numbers: words, pairs, openings of clauses, runs
//! of letters, and the text's shape. Training and inference share this code, so they cannot
//! diverge.
//!
//! **Invariant:** equal texts and lexicons give equal features in equal order. Any change needs a
//! new [`VERSION`], which refuses older weights.

mod shape;

pub(super) use shape::{SHAPES, shapes};

use super::reading::{Reading, mix};

pub(super) const VERSION: u32 = 2;

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum FeatureGroup {
    Words,
    Letters,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum FeatureKind {
    Word,
    /// Two words, or a word at a certain place.
    Phrase,
    Letters,
    /// Letters of a script without spaces.
    Run,
}

#[derive(Debug, Clone, Copy)]
pub(super) struct Feature {
    pub(super) key: u32,
    pub(super) kind: FeatureKind,
    /// First index into [`Reading::letters`].
    begin: usize,
    end: usize,
}

impl Feature {
    const fn new(hash: u64, kind: FeatureKind, begin: usize, end: usize) -> Self {
        Self {
            key: key(hash),
            kind,
            begin,
            end,
        }
    }

    pub(super) const fn group(&self) -> FeatureGroup {
        match self.kind {
            FeatureKind::Letters | FeatureKind::Run => FeatureGroup::Letters,
            _ => FeatureGroup::Words,
        }
    }

    /// Whether it is a word or letters as telling: in agglutinating languages only stems may be
    /// known.
    pub(super) fn is_word(&self, reading: &Reading) -> bool {
        match self.kind {
            FeatureKind::Word => true,
            FeatureKind::Run => self.end - self.begin > 1,
            FeatureKind::Letters => {
                let letters = &reading.letters[self.begin..self.end];
                let begins = letters[0] == ' ' && letters[letters.len() - 1] != ' ';
                let is_long = letters.iter().map(|&c| weight(c)).sum::<usize>() >= STEM;
                is_long && (begins || letters.iter().copied().all(is_hangul))
            }
            _ => false,
        }
    }
}

/// Limit on letters of a word; longer words are not natural language.
const MAX_LETTERS: usize = 24;
/// Letters of a feature within a word, with the spaces around it.
const MIN_NGRAM: usize = 2;
const MAX_NGRAM: usize = 5;
/// Longest feature in scripts without spaces.
const MAX_RUN: usize = 4;
/// Weight of letters as telling as a word: four Latin letters, three of another alphabet, two
/// Hangul syllables.
const STEM: usize = 12;

mod seed {
    pub(super) const WORD: u64 = 1;
    pub(super) const PAIR: u64 = 2;
    pub(super) const AROUND: u64 = 4;
    pub(super) const OPENING: u64 = 5;
    pub(super) const OPENING_PAIR: u64 = 6;
    pub(super) const FIRST: u64 = 8;
    pub(super) const LAST: u64 = 9;
    pub(super) const RUN: u64 = 11;
    pub(super) const LETTERS: u64 = 12;
}

/// Calls `sink` with each feature, as often as it occurs.
pub(super) fn each_feature(reading: &Reading, sink: &mut impl FnMut(Feature)) {
    let tokens = &reading.tokens;
    let mut at = 0;
    while at < tokens.len() {
        if tokens[at].alone {
            let begin = at;
            at += 1;
            while at < tokens.len() && tokens[at].alone && tokens[at].begin == tokens[at - 1].end {
                at += 1;
            }
            run(reading, tokens[begin].begin, tokens[at - 1].end, sink);
        } else {
            words(reading, at, sink);
            letters(reading, at, sink);
            at += 1;
        }
    }
}

fn words(reading: &Reading, at: usize, sink: &mut impl FnMut(Feature)) {
    let tokens = &reading.tokens;
    let token = tokens[at];
    let next = tokens.get(at + 1);
    let mut emit = |kind, hash, end| sink(Feature::new(hash, kind, token.begin, end));
    emit(FeatureKind::Word, mix(seed::WORD, token.hash), token.end);
    if let Some(next) = next.filter(|next| !next.alone && (token.opens || !next.opens)) {
        let pair = mix(mix(seed::PAIR, token.hash), next.hash);
        emit(FeatureKind::Phrase, pair, next.end);
    }
    if let Some(second) = tokens.get(at + 2).filter(|second| !second.alone) {
        let around = mix(mix(seed::AROUND, token.hash), second.hash);
        emit(FeatureKind::Phrase, around, second.end);
    }
    if token.opens {
        let opening = mix(seed::OPENING, token.hash);
        emit(FeatureKind::Phrase, opening, token.end);
        if let Some(next) = next {
            let pair = mix(mix(seed::OPENING_PAIR, token.hash), next.hash);
            emit(FeatureKind::Phrase, pair, next.end);
        }
    }
    if at == 0 {
        emit(FeatureKind::Phrase, mix(seed::FIRST, token.hash), token.end);
    }
    if next.is_none() {
        emit(FeatureKind::Phrase, mix(seed::LAST, token.hash), token.end);
    }
}

fn letters(reading: &Reading, at: usize, sink: &mut impl FnMut(Feature)) {
    let token = reading.tokens[at];
    let end = (token.end + 1).min(token.begin + MAX_LETTERS + 1);
    for begin in token.begin - 1..end {
        let mut hash = seed::LETTERS;
        for stop in begin..end.min(begin + MAX_NGRAM) {
            hash = mix(hash, reading.letters[stop].into());
            if stop + 1 - begin >= MIN_NGRAM {
                sink(Feature::new(hash, FeatureKind::Letters, begin, stop + 1));
            }
        }
    }
}

/// Runs of a script without spaces, with the spaces around it.
fn run(reading: &Reading, first: usize, behind: usize, sink: &mut impl FnMut(Feature)) {
    for begin in first - 1..behind {
        let bound = usize::from(begin < first);
        let mut hash = seed::RUN;
        for stop in begin..(behind + 1).min(begin + MAX_RUN + bound) {
            hash = mix(hash, reading.letters[stop].into());
            if stop + 1 - begin > bound {
                sink(Feature::new(hash, FeatureKind::Run, begin, stop + 1));
            }
        }
    }
}

/// Latin letters carry the least information.
const fn weight(c: char) -> usize {
    match c {
        ' ' => 0,
        _ if is_hangul(c) => 6,
        '\u{250}'.. => 4,
        _ => 3,
    }
}

const fn is_hangul(c: char) -> bool {
    matches!(c, '\u{ac00}'..='\u{d7a3}')
}

const fn key(hash: u64) -> u32 {
    let hash = (hash ^ (hash >> 32)).wrapping_mul(0xd6e8_feb8_6659_fd93);
    (hash >> 32) as u32
}

#[cfg(test)]
mod tests;
