//! Read-only hash tables, consulted for every word of a text.
//!
//! Not for untrusted keys: the keys are an operator's lexicon, other words are only looked up.

use std::collections::HashMap;
use std::hash::{BuildHasherDefault, Hash, Hasher};

/// Numbers by key; 0 is none.
///
/// **Invariant:** the rows are a power of two, at least half of them free. A key is in the row of
/// its hash, or behind it without a free row between.
#[derive(Debug, Clone)]
pub(super) struct Table<K> {
    rows: Vec<(K, u32)>,
    taken: usize,
}

const FREE: u32 = 0;
const FIRST_ROWS: usize = 16;

impl<K: Copy + Default + Eq + Hash> Table<K> {
    pub(super) fn get(&self, key: K) -> u32 {
        self.rows[self.row(key)].1
    }

    /// `number` is not 0.
    pub(super) fn insert(&mut self, key: K, number: u32) {
        if 2 * (self.taken + 1) > self.rows.len() {
            self.double();
        }
        let row = self.row(key);
        self.taken += usize::from(self.rows[row].1 == FREE);
        self.rows[row] = (key, number);
    }

    /// The row of a key, or where it would be.
    fn row(&self, key: K) -> usize {
        let mut hash = Mixer::default();
        key.hash(&mut hash);
        let last = self.rows.len() - 1;
        let mut row = hash.finish() as usize & last;
        while self.rows[row].0 != key && self.rows[row].1 != FREE {
            row = (row + 1) & last;
        }
        row
    }

    fn double(&mut self) {
        let rows = vec![(K::default(), FREE); 2 * self.rows.len()];
        let before = std::mem::replace(&mut self.rows, rows);
        for (key, number) in before.into_iter().filter(|row| row.1 != FREE) {
            let row = self.row(key);
            self.rows[row] = (key, number);
        }
    }
}

impl<K: Copy + Default> Default for Table<K> {
    fn default() -> Self {
        Self {
            rows: vec![(K::default(), FREE); FIRST_ROWS],
            taken: 0,
        }
    }
}

/// Numbers of words; 0 is none. Words of up to 16 bytes are keys by value, without a pointer.
#[derive(Debug, Clone, Default)]
pub(super) struct WordTable {
    short: Table<(u64, u64)>,
    long: HashMap<Box<str>, u32, BuildHasherDefault<Mixer>>,
}

impl WordTable {
    pub(super) fn get(&self, word: &str) -> u32 {
        match packed(word) {
            Some(key) => self.short.get(key),
            None => self.get_long(word),
        }
    }

    // Separate, because short words should not save its registers.
    #[inline(never)]
    fn get_long(&self, word: &str) -> u32 {
        self.long.get(word).copied().unwrap_or(FREE)
    }

    pub(super) fn insert(&mut self, word: &str, number: u32) {
        match packed(word) {
            Some(key) => self.short.insert(key, number),
            None => {
                self.long.insert(word.into(), number);
            }
        }
    }
}

/// Unambiguous, because no word holds a NUL.
fn packed(word: &str) -> Option<(u64, u64)> {
    let bytes = word.as_bytes();
    match bytes.split_first_chunk::<8>() {
        None => Some((tail(bytes), 0)),
        Some((head, rest)) if rest.len() <= 8 => Some((u64::from_le_bytes(*head), tail(rest))),
        Some(_) => None,
    }
}

/// From its two ends, which may overlap: a loop over the bytes costs more than the look-up.
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
        // The low bits, which index the table, are mixed least.
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
        for (word, number) in words.into_iter().zip(1..) {
            assert_eq!(table.get(word), 0, "{word} before");
            table.insert(word, number);
        }
        for (word, number) in words.into_iter().zip(1..) {
            assert_eq!(table.get(word), number, "{word} after");
        }
    }

    #[test]
    fn a_table_grows_and_keeps_what_it_has() {
        let mut table = Table::default();
        for number in 1..=1_000_u32 {
            table.insert((number % 7, number), number);
            table.insert((number % 7, number), number + 1);
        }
        assert_eq!(table.taken, 1_000, "the same key again takes no row");
        assert!(table.rows.len() >= 2_000 && table.rows.len().is_power_of_two());
        for number in 1..=1_000 {
            assert_eq!(table.get((number % 7, number)), number + 1);
            assert_eq!(table.get((8, number)), 0);
        }
    }
}
