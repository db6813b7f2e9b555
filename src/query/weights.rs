//! The weights of the linear model: what each feature says for each type.
//!
//! Read from a file (`config/classifier.bin` is compiled in), checked as a whole. How they come about is in
//! `training`; nothing is learned here.
//!
//! **Invariant:** looking a feature up allocates nothing and costs a few comparisons at most.

mod file;

#[cfg(feature = "train")]
pub(super) use file::{Row, write};

use super::error::WeightsError;
use super::features::{Feature, Group, SHAPES, Shapes, each_feature, shapes};
use super::reading::Reading;
use super::score::Score;
use crate::model::QueryType;

const BUILTIN: &[u8] = include_bytes!("../../config/classifier.bin");

/// How many types there are.
pub(super) const TYPES: usize = QueryType::ALL.len();
/// A number for each type, in the order of [`QueryType::ALL`].
pub(super) type PerType = [f64; TYPES];

/// Weights that are ready to use.
#[derive(Debug, Clone, PartialEq)]
pub struct Weights {
    head: Head,
    /// Where in `rows` the keys with the same upper half begin; one more at the end.
    starts: Vec<u32>,
    rows: Vec<Cell>,
}

/// A feature: all that is known of it in eight bytes that lie together, because looking it up costs what
/// the memory costs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Cell {
    /// Lower half of its key.
    rest: u16,
    /// How rare it is, in steps of `Head::rarity_step`.
    rarity: u8,
    /// In steps of `Head::scales`, see [`worth`].
    weights: [i8; TYPES],
}

/// What so many steps are worth, in parts of [`FULL`]: finer near nothing, where most weights are.
const fn worth(steps: i8) -> i32 {
    let steps = steps as i32;
    steps * steps.abs()
}

/// What the largest number of steps is worth.
const FULL: i32 = worth(i8::MAX);

/// All that is there once.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Head {
    /// Of the data and the lexicon that these weights were learned from.
    pub(super) stamp: [u8; 32],
    /// Divides the scores, so that the shares are as sure as they are right.
    pub(super) temperature: f32,
    pub(super) rarity_step: f32,
    /// What a group counts for: words, letters.
    pub(super) gains: [f32; 2],
    /// The largest weight of each type.
    pub(super) scales: [f32; TYPES],
    pub(super) bias: [f32; TYPES],
    pub(super) shapes: [[f32; TYPES]; SHAPES],
    /// By the type that the lexicon speaks for.
    pub(super) lexicon: [[f32; TYPES]; TYPES],
}

/// No number of a training comes near it.
const ABSURD: f32 = 1e4;

impl Head {
    fn is_sound(&self) -> bool {
        let mut all = [self.rarity_step]
            .into_iter()
            .chain(self.gains)
            .chain(self.scales)
            .chain(self.bias)
            .chain(self.shapes.into_iter().flatten())
            .chain(self.lexicon.into_iter().flatten());
        all.all(|number| number.abs() < ABSURD)
    }
}

/// What the weights say of a text.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Opinion {
    /// How likely each type is.
    pub(super) shares: PerType,
    /// Whether the text holds a word that was learned.
    pub(super) known: bool,
}

impl Opinion {
    /// The most likely type and its share.
    pub(super) fn best(&self) -> (QueryType, f64) {
        let mut best = (QueryType::Conversational, 0.0);
        for (query_type, share) in QueryType::ALL.into_iter().zip(self.shares) {
            if share > best.1 {
                best = (query_type, share);
            }
        }
        best
    }
}

impl Weights {
    /// No file of weights is longer, in bytes.
    pub const MOST_BYTES: usize = file::MOST_BYTES;

    /// The weights that are compiled in.
    ///
    /// # Errors
    /// Never, as long as the tests pass: they read the same bytes.
    pub fn builtin() -> Result<Self, WeightsError> {
        Self::parse(BUILTIN, "config/classifier.bin")
    }

    /// Reads weights; `origin` is their name in errors.
    ///
    /// # Errors
    /// When the bytes are of another kind or version, or damaged.
    pub fn parse(bytes: &[u8], origin: &str) -> Result<Self, WeightsError> {
        file::read(bytes).map_err(|fault| fault.at(origin))
    }

    /// What they were learned from, as a number: that of the same data and lexicon is the same.
    #[must_use]
    pub const fn stamp(&self) -> [u8; 32] {
        self.head.stamp
    }

    /// The same with another temperature.
    #[cfg(feature = "train")]
    pub(super) const fn at(mut self, temperature: f32) -> Self {
        self.head.temperature = temperature;
        self
    }

    /// What a text is taken for. Remembers which features it met in the reading.
    pub(super) fn judge(&self, text: &str, reading: &mut Reading, score: &Score) -> Opinion {
        let (sums, known) = self.sums(reading);
        let mut total = self.head.bias.map(f64::from);
        for (sum, gain) in sums.iter().zip(self.head.gains) {
            let parts = self.parts_of(&sum.parts.map(|part| part as f64));
            add(&mut total, &parts, f64::from(gain) * sum.factor());
        }
        for place in shapes(text, reading).places() {
            add(&mut total, &self.head.shapes[place].map(f64::from), 1.0);
        }
        for (of, row) in QueryType::ALL.into_iter().zip(&self.head.lexicon) {
            add(&mut total, &row.map(f64::from), lexicon_value(score.of(of)));
        }
        let shares = shares(&total.map(|sum| sum / f64::from(self.head.temperature)));
        Opinion { shares, known }
    }

    fn sums(&self, reading: &mut Reading) -> ([Sum; 2], bool) {
        let (mut marks, mut met) = (
            std::mem::take(&mut reading.marks),
            std::mem::take(&mut reading.met),
        );
        marks.resize(self.rows.len() / u64::BITS as usize + 1, 0);
        let mut sums = [Sum::default(); 2];
        let mut known = false;
        each_feature(reading, &mut |feature| {
            let Some(row) = self.row(feature.key) else {
                return;
            };
            let (mark, bit) = (&mut marks[row / 64], 1 << (row % 64));
            if *mark & bit != 0 {
                return;
            }
            *mark |= bit;
            met.push(row as u32);
            known = known || feature.is_word(reading);
            sums[group_place(feature.group())].count(&self.rows[row]);
        });
        for row in met.drain(..) {
            marks[row as usize / 64] = 0;
        }
        (reading.marks, reading.met) = (marks, met);
        (sums, known)
    }

    /// What each feature of a text adds to each type, each once, with the shapes and the lexicon.
    pub(super) fn parts(
        &self,
        text: &str,
        reading: &mut Reading,
        score: &Score,
    ) -> Vec<(String, PerType)> {
        let (sums, _) = self.sums(reading);
        let mut rows = Vec::new();
        let mut found: Vec<(usize, Feature)> = Vec::new();
        each_feature(reading, &mut |feature| {
            if let Some(row) = self.row(feature.key)
                && !rows.contains(&row)
            {
                rows.push(row);
                found.push((row, feature));
            }
        });
        let mut parts: Vec<(String, PerType)> = Vec::new();
        for (row, feature) in found {
            let place = group_place(feature.group());
            let factor = f64::from(self.head.gains[place]) * sums[place].factor();
            let mut alone = Sum::default();
            alone.count(&self.rows[row]);
            let part = self.parts_of(&alone.parts.map(|part| part as f64 * factor));
            parts.push((feature.name(reading), part));
        }
        for place in shapes(text, reading).places() {
            let part = self.head.shapes[place].map(f64::from);
            parts.push((Shapes::name(place).to_owned(), part));
        }
        for (of, row) in QueryType::ALL.into_iter().zip(&self.head.lexicon) {
            let value = lexicon_value(score.of(of));
            if value != 0.0 {
                let part = row.map(|weight| f64::from(weight) * value);
                parts.push((format!("lexicon of {of}"), part));
            }
        }
        parts
    }

    /// Sums of steps as what they are worth for each type.
    fn parts_of(&self, steps: &PerType) -> PerType {
        let mut parts = *steps;
        for (part, scale) in parts.iter_mut().zip(self.head.scales) {
            *part *= f64::from(scale) / f64::from(FULL);
        }
        parts
    }

    fn row(&self, key: u32) -> Option<usize> {
        let bucket = (key >> 16) as usize;
        let (begin, end) = (self.starts[bucket], self.starts[bucket + 1]);
        let rest = key as u16;
        (begin as usize..end as usize).find(|&row| self.rows[row].rest == rest)
    }
}

/// A group of features, summed, in steps.
#[derive(Debug, Clone, Copy, Default)]
struct Sum {
    parts: [i64; TYPES],
    squares: u64,
}

impl Sum {
    fn count(&mut self, cell: &Cell) {
        let rarity = i32::from(cell.rarity);
        self.squares += u64::from(cell.rarity) * u64::from(cell.rarity);
        for (part, steps) in self.parts.iter_mut().zip(cell.weights) {
            *part += i64::from(rarity * worth(steps));
        }
    }

    /// Makes texts of any length comparable. The steps of rarity are in both and fall out.
    fn factor(&self) -> f64 {
        if self.squares > 0 {
            (self.squares as f64).sqrt().recip()
        } else {
            0.0
        }
    }
}

const fn group_place(group: Group) -> usize {
    match group {
        Group::Words => 0,
        Group::Letters => 1,
    }
}

fn add(total: &mut PerType, part: &PerType, factor: f64) {
    for (sum, part) in total.iter_mut().zip(part) {
        *sum += part * factor;
    }
}

/// What a sum of the lexicon is worth as a feature.
pub(super) fn lexicon_value(sum: f64) -> f64 {
    (sum / 4.0).clamp(-0.5, 2.0)
}

/// Scores as shares of one.
pub(super) fn shares(scores: &PerType) -> PerType {
    let most = scores.iter().copied().fold(f64::MIN, f64::max);
    let raised = scores.map(|score| libm::exp(score - most));
    let sum: f64 = raised.iter().sum();
    raised.map(|part| part / sum)
}

#[cfg(test)]
mod tests;
