//! Questions that go on from one before: which do, and which can be gone on from.

use super::{
    super::{
        interest::{Interest, is_use},
        lexicon::{is_pronoun, says_it},
        term::{Term, TermKind},
        words::words,
    },
    Asked, all_terms, asked_in, beginning, kind_of, terms_of,
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
        let surely = says_it(beginning(text), language);
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

/// Whether a text names something by itself, so that what follows may be about that.
pub(in super::super) fn stands_alone(text: &str) -> bool {
    let asked = asked_in(text);
    let pointing = Pointing::of(asked);
    let terms = terms_of([asked]);
    let is_bare = pointing.perhaps && only_weak([asked]);
    !kind_of(text).is_of_talk() && !is_bare && !terms.is_empty() && !pointing.adds(&terms)
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
