//! What is to be done with what was said: small talk, a deed, a look back, or a look-up.

use super::{
    super::{
        interest::Bounds,
        lexicon::{Chat, Recall, chat_in, deed_in, is_prose, recall_in},
    },
    asked_in, beginning,
};

/// What is to be done.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in super::super) enum Kind {
    /// Nothing to look up.
    Chat(Chat),
    /// What was said before is asked for.
    Recall(Recall),
    /// Something is to be written or changed.
    Deed,
    /// Something is to be found.
    Lookup,
}

impl Kind {
    /// Whether it is about the conversation alone, so that there is nothing to look up.
    pub(in super::super) const fn is_of_talk(self) -> bool {
        match self {
            Self::Chat(_) | Self::Recall(_) => true,
            Self::Deed | Self::Lookup => false,
        }
    }
}

pub(super) fn kind_of(text: &str) -> Kind {
    let text = beginning(text);
    let lower = |text: &str| text.trim().to_lowercase().replace('’', "'");
    let whole = lower(text);
    // "Are you sure?" has nothing but words of small talk.
    if let Some(recall) = recall_in(&whole) {
        return Kind::Recall(recall);
    }
    if let Some(chat) = chat_in(&whole) {
        return Kind::Chat(chat);
    }
    let asked = lower(asked_in(text));
    let recall = || recall_in(&asked).map(Kind::Recall);
    // "Compose a haiku" is no deed of a programmer, and nothing to be found either.
    let is_deed = || {
        [&whole, &asked]
            .iter()
            .any(|text| deed_in(text).is_some() || is_prose(text))
    };
    // What is no order to commit something: "commit 1a9e23a".
    let names_commit = || {
        let (bounds, rest) = Bounds::taken_from(&asked);
        bounds.commit.is_some() && rest == "commit"
    };
    let deed = || (is_deed() && !names_commit()).then_some(Kind::Deed);
    recall().or_else(deed).unwrap_or(Kind::Lookup)
}
