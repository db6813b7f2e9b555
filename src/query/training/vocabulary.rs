//! The vocabulary: learned features, their rarity, and pruning.

use std::collections::{BTreeMap, HashMap};

use super::Settings;
use super::examples::Example;
use super::solver::Problem;
use crate::query::features::{FeatureGroup, SHAPES};
use crate::query::weights::{Row, TYPES, WeightsHeader};

/// Gain of a shape and of a lexicon type.
const GAIN_DENSE: f64 = 0.2;
/// Bias, shapes and lexicon precede the features.
const DENSE: usize = 1 + SHAPES + TYPES;

pub(super) struct Vocabulary {
    known: Vec<KnownFeature>,
    places: HashMap<u32, usize>,
}

#[derive(Clone, Copy)]
struct KnownFeature {
    key: u32,
    group: FeatureGroup,
    rarity: f64,
}

impl Vocabulary {
    pub(super) fn of(seen: &[&Example], settings: &Settings) -> Self {
        let mut rows: BTreeMap<u32, (FeatureGroup, usize)> = BTreeMap::new();
        for &(group, key) in seen.iter().flat_map(|example| &example.features) {
            // Collisions are rare and merge.
            rows.entry(key).or_insert((group, 0)).1 += 1;
        }
        let count = seen.len() as f64;
        let known = rows
            .into_iter()
            .filter(|(_, (_, rows))| *rows >= settings.fewest_rows);
        Self::with(known.map(|(key, (group, rows))| KnownFeature {
            key,
            group,
            rarity: libm::log((1.0 + count) / (1.0 + rows as f64)) + 1.0,
        }))
    }

    fn with(known: impl Iterator<Item = KnownFeature>) -> Self {
        let known: Vec<KnownFeature> = known.collect();
        let places = known.iter().zip(DENSE..).map(|(known, at)| (known.key, at));
        Self {
            places: places.collect(),
            known,
        }
    }

    pub(super) fn len(&self) -> usize {
        DENSE + self.known.len()
    }

    pub(super) fn features(&self) -> usize {
        self.known.len()
    }

    pub(super) fn problem(&self, seen: &[&Example], settings: &Settings) -> Problem {
        let mut problem = Problem::default();
        for example in seen {
            problem.add(0, 1.0);
            for &shape in &example.shapes {
                problem.add(1 + shape, GAIN_DENSE);
            }
            for (place, value) in example.lexicon.into_iter().enumerate() {
                problem.add(1 + SHAPES + place, GAIN_DENSE * value);
            }
            let mut squares = [0.0; 2];
            for (known, _) in self.met(example) {
                squares[known.group as usize] += known.rarity * known.rarity;
            }
            for (known, at) in self.met(example) {
                let place = known.group as usize;
                let gain = settings.gains[place] * known.rarity;
                problem.add(at, gain / f64::sqrt(squares[place]));
            }
            problem.end(example.label);
        }
        problem
    }

    fn met<'a>(&'a self, example: &'a Example) -> impl Iterator<Item = (&'a KnownFeature, usize)> {
        let at = |(_, key): &(FeatureGroup, u32)| self.places.get(key);
        let met = example.features.iter().filter_map(at);
        met.map(|&at| (&self.known[at - DENSE], at))
    }

    /// Keeps the features that move answers most.
    pub(super) fn pruned(&self, seen: &[&Example], settings: &Settings, solved: &[f64]) -> Self {
        let mut energy = vec![0.0; self.len()];
        let problem = self.problem(seen, settings);
        problem.each(|at, value| energy[at] += value * value);
        let weight = |place: usize| {
            let at = place + DENSE;
            let row = &solved[at * TYPES..(at + 1) * TYPES];
            let mean = row.iter().sum::<f64>() / TYPES as f64;
            let spread = row.iter().map(|weight| (weight - mean) * (weight - mean));
            energy[at] * spread.sum::<f64>()
        };
        let mut order: Vec<usize> = (0..self.known.len()).collect();
        order.sort_by(|&a, &b| weight(b).total_cmp(&weight(a)).then(a.cmp(&b)));
        order.truncate((order.len() as f64 * settings.kept) as usize);
        order.sort_unstable();
        Self::with(order.into_iter().map(|place| self.known[place]))
    }

    /// The contents of a weights file.
    pub(super) fn written(
        &self,
        solved: &[f64],
        settings: &Settings,
        stamp: [u8; 32],
        temperature: f32,
    ) -> (WeightsHeader, Vec<Row>) {
        let row = |at: usize| {
            let mut row = [0.0; TYPES];
            row.copy_from_slice(&solved[at * TYPES..(at + 1) * TYPES]);
            row
        };
        let dense = |at: usize| row(at).map(|weight| (weight * GAIN_DENSE) as f32);
        let head = WeightsHeader {
            stamp,
            temperature,
            // `write` derives it from the rows, like the scales.
            rarity_step: 0.0,
            gains: settings.gains.map(|gain| gain as f32),
            scales: [0.0; TYPES],
            bias: row(0).map(|weight| weight as f32),
            shapes: std::array::from_fn(|shape| dense(1 + shape)),
            lexicon: std::array::from_fn(|place| dense(1 + SHAPES + place)),
        };
        let rows = self.known.iter().zip(DENSE..).map(|(known, at)| Row {
            key: known.key,
            rarity: known.rarity,
            weights: row(at),
        });
        (head, rows.collect())
    }
}
