//! Settings of a system.

use std::{collections::BTreeMap, time::Duration};

use crate::{
    access::TenantLimits,
    actor::{gateway::GatewaySettings, mailbox, services::Timeouts},
};

/// Sizes, limits and deadlines of a system.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SystemSettings {
    /// Shards, 1–64.
    pub shards: usize,
    /// Classifiers.
    pub classifiers: usize,
    /// Composers.
    pub composers: usize,
    /// Event buses.
    pub buses: usize,
    /// Queue length of a subscriber.
    pub subscriber_capacity: usize,
    /// Messages from outside that may wait for one actor; more are refused with a retry hint.
    pub mailbox_capacity: usize,
    /// No progress for this long is a stall; more than any model or tool may take.
    pub stall_limit: Duration,
    /// How often shards check their sessions.
    pub sweep: Duration,
    /// Pause before a session is restarted; doubles with each restart in a row.
    pub restart_pause: Duration,
    /// Idle for this long, a session leaves memory; at once if it is zero.
    pub idle_timeout: Duration,
    /// With more live sessions than this, the longest idle ones leave memory.
    pub max_live: usize,
    /// When cut-off queries are restarted.
    pub recovery: Recovery,
    /// How often one service may be replaced within ten minutes before the system ends.
    pub replacements: u32,
    /// Limits of providers that `providers` does not name.
    pub gateway: GatewaySettings,
    /// Limits of providers, by name.
    pub providers: BTreeMap<String, GatewaySettings>,
    /// Deadlines.
    pub timeouts: Timeouts,
    /// Limits of tenants.
    pub tenants: TenantLimits,
}

/// When queries that were cut off with their process are restarted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Recovery {
    /// With the next message to their session: for processes that do not last.
    OnDemand,
    /// When the system starts, and about every half a minute those of other processes that have ended since.
    AtStart {
        /// Queries that may run while others are to be restarted; one is restarted whatever else runs. One
        /// that waits for a person, or was restarted a quarter of an hour ago, does not count.
        concurrency: usize,
    },
}

impl Recovery {
    /// The default.
    pub const CONCURRENCY: usize = 32;
}

impl Default for SystemSettings {
    fn default() -> Self {
        Self {
            shards: 16,
            classifiers: 2,
            composers: 2,
            buses: 4,
            subscriber_capacity: 1_024,
            mailbox_capacity: mailbox::CAPACITY,
            stall_limit: Duration::from_secs(900),
            sweep: Duration::from_secs(1),
            restart_pause: Duration::from_millis(100),
            idle_timeout: Duration::from_secs(300),
            max_live: 50_000,
            recovery: Recovery::AtStart {
                concurrency: Recovery::CONCURRENCY,
            },
            replacements: 100,
            gateway: GatewaySettings::default(),
            providers: BTreeMap::new(),
            timeouts: Timeouts::default(),
            tenants: TenantLimits::default(),
        }
    }
}

impl SystemSettings {
    /// Limits of a provider.
    #[must_use]
    pub fn of_provider(&self, name: &str) -> GatewaySettings {
        self.providers.get(name).copied().unwrap_or(self.gateway)
    }
}
