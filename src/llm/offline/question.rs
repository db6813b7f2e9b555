//! What is asked: small talk, a deed, a look back, or something to look up, and by which terms.
//!
//! From the text alone, as a model would see it; no look at how the query was classified. Pure.

use std::borrow::Cow;

use crate::words::{self, Asked};

use super::{
    changelog::Wanted,
    interest::{
        Bounds, Interest, Listing, is_change, is_name, is_noted, is_of_decision, is_of_fact,
        is_of_mention, is_of_tree, is_settled, is_whole,
    },
    lexicon::without_talk,
    term::{Term, TermKind, TermSet},
    words::words as words_of,
};

mod aspect;
mod defined;
mod files;
mod further;
mod going_on;
mod kind;
mod listed;
mod named;
mod of_project;
mod presence;
mod qualified;
mod quoted;
mod reading;
mod shown;
mod terms;

pub(super) use aspect::Aspect;
pub(super) use defined::Sought;
pub(super) use going_on::{asks, stands_alone};
pub(super) use kind::Kind;
pub(super) use named::{has_name, is_name as is_that_name};
pub(super) use presence::Presence;
pub(super) use qualified::Qualified;
pub(super) use shown::Shown;

use kind::kind_of;
use of_project::interest_of;
use terms::{all_terms, terms_of};

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
    /// Whether what comes behind what was shown is asked for.
    pub(super) is_further: bool,
    /// Whether all of what was quoted in part is asked for.
    pub(super) is_whole: bool,
    /// Whether it asks how that works, which only quotes can tell.
    pub(super) is_explained: bool,
    /// Whether it asks who implements or extends a type, as a use of it.
    pub(super) is_of_kin: bool,
    /// What of a name it asks for, if that is no place of its own.
    pub(super) aspect: Option<Aspect>,
    /// What it took for an author who made no commit, and takes for a word now.
    pub(super) not_author: Option<String>,
    /// What it took for the hash of a commit that is not here, and takes for a word now.
    pub(super) not_commit: Option<String>,
    /// The hashes of the commits that were told before, behind which it goes on.
    pub(super) told_before: Vec<String>,
    /// What it wants of a change log, if it asks for nothing else.
    pub(super) of_log: Option<Wanted>,
    /// The name that it is about and that says where it lies, if it is about nothing else.
    pub(super) qualified: Option<Qualified>,
    /// The file of which it asks whether it is there, if it asks for nothing else.
    pub(super) presence: Option<Presence>,
    /// What it wants to see as it is, if it asks for nothing else.
    pub(super) shown: Option<Shown>,
}

impl Question {
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

    /// The same with what it is said to lie in, if it is.
    pub(super) fn used_of(&self) -> Option<Qualified> {
        let is_of_path = self.interest == Interest::Uses && !self.is_of_kin;
        Qualified::used(&self.plain).filter(|_| is_of_path)
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
    let (_, mut parts) = qualified::paths(text).next()?;
    parts.pop()
}

/// Whether a word only says what the interest says already.
fn is_said(interest: Interest, term: &Term) -> bool {
    let lower = term.shown.to_lowercase();
    let is_fact = matches!(interest, Interest::Facts(_)) && is_of_fact(&lower);
    // Which are spelt as names are: "MSRV", "Node.js".
    let is_named_fact = is_fact && term.kind == TermKind::Name;
    is_named_fact
        || matches!(term.kind, TermKind::Weak | TermKind::Word)
            && !is_name(&term.shown)
            && match interest {
                Interest::History(_) => is_change(&lower),
                Interest::Overview => is_whole(&lower) || is_of_tree(&lower),
                Interest::Facts(_) => is_of_fact(&lower),
                Interest::Settled => {
                    is_settled(&lower) || is_noted(&lower) || is_of_decision(&lower)
                }
                Interest::Listed(Listing::Mentioning) => is_of_mention(&lower),
                Interest::Listed(_) => is_of_decision(&lower),
                Interest::Notes => is_noted(&lower),
                Interest::Places | Interest::Uses | Interest::HowTo(_) => false,
            }
}

/// What goes on from a question for something else of the kind.
const ALSO: &[&str] = &[
    "and ",
    "or ",
    "what about ",
    "how about ",
    "und ",
    "oder ",
    "et ",
    "ou ",
    "y ",
    "o ",
];

/// What stands behind such words, of a text that begins with them: "and a Jenkinsfile?".
fn also(text: &str) -> Option<&str> {
    ALSO.iter().find_map(|also| text.strip_prefix(also))
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
