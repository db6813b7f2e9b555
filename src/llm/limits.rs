//! Rate limits that a provider announces in its response headers.

use std::time::Duration;

/// The limits of one response. `None` means not announced.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct RateLimits {
    /// Limit on calls.
    pub requests: Allowance,
    /// Limit on tokens, sent and received together or the tighter of the two.
    pub tokens: Allowance,
}

/// A limit, the rest of it, and its reset.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Allowance {
    /// Amount per minute, where the provider counts by minutes.
    pub limit: Option<u64>,
    /// Amount left.
    pub remaining: Option<u64>,
    /// Time until the full amount is available.
    pub reset: Option<Duration>,
}
