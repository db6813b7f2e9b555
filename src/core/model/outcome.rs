//! Outcomes of queries.

use serde::{Deserialize, Serialize};

use super::fault::FaultCode;

words! {
    /// The cause of a forced end.
    pub enum ForcedBy {
        /// The turn budget.
        Budget = "budget",
        /// A loop.
        Loop = "loop",
        /// The token budget.
        Tokens = "tokens",
        /// The cost budget.
        Cost = "cost",
        /// An operator.
        Operator = "operator",
    }
}

impl ForcedBy {
    /// Marks of an incomplete answer: after a text, and without one.
    #[doc(hidden)]
    pub const fn marks(self) -> [&'static str; 2] {
        match self {
            Self::Budget => [
                "[Response truncated due to budget limit]",
                "[Unable to complete: budget limit reached]",
            ],
            Self::Loop => [
                "[Response truncated due to a loop]",
                "[Unable to complete: loop detected]",
            ],
            Self::Tokens => [
                "[Response truncated due to token limit]",
                "[Unable to complete: token limit reached]",
            ],
            Self::Cost => [
                "[Response truncated due to cost limit]",
                "[Unable to complete: cost limit reached]",
            ],
            Self::Operator => ["[Response stopped by operator]"; 2],
        }
    }

    /// An explanation for people.
    pub fn sentence(self, turns: u32) -> String {
        match self {
            Self::Budget => format!(
                "Stopped: the turn limit was reached at turn {turns}, before the answer was complete. \
                 Raise the limit or ask a narrower question."
            ),
            Self::Loop => "Stopped: the model kept repeating the same step. Rephrase the question or split it.".into(),
            Self::Tokens => "Stopped: the token budget is spent. Raise it to continue.".into(),
            Self::Cost => "Stopped: the cost budget is spent. Raise it to continue.".into(),
            Self::Operator => "Stopped by an operator before the answer was complete.".into(),
        }
    }
}

/// The outcome of a query.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "outcome", rename_all = "snake_case")]
pub enum Outcome {
    /// An answer.
    Answered,
    /// An answer with gaps.
    Partial {
        /// The gaps.
        missing: String,
        /// A caveat for the reader.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        caveat: Option<String>,
    },
    /// The agent could not continue.
    Stuck {
        /// The attempts.
        attempted: Vec<String>,
        /// The obstacle.
        blocker: String,
        /// Suggestions.
        #[serde(default)]
        suggestions: Vec<String>,
    },
    /// Forced to end; the answer is incomplete.
    Forced {
        /// The cause.
        by: ForcedBy,
    },
    /// The agent had difficulty twice; the question should be rephrased.
    Escalated {
        /// The fallback's reason.
        why: String,
    },
    /// The query was cancelled.
    Cancelled,
    /// The query failed.
    Failed {
        /// What happened, such as [`FaultCode::Context`].
        code: FaultCode,
        /// Explanation for people.
        detail: String,
    },
}

impl Outcome {
    /// The name on the wire.
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

    /// The cause, code, gap or obstacle.
    pub fn reason(&self) -> Option<&str> {
        match self {
            Self::Answered | Self::Cancelled => None,
            Self::Partial { missing, .. } => Some(missing),
            Self::Stuck { blocker, .. } => Some(blocker),
            Self::Forced { by } => Some(by.as_str()),
            Self::Escalated { why } => Some(why),
            Self::Failed { code, .. } => Some(code.as_str()),
        }
    }

    /// The answer for display: [`ForcedBy::sentence`] replaces the mark of a forced end.
    pub fn readable(&self, answer: &str, turns: u32) -> String {
        let Self::Forced { by } = *self else {
            return answer.to_owned();
        };
        // Earlier versions had those of the budget for all but operators.
        let mut marks = by.marks().into_iter().chain(ForcedBy::Budget.marks());
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
    fn forced_answer_ends_with_an_explanation() {
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
                "Stopped: the token budget is spent. Raise it to continue.",
            ),
            (
                ForcedBy::Cost,
                "Stopped: the cost budget is spent. Raise it to continue.",
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
                // Of an earlier version.
                (
                    format!("One.\n\n{}", ForcedBy::Budget.marks()[0]),
                    format!("One.\n\n{sentence}"),
                ),
                // Text of the model stays, including blank lines.
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
    fn unforced_answer_is_left_unchanged() {
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
