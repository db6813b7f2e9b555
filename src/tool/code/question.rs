//! Analyses a plain question: its search terms, and the kind of file that answers it. Pure.

use super::{
    kind::Drift,
    lexicon::{Language, is_weak, synonyms, translations},
    words::{Run, parts, runs, stem},
};

const MOST: usize = 28;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::tool) enum Sort {
    Weak,
    Part,
    Word,
    Version,
    Name,
}

impl Sort {
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
pub(in crate::tool) struct Wanted {
    pub(in crate::tool) shown: String,
    pub(in crate::tool) sort: Sort,
    pub(in crate::tool) forms: Vec<(String, f32)>,
}

#[derive(Debug, Clone, PartialEq)]
pub(in crate::tool) struct Question {
    pub(in crate::tool) wanted: Vec<Wanted>,
    pub(in crate::tool) run: Vec<String>,
    pub(in crate::tool) drift: Drift,
}

impl Question {
    pub(in crate::tool) fn read(text: &str) -> Self {
        let runs: Vec<Run<'_>> = runs(text).collect();
        let run: Vec<String> = runs.iter().map(|run| run.text().to_lowercase()).collect();
        let language = Language::of(&run);
        let mut wanted: Vec<Wanted> = Vec::new();
        for (one, lower) in runs.iter().zip(&run) {
            let found = wanted_of(language, *one, lower);
            for one in found {
                if !wanted
                    .iter()
                    .any(|known| known.forms.first() == one.forms.first())
                {
                    wanted.push(one);
                }
            }
        }
        wanted.truncate(MOST);
        if wanted.iter().all(|one| one.sort == Sort::Weak) {
            wanted.iter_mut().for_each(|one| one.sort = Sort::Word);
        }
        let has_version = wanted.iter().any(|one| one.sort == Sort::Version);
        let drift = Drift::of(&text.to_lowercase(), has_version);
        Self { wanted, run, drift }
    }
}

fn wanted_of(language: Language, run: Run<'_>, lower: &str) -> Vec<Wanted> {
    let one = |shown: &str, sort, forms| Wanted {
        shown: shown.to_owned(),
        sort,
        forms,
    };
    let Run::Word(word) = run else {
        return vec![one(
            run.text(),
            Sort::Version,
            vec![(run.text().to_owned(), 1.0)],
        )];
    };
    let split = parts(word);
    if split.len() > 1 {
        let whole = one(word, Sort::Name, vec![(split.concat(), 1.0)]);
        let parts = split.iter().filter(|part| part.chars().count() > 1);
        let parts = parts.map(|part| one(part, Sort::Part, vec![(stem(part), 1.0)]));
        return [whole].into_iter().chain(parts).collect();
    }
    // Short words of other languages do not occur in code.
    let short = if language == Language::English { 2 } else { 3 };
    if lower.chars().count() < short
        || language.is_common(lower)
        || Language::English.is_common(lower) && ["where", "how", "what", "does"].contains(&lower)
    {
        return Vec::new();
    }
    let own = stem(lower);
    let mut forms = match language {
        Language::English => Vec::new(),
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
    let is_weak = match language {
        Language::English => is_weak(lower),
        _ => forms.first().is_some_and(|(form, _)| is_weak(form)),
    };
    let sort = if is_weak { Sort::Weak } else { Sort::Word };
    vec![one(word, sort, forms)]
}
