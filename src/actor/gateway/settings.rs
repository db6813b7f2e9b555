//! What a provider may be asked of, and how long it is waited for (spec 12).

use std::time::Duration;

/// What one provider may be asked of, and for how long.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct GatewaySettings {
    /// Calls at a time.
    pub concurrency: usize,
    /// Calls that may wait.
    pub queue: usize,
    /// How long one may wait.
    pub queue_deadline: Duration,
    /// Calls in a minute; the provider's own word lowers it, and stands where this says nothing.
    pub requests_per_minute: Option<u64>,
    /// Tokens in a minute, sent and received; as for `requests_per_minute`.
    pub tokens_per_minute: Option<u64>,
    /// From the start of a call until the first piece of its reply, connecting included.
    pub first_token: Duration,
    /// Between signs of life.
    pub idle: Duration,
    /// For the whole reply.
    pub total: Duration,
    /// When it gets no calls for a while.
    pub breaker: BreakerSettings,
}

impl Default for GatewaySettings {
    fn default() -> Self {
        Self {
            concurrency: 256,
            queue: 10_000,
            queue_deadline: Duration::from_secs(600),
            requests_per_minute: None,
            tokens_per_minute: None,
            first_token: Duration::from_secs(60),
            idle: Duration::from_secs(60),
            total: Duration::from_secs(600),
            breaker: BreakerSettings::default(),
        }
    }
}

/// When the circuit of a provider or a model opens, and for how long.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct BreakerSettings {
    /// Failures in a row that open the circuit.
    pub failures: u32,
    /// Time until the first probe; doubles with each probe that fails.
    pub cool_down: Duration,
    /// Longest time between two probes.
    pub cool_down_cap: Duration,
}

impl Default for BreakerSettings {
    fn default() -> Self {
        Self {
            failures: 3,
            cool_down: Duration::from_millis(500),
            cool_down_cap: Duration::from_secs(10),
        }
    }
}
