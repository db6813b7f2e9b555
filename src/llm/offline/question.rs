//! What is asked: small talk, a deed, a look back, or something to look up, and by which terms.
//!
//! From the text alone, as a model would see it; no look at how the query was classified. Pure.

use std::borrow::Cow;

use crate::words::{self, Asked};

use super::{
    changelog::Wanted,
    interest::{
        Bounds, Interest, Listing, asks_what_it_is, is_change, is_name, is_noted, is_of_decision,
        is_of_fact, is_settled, is_whole,
    },
    kin,
    lexicon::{More, more_in, without_talk},
    term::{Term, TermKind, TermSet},
    words::words as words_of,
};

mod defined;
mod files;
mod going_on;
mod kind;
mod listed;
mod of_project;
mod quoted;
mod terms;

pub(super) use going_on::{asks, stands_alone};
pub(super) use kind::Kind;

use going_on::{Pointing, only_days, only_weak};
use kind::kind_of;
use of_project::interest_of;
use terms::{all_terms, most_telling, terms_of, weak_terms};

/// How much of a question is looked at, in characters: as much as the classifier does (spec 4).
const LOOKED_AT: usize = 4_000;
/// A question, read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Question {
    pub(super) kind: Kind,
    /// What to look for, in the order of the question; at most `term::MAX_TERMS`.
    pub(super) terms: Vec<Term>,
    /// The words in which it is put to a search that takes a plain question.
    pub(super) plain: String,
    /// Where it is to be looked up.
    pub(super) interest: Interest,
    /// Which part of the history it asks for.
    pub(super) bounds: Bounds,
    /// Whose or which things are to be listed, if a list is asked for.
    pub(super) subject: String,
    /// Whether it asks what is different since when.
    pub(super) is_of_changes: bool,
    /// Whether all of what was quoted in part is asked for.
    pub(super) is_whole: bool,
    /// Whether it asks who implements or extends a type, as a use of it.
    pub(super) is_of_kin: bool,
    /// What it wants of a change log, if it asks for nothing else.
    pub(super) of_log: Option<Wanted>,
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
        let previous = previous.map(asked_in);
        let plain = said().collect::<Vec<_>>().join(" ");
        let own = match interest_of(kind, &plain) {
            Interest::Places if previous.is_none() && asks_what_it_is(&plain) => Interest::Overview,
            own => own,
        };
        let of_log = Wanted::of(&plain).filter(|wanted| kind == Kind::Lookup && wanted.fits(own));
        let (mut bounds, unbound) = match own.is_of_days(&plain) {
            true => Bounds::taken_from(&plain),
            false => (Bounds::default(), plain.clone()),
        };
        let asks_kin = own == Interest::Uses && kin::asks(&plain);
        let pointing = Pointing::of(&unbound);
        let of = |interest: Interest, mut terms: Vec<Term>| {
            // "Who calls it?" names nothing: "calls" says what is asked of it.
            terms.retain(|term| !is_said(interest, term) && !pointing.is_use(own, term));
            terms.retain(|term| !asks_kin || !kin::is_said(term));
            terms
        };
        let more = previous.and(more_in(text)).filter(|_| added.is_empty());
        let terms = match kind {
            Kind::Chat(_) | Kind::Recall(_) => Vec::new(),
            _ if more.is_some() => Vec::new(),
            Kind::Deed | Kind::Lookup if bounds.lists() => of(own, terms_of([&*unbound])),
            Kind::Deed | Kind::Lookup => of(own, terms_of(said())),
        };
        // "And last week?" asks for the same of other days.
        let is_of_past = |previous: &&str| interest_of(kind, previous).is_of_history();
        let other_days = match (kind, previous.filter(is_of_past)) {
            (Kind::Lookup, Some(_)) => only_days(&plain),
            _ => None,
        };
        let is_bare = terms.is_empty() || (pointing.perhaps && only_weak(said()));
        let goes_on = other_days.is_some()
            || is_bare
                && match own {
                    Interest::Overview
                    | Interest::Facts(_)
                    | Interest::HowTo(_)
                    | Interest::Listed(_) => false,
                    // What was decided on certain days is all of it.
                    Interest::Settled if bounds.has_days() => false,
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
                    Interest::Places => interest_of(kind, previous),
                    of_its_own => of_its_own,
                };
                // "Show me more" asks for those of the same days.
                let unbound = match interest.is_of_history() && !own.is_of_history() {
                    true => {
                        let (of_previous, unbound) = Bounds::taken_from(previous);
                        bounds = match other_days.clone() {
                            Some(days) => days.of_the_same(of_previous),
                            None => of_previous,
                        };
                        unbound
                    }
                    false => previous.to_owned(),
                };
                let mut terms = of(interest, terms_of([&*unbound]));
                let weak = weak_terms(said()).filter(|term| !is_said(interest, term));
                terms.extend(weak.filter(|_| other_days.is_none()));
                (most_telling(terms), previous.to_owned(), interest)
            }
        };
        let is_of_kin = asks_kin
            || (own == Interest::Places && interest == Interest::Uses && kin::asks(&plain));
        let is_of_changes = Asked::read(beginning(&plain)).drift.change;
        let terms = match (is_of_changes, interest) {
            (true, Interest::Places) => terms.into_iter().map(Term::not_as_place).collect(),
            _ => terms,
        };
        let subject = match own {
            Interest::Listed(_) => Listing::of(&unbound).map(|(_, subject)| subject),
            _ => None,
        };
        let mut question = Self {
            subject: subject.unwrap_or_default(),
            kind,
            terms,
            plain,
            interest,
            bounds,
            is_of_changes,
            is_whole: more == Some(More::Whole),
            is_of_kin,
            of_log,
        };
        question
            .terms
            .retain(|term| !is_of_kin || !kin::is_said(term));
        // "What implements caching?" asks for no type.
        let is_meant = |name: &str| !is_of_kin || kin::is_type(name);
        if interest == Interest::Uses && !question.used_name().is_some_and(is_meant) {
            question.interest = Interest::Places;
            question.is_of_kin = false;
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
            Interest::Facts(_) => is_of_fact(&lower),
            Interest::Settled => is_settled(&lower) || is_noted(&lower) || is_of_decision(&lower),
            Interest::Listed(_) => is_of_decision(&lower),
            Interest::Notes => is_noted(&lower),
            Interest::Places | Interest::Uses | Interest::HowTo(_) => false,
        }
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

#[cfg(test)]
mod tests;
