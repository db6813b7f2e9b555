//! The TOML of a lexicon, and what is checked when it is read.

use std::collections::{BTreeMap, BTreeSet};

use serde::Deserialize;
use toml::Spanned;

use super::{Grammar, Lexicon};
use crate::model::QueryType;
use crate::query::error::LexiconError;
use crate::query::pattern::{Fault, MOST_VARIANTS, MOST_WORDS, Pattern, words};

const MOST_WEIGHT: f64 = 10.0;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct File {
    #[serde(default)]
    grammar: GrammarTable,
    #[serde(default)]
    code: Vec<Group>,
    #[serde(default)]
    documentation: Vec<Group>,
    #[serde(default)]
    research: Vec<Group>,
    #[serde(default)]
    conversational: Vec<Group>,
    #[serde(default)]
    action: Vec<Group>,
}

#[derive(Deserialize, Default)]
#[serde(deny_unknown_fields)]
struct GrammarTable {
    #[serde(default)]
    fillers: Vec<Spanned<String>>,
    #[serde(default)]
    followup: Vec<Spanned<String>>,
    #[serde(default)]
    uninflected: Vec<Spanned<String>>,
    #[serde(default)]
    forms: BTreeMap<Spanned<String>, Vec<Spanned<String>>>,
    #[serde(default)]
    contractions: BTreeMap<Spanned<String>, Spanned<String>>,
}

/// Entries of one weight.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Group {
    /// None: one for each word of an entry.
    weight: Option<Spanned<f64>>,
    entries: Vec<Spanned<String>>,
}

/// Reads and checks a lexicon.
pub(super) fn read(toml: &str, origin: &str) -> Result<Lexicon, LexiconError> {
    let place = Place { toml, origin };
    let file: File = toml::from_str(toml).map_err(|error| LexiconError::Syntax {
        origin: origin.to_owned(),
        line: place.line(error.span().map_or(0, |span| span.start)),
        problem: error.message().to_owned(),
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
    Ok(Lexicon {
        entries,
        grammar: place.grammar(&file.grammar)?,
    })
}

/// The text that spans point into.
struct Place<'a> {
    toml: &'a str,
    origin: &'a str,
}

impl Place<'_> {
    fn line(&self, at: usize) -> usize {
        self.toml.bytes().take(at).filter(|&b| b == b'\n').count() + 1
    }

    fn group(
        &self,
        query_type: QueryType,
        group: &Group,
        entries: &mut BTreeMap<(QueryType, Pattern), f64>,
    ) -> Result<(), LexiconError> {
        if let Some(weight) = &group.weight
            && !(-MOST_WEIGHT..=MOST_WEIGHT).contains(weight.get_ref())
        {
            let (origin, line) = (self.origin.to_owned(), self.line(weight.span().start));
            return Err(LexiconError::Weight {
                origin,
                line,
                weight: *weight.get_ref(),
            });
        }
        for entry in &group.entries {
            for pattern in self.patterns(entry)? {
                let given = group.weight.as_ref().map(|weight| *weight.get_ref());
                let weight = given.unwrap_or_else(|| pattern.default_weight());
                let label = pattern.label.clone();
                if entries.insert((query_type, pattern), weight).is_some() {
                    let (origin, line) = (self.origin.to_owned(), self.line(entry.span().start));
                    return Err(LexiconError::Twice {
                        origin,
                        line,
                        entry: label,
                        query_type,
                    });
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
            let long = words(self.word_or_more(long)?);
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
        words(written.get_ref())
            .into_iter()
            .next()
            .ok_or_else(|| self.fault(written, Fault::NoWord))
    }

    fn word_or_more<'w>(&self, written: &'w Spanned<String>) -> Result<&'w str, LexiconError> {
        self.word(written).map(|_| written.get_ref().as_str())
    }

    fn fault(&self, written: &Spanned<String>, fault: Fault) -> LexiconError {
        let (origin, line) = (self.origin.to_owned(), self.line(written.span().start));
        let entry = written.get_ref().clone();
        match fault {
            Fault::NoWord => LexiconError::NoWord {
                origin,
                line,
                entry,
            },
            Fault::Anchor => LexiconError::Anchor {
                origin,
                line,
                entry,
            },
            Fault::TooLong => LexiconError::TooLong {
                origin,
                line,
                entry,
                most_words: MOST_WORDS,
                most_variants: MOST_VARIANTS,
            },
        }
    }
}
