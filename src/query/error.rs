//! Errors of lexicon and weights files.

use super::pattern::{MOST_VARIANTS, MOST_WORDS};
use crate::model::QueryType;

/// An invalid lexicon.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
#[error("{origin}:{line}: {problem}")]
pub struct LexiconError {
    /// The file.
    pub origin: String,
    /// The line, from 1.
    pub line: usize,
    /// The problem.
    pub problem: LexiconProblem,
}

/// A problem of a lexicon.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum LexiconProblem {
    /// No TOML, an unknown key, or a value of another type.
    #[error("{0}: see docs/classification.md for the keys of a lexicon")]
    Syntax(String),
    /// An entry without a letter or digit.
    #[error("`{0}` holds no word: write a word or remove it")]
    NoWord(String),
    /// A misplaced `^` or `$`.
    #[error("`{0}`: `^` may only open an entry and `$` only end it, move it")]
    Anchor(String),
    /// Too many words or alternatives.
    #[error("`{0}` is too long: use at most {MOST_WORDS} words and {MOST_VARIANTS} alternatives")]
    TooLong(String),
    /// A weight outside -10 to 10.
    #[error("weight `{0}` is out of range: use -10 to 10, or 0 to switch an entry off")]
    Weight(f64),
    /// A duplicate entry of a type.
    #[error("`{0}` is listed twice for `{1}`: keep one of them")]
    Twice(String, QueryType),
}

/// Invalid weights.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum WeightsError {
    /// Another kind of file.
    #[error("`{origin}` holds no weights: name a file that the training wrote")]
    NotWeights {
        /// The file.
        origin: String,
    },
    /// Of another version.
    #[error("`{origin}` is of version {found}, this program reads {wanted}: train it anew")]
    Version {
        /// The file.
        origin: String,
        /// Version of layout and features.
        found: String,
        /// The version that is read.
        wanted: String,
    },
    /// The checksum or the content is wrong.
    #[error("`{origin}` is damaged: copy it again or train it anew")]
    Damaged {
        /// The file.
        origin: String,
    },
}
