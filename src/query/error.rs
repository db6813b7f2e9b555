//! What can be wrong with a lexicon file or a weights file.

/// A lexicon that cannot be used. Nothing of the file is taken; the caller keeps what it had.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum LexiconError {
    /// Not TOML, an unknown key, or a value of another type.
    #[error("{origin}:{line}: {problem}: see docs/classification.md for the keys of a lexicon")]
    Syntax {
        /// The file.
        origin: String,
        /// Where, from 1.
        line: usize,
        /// What the parser says.
        problem: String,
    },
    /// An entry or a form without a letter or digit.
    #[error("{origin}:{line}: `{entry}` holds no word: write a word or remove it")]
    NoWord {
        /// The file.
        origin: String,
        /// Where, from 1.
        line: usize,
        /// The entry as written.
        entry: String,
    },
    /// `^` or `$` where it means nothing.
    #[error("{origin}:{line}: `{entry}`: `^` may only open an entry and `$` only end it, move it")]
    Anchor {
        /// The file.
        origin: String,
        /// Where, from 1.
        line: usize,
        /// The entry as written.
        entry: String,
    },
    /// An entry with more words or variants than are ever needed.
    #[error(
        "{origin}:{line}: `{entry}` is too long: \
         use at most {most_words} words and {most_variants} alternatives"
    )]
    TooLong {
        /// The file.
        origin: String,
        /// Where, from 1.
        line: usize,
        /// The entry as written.
        entry: String,
        /// Most words in an entry.
        most_words: usize,
        /// Most alternatives in an entry.
        most_variants: usize,
    },
    /// A weight outside -10 to 10, or none at all.
    #[error(
        "{origin}:{line}: weight `{weight}` is out of range: use -10 to 10, or 0 to switch an entry off"
    )]
    Weight {
        /// The file.
        origin: String,
        /// Where, from 1.
        line: usize,
        /// The weight as written.
        weight: f64,
    },
    /// The same entry twice for one type.
    #[error("{origin}:{line}: `{entry}` is listed twice for `{query_type}`: keep one of them")]
    Twice {
        /// The file.
        origin: String,
        /// The second place, from 1.
        line: usize,
        /// The entry, alternatives written out.
        entry: String,
        /// For which type.
        query_type: crate::model::QueryType,
    },
}

/// Weights that cannot be used. The caller keeps what it had.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum WeightsError {
    /// Another kind of file.
    #[error("`{origin}` holds no weights: name a file that the training wrote")]
    NotWeights {
        /// The file.
        origin: String,
    },
    /// Written for another version.
    #[error("`{origin}` is of version {found}, this program reads {wanted}: train it anew")]
    Version {
        /// The file.
        origin: String,
        /// Of layout and features.
        found: String,
        /// The same, as read here.
        wanted: String,
    },
    /// The checksum does not fit, or what it seals makes no sense.
    #[error("`{origin}` is damaged: copy it again or train it anew")]
    Damaged {
        /// The file.
        origin: String,
    },
}
