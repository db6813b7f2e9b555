//! Makes weights from labelled queries (feature `train`): a multinomial logistic regression over the
//! features of `features`, pruned and put into bytes.
//!
//! Five-fold cross-validation says how sure the answers may be (one temperature) and how right they are,
//! both of whole classifiers over rows that the fold did not see. Reads no file and no clock.
//!
//! **Invariant:** one thread, a fixed order of every sum and no mathematics of the machine's own: the same
//! rows, lexicon and settings give the same bytes.

mod examples;
mod settings;
mod solver;
mod validation;
mod vocabulary;

pub use settings::Settings;
pub use validation::{CrossValidation, FOLDS, cross_validate};

use sha2::{Digest, Sha256};

use self::examples::{Example, examples};
use self::vocabulary::Vocabulary;
use super::evaluation::Labelled;
use super::lexicon::Lexicon;
use super::matcher::Matcher;
use super::weights::{Head, TYPES, Weights, write};

/// Weights, and how the cross-validation went.
#[derive(Debug, Clone)]
pub struct Trained {
    /// The file.
    pub bytes: Vec<u8>,
    /// How it went with rows that were not seen; has the temperature.
    pub validation: CrossValidation,
    /// How many features there were in enough rows.
    pub features: usize,
    /// How many of them were kept.
    pub kept: usize,
}

/// Weights that cannot be made.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum TrainError {
    /// Fewer rows than folds.
    #[error("{0} labelled queries are too few: give at least a hundred")]
    TooFew(usize),
    /// More features with the same upper half than a bucket of the file holds.
    #[error("the features cannot be written: too many share a bucket, prune more")]
    Crowded,
}

/// Identifies what weights are learned from: the texts of the lexicon and of the labelled queries.
#[must_use]
pub fn stamp(sources: &[&str]) -> [u8; 32] {
    let mut digest = Sha256::new();
    for source in sources {
        digest.update((source.len() as u64).to_le_bytes());
        digest.update(source);
    }
    digest.finalize().into()
}

/// The rows that weights are learned from: of those that differ in case alone the first, and none that
/// the lexicon decides by itself.
#[must_use]
pub fn learned_from<'a>(lexicon: &Lexicon, rows: &'a [Labelled]) -> Vec<&'a Labelled> {
    examples::decisive(&Matcher::new(lexicon), examples::distinct(rows))
}

/// Learns from labelled queries, those of [`learned_from`].
///
/// # Errors
/// When there are too few, or the result cannot be written.
pub fn train(
    lexicon: &Lexicon,
    rows: &[Labelled],
    settings: &Settings,
    stamp: [u8; 32],
) -> Result<Trained, TrainError> {
    let validation = cross_validate(lexicon, rows, settings)?;
    let all = examples(&Matcher::new(lexicon), &learned_from(lexicon, rows));
    let all: Vec<&Example> = all.iter().collect();
    let fitted = Fitted::of(&all, settings);
    Ok(Trained {
        bytes: fitted.bytes(settings, stamp, validation.temperature)?,
        validation,
        features: fitted.features,
        kept: fitted.vocabulary.features(),
    })
}

/// A model before it is written.
struct Fitted {
    vocabulary: Vocabulary,
    solved: Vec<f64>,
    /// Before the pruning.
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
        if settings.kept >= 1.0 {
            return Self {
                vocabulary: all,
                solved: first,
                features,
            };
        }
        let kept = all.pruned(seen, settings, &first);
        Self {
            solved: solve(&kept),
            vocabulary: kept,
            features,
        }
    }

    fn bytes(
        &self,
        settings: &Settings,
        stamp: [u8; 32],
        temperature: f32,
    ) -> Result<Vec<u8>, TrainError> {
        let (dense, rows) = self.vocabulary.written(&self.solved);
        let head = Head {
            stamp,
            temperature,
            // This and the scales follow from the rows.
            rarity_step: 0.0,
            gains: settings.gains.map(|gain| gain as f32),
            scales: [0.0; TYPES],
            bias: dense.bias,
            shapes: dense.shapes,
            lexicon: dense.lexicon,
        };
        write(head, &rows).ok_or(TrainError::Crowded)
    }

    /// As they are read back, quantised, with a temperature of 1.
    fn weights(&self, settings: &Settings) -> Result<Weights, TrainError> {
        let bytes = self.bytes(settings, [0; 32], 1.0)?;
        Weights::parse(&bytes, "training").map_err(|_| TrainError::Crowded)
    }
}
