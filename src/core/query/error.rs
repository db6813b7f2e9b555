//! Errors in lexicon and weights files.

use super::pattern::{MAX_VARIANTS, MAX_WORDS};
use crate::model::QueryType;

/// An invalid lexicon.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
#[error("{origin}:{line}: {problem}")]
pub struct LexiconError {
    /// File name.
    pub origin: String,
    /// Line number, from 1.
    pub line: usize,
    /// Kind of problem.
    pub problem: LexiconProblem,
}

/// Kinds of lexicon problems.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum LexiconProblem {
    /// Invalid TOML, an unknown key, or a value of the wrong type.
    #[error("{0}: see docs/classification.md for the keys of a lexicon")]
    Syntax(String),
    /// No letter or digit in an entry.
    #[error("`{0}` contains no word: add a word or remove it")]
    NoWord(String),
    /// A misplaced `^` or `$`.
    #[error("`{0}`: `^` may only start an entry and `$` only end it; move it")]
    Anchor(String),
    /// Too many words or alternatives.
    #[error("`{0}` is too long: use at most {MAX_WORDS} words and {MAX_VARIANTS} alternatives")]
    TooLong(String),
    /// A weight outside -10 to 10.
    #[error("weight `{0}` is out of range: use -10 to 10, or 0 to disable an entry")]
    Weight(f64),
    /// Duplicate entry of a type.
    #[error("`{0}` is listed twice for `{1}`: keep one of them")]
    Twice(String, QueryType),
}

/// Invalid weights.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{origin}` {problem}")]
pub struct WeightsError {
    /// File name.
    pub origin: String,
    /// Kind of problem.
    pub problem: WeightsProblem,
}

/// Kinds of problems of weights.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum WeightsProblem {
    /// Another kind of file.
    #[error("is not a weights file: use a file that the training wrote")]
    NotWeights,
    /// Another version.
    #[error("has version {found}, but this version of Oracle reads {wanted}: train it again")]
    Version {
        /// Version found.
        found: String,
        /// Version that this program reads.
        wanted: String,
    },
    /// Wrong checksum or content.
    #[error("is corrupt: copy it again, or train it again")]
    Damaged,
}
