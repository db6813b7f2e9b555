//! Budgets: warnings, exhaustion, and the compaction of a conversation.

use serde::{Deserialize, Serialize};

use super::{facts, turn::TurnRestartCause};
use crate::model::{fault::Fault, id::Attempt, time::Timestamp, usage::Usage};

/// `budget.iteration.warning`
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct IterationWarning {
    /// Turns completed.
    pub turn: u32,
    /// Turns allowed.
    pub max_turns: u32,
    /// Used share in percent.
    pub percentage: f64,
    /// Turns left.
    pub remaining: u32,
}

/// `budget.iteration.exceeded`
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct IterationExceeded {
    /// Turns completed.
    pub turn: u32,
    /// Turns allowed.
    pub max_turns: u32,
    /// Used share in percent.
    pub percentage: f64,
    /// Always true.
    pub forced: bool,
}

/// A budget of tokens, billionths of a dollar, or context.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct AmountBudget {
    /// Used.
    pub used: u64,
    /// Allowed.
    pub limit: u64,
}

/// The messages that a summary replaces.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum CompactedPart {
    /// Before the running query.
    History,
    /// Earlier turns of the running query.
    Query,
}

/// A range of messages, as of the start of a compaction.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct MessageRange {
    /// The first, counted from 0.
    pub from: usize,
    /// The one after the last.
    pub to: usize,
}

impl MessageRange {
    /// The length.
    pub const fn len(self) -> usize {
        self.to.saturating_sub(self.from)
    }

    /// Whether it is empty.
    pub const fn is_empty(self) -> bool {
        self.len() == 0
    }
}

/// `budget.context.compacting`: a model is called for a summary.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Compacting {
    /// Number of the compaction, from 1.
    pub number: u32,
    /// The attempt, counted over all compactions of the query.
    pub attempt: Attempt,
    /// The model, as `provider/model`.
    pub model: String,
    /// The part.
    pub part: CompactedPart,
    /// Its messages.
    pub messages: MessageRange,
    /// Estimated use of the context window; if that is unknown, the limit is the size that did not
    /// fit.
    pub before: AmountBudget,
    /// Guidance of the next turn.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub guidance: Vec<String>,
    /// The end of all attempts at this compaction; `None` in a record of an earlier version.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub until: Option<Timestamp>,
    /// The attempt of the running turn that did not fit.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub turn_attempt: Option<Attempt>,
    /// The cause of another attempt.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub again: Option<TurnRestartCause>,
}

/// `budget.context.compacted`: a summary or a note replaces earlier messages.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Compacted {
    /// Number of the compaction, from 1.
    pub number: u32,
    /// The attempt.
    pub attempt: Attempt,
    /// The model that replied, or the last one that failed.
    pub model: String,
    /// The part.
    pub part: CompactedPart,
    /// The messages that are replaced.
    pub messages: MessageRange,
    /// The message in their place.
    pub summary: String,
    /// Why there is no summary: the messages are the oldest of the part, and a note replaces them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cut: Option<Fault>,
    /// Its usage.
    pub usage: Usage,
    /// Estimated tokens of the next call before.
    pub before: u64,
    /// Estimated tokens of the next call after.
    pub after: u64,
}

/// `budget.context.compaction_failed`: the turn begins without a summary, because it fits.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct CompactionFailed {
    /// Number of the compaction, from 1.
    pub number: u32,
    /// The last attempt.
    pub attempt: Attempt,
    /// The fault.
    pub fault: Fault,
    /// Usage of that attempt.
    #[serde(default)]
    pub usage: Usage,
}

facts! {
    /// `budget.*`
    BudgetFact {
        /// See [`IterationWarning`].
        IterationWarning(IterationWarning) = "budget.iteration.warning",
        /// See [`IterationExceeded`].
        IterationExceeded(IterationExceeded) = "budget.iteration.exceeded",
        /// Tokens are at the warning threshold.
        TokensWarning(AmountBudget) = "budget.tokens.warning",
        /// Tokens are spent.
        TokensExceeded(AmountBudget) = "budget.tokens.exceeded",
        /// Money is at the warning threshold.
        CostWarning(AmountBudget) = "budget.cost.warning",
        /// Money is spent.
        CostExceeded(AmountBudget) = "budget.cost.exceeded",
        /// The context window is at the warning threshold.
        ContextWarning(AmountBudget) = "budget.context.warning",
        /// The conversation does not fit the model.
        ContextExceeded(AmountBudget) = "budget.context.exceeded",
        /// See [`Compacting`].
        ContextCompacting(Compacting) = "budget.context.compacting",
        /// See [`Compacted`].
        ContextCompacted(Compacted) = "budget.context.compacted",
        /// See [`CompactionFailed`].
        ContextCompactionFailed(CompactionFailed) = "budget.context.compaction_failed",
    }
}
