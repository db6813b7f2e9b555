//! Budgets: warnings and exhaustion.

use serde::{Deserialize, Serialize};

use super::{
    context::{Compacted, Compacting, CompactionFailed},
    facts,
};

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
