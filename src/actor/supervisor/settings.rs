//! Settings of a system.

use std::{collections::BTreeMap, time::Duration};

use crate::{
    access::TenantLimits,
    actor::{gateway::GatewaySettings, mailbox},
};

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
