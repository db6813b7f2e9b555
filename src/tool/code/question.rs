//! Analyses a plain question: its search terms, and the kind of file that answers it. Pure.

use super::{
    kind::FilePreference,
    lexicon::{NaturalLanguage, NaturalLanguage::English, is_weak, synonyms, translations},
    words::{Lexeme, lexemes, parts, stem},
};

const MAX_TERMS: usize = 28;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::tool) enum TermKind {
    Weak,
    Part,
    Word,
    Version,
    Name,
}

impl TermKind {
    pub(in crate::tool) const fn share(self) -> f32 {
        match self {
            Self::Weak => 0.45,
            Self::Part => 0.5,
            Self::Word => 1.0,
            Self::Version => 1.1,
            Self::Name => 1.3,
        }
    }
}

#[derive(Debug, Clone, PartialEq)]
pub(in crate::tool) struct QueryTerm {
    pub(in crate::tool) shown: String,
    pub(in crate::tool) sort: TermKind,
    pub(in crate::tool) forms: Vec<(String, f32)>,
}

#[derive(Debug, Clone, PartialEq)]
pub(in crate::tool) struct Question {
    pub(in crate::tool) wanted: Vec<QueryTerm>,
    pub(in crate::tool) run: Vec<String>,
    pub(in crate::tool) preference: FilePreference,
}

impl Question {
    pub(in crate::tool) fn read(text: &str) -> Self {
        let lexemes: Vec<Lexeme<'_>> = lexemes(text).collect();
        let run = lexemes.iter().map(|run| run.text().to_lowercase());
        let run: Vec<String> = run.collect();
        let language = NaturalLanguage::of(&run);
        let mut wanted: Vec<QueryTerm> = Vec::new();
        for (one, lower) in lexemes.iter().zip(&run) {
            for term in query_terms(language, *one, lower) {
                let form = term.forms.first();
                if !wanted.iter().any(|known| known.forms.first() == form) {
                    wanted.push(term);
                }
            }
        }
        wanted.truncate(MAX_TERMS);
        if wanted.iter().all(|one| one.sort == TermKind::Weak) {
            wanted.iter_mut().for_each(|one| one.sort = TermKind::Word);
        }
        let has_version = wanted.iter().any(|one| one.sort == TermKind::Version);
        let preference = FilePreference::of(&text.to_lowercase(), has_version);
        Self {
            wanted,
            run,
            preference,
        }
    }
}

fn query_terms(language: NaturalLanguage, run: Lexeme<'_>, lower: &str) -> Vec<QueryTerm> {
    let one = |shown: &str, sort, forms| QueryTerm {
        shown: shown.to_owned(),
        sort,
        forms,
    };
    let Lexeme::Word(word) = run else {
        let forms = vec![(run.text().to_owned(), 1.0)];
        return vec![one(run.text(), TermKind::Version, forms)];
    };
    let split = parts(word);
    if split.len() > 1 {
        let whole = one(word, TermKind::Name, vec![(split.concat(), 1.0)]);
        let parts = split.iter().filter(|part| part.chars().count() > 1);
        let parts = parts.map(|part| one(part, TermKind::Part, vec![(stem(part), 1.0)]));
        return [whole].into_iter().chain(parts).collect();
    }
    // Short words of other languages do not occur in code.
    let short = if language == English { 2 } else { 3 };
    if lower.chars().count() < short
        || language.is_common(lower)
        || English.is_common(lower) && ["where", "how", "what", "does"].contains(&lower)
    {
        return Vec::new();
    }
    let own = stem(lower);
    let mut forms = match language {
        English => Vec::new(),
        _ => translations(language, lower).to_vec(),
    };
    if forms.is_empty() {
        forms.push((own.clone(), 1.0));
        forms.extend(synonyms(&own).iter().cloned());
    } else {
        forms.sort_by(|a, b| b.1.total_cmp(&a.1));
        if forms.iter().all(|(form, _)| *form != own) {
            // Cognates, and words left in English.
            forms.push((own, 0.5));
        }
    }
    let weak = match language {
        English => is_weak(lower),
        _ => forms.first().is_some_and(|(form, _)| is_weak(form)),
    };
    let sort = if weak { TermKind::Weak } else { TermKind::Word };
    vec![one(word, sort, forms)]
}
