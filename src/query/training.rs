//! Training of weights (feature `train`): multinomial logistic regression over `features`, pruned
//! and serialized. Five-fold cross-validation of whole classifiers yields temperature and accuracy.
//!
//! **Invariant:** one thread, a fixed order of sums and no platform mathematics: equal rows,
//! lexicon and settings give equal bytes.

mod examples;
mod solver;
mod validation;
mod vocabulary;

pub use validation::{CrossValidation, FOLDS, cross_validate};

use sha2::{Digest, Sha256};

use self::examples::{Example, examples};
use self::vocabulary::Vocabulary;
use super::evaluation::LabelledQuery;
use super::lexicon::Lexicon;
use super::matcher::Matcher;
use super::weights::{Weights, write};

/// Hyperparameters. The defaults were chosen by cross-validation (`train_classifier choose`,
/// `config/classifier-choice.txt`), within one standard error of the best that fits in 600 KB.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Settings {
    /// Gains of word and of letter features.
    pub gains: [f64; 2],
    /// Quadratic penalty.
    pub penalty: f64,
    /// Fewest rows of a learned feature.
    pub fewest_rows: usize,
    /// Share of features kept, of 8 bytes each.
    pub kept: f64,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            gains: [1.0, 1.4],
            penalty: 0.01,
            fewest_rows: 2,
            kept: 0.875,
        }
    }
}

/// Weights and their cross-validation.
#[derive(Debug, Clone)]
pub struct Trained {
    /// Weights file.
    pub bytes: Vec<u8>,
    /// Results on unseen rows, and the temperature.
    pub validation: CrossValidation,
    /// Number of features before pruning.
    pub features: usize,
    /// Number of features kept.
    pub kept: usize,
}

/// A failed training.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum TrainError {
    /// Fewer than 100 rows reach the weights.
    #[error("{0} labelled queries are too few: provide at least 100")]
    TooFewRows(usize),
    /// Too many features in a bucket of the file.
    #[error("cannot write the features, because too many share a bucket: prune more")]
    FullBucket,
}

/// Digest of the lexicon and the rows that weights are learned from.
pub fn stamp(sources: &[&str]) -> [u8; 32] {
    let mut digest = Sha256::new();
    for source in sources {
        digest.update((source.len() as u64).to_le_bytes());
        digest.update(source);
    }
    digest.finalize().into()
}

/// The rows that weights are learned from: distinct up to case, without terse ones, which the
/// lexicon decides.
pub fn training_rows<'a>(lexicon: &Lexicon, rows: &'a [LabelledQuery]) -> Vec<&'a LabelledQuery> {
    examples::decisive(&Matcher::new(lexicon), examples::distinct(rows))
}

/// Learns from labelled queries.
///
/// # Errors
/// Too few rows reach the weights, or the result cannot be written.
pub fn train(
    lexicon: &Lexicon,
    rows: &[LabelledQuery],
    settings: &Settings,
    stamp: [u8; 32],
) -> Result<Trained, TrainError> {
    let validation = cross_validate(lexicon, rows, settings)?;
    let all = examples(&Matcher::new(lexicon), &training_rows(lexicon, rows));
    let all: Vec<&Example> = all.iter().collect();
    let fitted = Fitted::of(&all, settings);
    Ok(Trained {
        bytes: fitted.bytes(settings, stamp, validation.temperature)?,
        validation,
        features: fitted.features,
        kept: fitted.vocabulary.features(),
    })
}

struct Fitted {
    vocabulary: Vocabulary,
    solved: Vec<f64>,
    features: usize,
}

impl Fitted {
    fn of(seen: &[&Example], settings: &Settings) -> Self {
        let all = Vocabulary::of(seen, settings);
        let features = all.features();
        let solve = |vocabulary: &Vocabulary| {
            let problem = vocabulary.problem(seen, settings);
            solver::solve(&problem, vocabulary.len(), settings.penalty)
        };
        let first = solve(&all);
        let (vocabulary, solved) = if settings.kept >= 1.0 {
            (all, first)
        } else {
            let kept = all.pruned(seen, settings, &first);
            let solved = solve(&kept);
            (kept, solved)
        };
        Self {
            vocabulary,
            solved,
            features,
        }
    }

    fn bytes(
        &self,
        settings: &Settings,
        stamp: [u8; 32],
        temperature: f32,
    ) -> Result<Vec<u8>, TrainError> {
        let vocabulary = &self.vocabulary;
        let (head, rows) = vocabulary.written(&self.solved, settings, stamp, temperature);
        write(head, &rows).ok_or(TrainError::FullBucket)
    }

    /// Quantized, with a temperature of 1.
    fn weights(&self, settings: &Settings) -> Result<Weights, TrainError> {
        let bytes = self.bytes(settings, [0; 32], 1.0)?;
        Weights::parse(&bytes, "training").map_err(|_| TrainError::FullBucket)
    }
}
