//! Questions about one name and nothing else: "where is Wakeup defined?", "what is Chunk?", "`max_jobs`". Pure.

use super::{
    super::{lexicon::holds, uses::has_word},
    Asked, Interest, Question, Term, TermKind, TermSet, beginning,
    defined::{DEFINED, WHERE, asks},
    words_of,
};
use crate::words::Language;

impl Question {
    /// The name that it is about, as it is spelt: what is only like it is something else.
    pub(in super::super) fn very_name(&self) -> Option<&str> {
        let is_plain = self.of_log.is_none()
            && self.presence.is_none()
            && self.qualified.is_none()
            && !self.is_of_changes
            && !self.is_of_kin;
        match self.interest {
            Interest::Uses if is_plain => self.used_name(),
            Interest::Places if is_plain => only_name(&self.plain, &self.terms),
            _ => None,
        }
    }
}

/// Whether a line has a name as it was asked for; a plain word in small letters may be spelt with capitals there.
pub(in super::super) fn has_name(line: &str, name: &str) -> bool {
    match is_plain(name) {
        true => has_word(&line.to_lowercase(), name),
        false => has_word(line, name),
    }
}

/// Whether something that is called so has the name that was asked for.
pub(in super::super) fn is_name(called: &str, name: &str) -> bool {
    called == name || (is_plain(name) && called.eq_ignore_ascii_case(name))
}

fn is_plain(name: &str) -> bool {
    name.chars().all(char::is_lowercase)
}

/// "Total" in "where is total defined?" is a name, and none in "where is the total computed?".
pub(super) fn as_names(plain: &str, interest: Interest, terms: &mut [Term]) {
    let needed = TermSet::needed(terms);
    let Some(term) = terms
        .iter_mut()
        .enumerate()
        .find_map(|(at, term)| needed.has(at).then_some(term))
    else {
        return;
    };
    let is_word = term.kind == TermKind::Word && is_plain(&term.shown);
    let is_sought = interest == Interest::Places && needed.len() == 1 && is_word;
    if is_sought && asks(plain, WHERE) && asks(plain, TOLD) && stands_as_name(plain, &term.shown) {
        *term = Term::new(TermKind::Name, &term.shown);
    }
}

/// The one name that a question has, if it is asked for as a name.
pub(super) fn only_name<'a>(plain: &str, terms: &'a [Term]) -> Option<&'a str> {
    let needed = TermSet::needed(terms);
    let term = needed.of(terms).next().filter(|_| needed.len() == 1)?;
    let is_spelt = term
        .shown
        .starts_with(|c: char| c.is_alphabetic() || c == '_');
    let is_meant = match term.kind {
        TermKind::Name => true,
        TermKind::Word => {
            let is_defined = asks(plain, WHERE) && asks(plain, DEFINED);
            // In German all nouns have a capital.
            let may_be_noun = || is_german(plain) && !stands_as_name(plain, &term.shown);
            (is_defined && term.shown.starts_with(char::is_uppercase) && !may_be_noun())
                || (term.is_capital() && asks_what_is(plain) && !is_german(plain))
        }
        TermKind::Weak | TermKind::Path | TermKind::Phrase => false,
    };
    (is_spelt && is_meant).then_some(&*term.shown)
}

/// Whether no article stands before a word, which makes a thing of it.
fn stands_as_name(plain: &str, word: &str) -> bool {
    let words: Vec<&str> = words_of(plain).filter(|one| !one.is_empty()).collect();
    let at = words.iter().position(|one| *one == word);
    let before = at.and_then(|at| words.get(at.checked_sub(1)?));
    before.is_none_or(|before| !holds(ARTICLES, &before.to_lowercase()))
}

/// Whether it asks what something is or does: "what is Chunk?"
pub(super) fn asks_what_is(plain: &str) -> bool {
    let lower = plain.to_lowercase().replace('’', "'");
    let bare = lower.trim_start();
    WHAT_IS.split(" | ").any(|start| {
        let rest = bare.strip_prefix(start);
        rest.is_some_and(|rest| rest.starts_with([' ', '`', '"']))
    })
}

pub(super) fn is_german(plain: &str) -> bool {
    Asked::read(beginning(plain)).language == Language::German
}

const WHAT_IS: &str = "\
    what is | what's | was ist | was macht | was tut | what does | what are | qu'est-ce que | qu'est-ce qu'un | qu'est-ce qu'une | c'est quoi | que fait | \
    qué es | que es | qué hace";
const ARTICLES: &str = "\
    the a an our your my its this that these those all any each der die das den dem des ein eine einen einer unser \
    unsere le la les l un une des notre el los las una unos nuestro nuestra";
/// What a name is, where a thing may also be implemented.
const TOLD: &str = "\
    defined declared definition declaration definiert deklariert définition défini définie déclaré déclarée define \
    definido definida declara declarado declarada definición";
