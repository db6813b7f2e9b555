//! Cross-validation of whole classifiers.

use std::sync::Arc;

use sha2::{Digest, Sha256};

use super::examples::{Example, decisive, distinct, examples};
use super::{Fitted, Settings, TrainError};
use crate::query::classifier::Classifier;
use crate::query::evaluation::{Evaluation, LabelledQuery};
use crate::query::lexicon::Lexicon;
use crate::query::matcher::Matcher;
use crate::query::weights::{PerType, Weights, shares};

/// Number of parts that the rows are split into.
pub const FOLDS: usize = 5;

/// The result of a cross-validation.
#[derive(Debug, Clone)]
pub struct CrossValidation {
    /// Each fold's unseen rows.
    pub folds: Vec<Evaluation>,
    /// All folds together.
    pub together: Evaluation,
    /// Divides scores to calibrate shares.
    pub temperature: f32,
}

impl CrossValidation {
    /// Mean and standard deviation of the folds' accuracy.
    pub fn accuracy(&self) -> (f64, f64) {
        let each = self.folds.iter().map(|fold| fold.total.accuracy());
        let count = self.folds.len() as f64;
        let mean = each.clone().sum::<f64>() / count;
        let squares: f64 = each.map(|fold| (fold - mean) * (fold - mean)).sum();
        (mean, (squares / (count - 1.0)).sqrt())
    }
}

/// Learns from four folds and evaluates the fifth, five times.
///
/// # Errors
/// Too few rows reach the weights, or the weights cannot be written.
pub fn cross_validate(
    lexicon: &Lexicon,
    rows: &[LabelledQuery],
    settings: &Settings,
) -> Result<CrossValidation, TrainError> {
    let matcher = Matcher::new(lexicon);
    let rows = distinct(rows);
    let learned = decisive(&matcher, rows.clone());
    if learned.len() < 20 * FOLDS {
        return Err(TrainError::TooFewRows(learned.len()));
    }
    let all = examples(&matcher, &learned);
    let mut fitted = Vec::new();
    let mut opinions: Vec<(usize, PerType)> = Vec::new();
    for fold in 0..FOLDS {
        let seen = all.iter().zip(&learned);
        let seen = seen.filter(|(_, row)| fold_of(row) != fold);
        let seen: Vec<&Example> = seen.map(|(example, _)| example).collect();
        let weights = Fitted::of(&seen, settings).weights(settings)?;
        let classifier = classifier(lexicon, weights.clone());
        let unseen = rows.iter().filter(|row| fold_of(row) == fold);
        opinions.extend(unseen.filter_map(|row| {
            let shares = classifier.shares(&row.query)?;
            Some((row.query_type as usize, shares))
        }));
        fitted.push(weights);
    }
    let temperature = temperature(&opinions);
    let (mut folds, mut together) = (Vec::new(), Evaluation::default());
    for (fold, weights) in fitted.into_iter().enumerate() {
        let classifier = classifier(lexicon, weights.at(temperature));
        let mut alone = Evaluation::default();
        for row in rows.iter().filter(|row| fold_of(row) == fold) {
            alone.evaluate(&classifier, row);
            together.evaluate(&classifier, row);
        }
        alone.sort();
        folds.push(alone);
    }
    together.sort();
    Ok(CrossValidation {
        folds,
        together,
        temperature,
    })
}

fn classifier(lexicon: &Lexicon, weights: Weights) -> Classifier {
    Classifier::new(lexicon).with_weights(Arc::new(weights))
}

/// By the text alone, so that rows keep their fold when others are added.
fn fold_of(row: &LabelledQuery) -> usize {
    let digest = Sha256::digest(&row.query);
    usize::from(digest[0]) % FOLDS
}

/// Maximizes the likelihood of the unseen rows, whose shares are at 1.
fn temperature(opinions: &[(usize, PerType)]) -> f32 {
    let logs = |shares: &PerType| shares.map(|share| libm::log(share.max(1e-300)));
    let opinions: Vec<_> = opinions.iter().map(|(of, s)| (*of, logs(s))).collect();
    let loss = |temperature: f64| -> f64 {
        let losses = opinions.iter().map(|(of, logs)| {
            let shares = shares(&logs.map(|log| log / temperature));
            -libm::log(shares[*of].max(1e-300))
        });
        losses.sum()
    };
    let tried = (50..=200).map(|step| f64::from(step) / 100.0);
    let tried = tried.map(|temperature| (loss(temperature), temperature));
    let best = tried.min_by(|(a, _), (b, _)| a.total_cmp(b));
    best.map_or(1.0, |(_, temperature)| temperature) as f32
}
