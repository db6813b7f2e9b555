//! The terms of a question: its quotations, the files and names that it has, and its words with what they are
//! called otherwise. Pure.

use crate::words::{self, Asked, Concept, Language, Run, Sort};

use super::{
    super::{
        lexicon::{holds, is_showing, is_stop, is_weak, without_politeness},
        term::{MAX_TERMS, Term, TermKind},
        words::{is_identifier, is_spaceless, words as words_of},
    },
    beginning, files, quoted,
};

/// How near another word comes that stands for the same thing.
const SAME: f32 = 0.5;

pub(super) fn weak_terms<'a>(
    texts: impl IntoIterator<Item = &'a str>,
) -> impl Iterator<Item = Term> {
    let terms = all_terms(texts).into_iter();
    terms.filter(|term| term.kind == TermKind::Weak)
}

/// What to look for; weak words too, if there are no others.
pub(super) fn terms_of<'a>(texts: impl IntoIterator<Item = &'a str>) -> Vec<Term> {
    let mut terms = all_terms(texts);
    if terms.iter().all(|term| term.kind == TermKind::Weak) {
        terms = terms
            .iter()
            .map(|term| Term::new(TermKind::Word, &term.shown))
            .collect();
    }
    most_telling(terms)
}

pub(super) fn all_terms<'a>(texts: impl IntoIterator<Item = &'a str>) -> Vec<Term> {
    let mut terms: Vec<Term> = Vec::new();
    for text in texts {
        let asked = Asked::read(beginning(text));
        let (quoted, rest) = quoted::taken_from(&files::with_lines(beginning(text)));
        let known = |term: Term| known_to(&asked, term);
        let words = rest.split_whitespace().flat_map(terms_in);
        let of_text: Vec<Term> = quoted.into_iter().chain(words.filter_map(known)).collect();
        let order = shown_by(text, &of_text);
        for term in of_text {
            if order.as_ref() == Some(&term.shown.to_lowercase()) {
                continue;
            }
            if !terms.iter().any(|known| known.same(&term)) {
                terms.push(term);
            }
        }
    }
    terms
}

/// The word that only says that a file is to be shown: the first of "open src/main.rs".
fn shown_by(text: &str, terms: &[Term]) -> Option<String> {
    let names_file = terms.iter().any(|term| term.kind == TermKind::Path);
    let lower = beginning(text).to_lowercase();
    let (order, _) = without_politeness(&lower);
    let first = words_of(order).find(|word| !word.is_empty());
    let first = first.filter(|word| names_file && is_showing(word));
    first.map(str::to_owned)
}

fn terms_in(token: &str) -> Vec<Term> {
    let token = token.trim_matches(|c: char| !c.is_alphanumeric() && c != '_');
    if let Some(file) = files::in_word(token) {
        return vec![file];
    }
    if let Some(version) = version(token) {
        return vec![Term::new(TermKind::Name, version)];
    }
    words_of(without_apostrophe(token))
        .filter_map(term_of)
        .collect()
}

/// What is behind an apostrophe says nothing ("doesn't", "session's"); behind the letters that French
/// leaves of small words, all ("l'index", "qu'appelle").
fn without_apostrophe(token: &str) -> &str {
    match token.split_once(['\'', '’']) {
        Some((before, behind)) if holds(ELIDED, &before.to_lowercase()) && behind.len() > 2 => {
            behind
        }
        Some((before, _)) => before,
        None => token,
    }
}

/// What French leaves of small words before a vowel.
const ELIDED: &str = "c d j jusqu l lorsqu m n puisqu qu quelqu s t";

/// `1.5` or `v1.5`, without the letter.
fn version(token: &str) -> Option<&str> {
    match words::words(token).next()? {
        Run::Version(version) if token.ends_with(version) => Some(version),
        Run::Version(_) | Run::Word(_) => None,
    }
}

fn term_of(word: &str) -> Option<Term> {
    let lower = word.to_lowercase();
    let kind = if is_identifier(word) {
        TermKind::Name
    } else if is_stop(&lower) || (word.chars().count() < 2 && !is_spaceless(word)) {
        return None;
    } else if is_weak(&lower) {
        TermKind::Weak
    } else {
        TermKind::Word
    };
    Some(Term::new(kind, word))
}

/// At most [`MAX_TERMS`], the most telling ones, in the order they came.
pub(super) fn most_telling(terms: Vec<Term>) -> Vec<Term> {
    let mut places: Vec<usize> = (0..terms.len()).collect();
    places.sort_by_key(|&at| std::cmp::Reverse(terms[at].kind));
    places.truncate(MAX_TERMS);
    let kept = |at: &usize| places.contains(at);
    terms
        .into_iter()
        .enumerate()
        .filter(|(at, _)| kept(at))
        .map(|(_, term)| term)
        .collect()
}

/// A word with what it is called otherwise; none if nobody looks for it in that language.
fn known_to(asked: &Asked, term: Term) -> Option<Term> {
    match term.kind {
        TermKind::Path | TermKind::Phrase => return Some(term),
        TermKind::Weak | TermKind::Word | TermKind::Name => {}
    }
    let concepts: Vec<&Concept> = asked
        .concepts
        .iter()
        .filter(|concept| concept.shown == term.shown)
        .collect();
    if concepts.is_empty() && asked.language != Language::English && term.kind != TermKind::Name {
        return None;
    }
    let kind = match (concepts.first(), term.kind) {
        (Some(first), TermKind::Word) if first.sort == Sort::Weak => TermKind::Weak,
        (_, kind) => kind,
    };
    let forms = concepts.into_iter().flat_map(|concept| &concept.forms);
    let same = forms
        .filter(|(_, near)| *near >= SAME)
        .map(|(form, _)| form.clone());
    let known = Term::new(kind, &term.shown).or_called(same);
    Some(match asked.begins_sentence_with(&known.shown) {
        true => known.begins_sentence(),
        false => known,
    })
}
