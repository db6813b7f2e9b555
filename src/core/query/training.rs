//! Labelled queries as the weights see them, from which `config/train_classifier.py` learns.

use std::collections::BTreeSet;

use serde::Serialize;

use super::classifier::is_terse;
use super::evaluation::LabelledQuery;
use super::features::{SHAPES, each_feature, shapes};
use super::lexicon::Lexicon;
use super::matcher::Matcher;
use super::reading::Reading;
use super::text::normalized;
use super::weights::lexicon_value;
use crate::model::QueryType;

/// The features of a labelled query.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct TrainingRow<'a> {
    /// Query text.
    pub query: &'a str,
    /// Place of the expected type in [`QueryType::ALL`].
    pub label: usize,
    /// Whether each shape is there, and the lexicon's value of each type.
    pub dense: Vec<f64>,
    /// Keys of the features of words.
    pub words: BTreeSet<u32>,
    /// Keys of the features of letters.
    pub letters: BTreeSet<u32>,
}

/// The rows that weights are learned from: all but terse ones, which the lexicon decides.
pub fn training_rows<'a>(lexicon: &Lexicon, rows: &'a [LabelledQuery]) -> Vec<TrainingRow<'a>> {
    let matcher = Matcher::new(lexicon);
    let mut reading = Reading::default();
    let rows = rows.iter().filter_map(|row| {
        let text = normalized(&row.query);
        matcher.read(&text, &mut reading);
        let none = !matcher.evidence(&reading).any(|found| found.weight > 0.0);
        if is_terse(&text, &reading, none) {
            return None;
        }
        let mut dense = vec![0.0; SHAPES];
        for place in shapes(&text, &reading) {
            dense[place] = 1.0;
        }
        let score = matcher.score(&reading);
        dense.extend(QueryType::ALL.map(|of| lexicon_value(score.of(of))));
        let mut keys = [BTreeSet::new(), BTreeSet::new()];
        each_feature(&reading, &mut |feature| {
            keys[feature.group() as usize].insert(feature.key);
        });
        let [words, letters] = keys;
        Some(TrainingRow {
            query: &row.query,
            label: row.query_type as usize,
            dense,
            words,
            letters,
        })
    });
    rows.collect()
}
