//! A text as read: words, letters, and matching lexicon entries. Reused, so that reading rarely
//! allocates.
//!
//! **Invariant:** spaces separate words in `letters`; runs of scripts without spaces stay together.

use super::matcher::WordId;
use super::text::{each_word_in, is_unspaced};

#[derive(Debug, Default)]
pub(super) struct Reading {
    word: String,
    pub(super) tokens: Vec<Token>,
    /// Folded letters, with spaces between words and at both ends.
    pub(super) letters: Vec<char>,
    /// Matching lexicon entries, in order.
    pub(super) found: Vec<u32>,
    /// The lexicon entries among `found`.
    pub(super) seen: BitSet,
    /// Learned features that occur.
    pub(super) met: BitSet,
}

/// A set of small numbers. Bytes instead of bits would take long to clear.
#[derive(Debug, Default)]
pub(super) struct BitSet(Vec<u64>);

impl BitSet {
    /// Empties the set and makes room for numbers below `len`.
    pub(super) fn clear_for(&mut self, len: usize) {
        self.0.clear();
        self.0.resize(len.div_ceil(u64::BITS as usize), 0);
    }

    /// Returns whether the number is new.
    pub(super) fn insert(&mut self, number: usize) -> bool {
        let bit = 1 << (number % u64::BITS as usize);
        let bits = &mut self.0[number / u64::BITS as usize];
        let is_new = *bits & bit == 0;
        *bits |= bit;
        is_new
    }
}

#[derive(Debug, Clone, Copy)]
pub(super) struct Token {
    /// Number in the lexicon.
    pub(super) word: WordId,
    /// Whether it opens a clause.
    pub(super) opens: bool,
    /// Whether it is a character of a script without spaces.
    pub(super) alone: bool,
    /// First index into [`Reading::letters`].
    pub(super) begin: usize,
    pub(super) end: usize,
    pub(super) hash: u64,
}

impl Reading {
    /// Cuts a text into words; `number` looks a word up.
    pub(super) fn cut(&mut self, text: &str, number: impl Fn(&str) -> WordId) {
        let Self {
            word,
            tokens,
            letters,
            ..
        } = self;
        tokens.clear();
        letters.clear();
        let mut in_run = false;
        each_word_in(word, text, |word, opens| {
            let alone = word.chars().next().is_some_and(is_unspaced);
            if !(alone && in_run && !opens) {
                letters.push(' ');
            }
            in_run = alone;
            let begin = letters.len();
            letters.extend(word.chars().map(folded));
            let hash = hash_of(letters[begin..].iter().copied());
            tokens.push(Token {
                word: number(word),
                opens,
                alone,
                begin,
                end: letters.len(),
                hash,
            });
        });
        letters.push(' ');
    }
}

const WORD_SEED: u64 = 7;

pub(super) fn word_hash(word: &str) -> u64 {
    hash_of(word.chars().map(folded))
}

fn hash_of(letters: impl Iterator<Item = char>) -> u64 {
    letters.fold(WORD_SEED, |hash, c| mix(hash, c.into()))
}

/// A change invalidates weights files and needs a new version of the features.
pub(super) const fn mix(hash: u64, more: u64) -> u64 {
    let hash = (hash ^ more).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    hash ^ (hash >> 29)
}

/// Folds accents and digits.
fn folded(c: char) -> char {
    match c {
        'a'..='z' => c,
        '0'..='9' => '0',
        'à' | 'á' | 'â' | 'ã' | 'ä' | 'å' | 'ā' | 'ă' | 'ą' => 'a',
        'ç' | 'ć' | 'č' => 'c',
        'ď' | 'đ' => 'd',
        'è' | 'é' | 'ê' | 'ë' | 'ē' | 'ė' | 'ę' | 'ě' => 'e',
        'ğ' => 'g',
        'ì' | 'í' | 'î' | 'ï' | 'ī' | 'ı' => 'i',
        'ł' => 'l',
        'ñ' | 'ń' | 'ň' => 'n',
        'ò' | 'ó' | 'ô' | 'õ' | 'ö' | 'ø' | 'ő' => 'o',
        'ř' => 'r',
        'ś' | 'š' | 'ş' | 'ß' => 's',
        'ť' | 'ţ' => 't',
        'ù' | 'ú' | 'û' | 'ü' | 'ū' | 'ů' | 'ű' => 'u',
        'ý' | 'ÿ' => 'y',
        'ź' | 'ż' | 'ž' => 'z',
        'ё' => 'е',
        _ => c,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_are_spaced_and_runs_are_kept_together() {
        for (name, text, want) in [
            ("words", "Wo ist's?", " wo ists "),
            ("marks and digits", "Größe v2.13 où", " grose v0 00 ou "),
            ("a run", "数据库在哪里", " 数据库在哪里 "),
            ("a run is parted by a clause", "数据。库", " 数据 库 "),
            ("a run among words", "修复 cache 吧", " 修复 cache 吧 "),
            ("nothing", "?!", " "),
        ] {
            let mut reading = Reading::default();
            reading.cut(text, |_| 0);
            assert_eq!(reading.letters.iter().collect::<String>(), want, "{name}");
        }
    }
}
