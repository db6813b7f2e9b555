//! The budgets of one query, as values that are recorded with it (spec 6).

use serde::{Deserialize, Serialize};

use super::usage::NanoUsd;

/// What a query may use. Recorded when it is accepted, so that a restart under another
/// configuration does not change it; an operator can raise it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Limits {
    /// Most turns, 1–100.
    pub max_turns: u32,
    /// Most tokens, sent and received; none means unlimited.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_tokens: Option<u64>,
    /// Most money; none means unlimited.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_cost: Option<NanoUsd>,
}

impl Limits {
    /// Turns only: nothing else is limited.
    #[must_use]
    pub const fn turns(max_turns: u32) -> Self {
        Self { max_turns, max_tokens: None, max_cost: None }
    }
}

impl Default for Limits {
    /// 30 turns (spec 6).
    fn default() -> Self {
        Self::turns(30)
    }
}
