//! Query classification: the type of a query, and the confidence in it.
//!
//! A [`Lexicon`] holds words and phrases that are evidence for a type; [`Weights`] are learned from
//! labelled queries by `config/train_classifier.py`. A [`Classifier`] is an immutable, compiled
//! snapshot of both. No I/O, no clock, no actors. See docs/protocol.md, "Query classification".
//!
//! **Invariant:** equal inputs give equal classifications, and no text makes classification fail.

mod classifier;
mod error;
mod evaluation;
mod features;
mod forms;
mod lexicon;
mod matcher;
mod pattern;
mod prose;
mod reading;
mod score;
mod text;
mod training;
mod weights;

pub use classifier::{Basis, Classifier, QueryClassifier, QueryContext};
pub use error::{LexiconError, LexiconProblem, WeightsError, WeightsProblem};
pub use evaluation::{Evaluation, LabelError, LabelledQuery, Mistake, Tally};
pub use lexicon::Lexicon;
pub use training::{TrainingRow, training_rows};
pub use weights::Weights;
