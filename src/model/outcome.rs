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
}
