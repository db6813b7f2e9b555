//! What a question wants to hear about; of the project as such only if it names nothing in it. Pure.

use super::{
    super::{
        interest::{Bounds, Change, Interest, is_of_chore, is_of_fact},
        term::{Term, TermKind},
    },
    Kind, beginning, quoted, terms_of,
};

/// What a question of this kind wants to hear about.
pub(super) fn interest_of(kind: Kind, text: &str) -> Interest {
    let (_, said) = quoted::taken_from(beginning(text));
    let interest = match kind {
        Kind::Lookup => match Interest::of(&said) {
            // A hash may be quoted.
            Interest::Places if names_commit(text) => Interest::History(Change::Latest),
            own => own,
        },
        Kind::Deed => Interest::of_order(text),
        Kind::Chat(_) | Kind::Recall(_) => Interest::Places,
    };
    match interest.is_of_project() && !is_of_whole(interest, &terms_of([text])) {
        true if kind == Kind::Deed => Interest::Places,
        true => Interest::beside_facts(&said),
        false => interest,
    }
}

fn names_commit(text: &str) -> bool {
    let (bounds, _) = Bounds::taken_from(beginning(text));
    bounds.commit.is_some()
}

/// Whether the words of a question for something of the project say no more than that, and perhaps how the
/// project is called.
fn is_of_whole(interest: Interest, terms: &[Term]) -> bool {
    let is_said = |word: &str| match interest {
        Interest::HowTo(_) => is_of_chore(word),
        _ => is_of_fact(word),
    };
    let says_more = |term: &&Term| {
        let is_plain = term.kind == TermKind::Word;
        term.kind > TermKind::Word || (is_plain && !is_said(&term.shown.to_lowercase()))
    };
    let mut others = terms.iter().filter(says_more);
    let may_be_project = |term: &Term| {
        let is_word = matches!(term.kind, TermKind::Word | TermKind::Name);
        is_word && matches!(interest, Interest::Facts(_))
    };
    others.next().is_none_or(may_be_project) && others.next().is_none()
}
