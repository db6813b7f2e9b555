//! Query classification: what kind of question is this, and how sure are we (spec 4)?
//!
//! A [`Lexicon`] holds words and phrases that speak for a type, as data that an operator can replace
//! or extend; a [`Classifier`] is an immutable, compiled snapshot of it that weighs their evidence.
//! No I/O, no clock, no actors.
//!
//! **Invariant:** the same text, context and lexicon give the same classification, and no text
//! whatever makes it fail.

mod classifier;
mod error;
mod forms;
mod lexicon;
mod matcher;
mod pattern;
mod score;
mod text;

pub use classifier::{Classifier, Context, QueryClassifier};
pub use error::LexiconError;
pub use lexicon::Lexicon;
