//! Tables for small fixed sets: words to numbers, and a hash that multiplies and rotates.
//!
//! Not for keys that others choose: the keys here are an operator's lexicon, and what others send is
//! only looked up.

use std::collections::HashMap;
use std::hash::{BuildHasherDefault, Hasher};

pub(super) type Fast = BuildHasherDefault<Mixer>;

/// Numbers of words. Words of up to 16 bytes, which are nearly all, are keys by value: looking one up
/// follows no pointer.
#[derive(Debug, Clone, Default)]
pub(super) struct WordTable {
    short: HashMap<(u64, u64), u32, Fast>,
    long: HashMap<Box<str>, u32, Fast>,
}

impl WordTable {
    pub(super) fn get(&self, word: &str) -> Option<u32> {
        match packed(word) {
            Some(key) => self.short.get(&key).copied(),
            None => self.long.get(word).copied(),
        }
    }

    pub(super) fn insert(&mut self, word: &str, id: u32) {
        match packed(word) {
            Some(key) => self.short.insert(key, id),
            None => self.long.insert(word.into(), id),
        };
    }
}

/// A word of up to 16 bytes as two numbers; unambiguous, because no word holds a NUL.
fn packed(word: &str) -> Option<(u64, u64)> {
    let bytes = word.as_bytes();
    match bytes.split_first_chunk::<8>() {
        None => Some((tail(bytes), 0)),
        Some((head, rest)) if rest.len() <= 8 => Some((u64::from_le_bytes(*head), tail(rest))),
        Some(_) => None,
    }
}

/// Up to eight bytes as one number, the first byte lowest. From its two ends, which may overlap: a loop
/// over the bytes costs more than the look-up that follows.
fn tail(bytes: &[u8]) -> u64 {
    let shift = |width: usize| 8 * (bytes.len() - width);
    if let (Some(head), Some(end)) = (bytes.first_chunk(), bytes.last_chunk()) {
        return u64::from(u32::from_le_bytes(*head))
            | u64::from(u32::from_le_bytes(*end)) << shift(4);
    }
    if let (Some(head), Some(end)) = (bytes.first_chunk(), bytes.last_chunk()) {
        return u64::from(u16::from_le_bytes(*head))
            | u64::from(u16::from_le_bytes(*end)) << shift(2);
    }
    bytes.first().map_or(0, |&b| b.into())
}

#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Mixer(u64);

impl Mixer {
    fn mix(&mut self, word: u64) {
        self.0 = (self.0.rotate_left(5) ^ word).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    }
}

impl Hasher for Mixer {
    fn write(&mut self, bytes: &[u8]) {
        for chunk in bytes.chunks(8) {
            self.mix(tail(chunk));
        }
    }

    fn write_u8(&mut self, n: u8) {
        self.mix(n.into());
    }

    fn write_u32(&mut self, n: u32) {
        self.mix(n.into());
    }

    fn write_u64(&mut self, n: u64) {
        self.mix(n);
    }

    fn finish(&self) -> u64 {
        // The table takes its index from the low bits, which a product mixes least.
        self.0 ^ (self.0 >> 32)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_of_any_length_keep_their_number() {
        let words = [
            "a",
            "ab",
            "b",
            "abcdefgh",
            "abcdefghi",
            "abcdefghabcdefgh",
            "abcdefghabcdefghi",
            "数据库",
            "документации",
            "",
        ];
        let mut table = WordTable::default();
        for (word, id) in words.into_iter().zip(0..) {
            assert_eq!(table.get(word), None, "{word} before");
            table.insert(word, id);
        }
        for (word, id) in words.into_iter().zip(0..) {
            assert_eq!(table.get(word), Some(id), "{word} after");
        }
    }
}
