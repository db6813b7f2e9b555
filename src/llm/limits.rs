//! What a provider says of its own limits, in its answers' headers.

use std::time::Duration;

/// Limits as told with one answer. What was not told is `None`.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct RateLimits {
    /// Calls.
    pub requests: Allowance,
    /// Tokens, sent and received together or the tighter of the two.
    pub tokens: Allowance,
}

/// One limit: how much in a window, how much is left of it, when it is whole again.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Allowance {
    /// In a minute, where the provider counts by minutes.
    pub limit: Option<u64>,
    /// Left now.
    pub remaining: Option<u64>,
    /// From now until all of it is there again.
    pub reset: Option<Duration>,
}
