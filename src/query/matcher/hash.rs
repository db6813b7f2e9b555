//! A fast hash table for words. It need not resist crafted keys: only an operator's lexicon inserts
//! keys.

use std::{
    collections::HashMap,
    hash::{BuildHasherDefault, Hasher},
};

pub(super) type Table<K> = HashMap<K, u32, BuildHasherDefault<MixHasher>>;

#[derive(Debug, Clone, Copy, Default)]
pub(super) struct MixHasher(u64);

impl Hasher for MixHasher {
    fn write(&mut self, bytes: &[u8]) {
        for chunk in bytes.chunks(8) {
            let mut word = [0; 8];
            word[..chunk.len()].copy_from_slice(chunk);
            self.write_u64(u64::from_le_bytes(word));
        }
    }

    fn write_u8(&mut self, n: u8) {
        self.write_u64(n.into());
    }

    fn write_u32(&mut self, n: u32) {
        self.write_u64(n.into());
    }

    fn write_u64(&mut self, n: u64) {
        self.0 = (self.0.rotate_left(5) ^ n).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    }

    fn finish(&self) -> u64 {
        // Multiplication mixes the low bits least.
        self.0 ^ (self.0 >> 32)
    }
}
