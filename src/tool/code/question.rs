//! A plain question: what it looks for, and what kind of place answers it. Pure.

use super::{
    kind::Drift,
    lexicon::{Language, is_weak, synonyms, translations},
    words::{Run, parts, runs, stem},
};

/// Most things that a question looks for.
const MOST: usize = 28;
/// How near two words that are written in one come to the first of them.
const JOINED: f32 = 0.9;

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
        for (at, (one, lower)) in runs.iter().zip(&run).enumerate() {
            let mut found = wanted_of(language, *one, lower);
            if let (Some(next), Some(first)) = (run.get(at + 1), found.first_mut())
                && matches!(first.sort, Sort::Word | Sort::Weak)
            {
                // `time out` is written in one word as well.
                first.forms.push((stem(&format!("{lower}{next}")), JOINED));
            }
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
    if let Some(major) = lower.strip_prefix('v').filter(|rest| is_number(rest)) {
        let forms = [
            lower.to_owned(),
            format!("{major}.0"),
            format!("{major}.0.0"),
        ];
        return vec![one(
            word,
            Sort::Version,
            forms.map(|form| (form, 1.0)).to_vec(),
        )];
    }
    // Of another language's questions, what is short is no word that code has.
    let short = if language == Language::English { 2 } else { 3 };
    if lower.chars().count() < short
        || language.is_common(lower)
        || Language::English.is_common(lower) && ["where", "how", "what", "does"].contains(&lower)
    {
        return Vec::new();
    }
    let own = stem(lower);
    let mut translated = match language {
        Language::English => Vec::new(),
        _ => translations(language, lower),
    };
    for forms in &mut translated {
        forms.sort_by(|a, b| b.1.total_cmp(&a.1));
        if forms.iter().all(|(form, _)| *form != own) {
            // Cognates and words that were left English.
            forms.push((own.clone(), 0.5));
        }
    }
    if translated.is_empty() {
        let others = synonyms(&own).iter().cloned();
        translated = vec![[(own.clone(), 1.0)].into_iter().chain(others).collect()];
    }
    let sort = |forms: &[(String, f32)]| {
        let is_weak = match language {
            Language::English => is_weak(lower),
            _ => forms.first().is_some_and(|(form, _)| is_weak(form)),
        };
        if is_weak { Sort::Weak } else { Sort::Word }
    };
    let wanted = translated.into_iter();
    wanted.map(|forms| one(word, sort(&forms), forms)).collect()
}

fn is_number(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(|b| b.is_ascii_digit())
}
