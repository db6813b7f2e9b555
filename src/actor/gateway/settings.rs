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
    /// When it is left alone for a while.
    pub breaker: BreakerSettings,
    /// How many calls may be repetitions of failed ones.
    pub retries: RetryShare,
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
            retries: RetryShare::default(),
        }
    }
}

/// When a provider or a model is left alone for a while.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct BreakerSettings {
    /// So many failures, if they are at least half of all ends, ...
    pub failures: u32,
    /// ... within this time open the circuit.
    pub window: Duration,
    /// For this long; doubles each time that the probe after it fails ...
    pub cool_down: Duration,
    /// ... up to this.
    pub cool_down_cap: Duration,
}

impl Default for BreakerSettings {
    fn default() -> Self {
        Self {
            failures: 5,
            window: Duration::from_secs(30),
            cool_down: Duration::from_secs(5),
            cool_down_cap: Duration::from_secs(120),
        }
    }
}

/// How many calls in a minute may be repetitions of failed ones.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RetryShare {
    /// In a hundred first tries.
    pub percent: u32,
    /// On top of it, so that a few calls may be repeated too.
    pub reserve: u32,
}

impl Default for RetryShare {
    /// 20 % of calls (spec 12), and ten.
    fn default() -> Self {
        Self {
            percent: 20,
            reserve: 10,
        }
    }
}
