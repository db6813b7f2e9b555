//! Weights of the linear model, validated as a whole. `config/classifier.bin` is compiled in.
//!
//! **Invariant:** a look-up allocates nothing and costs a few comparisons.

mod file;

use super::error::WeightsError;
use super::features::{SHAPES, each_feature, shapes};
use super::reading::Reading;
use super::score::Score;
use crate::model::QueryType;

const BUILTIN: &[u8] = oracle_defaults::CLASSIFIER;

const TYPES: usize = QueryType::ALL.len();
/// Values in the order of [`QueryType::ALL`].
type PerType = [f64; TYPES];

/// Validated weights.
#[derive(Debug, Clone, PartialEq)]
pub struct Weights {
    head: WeightsHeader,
    /// Where each bucket of keys begins in `rows`, and the end.
    starts: Vec<u32>,
    rows: Vec<PackedFeature>,
}

/// A feature in eight adjacent bytes, because memory access dominates look-ups.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct PackedFeature {
    /// Lower half of the key.
    rest: u16,
    /// In steps of `WeightsHeader::rarity_step`.
    rarity: u8,
    /// In steps of `WeightsHeader::scales`, see [`dequantize`].
    weights: [i8; TYPES],
}

/// Quadratic: finer near zero, where most weights are.
const fn dequantize(steps: i8) -> i32 {
    let steps = steps as i32;
    steps * steps.abs()
}

const MAX_LEVEL: i32 = dequantize(i8::MAX);

#[derive(Debug, Clone, PartialEq)]
struct WeightsHeader {
    /// Identifies the rows that the weights are learned from.
    stamp: [u8; 32],
    /// Divides scores to calibrate shares.
    temperature: f32,
    rarity_step: f32,
    /// Gains of word and of letter features.
    gains: [f32; 2],
    /// Largest weight of each type.
    scales: [f32; TYPES],
    bias: [f32; TYPES],
    shapes: [[f32; TYPES]; SHAPES],
    /// By the type that the lexicon speaks for.
    lexicon: [[f32; TYPES]; TYPES],
}

/// Far beyond any trained number.
const MAX_MAGNITUDE: f32 = 1e4;

impl WeightsHeader {
    /// All numbers but the temperature, in the order of the file.
    fn numbers(&self) -> impl Iterator<Item = f32> {
        let small = [self.rarity_step].into_iter().chain(self.gains);
        let small = small.chain(self.scales).chain(self.bias);
        small.chain(self.shapes.into_iter().chain(self.lexicon).flatten())
    }
}

#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Opinion {
    pub(super) shares: PerType,
    /// Whether the text has a learned word.
    pub(super) known: bool,
}

impl Opinion {
    pub(super) fn best(&self) -> (QueryType, f64) {
        let shares = QueryType::ALL.into_iter().zip(self.shares).rev();
        let best = shares.max_by(|(_, one), (_, other)| one.total_cmp(other));
        best.unwrap_or((QueryType::Conversational, 0.0))
    }
}

impl Weights {
    /// Size limit of a weights file, in bytes.
    pub const MAX_BYTES: usize = file::MAX_BYTES;

    /// Returns the built-in weights.
    ///
    /// # Errors
    /// Never: tests read the same bytes.
    pub fn builtin() -> Result<Self, WeightsError> {
        Self::parse(BUILTIN, "config/classifier.bin")
    }

    /// Parses weights; errors name `origin`.
    ///
    /// # Errors
    /// Another kind of file, another version, or damage.
    pub fn parse(bytes: &[u8], origin: &str) -> Result<Self, WeightsError> {
        file::read(bytes).map_err(|problem| WeightsError {
            origin: origin.to_owned(),
            problem,
        })
    }

    /// Digest of the rows that the weights are learned from.
    pub const fn stamp(&self) -> [u8; 32] {
        self.head.stamp
    }

    pub(super) fn judge(&self, text: &str, reading: &mut Reading, score: &Score) -> Opinion {
        let (head, (sums, known)) = (&self.head, self.sums(reading));
        let scales = head.scales.map(|s| f64::from(s) / f64::from(MAX_LEVEL));
        let mut total = head.bias.map(f64::from);
        for (sum, gain) in sums.iter().zip(head.gains) {
            let factor = f64::from(gain) * sum.factor();
            for (place, scale) in scales.into_iter().enumerate() {
                total[place] += sum.parts[place] as f64 * scale * factor;
            }
        }
        for place in shapes(text, reading) {
            add(&mut total, &head.shapes[place].map(f64::from), 1.0);
        }
        for (of, row) in QueryType::ALL.into_iter().zip(&head.lexicon) {
            add(&mut total, &row.map(f64::from), lexicon_value(score.of(of)));
        }
        let shares = shares(&total.map(|sum| sum / f64::from(head.temperature)));
        Opinion { shares, known }
    }

    /// Sums over the learned features that occur, each once, and whether a word is among them.
    fn sums(&self, reading: &mut Reading) -> ([WeightedSum; 2], bool) {
        let mut met = std::mem::take(&mut reading.met);
        met.clear_for(self.rows.len());
        let mut sums = [WeightedSum::default(); 2];
        let mut known = false;
        each_feature(reading, &mut |feature| {
            if let Some(row) = self.row(feature.key)
                && met.insert(row)
            {
                known = known || feature.is_word(reading);
                sums[feature.group() as usize].count(&self.rows[row]);
            }
        });
        reading.met = met;
        (sums, known)
    }

    fn row(&self, key: u32) -> Option<usize> {
        let bucket = (key >> 16) as usize;
        let (begin, end) = (self.starts[bucket], self.starts[bucket + 1]);
        let rest = key as u16;
        (begin as usize..end as usize).find(|&row| self.rows[row].rest == rest)
    }
}

#[derive(Debug, Clone, Copy, Default)]
struct WeightedSum {
    parts: [i64; TYPES],
    squares: u64,
}

impl WeightedSum {
    fn count(&mut self, cell: &PackedFeature) {
        let rarity = i32::from(cell.rarity);
        self.squares += u64::from(cell.rarity) * u64::from(cell.rarity);
        for (part, steps) in self.parts.iter_mut().zip(cell.weights) {
            *part += i64::from(rarity * dequantize(steps));
        }
    }

    /// Makes texts of any length comparable.
    fn factor(&self) -> f64 {
        match self.squares {
            0 => 0.0,
            squares => (squares as f64).sqrt().recip(),
        }
    }
}

fn add(total: &mut [f64], part: &[f64], factor: f64) {
    for (sum, part) in total.iter_mut().zip(part) {
        *sum += part * factor;
    }
}

pub(super) fn lexicon_value(sum: f64) -> f64 {
    (sum / 4.0).clamp(-0.5, 2.0)
}

fn shares(scores: &PerType) -> PerType {
    let most = scores.iter().copied().fold(f64::MIN, f64::max);
    let raised = scores.map(|score| libm::exp(score - most));
    let sum: f64 = raised.iter().sum();
    raised.map(|part| part / sum)
}

#[cfg(test)]
mod tests;
