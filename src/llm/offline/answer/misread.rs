//! Words that a search took for others, which it has as stems.

use super::{
    super::{
        evidence::Evidence,
        protocol::{inert, shortened},
        rank::Passage,
        term::{Term, TermSet},
    },
    Case,
};
use crate::words::{self, Run};

/// Longest word that is told, in characters.
const LONGEST: usize = 60;
/// From so many characters on a word may have two slips.
const LONG: usize = 10;

/// Which words were taken for others that the best quote has. Nobody knows the stem of a word.
pub(super) fn told(case: &Case<'_>, best: &Passage) -> String {
    let mut told: Vec<String> = Vec::new();
    for (word, read_as) in &case.evidence.read_as {
        // What only says what is asked for is no word of it: "what was decided about …".
        if !case.question.terms.iter().any(|term| term.shown == *word) {
            continue;
        }
        let Some(whole) = whole(case.evidence, best, read_as) else {
            continue;
        };
        let word = shortened(&inert(word), LONGEST);
        let one = format!("“{word}” as “{}”", shortened(&inert(&whole), LONGEST));
        if !told.contains(&one) {
            told.push(one);
        }
    }
    match told.is_empty() {
        true => String::new(),
        false => format!("I read {}. ", told.join(", ")),
    }
}

/// The terms that were taken for other words.
pub(super) fn those(case: &Case<'_>) -> TermSet {
    let is_misread = |term: &Term| {
        let mut read_as = case.evidence.read_as.iter();
        read_as.any(|(word, _)| term.shown == *word)
    };
    let terms = case.question.terms.iter().enumerate();
    terms
        .filter(|(_, term)| is_misread(term))
        .fold(TermSet::default(), |set, (at, _)| set.with(at))
}

/// Those of them that were taken for quite other words: who asks for a payment does not mean a parent.
pub(super) fn far(case: &Case<'_>, best: &Passage) -> TermSet {
    let is_far = |term: &Term| {
        let mut read_as = case.evidence.read_as.iter();
        read_as
            .any(|(word, stem)| term.shown == *word && is_another(case.evidence, best, word, stem))
    };
    let terms = case.question.terms.iter().enumerate();
    terms
        .filter(|(_, term)| is_far(term))
        .fold(TermSet::default(), |set, (at, _)| set.with(at))
}

/// Whether no word with this stem in a passage is this one but for a slip.
fn is_another(evidence: &Evidence, passage: &Passage, word: &str, stem: &str) -> bool {
    let word = word.to_lowercase();
    let slips = match word.chars().count() {
        LONG.. => 2,
        _ => 1,
    };
    // "schedular": the slip may be in its ending, which no stem has.
    !word.starts_with(stem)
        && those_with(evidence, passage, stem)
            .iter()
            .all(|known| words::apart(&word, &known.to_lowercase(), slips).is_none())
}

/// The shortest word with this stem in a passage or its path.
fn whole(evidence: &Evidence, passage: &Passage, stem: &str) -> Option<String> {
    let words = those_with(evidence, passage, stem).into_iter();
    words.min_by(|a, b| (a.len(), a).cmp(&(b.len(), b)))
}

/// The words with this stem in a passage and its path.
fn those_with(evidence: &Evidence, passage: &Passage, stem: &str) -> Vec<String> {
    let (first, last) = passage.lines;
    let lines = evidence.files.get(&passage.path).into_iter();
    let lines = lines.flat_map(|lines| lines.range(first..=last).map(|(_, line)| line));
    lines
        .chain([&passage.path])
        .flat_map(|line| words::words(line))
        .filter_map(|run| match run {
            Run::Word(word) => Some(word),
            Run::Version(_) => None,
        })
        // Of a name the parts, and all of it: searches know it by both.
        .flat_map(|word| {
            let parts = words::parts(word);
            let name = (parts.len() > 1 && parts.concat() == stem).then(|| word.to_owned());
            let of_stem = parts.into_iter().filter(|part| words::stem(part) == stem);
            name.into_iter().chain(of_stem).collect::<Vec<_>>()
        })
        .collect()
}
