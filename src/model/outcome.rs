//! How a query ended (spec 1).

use serde::{Deserialize, Serialize};

/// Why a query was ended by force.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ForcedBy {
    /// Turns.
    Budget,
    /// The agent went in circles.
    Loop,
    /// Tokens.
    Tokens,
    /// Money.
    Cost,
    /// An operator said so.
    Operator,
}

impl ForcedBy {
    /// The name on the wire.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Budget => "budget",
            Self::Loop => "loop",
            Self::Tokens => "tokens",
            Self::Cost => "cost",
            Self::Operator => "operator",
        }
    }

    /// The line that stands in records for the missing rest of an answer (spec 6): behind a text, and alone.
    pub(crate) const fn marks(self) -> [&'static str; 2] {
        match self {
            Self::Budget | Self::Loop | Self::Tokens | Self::Cost => [
                "[Response truncated due to budget limit]",
                "[Unable to complete: budget limit reached]",
            ],
            Self::Operator => ["[Response stopped by operator]"; 2],
        }
    }

    /// What happened after so many turns and what can be done about it, for people.
    #[must_use]
    pub fn sentence(self, turns: u32) -> String {
        match self {
            Self::Budget => format!(
                "Stopped: the turn limit was reached at turn {turns}, before the answer was complete. \
                 Raise the limit or ask a narrower question."
            ),
            Self::Loop => "Stopped: the model kept repeating the same step. Rephrase the question or split it.".into(),
            Self::Tokens => "Stopped: the token budget is spent. Raise it to go on.".into(),
            Self::Cost => "Stopped: the cost budget is spent. Raise it to go on.".into(),
            Self::Operator => "Stopped by an operator before the answer was complete.".into(),
        }
    }
}

/// How a query ended, with what belongs to that end.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "outcome", rename_all = "snake_case")]
pub enum Outcome {
    /// With an answer.
    Answered,
    /// With an answer that has gaps.
    Partial {
        /// What is missing.
        missing: String,
        /// What the reader should bear in mind.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        caveat: Option<String>,
    },
    /// The agent found no way forward.
    Stuck {
        /// What it tried.
        attempted: Vec<String>,
        /// What stood in the way.
        blocker: String,
        /// What might help.
        #[serde(default)]
        suggestions: Vec<String>,
    },
    /// A limit, a loop or an operator ended it; what there was is the answer.
    Forced {
        /// Which.
        by: ForcedBy,
    },
    /// The agent had difficulty twice; a person should rephrase or split the question.
    Escalated {
        /// What the fallback saw.
        why: String,
    },
    /// Somebody took it back.
    Cancelled,
    /// It could not be carried out.
    Failed {
        /// Stable code, such as `empty_answer`, `context` or `budget_violated`.
        code: String,
        /// What happened, for people.
        detail: String,
    },
}

impl Outcome {
    /// The word of spec 1.
    #[must_use]
    pub const fn name(&self) -> &'static str {
        match self {
            Self::Answered => "answered",
            Self::Partial { .. } => "partial",
            Self::Stuck { .. } => "stuck",
            Self::Forced { .. } => "forced",
            Self::Escalated { .. } => "escalated",
            Self::Cancelled => "cancelled",
            Self::Failed { .. } => "failed",
        }
    }

    /// Why, where there is a why: the force, the code, what is missing, what blocked.
    #[must_use]
    pub fn reason(&self) -> Option<&str> {
        match self {
            Self::Answered | Self::Cancelled => None,
            Self::Partial { missing, .. } => Some(missing),
            Self::Stuck { blocker, .. } => Some(blocker),
            Self::Forced { by } => Some(by.as_str()),
            Self::Escalated { why } => Some(why),
            Self::Failed { code, .. } => Some(code),
        }
    }

    /// An answer as people read it: after a forced end, [`ForcedBy::sentence`] replaces the bracketed line that the
    /// record has.
    #[must_use]
    pub fn readable(&self, answer: &str, turns: u32) -> String {
        let Self::Forced { by } = *self else {
            return answer.to_owned();
        };
        let mut marks = by.marks().into_iter();
        let text = marks.find_map(|mark| answer.strip_suffix(mark));
        let (text, sentence) = (text.unwrap_or(answer), by.sentence(turns));
        match text.strip_suffix("\n\n").unwrap_or(text) {
            "" => sentence,
            text => format!("{text}\n\n{sentence}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_forced_answer_ends_with_a_sentence_for_people() {
        for (by, sentence) in [
            (
                ForcedBy::Budget,
                "Stopped: the turn limit was reached at turn 30, before the answer was complete. Raise the limit or ask a narrower question.",
            ),
            (
                ForcedBy::Loop,
                "Stopped: the model kept repeating the same step. Rephrase the question or split it.",
            ),
            (
                ForcedBy::Tokens,
                "Stopped: the token budget is spent. Raise it to go on.",
            ),
            (
                ForcedBy::Cost,
                "Stopped: the cost budget is spent. Raise it to go on.",
            ),
            (
                ForcedBy::Operator,
                "Stopped by an operator before the answer was complete.",
            ),
        ] {
            let outcome = Outcome::Forced { by };
            let [behind, alone] = by.marks();
            for (answer, readable) in [
                (alone.to_owned(), sentence.to_owned()),
                (format!("One.\n\n{behind}"), format!("One.\n\n{sentence}")),
                // What the model itself wrote stays, also blank lines.
                (
                    format!("{behind}\n\n\n\n{behind}"),
                    format!("{behind}\n\n\n\n{sentence}"),
                ),
            ] {
                assert_eq!(outcome.readable(&answer, 30), readable, "{answer:?}");
            }
        }
    }

    #[test]
    fn an_answer_that_was_not_forced_may_end_with_any_text() {
        for by in [ForcedBy::Loop, ForcedBy::Operator] {
            for mark in by.marks() {
                let answer = format!("Forced answers end with:\n\n{mark}");
                for outcome in [Outcome::Answered, Outcome::Cancelled] {
                    assert_eq!(outcome.readable(&answer, 3), answer);
                }
            }
        }
    }
}
