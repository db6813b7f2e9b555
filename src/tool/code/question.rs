//! Analyses a plain question: its search terms, and the kind of file that answers it. Pure.

use super::{
    kind::FilePreference,
    lexicon::{NaturalLanguage, NaturalLanguage::English, meanings},
    words::{Lexeme, lexemes, parts, stem},
};

const MAX_TERMS: usize = 28;
/// Weight of a synonym in place of the word itself.
const SYNONYM: f32 = 0.35;

#[derive(Debug, Clone, PartialEq)]
pub(crate) struct QueryTerm {
    pub(crate) shown: String,
    pub(crate) is_version: bool,
    pub(crate) forms: Vec<(String, f32)>,
}

#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Question {
    pub(crate) wanted: Vec<QueryTerm>,
    pub(crate) run: Vec<String>,
    pub(crate) preference: FilePreference,
}

impl Question {
    pub(crate) fn read(text: &str) -> Self {
        let lexemes: Vec<Lexeme<'_>> = lexemes(text).collect();
        let run = lexemes.iter().map(|run| run.text().to_lowercase());
        let run: Vec<String> = run.collect();
        let language = NaturalLanguage::of(&run);
        let mut wanted: Vec<QueryTerm> = Vec::new();
        for (one, lower) in lexemes.iter().zip(&run) {
            let is_new = |form: &(String, f32)| wanted.iter().all(|known| known.forms[0] != *form);
            let term = query_term(language, *one, lower).filter(|term| is_new(&term.forms[0]));
            wanted.extend(term);
        }
        wanted.truncate(MAX_TERMS);
        let has_version = wanted.iter().any(|one| one.is_version);
        let preference = FilePreference::of(&text.to_lowercase(), has_version);
        Self {
            wanted,
            run,
            preference,
        }
    }
}

fn query_term(language: NaturalLanguage, run: Lexeme<'_>, lower: &str) -> Option<QueryTerm> {
    let forms = match run {
        Lexeme::Version(version) => vec![(version.to_owned(), 1.0)],
        Lexeme::Word(word) => match parts(word) {
            split if split.len() > 1 => vec![(split.concat(), 1.0)],
            _ if lower.chars().count() < 2 || language.is_common(lower) => return None,
            _ => forms(language, lower),
        },
    };
    Some(QueryTerm {
        shown: run.text().to_owned(),
        is_version: matches!(run, Lexeme::Version(_)),
        forms,
    })
}

/// English stems to look for in place of a word, with their weights.
fn forms(language: NaturalLanguage, word: &str) -> Vec<(String, f32)> {
    let weighted = |language, weight| {
        let meanings = meanings(language, word).iter();
        meanings.map(move |form| (form.clone(), weight))
    };
    let mut forms: Vec<(String, f32)> = Vec::new();
    if language != English {
        forms.extend(weighted(language, 1.0));
    }
    if forms.is_empty() {
        forms.push((stem(word), 1.0));
        forms.extend(weighted(English, SYNONYM));
    }
    forms
}
