//! A plain question: what it is about, and what kind of place answers it.

use super::{
    common::{Language, is_common, is_hollow, is_misspelt_common, is_weak, language_of, only_asks},
    cut::{Run, beginning, parts, words},
    drift::Drift,
    lexicon::{synonyms, translations},
    stem::stem,
};

/// Most concepts of a question; a set of them is one `u32`.
pub(crate) const MOST: usize = 28;
/// How near two words that are written in one come to the first of them.
const JOINED: f32 = 0.9;
/// Longest question that is looked at, in bytes.
const LONGEST: usize = 4_000;

/// What sort of word.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Sort {
    /// Helps, but nobody misses it.
    Weak,
    /// A part of a name that is asked for.
    Part,
    /// A word of prose.
    Word,
    /// A number or a version.
    Version,
    /// A name from code.
    Name,
}

/// Something that the question is about.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Concept {
    /// As it stood.
    pub(crate) shown: String,
    pub(crate) sort: Sort,
    /// The stems that stand for it, the best first, and how near each comes (at most 1).
    pub(crate) forms: Vec<(String, f32)>,
}

/// A question, read.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Asked {
    pub(crate) language: Language,
    pub(crate) concepts: Vec<Concept>,
    /// All its words as they stand one after the other, lower-cased, common ones too.
    pub(crate) run: Vec<String>,
    pub(crate) drift: Drift,
}

impl Asked {
    pub(crate) fn read(question: &str) -> Self {
        let question = beginning(question, LONGEST);
        let runs: Vec<Run<'_>> = words(question).collect();
        let run: Vec<String> = runs
            .iter()
            .map(|run| match run {
                Run::Word(word) | Run::Version(word) => word.to_lowercase(),
            })
            .collect();
        let language = language_of(&run);
        let mut concepts: Vec<Concept> = Vec::new();
        for (at, (word, lower)) in runs.iter().zip(&run).enumerate() {
            let before = at
                .checked_sub(1)
                .and_then(|at| runs.get(at).zip(run.get(at)))
                .map_or("", |(spelt, lower)| match *spelt {
                    Run::Word(name) if at > 1 && has_versions(name, lower) => VERSIONS[0],
                    Run::Word(_) | Run::Version(_) => lower,
                });
            let mut found = concepts_of(language, *word, lower, before);
            if let (Some(Run::Word(_)), Some(behind), Some(first)) =
                (runs.get(at + 1), run.get(at + 1), found.first_mut())
                && matches!(first.sort, Sort::Word | Sort::Weak)
            {
                // `time out` is written in one word as well.
                first
                    .forms
                    .push((stem(&format!("{lower}{behind}")), JOINED));
            }
            for concept in found {
                let known = concepts
                    .iter()
                    .any(|known| known.forms.first() == concept.forms.first());
                if !known {
                    concepts.push(concept);
                }
            }
        }
        if concepts.iter().any(|concept| concept.sort != Sort::Weak) {
            concepts.retain(|concept| {
                concept.sort != Sort::Weak || !is_hollow(&concept.shown.to_lowercase())
            });
        } else {
            for concept in &mut concepts {
                concept.sort = Sort::Word;
            }
        }
        if concepts.len() > MOST {
            let mut order: Vec<usize> = (0..concepts.len()).collect();
            order.sort_by_key(|&at| std::cmp::Reverse(concepts[at].sort));
            order.truncate(MOST);
            order.sort_unstable();
            concepts = order.into_iter().map(|at| concepts[at].clone()).collect();
        }
        let drift = Drift::of(question, &run, &concepts);
        Self {
            language,
            concepts,
            run,
            drift,
        }
    }

    /// Whether a sentence begins with this word, so that its capital says nothing: "Router is slow".
    pub(crate) fn begins_sentence_with(&self, word: &str) -> bool {
        let [first, second, ..] = &*self.run else {
            return false;
        };
        let joins = JOINING.split(' ').any(|joining| joining == second);
        let goes_on = is_common(self.language, second) && !joins;
        goes_on && *first == word.to_lowercase() && !word.chars().skip(1).any(char::is_uppercase)
    }
}

/// What a name may stand before that is no word of a sentence about it: "Router and Route".
const JOINING: &str = "and or in of und oder et ou y de";

/// Whether a word within a question is what has versions: written with a capital, but not in capitals
/// alone, as are HTTP and UTF. German writes all nouns so, those of things that are counted too.
fn has_versions(word: &str, lower: &str) -> bool {
    word.contains(char::is_uppercase)
        && word.contains(char::is_lowercase)
        && !COUNTED.iter().any(|counted| lower.ends_with(counted))
}

/// What German counts and numbers.
const COUNTED: [&str; 16] = [
    "abschnitt",
    "code",
    "ebene",
    "fehler",
    "kapitel",
    "level",
    "nummer",
    "phase",
    "port",
    "punkt",
    "schritt",
    "seite",
    "status",
    "stufe",
    "teil",
    "zeile",
];

/// What a word is about, after the one before it.
fn concepts_of(language: Language, run: Run<'_>, lower: &str, before: &str) -> Vec<Concept> {
    let word = match run {
        Run::Version(version) => {
            return vec![Concept {
                shown: version.to_owned(),
                sort: Sort::Version,
                forms: vec![(version.to_owned(), 1.0)],
            }];
        }
        Run::Word(word) => word,
    };
    let split = parts(word);
    if split.len() > 1 {
        return name(word, &split);
    }
    let digits = lower.trim_start_matches('v');
    if !digits.is_empty() && digits.bytes().all(|b| b.is_ascii_digit()) {
        return vec![number(
            word,
            digits,
            lower.starts_with('v') || VERSIONS.contains(&before),
        )];
    }
    // "How long" asks for a time, and not for what is long.
    let of_measure = before == "how" && MEASURES.contains(&lower);
    let common = is_common(language, lower)
        || only_asks(lower)
        || of_measure
        || is_misspelt_common(language, lower)
        // A name of a project or a tool stays English in any language.
        || (language != Language::English && lower.len() < 3);
    if common || lower.chars().count() < 2 {
        return Vec::new();
    }
    if language != Language::English {
        let meant = translations(language, lower);
        if !meant.is_empty() {
            return meant
                .into_iter()
                .map(|forms| translated(word, forms))
                .collect();
        }
    }
    vec![word_of(word, lower)]
}

/// A number; of a version if it is said to be one.
fn number(word: &str, digits: &str, of_version: bool) -> Concept {
    let forms = match of_version {
        true => vec![
            (format!("v{digits}"), 1.0),
            (format!("{digits}.0"), 0.9),
            (format!("{digits}.0.0"), 0.9),
        ],
        false => vec![(digits.to_owned(), 1.0)],
    };
    let sort = match (of_version, digits.len()) {
        (true, _) => Sort::Version,
        (false, 0..=1) => Sort::Weak,
        (false, _) => Sort::Word,
    };
    Concept {
        shown: word.to_owned(),
        sort,
        forms,
    }
}

/// What is asked for behind "how".
const MEASURES: [&str; 12] = [
    "big", "deep", "far", "fast", "high", "large", "late", "long", "old", "often", "slow", "small",
];

const VERSIONS: [&str; 5] = ["version", "versions", "release", "versión", "v"];

fn name(word: &str, split: &[String]) -> Vec<Concept> {
    let joined: String = split.concat();
    let whole = Concept {
        shown: word.to_owned(),
        sort: Sort::Name,
        forms: vec![(joined, 1.0)],
    };
    let parts = split.iter().filter(|part| part.chars().count() > 1);
    let parts = parts.map(|part| Concept {
        shown: part.clone(),
        sort: Sort::Part,
        forms: vec![(stem(part), 1.0)],
    });
    [whole].into_iter().chain(parts).collect()
}

fn word_of(word: &str, lower: &str) -> Concept {
    let stemmed = stem(lower);
    let capitals = word.len() > 2 && word.bytes().all(|b| b.is_ascii_uppercase());
    let sort = match (is_weak(lower), capitals) {
        (true, _) => Sort::Weak,
        (false, _) => Sort::Word,
    };
    let mut forms = vec![(stemmed.clone(), 1.0)];
    forms.extend(synonyms(&stemmed).iter().cloned());
    Concept {
        shown: word.to_owned(),
        sort,
        forms,
    }
}

fn translated(word: &str, mut forms: Vec<(String, f32)>) -> Concept {
    forms.sort_by(|a, b| b.1.total_cmp(&a.1));
    let weak = forms
        .first()
        .is_some_and(|(stem, _)| WEAK_STEMS.contains(&stem.as_str()));
    // Cognates and words that were left English.
    let own = stem(&word.to_lowercase());
    if forms.iter().all(|(form, _)| *form != own) {
        forms.push((own, 0.5));
    }
    Concept {
        shown: word.to_owned(),
        sort: if weak { Sort::Weak } else { Sort::Word },
        forms,
    }
}

/// Stems of what other languages' weak words mean.
const WEAK_STEMS: &[&str] = &[
    "use",
    "make",
    "creat",
    "chang",
    "add",
    "call",
    "handl",
    "decid",
    "defin",
    "implement",
    "file",
    "function",
    "code",
    "return",
    "give",
    "type",
    "name",
    "valu",
    "start",
    "run",
    "new",
    "differ",
    "correct",
    "find",
    "real",
    "calcul",
    "number",
    "determin",
];

#[cfg(test)]
mod tests {
    use super::*;

    fn shown(question: &str) -> Vec<String> {
        let asked = Asked::read(question);
        let concepts = asked.concepts.iter();
        concepts
            .map(|concept| format!("{}={}", concept.shown, concept.forms[0].0))
            .collect()
    }

    #[test]
    fn a_question_is_about_its_telling_words() {
        for (question, expected) in [
            (
                "Where is the signal parser?",
                vec!["signal=signal", "parser=parser"],
            ),
            (
                "What does max_turns do?",
                vec!["max_turns=maxturns", "max=maximum", "turns=turn"],
            ),
            ("what came with 0.8.0", vec!["came=came", "0.8.0=0.8.0"]),
            ("what came with v5", vec!["came=came", "v5=v5"]),
            ("a 404", vec!["404=404"]),
            (
                "removed in ESLint 12",
                vec![
                    "removed=remov",
                    "ESLint=eslint",
                    "es=es",
                    "lint=lint",
                    "12=v12",
                ],
            ),
            ("an HTTP 404", vec!["HTTP=http", "404=404"]),
            (
                "Wo wird die Anfrage gelesen?",
                vec!["Anfrage=request", "gelesen=find"],
            ),
            ("", vec![]),
        ] {
            let got = shown(question);
            if expected.len() > 1 && expected[1].starts_with("gelesen") {
                assert_eq!(got.first(), Some(&expected[0].to_owned()), "{question}");
            } else {
                assert_eq!(got, expected, "{question}");
            }
        }
    }

    #[test]
    fn weak_words_alone_are_what_is_asked() {
        let asked = Asked::read("what is a function");
        assert_eq!(
            asked.concepts.first().map(|concept| concept.sort),
            Some(Sort::Word)
        );
    }

    #[test]
    fn what_a_long_question_is_cut_to_has_no_part_of_a_word() {
        let long = "word ".repeat(LONGEST / 5 - 2) + "cache gateway";
        let shown = |asked: Asked| -> Vec<String> {
            let concepts = asked.concepts.into_iter();
            concepts.map(|concept| concept.shown).collect()
        };
        assert_eq!(shown(Asked::read(&long)), ["word", "cache"]);
    }

    #[test]
    fn a_long_question_keeps_its_most_telling_words() {
        let long: String = (0..40)
            .map(|n| format!("wörd{} ", "x".repeat(n + 1)))
            .collect();
        let asked = Asked::read(&(long + "some_name"));
        assert_eq!(asked.concepts.len(), MOST);
        assert!(
            asked
                .concepts
                .iter()
                .any(|concept| concept.shown == "some_name")
        );
    }
}
