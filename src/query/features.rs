//! What a text is made of, as the weights know it: words and pairs of them, where clauses begin and the
//! text ends, runs of letters, and its shape.
//!
//! Training and inference walk over the same features, so that they cannot part. A feature is a number
//! of 32 bits; what it was made of is only asked for by people ([`Feature::name`]).
//!
//! **Invariant:** the same text and lexicon give the same features in the same order. Whatever changes
//! them is a new [`VERSION`], under which older weights are refused.

mod shape;

pub(super) use shape::{SHAPES, Shapes, shapes};

use super::reading::{Reading, mix};

/// Which features these are; goes into the weights file.
pub(super) const VERSION: u32 = 2;

/// Features that are weighed together.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Group {
    Words,
    Letters,
}

/// What a feature is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    Word,
    Pair,
    /// Two words with one between them.
    Around,
    /// The first word of a clause, and the first two.
    Opening,
    First,
    Last,
    /// Letters within a word.
    Letters,
    /// Letters of a script without spaces.
    Run,
}

/// One feature of a text.
#[derive(Debug, Clone, Copy)]
pub(super) struct Feature {
    pub(super) key: u32,
    pub(super) kind: Kind,
    /// Where it stands in the letters of the reading.
    begin: usize,
    end: usize,
}

impl Feature {
    pub(super) const fn group(&self) -> Group {
        match self.kind {
            Kind::Word | Kind::Pair | Kind::Around | Kind::Opening | Kind::First | Kind::Last => {
                Group::Words
            }
            Kind::Letters | Kind::Run => Group::Letters,
        }
    }

    /// Whether it is a word, or letters that are as good as one: in languages that glue words together,
    /// a question may hold words that begin in a way that is known, and none that is.
    pub(super) fn is_word(&self, reading: &Reading) -> bool {
        match self.kind {
            Kind::Word => true,
            Kind::Run => self.end - self.begin > 1,
            Kind::Letters => {
                let letters = &reading.letters[self.begin..self.end];
                let begins = letters[0] == ' ' && letters[letters.len() - 1] != ' ';
                let told = letters.iter().map(|&c| weight(c)).sum::<usize>() >= STEM;
                told && (begins || letters.iter().copied().all(is_hangul))
            }
            Kind::Pair | Kind::Around | Kind::Opening | Kind::First | Kind::Last => false,
        }
    }

    /// What people read.
    pub(super) fn name(&self, reading: &Reading) -> String {
        let text: String = reading.letters[self.begin..self.end].iter().collect();
        match self.kind {
            Kind::Word => format!("word \"{text}\""),
            Kind::Pair => format!("words \"{text}\""),
            Kind::Around => format!("words around \"{text}\""),
            Kind::Opening => format!("clause begins \"{text}\""),
            Kind::First => format!("begins \"{text}\""),
            Kind::Last => format!("ends \"{text}\""),
            Kind::Letters | Kind::Run => format!("letters \"{text}\""),
        }
    }
}

/// Letters of a word that are looked at; longer ones are no words of a language.
const MOST_LETTERS: usize = 24;
/// Letters that make one feature, within a word, its bounds included.
const SHORTEST: usize = 2;
const LONGEST: usize = 5;
/// The same in scripts without spaces; one more with the bound before them.
const LONGEST_RUN: usize = 4;
/// What the letters at the beginning of a word have to weigh to be as good as a word: four Latin ones, three
/// of another alphabet, two syllables of Hangul.
const STEM: usize = 12;

/// Seeds, one for each kind of feature.
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
            // Together in the letters: nothing parts them.
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

/// The features of a word and its neighbours.
fn words(reading: &Reading, at: usize, sink: &mut impl FnMut(Feature)) {
    let tokens = &reading.tokens;
    let token = tokens[at];
    let next = tokens.get(at + 1);
    let mut found = |kind, hash, end| {
        let (key, begin) = (key(hash), token.begin);
        sink(Feature {
            key,
            kind,
            begin,
            end,
        });
    };
    found(Kind::Word, mix(seed::WORD, token.hash), token.end);
    if let Some(next) = next.filter(|next| !next.alone && (token.opens || !next.opens)) {
        let pair = mix(mix(seed::PAIR, token.hash), next.hash);
        found(Kind::Pair, pair, next.end);
    }
    if let Some(second) = tokens.get(at + 2).filter(|second| !second.alone) {
        let around = mix(mix(seed::AROUND, token.hash), second.hash);
        found(Kind::Around, around, second.end);
    }
    if token.opens {
        found(Kind::Opening, mix(seed::OPENING, token.hash), token.end);
        if let Some(next) = next {
            let pair = mix(mix(seed::OPENING_PAIR, token.hash), next.hash);
            found(Kind::Opening, pair, next.end);
        }
    }
    if at == 0 {
        found(Kind::First, mix(seed::FIRST, token.hash), token.end);
    }
    if next.is_none() {
        found(Kind::Last, mix(seed::LAST, token.hash), token.end);
    }
}

/// Runs of letters within a word, its bounds included.
fn letters(reading: &Reading, at: usize, sink: &mut impl FnMut(Feature)) {
    let token = reading.tokens[at];
    let end = (token.end + 1).min(token.begin + MOST_LETTERS + 1);
    for begin in token.begin - 1..end {
        let mut hash = seed::LETTERS;
        for stop in begin..end.min(begin + LONGEST) {
            hash = mix(hash, reading.letters[stop].into());
            if stop + 1 - begin >= SHORTEST {
                sink(Feature {
                    key: key(hash),
                    kind: Kind::Letters,
                    begin,
                    end: stop + 1,
                });
            }
        }
    }
}

/// Letters of a script without spaces, and the bounds of the run.
fn run(reading: &Reading, first: usize, behind: usize, sink: &mut impl FnMut(Feature)) {
    for begin in first - 1..behind {
        let bound = usize::from(begin < first);
        let mut hash = seed::RUN;
        for stop in begin..(behind + 1).min(begin + LONGEST_RUN + bound) {
            hash = mix(hash, reading.letters[stop].into());
            if stop + 1 - begin > bound {
                sink(Feature {
                    key: key(hash),
                    kind: Kind::Run,
                    begin,
                    end: stop + 1,
                });
            }
        }
    }
}

/// What a letter says: Latin ones are what is typed in vain.
const fn weight(c: char) -> usize {
    match c {
        ' ' => 0,
        _ if is_hangul(c) => 6,
        '\u{250}'.. => 4,
        _ => 3,
    }
}

/// Syllables, of which two seldom stand together by chance.
const fn is_hangul(c: char) -> bool {
    matches!(c, '\u{ac00}'..='\u{d7a3}')
}

const fn key(hash: u64) -> u32 {
    let hash = (hash ^ (hash >> 32)).wrapping_mul(0xd6e8_feb8_6659_fd93);
    (hash >> 32) as u32
}

#[cfg(test)]
mod tests;
