//! Settings of a system and of its gateways.

use std::{collections::BTreeMap, time::Duration};

use super::mailbox;
use crate::access::TenantLimits;

/// Sizes, limits and deadlines of a system.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SystemSettings {
    /// Number of shards, 1–64.
    pub shards: usize,
    /// Number of event buses.
    pub buses: usize,
    /// Queue length of a subscriber.
    pub subscriber_capacity: usize,
    /// Most messages from outside pending for one actor; further ones are refused with a retry
    /// hint.
    pub mailbox_capacity: usize,
    /// Time without progress that counts as a stall; must exceed the deadlines of models and tools.
    pub stall_limit: Duration,
    /// Pause before a session is restarted; doubles with each consecutive restart.
    pub restart_pause: Duration,
    /// Idle time until a session is passivated; zero for at once.
    pub idle_timeout: Duration,
    /// Most live sessions; beyond it, those idle for longest are passivated.
    pub max_live: usize,
    /// About how many bytes live sessions may take; beyond it, the largest idle ones are passivated,
    /// and then new messages refused.
    pub max_live_bytes: usize,
    /// When queries that were cut off are recovered.
    pub recovery: Recovery,
    /// How often one service may be replaced within ten minutes; after that, the system ends.
    pub replacements: u32,
    /// Limits of providers that `providers` does not name.
    pub gateway: GatewaySettings,
    /// Limits of providers, by name.
    pub providers: BTreeMap<String, GatewaySettings>,
    /// Deadline of a tool call.
    pub tool_deadline: Duration,
    /// Limits of tenants.
    pub tenants: TenantLimits,
}

/// When queries that were cut off with their process are recovered.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Recovery {
    /// With the next message to their session: for short-lived processes.
    OnDemand,
    /// When the system starts, and about every half a minute those of other processes that have
    /// died.
    AtStart {
        /// Further queries are recovered while fewer than this many run; one always is. A query
        /// that waits for a person, or was recovered over a quarter of an hour ago, does not count.
        concurrency: usize,
    },
}

impl Recovery {
    /// Default concurrency of recovery.
    pub const CONCURRENCY: usize = 32;
}

impl Default for SystemSettings {
    fn default() -> Self {
        Self {
            shards: 16,
            buses: 4,
            subscriber_capacity: 1_024,
            mailbox_capacity: mailbox::CAPACITY,
            stall_limit: Duration::from_secs(900),
            restart_pause: Duration::from_millis(100),
            idle_timeout: Duration::from_secs(300),
            max_live: 50_000,
            max_live_bytes: 1 << 30,
            recovery: Recovery::AtStart {
                concurrency: Recovery::CONCURRENCY,
            },
            replacements: 100,
            gateway: GatewaySettings::default(),
            providers: BTreeMap::new(),
            tool_deadline: Duration::from_secs(30),
            tenants: TenantLimits::default(),
        }
    }
}

impl SystemSettings {
    /// Limits of a provider.
    pub fn of_provider(&self, name: &str) -> GatewaySettings {
        self.providers.get(name).copied().unwrap_or(self.gateway)
    }
}

/// Limits and deadlines of one provider.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct GatewaySettings {
    /// Most calls in flight.
    pub concurrency: usize,
    /// Most calls in the queue.
    pub queue: usize,
    /// Longest wait of a call in the queue.
    pub queue_deadline: Duration,
    /// Calls per minute; a limit that the provider announces can only lower it.
    pub requests_per_minute: Option<u64>,
    /// Tokens per minute, sent and received; a limit that the provider announces can only lower it.
    pub tokens_per_minute: Option<u64>,
    /// Deadline from the start of a call to the first piece of its reply, including the connection.
    pub first_token: Duration,
    /// The same for a server on this machine or network, which may have to load the model and reads
    /// a long prompt slowly. A repetition would begin anew, so there is none.
    pub local_first_token: Duration,
    /// Deadline between two pieces of a reply.
    pub idle: Duration,
    /// Deadline for a whole reply.
    pub total: Duration,
    /// Settings of the circuit breakers.
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
            local_first_token: Duration::from_secs(600),
            idle: Duration::from_secs(60),
            total: Duration::from_secs(600),
            breaker: BreakerSettings::default(),
        }
    }
}

/// When the circuit of a provider or model opens, and for how long.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct BreakerSettings {
    /// Queries that have to fail to open the circuit; also at least half of the queries that were
    /// heard last, of up to four times as many. However often a query fails, it is one.
    pub failures: usize,
    /// Time until the first probe; doubles with each failed probe.
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
