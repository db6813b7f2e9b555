//! What decides what a query is.

use std::fmt;

use crate::model::QueryType;
use crate::query::weights::Opinion;

/// What decided what a query is (spec 4, T008).
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Basis {
    /// There are only blanks.
    Blank,
    /// It is short, and nothing speaks for another type than small talk.
    Short,
    /// It follows up on what was said before.
    FollowUp,
    /// The learned weights.
    Weights,
    /// The lexicon alone: a single word that it knows, or there are no weights.
    Lexicon,
    /// Nothing is known of it: a guess.
    Nothing,
}

impl Basis {
    /// A word for it, as tables have it.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Blank => "blank",
            Self::Short => "short",
            Self::FollowUp => "follow-up",
            Self::Weights => "weights",
            Self::Lexicon => "lexicon",
            Self::Nothing => "nothing known",
        }
    }
}

/// As people read it, behind "by".
impl fmt::Display for Basis {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Blank => "its emptiness",
            Self::Short => "its shortness",
            Self::FollowUp => "following up on what was said",
            Self::Weights => "the weights",
            Self::Lexicon => "the lexicon alone",
            Self::Nothing => "a guess: nothing of it is known",
        })
    }
}

/// A decision, before anybody is told of it.
#[derive(Debug, Clone, Copy)]
pub(super) struct Decided {
    pub(super) basis: Basis,
    pub(super) query_type: QueryType,
    pub(super) confidence: f64,
    /// What the weights say, where they were asked.
    pub(super) opinion: Option<Opinion>,
}

impl Decided {
    /// Small talk, with the confidence that such a basis has. The guess is below 0.5 by T009.
    pub(super) const fn by(basis: Basis, opinion: Option<Opinion>) -> Self {
        let confidence = match basis {
            Basis::Blank => 0.5,
            Basis::Short => 0.8,
            Basis::FollowUp => 0.7,
            Basis::Weights | Basis::Lexicon | Basis::Nothing => 0.4,
        };
        Self {
            basis,
            query_type: QueryType::Conversational,
            confidence,
            opinion,
        }
    }
}
