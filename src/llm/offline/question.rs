//! What is asked: small talk, a deed, a look back, or something to look up, and by which terms.
//!
//! From the text alone, as a model would see it; no look at how the query was classified. Pure.

use std::borrow::Cow;

use crate::words::{self, Asked, Concept, Language, Run, Sort};

use super::{
    interest::{Bounds, Interest, is_change, is_name, is_noted, is_settled, is_whole},
    lexicon::{holds, is_showing, is_stop, is_weak, without_politeness, without_talk},
    term::{MAX_TERMS, Term, TermKind, TermSet},
    words::{is_identifier, is_spaceless, words as words_of},
};

mod files;
mod going_on;
mod kind;
mod quoted;

pub(super) use going_on::{asks, stands_alone};
pub(super) use kind::Kind;

use going_on::{Pointing, only_weak};
use kind::kind_of;

/// How much of a question is looked at, in characters: as much as the classifier does (spec 4).
const LOOKED_AT: usize = 4_000;
/// How near another word comes that stands for the same thing.
const SAME: f32 = 0.5;

/// A question, read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Question {
    pub(super) kind: Kind,
    /// What to look for, in the order of the question; at most [`MAX_TERMS`].
    pub(super) terms: Vec<Term>,
    /// The words in which it is put to a search that takes a plain question.
    pub(super) plain: String,
    /// Where it is to be looked up.
    pub(super) interest: Interest,
    /// Which part of the history it asks for.
    pub(super) bounds: Bounds,
    /// Whether it asks what is different since when.
    pub(super) is_of_changes: bool,
}

impl Question {
    /// Reads a question with what was added to it while it was worked on. A question without any
    /// term of its own ("and the second one?") is about the one before.
    pub(super) fn read(text: &str, added: &[&str], previous: Option<&str>) -> Self {
        let kind = match (kind_of(text), added.last()) {
            (kind, Some(latest)) if kind.is_of_talk() => kind_of(latest),
            (kind, _) => kind,
        };
        let said = || {
            [text]
                .into_iter()
                .chain(added.iter().copied())
                .map(asked_in)
        };
        let interest_of = |text: &str| match kind {
            Kind::Lookup => Interest::of(&quoted::taken_from(beginning(text)).1),
            Kind::Chat(_) | Kind::Recall(_) | Kind::Deed => Interest::Places,
        };
        let previous = previous.map(asked_in);
        let plain = said().collect::<Vec<_>>().join(" ");
        let own = interest_of(&plain);
        let (mut bounds, unbound) = match own.is_of_history() {
            true => Bounds::taken_from(&plain),
            false => (Bounds::default(), plain.clone()),
        };
        let pointing = Pointing::of(&unbound);
        let of_own = |mut terms: Vec<Term>| {
            // "Who calls it?" names nothing: "calls" says what is asked of it.
            terms.retain(|term| !is_said(own, term) && !pointing.is_use(own, term));
            terms
        };
        let terms = match kind {
            Kind::Chat(_) | Kind::Recall(_) => Vec::new(),
            Kind::Deed | Kind::Lookup if bounds.lists() => of_own(terms_of([&*unbound])),
            Kind::Deed | Kind::Lookup => of_own(terms_of(said())),
        };
        let is_bare = terms.is_empty() || (pointing.perhaps && only_weak(said()));
        let goes_on = is_bare
            && match own {
                Interest::Overview => false,
                // "The last commits" are those of all; "who wrote it" is about what was asked before.
                Interest::History(_) => pointing.perhaps,
                Interest::Places | Interest::Uses | Interest::Notes | Interest::Settled => {
                    !kind.is_of_talk()
                }
            };
        let adds = !goes_on && own == Interest::Places && pointing.adds(&terms);
        let (terms, plain, interest) = match previous.filter(|_| goes_on || adds) {
            None => (terms, plain, own),
            Some(previous) if adds => {
                let mut all = terms_of([previous]);
                all.extend(terms);
                (most_telling(all), format!("{previous} {plain}"), own)
            }
            Some(previous) => {
                let interest = match own {
                    Interest::Places => interest_of(previous),
                    of_its_own => of_its_own,
                };
                // "Show me more" asks for those of the same days.
                let unbound = match interest.is_of_history() && !own.is_of_history() {
                    true => {
                        let (of_previous, unbound) = Bounds::taken_from(previous);
                        bounds = of_previous;
                        unbound
                    }
                    false => previous.to_owned(),
                };
                let mut terms = of_own(terms_of([&*unbound]));
                terms.extend(weak_terms(said()));
                (most_telling(terms), previous.to_owned(), interest)
            }
        };
        let is_of_changes = Asked::read(beginning(&plain)).drift.change;
        let terms = match (is_of_changes, interest) {
            (true, Interest::Places) => terms.into_iter().map(Term::not_as_place).collect(),
            _ => terms,
        };
        let mut question = Self {
            kind,
            terms,
            plain,
            interest,
            bounds,
            is_of_changes,
        };
        if interest == Interest::Uses && question.used_name().is_none() {
            question.interest = Interest::Places;
        }
        question
    }

    /// In the words for a search of files: that notes are asked for, is no word of them.
    pub(super) fn for_files(&self) -> Cow<'_, str> {
        if self.interest != Interest::Notes {
            return Cow::Borrowed(&self.plain);
        }
        let is_kept = |word: &&str| is_name(word) || !is_noted(&word.to_lowercase());
        let words: Vec<&str> = self.plain.split_whitespace().filter(is_kept).collect();
        Cow::Owned(words.join(" "))
    }

    /// The name whose uses are asked for, as it is spelt.
    pub(super) fn used_name(&self) -> Option<&str> {
        let named = |kind| self.terms.iter().find(|term| term.kind == kind);
        let needed = || TermSet::needed(&self.terms);
        let alone = || named(TermKind::Word).filter(|_| needed().len() == 1);
        let name = || {
            named(TermKind::Name)
                .or_else(alone)
                .map(|term| &*term.shown)
        };
        let name = last_of_path(&self.plain).or_else(name)?;
        (self.interest == Interest::Uses).then_some(name)
    }

    /// Takes what searches say of how its words are spelt.
    pub(super) fn understand(&mut self, read_as: &[(String, String)]) {
        for (word, read_as) in read_as {
            for term in self.terms.iter_mut().filter(|term| term.shown == *word) {
                term.read_as(read_as);
            }
        }
    }
}

/// The last name of one that says where it lies: `Session::decide`, `reply.send()`.
fn last_of_path(text: &str) -> Option<&str> {
    let is_part = |part: &str| {
        part.starts_with(|c: char| c.is_alphabetic() || c == '_')
            && part.chars().all(|c| c.is_alphanumeric() || c == '_')
    };
    text.split_whitespace().find_map(|token| {
        let token = token.trim_matches(|c: char| !c.is_alphanumeric() && c != '_');
        let is_path = files::in_word(token).is_none() && token.contains("::") | token.contains('.');
        let mut parts = token.split("::").flat_map(|part| part.split('.'));
        let last = parts.clone().last();
        last.filter(|last| last.len() > 1 && is_path && parts.all(is_part))
    })
}

/// Whether a word only says what the interest says already.
fn is_said(interest: Interest, term: &Term) -> bool {
    let lower = term.shown.to_lowercase();
    matches!(term.kind, TermKind::Weak | TermKind::Word)
        && !is_name(&term.shown)
        && match interest {
            Interest::History(_) => is_change(&lower),
            Interest::Overview => is_whole(&lower),
            Interest::Settled => is_settled(&lower) || is_noted(&lower),
            Interest::Notes => is_noted(&lower),
            Interest::Places | Interest::Uses => false,
        }
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

/// What of a text is looked at, without small talk.
fn asked_in(text: &str) -> &str {
    without_talk(beginning(text))
}

fn beginning(text: &str) -> &str {
    of_characters(text, LOOKED_AT)
}

/// What a text begins with, in so many characters at most, without a part of a word at its end.
pub(super) fn of_characters(text: &str, most: usize) -> &str {
    match text.char_indices().nth(most) {
        Some((end, _)) => words::beginning(text, end),
        None => text,
    }
}

fn weak_terms<'a>(texts: impl IntoIterator<Item = &'a str>) -> impl Iterator<Item = Term> {
    let terms = all_terms(texts).into_iter();
    terms.filter(|term| term.kind == TermKind::Weak)
}

/// What to look for; weak words too, if there are no others.
fn terms_of<'a>(texts: impl IntoIterator<Item = &'a str>) -> Vec<Term> {
    let mut terms = all_terms(texts);
    if terms.iter().all(|term| term.kind == TermKind::Weak) {
        terms = terms
            .iter()
            .map(|term| Term::new(TermKind::Word, &term.shown))
            .collect();
    }
    most_telling(terms)
}

fn all_terms<'a>(texts: impl IntoIterator<Item = &'a str>) -> Vec<Term> {
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
fn most_telling(terms: Vec<Term>) -> Vec<Term> {
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

#[cfg(test)]
mod tests;
