//! Questions that go on from one before: which do, and which can be gone on from.

use super::{
    super::{
        changelog::{Wanted, names_only_versions},
        interest::{Bounds, Change, Interest, is_use},
        lexicon::{is_pronoun, more_in, says_it},
        term::{Term, TermKind},
        words::words,
    },
    Asked, all_terms, asked_in, beginning, is_said, kind_of, terms_of,
};

/// So few words of its own a question has that goes on about "it".
const FEW: usize = 2;

/// What a question says of the one before it.
#[derive(Debug, Clone, Copy)]
pub(super) struct Pointing {
    /// It has a word that may stand for something.
    pub(super) perhaps: bool,
    /// It stands for what was talked about before.
    pub(super) surely: bool,
}

impl Pointing {
    pub(super) fn of(text: &str) -> Self {
        let language = Asked::read(beginning(text)).language;
        let surely = says_it(beginning(text), language) || goes_on(text);
        Self {
            perhaps: surely || words(&text.to_lowercase()).any(is_pronoun),
            surely,
        }
    }

    /// Whether a question in these terms is about what was asked before too: "and where is it tested?" has
    /// a word of its own.
    pub(super) fn adds(self, terms: &[Term]) -> bool {
        let are_plain = terms.iter().all(|term| term.kind <= TermKind::Word);
        self.surely && terms.len() <= FEW && are_plain
    }

    /// Whether the word says no more than that "it" is used.
    pub(super) fn is_use(self, interest: Interest, term: &Term) -> bool {
        self.surely
            && interest == Interest::Uses
            && term.kind <= TermKind::Word
            && is_use(&term.shown.to_lowercase())
    }
}

/// Whether a text begins as what only says where to look, or what of it: "and in the tests?".
fn goes_on(text: &str) -> bool {
    let said: Vec<String> = words(&text.to_lowercase())
        .filter(|word| !word.is_empty())
        .map(str::to_owned)
        .collect();
    let said = format!("{} ", said.join(" "));
    let mut phrases = GOING_ON.split(" | ");
    phrases.any(|phrase| {
        said.strip_prefix(phrase)
            .is_some_and(|rest| rest.starts_with(' '))
    })
}

const GOING_ON: &str = "\
    and in | and for | and on | and with | and where in | what about in | only in | just in | give me an example | show me an example | any \
    examples | an example | example | und in | und im | und bei | und für | nur in | nur im | gib mir ein beispiel | ein beispiel | et \
    dans | et pour | un exemple | y en | y para | un ejemplo";

/// Whether a text names something by itself, so that what follows may be about that.
pub(in super::super) fn stands_alone(text: &str) -> bool {
    let asked = asked_in(text);
    let pointing = Pointing::of(asked);
    let terms = terms_of([asked]);
    let is_bare = (pointing.perhaps && only_weak([asked]))
        || only_days(asked).is_some()
        || names_only_versions(asked);
    if Wanted::of(asked) == Some(Wanted::Latest) {
        return true;
    }
    !kind_of(text).is_of_talk()
        && more_in(asked).is_none()
        && !is_bare
        && !terms.is_empty()
        && !pointing.adds(&terms)
}

/// The days of a question that says nothing besides: "and in February 2024?".
pub(super) fn only_days(text: &str) -> Option<Bounds> {
    let (bounds, rest) = Bounds::taken_from(text);
    let only = Interest::History(Change::Latest);
    let is_bare = || all_terms([&*rest]).iter().all(|term| is_said(only, term));
    let stands_alone = || Interest::of(text) != Interest::Places;
    (bounds.has_days() && !stands_alone() && is_bare()).then_some(bounds)
}

/// Whether a text asks for something, and not for what was said before.
pub(in super::super) fn asks(text: &str) -> bool {
    !kind_of(text).is_of_talk()
}

/// Whether there are terms, and all of them weak.
pub(super) fn only_weak<'a>(texts: impl IntoIterator<Item = &'a str>) -> bool {
    let terms = all_terms(texts);
    !terms.is_empty() && terms.iter().all(|term| term.kind == TermKind::Weak)
}
