//! The five lexicons as facts: which words and phrases speak for which type, and how much.
//!
//! Read from TOML (`config/lexicon.toml` is compiled in), checked as a whole, and merged; nothing
//! is matched here.
//!
//! **Invariant:** an entry stands once per type, and its weight is within -10 to 10.

mod file;

use std::collections::{BTreeMap, BTreeSet};

use super::error::LexiconError;
use super::pattern::Pattern;
use crate::model::QueryType;

const BUILTIN: &str = include_str!("../../config/lexicon.toml");

/// Words and phrases with their weights, and the little grammar that goes with them.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Lexicon {
    /// Weight by type and entry.
    pub(super) entries: BTreeMap<(QueryType, Pattern), f64>,
    pub(super) grammar: Grammar,
}

/// What is said of words whatever the type.
#[derive(Debug, Clone, PartialEq, Default)]
pub(super) struct Grammar {
    /// What may stand before the first word of a clause without being it ("please", "could you").
    pub(super) fillers: BTreeSet<Pattern>,
    /// Words that point back to what was said before.
    pub(super) followup: BTreeSet<Pattern>,
    /// Words without regular forms.
    pub(super) uninflected: BTreeSet<String>,
    /// Irregular forms by base form.
    pub(super) forms: BTreeMap<String, Vec<String>>,
    /// One word that stands for several ("whats" for "what is").
    pub(super) contractions: BTreeMap<String, Vec<String>>,
}

impl Lexicon {
    /// The lexicon that is compiled in (T008, enlarged).
    ///
    /// # Errors
    /// Never, as long as the tests pass: they read the same file.
    pub fn builtin() -> Result<Self, LexiconError> {
        Self::parse(BUILTIN, "config/lexicon.toml")
    }

    /// No lexicon is longer, in bytes.
    pub const MOST_BYTES: usize = 16 << 20;

    /// Reads a lexicon; `origin` is its name in errors.
    ///
    /// # Errors
    /// The first problem, with its line and the remedy.
    pub fn parse(toml: &str, origin: &str) -> Result<Self, LexiconError> {
        file::read(toml, origin)
    }

    /// This lexicon with another laid over it: its entries are added, or replace the weight of the
    /// same entry (0 switches it off); its grammar is added likewise.
    #[must_use]
    pub fn extended_with(mut self, other: Self) -> Self {
        self.entries.extend(other.entries);
        self.grammar.fillers.extend(other.grammar.fillers);
        self.grammar.followup.extend(other.grammar.followup);
        self.grammar.uninflected.extend(other.grammar.uninflected);
        self.grammar.forms.extend(other.grammar.forms);
        self.grammar.contractions.extend(other.grammar.contractions);
        self
    }

    /// What speaks for a type, sorted, without doubles.
    #[must_use]
    pub fn keywords(&self, query_type: QueryType) -> BTreeSet<&str> {
        self.entries
            .iter()
            .filter(|((of, _), weight)| *of == query_type && **weight > 0.0)
            .map(|((_, pattern), _)| pattern.label.as_str())
            .collect()
    }
}

#[cfg(test)]
mod tests;
