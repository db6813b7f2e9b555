//! Query classification: what kind of question is this, and how sure are we (spec 4)?
//!
//! A [`Lexicon`] holds words and phrases that speak for a type, as data that an operator can replace
//! or extend; [`Weights`] hold what was learned from labelled queries. A [`Classifier`] is an
//! immutable, compiled snapshot of both. `training` (feature `train`) makes weights.
//! No I/O, no clock, no actors.
//!
//! **Invariant:** the same text, context, lexicon and weights give the same classification, and no text
//! whatever makes it fail.

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
#[cfg(feature = "train")]
pub mod training;
mod weights;

pub use classifier::{Basis, Classifier, Context, Explanation, Part, QueryClassifier};
pub use error::{LexiconError, WeightsError};
pub use evaluation::{Evaluation, LabelError, Labelled, Mistake, Tally};
pub use lexicon::Lexicon;
pub use weights::Weights;
