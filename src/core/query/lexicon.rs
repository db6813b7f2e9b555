//! The lexicon: words and phrases that are evidence for a type, read from TOML and validated as a
//! whole. `config/lexicon.toml` is compiled in.
//!
//! **Invariant:** an entry occurs once per type, with a weight from -10 to 10.

use std::collections::{BTreeMap, BTreeSet};

use serde::Deserialize;
use toml::Spanned;

use super::error::{LexiconError, LexiconProblem};
use super::pattern::{Pattern, PatternFault, words};
use crate::model::QueryType;

const BUILTIN: &str = oracle_defaults::LEXICON;

/// Weighted words and phrases, with grammar.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Lexicon {
    /// Weight by type and entry.
    pub(super) entries: BTreeMap<(QueryType, Pattern), f64>,
    pub(super) grammar: Grammar,
}

#[derive(Debug, Clone, PartialEq, Default)]
pub(super) struct Grammar {
    /// Phrases before the first word of a clause ("please", "could you").
    pub(super) fillers: BTreeSet<Pattern>,
    /// Phrases that refer to the previous question.
    pub(super) followup: BTreeSet<Pattern>,
    pub(super) uninflected: BTreeSet<String>,
    pub(super) forms: BTreeMap<String, Vec<String>>,
    /// Contractions ("whats" for "what is").
    pub(super) contractions: BTreeMap<String, Vec<String>>,
}

impl Lexicon {
    /// Returns the built-in lexicon.
    ///
    /// # Errors
    /// Never: tests read the same file.
    pub fn builtin() -> Result<Self, LexiconError> {
        Self::parse(BUILTIN, "config/lexicon.toml")
    }

    /// Size limit of a lexicon file, in bytes.
    pub const MAX_BYTES: usize = 16 << 20;

    /// Parses a lexicon; errors name `origin`.
    ///
    /// # Errors
    /// The first problem, with its line.
    pub fn parse(toml: &str, origin: &str) -> Result<Self, LexiconError> {
        let place = LexiconSource { toml, origin };
        let file: LexiconFile = toml::from_str(toml).map_err(|error| {
            let at = error.span().map_or(0, |span| span.start);
            place.error(at, LexiconProblem::Syntax(error.message().to_owned()))
        })?;
        let mut entries = BTreeMap::new();
        for (query_type, groups) in [
            (QueryType::Code, file.code),
            (QueryType::Documentation, file.documentation),
            (QueryType::Research, file.research),
            (QueryType::Conversational, file.conversational),
            (QueryType::Action, file.action),
        ] {
            for group in groups {
                place.group(query_type, &group, &mut entries)?;
            }
        }
        let grammar = place.grammar(&file.grammar)?;
        Ok(Self { entries, grammar })
    }

    /// Merges another lexicon into this one: adds its entries and grammar, and replaces weights (0
    /// disables an entry).
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

    /// The entries that speak for a type, sorted.
    pub fn keywords(&self, query_type: QueryType) -> BTreeSet<&str> {
        let entries = self.entries.iter();
        let speak = entries.filter(|((of, _), weight)| *of == query_type && **weight > 0.0);
        speak.map(|((_, pattern), _)| &*pattern.label).collect()
    }
}

const MAX_WEIGHT: f64 = 10.0;

#[derive(Deserialize, Default)]
#[serde(default, deny_unknown_fields)]
struct LexiconFile {
    grammar: GrammarTable,
    code: Vec<WordGroup>,
    documentation: Vec<WordGroup>,
    research: Vec<WordGroup>,
    conversational: Vec<WordGroup>,
    action: Vec<WordGroup>,
}

#[derive(Deserialize, Default)]
#[serde(default, deny_unknown_fields)]
struct GrammarTable {
    fillers: Vec<Spanned<String>>,
    followup: Vec<Spanned<String>>,
    uninflected: Vec<Spanned<String>>,
    forms: BTreeMap<Spanned<String>, Vec<Spanned<String>>>,
    contractions: BTreeMap<Spanned<String>, Spanned<String>>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct WordGroup {
    /// Defaults to the number of words in an entry.
    weight: Option<Spanned<f64>>,
    entries: Vec<Spanned<String>>,
}

struct LexiconSource<'a> {
    toml: &'a str,
    origin: &'a str,
}

impl LexiconSource<'_> {
    fn error(&self, at: usize, problem: LexiconProblem) -> LexiconError {
        let before = self.toml.bytes().take(at);
        LexiconError {
            origin: self.origin.to_owned(),
            line: before.filter(|&b| b == b'\n').count() + 1,
            problem,
        }
    }

    fn group(
        &self,
        query_type: QueryType,
        group: &WordGroup,
        entries: &mut BTreeMap<(QueryType, Pattern), f64>,
    ) -> Result<(), LexiconError> {
        if let Some(weight) = &group.weight
            && !(-MAX_WEIGHT..=MAX_WEIGHT).contains(weight.get_ref())
        {
            let problem = LexiconProblem::Weight(*weight.get_ref());
            return Err(self.error(weight.span().start, problem));
        }
        for entry in &group.entries {
            for pattern in self.patterns(entry)? {
                let given = group.weight.as_ref().map(|weight| *weight.get_ref());
                let weight = given.unwrap_or_else(|| pattern.default_weight());
                let label = pattern.label.clone();
                if entries.insert((query_type, pattern), weight).is_some() {
                    let problem = LexiconProblem::Twice(label, query_type);
                    return Err(self.error(entry.span().start, problem));
                }
            }
        }
        Ok(())
    }

    fn grammar(&self, table: &GrammarTable) -> Result<Grammar, LexiconError> {
        let mut grammar = Grammar {
            fillers: self.pattern_set(&table.fillers)?,
            followup: self.pattern_set(&table.followup)?,
            ..Grammar::default()
        };
        for word in &table.uninflected {
            grammar.uninflected.insert(self.word(word)?);
        }
        for (base, forms) in &table.forms {
            let all: Result<_, _> = forms.iter().map(|form| self.word(form)).collect();
            grammar.forms.insert(self.word(base)?, all?);
        }
        for (short, long) in &table.contractions {
            self.word(long)?;
            let long = words(long.get_ref());
            grammar.contractions.insert(self.word(short)?, long);
        }
        Ok(grammar)
    }

    fn pattern_set(&self, written: &[Spanned<String>]) -> Result<BTreeSet<Pattern>, LexiconError> {
        let mut all = BTreeSet::new();
        for entry in written {
            all.extend(self.patterns(entry)?);
        }
        Ok(all)
    }

    fn patterns(&self, written: &Spanned<String>) -> Result<Vec<Pattern>, LexiconError> {
        Pattern::parse(written.get_ref()).map_err(|fault| self.fault(written, fault))
    }

    fn word(&self, written: &Spanned<String>) -> Result<String, LexiconError> {
        let first = words(written.get_ref()).into_iter().next();
        first.ok_or_else(|| self.fault(written, LexiconProblem::NoWord))
    }

    fn fault(&self, written: &Spanned<String>, fault: PatternFault) -> LexiconError {
        self.error(written.span().start, fault(written.get_ref().clone()))
    }
}

#[cfg(test)]
mod tests;
