//! Budgets of a query.

use serde::{Deserialize, Serialize};

use super::usage::NanoUsd;

/// Budgets, recorded when the query is accepted, so that a later configuration does not change
/// them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "server", derive(utoipa::ToSchema))]
#[serde(deny_unknown_fields)]
pub struct Limits {
    /// Maximum number of turns, 1–100.
    #[cfg_attr(feature = "server", schema(minimum = 1, maximum = 100))]
    pub max_turns: u32,
    /// Maximum tokens, sent and received; unlimited if omitted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "server", schema(minimum = 1))]
    pub max_tokens: Option<u64>,
    /// Maximum cost, in billionths of a US dollar, at least 1; unlimited if omitted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "server", schema(value_type = Option<u64>, minimum = 1))]
    pub max_cost: Option<NanoUsd>,
}

impl Limits {
    /// Limits the turns only.
    #[must_use]
    pub const fn turns(max_turns: u32) -> Self {
        Self {
            max_turns,
            max_tokens: None,
            max_cost: None,
        }
    }
}

impl Default for Limits {
    /// 30 turns.
    fn default() -> Self {
        Self::turns(30)
    }
}
