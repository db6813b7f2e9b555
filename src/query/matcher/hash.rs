//! A hash for small fixed tables: multiply and rotate, eight bytes at a time.
//!
//! Not for keys that others choose: the keys here are an operator's lexicon, and what others send is
//! only looked up.

use std::hash::{BuildHasherDefault, Hasher};

pub(super) type Fast = BuildHasherDefault<Mixer>;

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
            let mut word = [0; 8];
            word[..chunk.len()].copy_from_slice(chunk);
            self.mix(u64::from_le_bytes(word));
        }
    }

    fn write_u8(&mut self, n: u8) {
        self.mix(n.into());
    }

    fn write_u32(&mut self, n: u32) {
        self.mix(n.into());
    }

    fn finish(&self) -> u64 {
        // The table takes its index from the low bits, which a product mixes least.
        self.0 ^ (self.0 >> 32)
    }
}
