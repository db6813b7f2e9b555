//! How large a system is, how patient, and what it does after a start.

use std::{collections::BTreeMap, time::Duration};

use crate::{
    access::TenantLimits,
    actor::{gateway::GatewaySettings, mailbox, services::Timeouts},
};

/// How large a system is and how patient.
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
    /// Notices that may wait for a subscriber.
    pub subscriber_capacity: usize,
    /// Messages from outside that may wait for one actor; more are refused with a hint when to retry.
    pub mailbox_capacity: usize,
    /// No progress for this long is a stall; more than any model or tool may take.
    pub stall_limit: Duration,
    /// How often the supervisor looks.
    pub sweep: Duration,
    /// Pause before a session is brought back; doubles with each restart in a row.
    pub restart_pause: Duration,
    /// Idle for this long, a session leaves memory; at once if it is zero.
    pub idle_timeout: Duration,
    /// With more live sessions than this, the longest idle ones leave memory.
    pub max_live: usize,
    /// When sessions that were cut off in the middle of a query come back.
    pub recovery: Recovery,
    /// How often one service may be replaced within ten minutes before the system ends.
    pub replacements: u32,
    /// What a provider may be asked of that is not named in `providers`.
    pub gateway: GatewaySettings,
    /// What a provider may be asked of, by its name.
    pub providers: BTreeMap<String, GatewaySettings>,
    /// How long the shell waits for what.
    pub timeouts: Timeouts,
    /// What tenants may have.
    pub tenants: TenantLimits,
}

/// When sessions that were cut off in the middle of a query come back (spec 10).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Recovery {
    /// When somebody has something for them: for processes that do not last.
    OnDemand,
    /// When the system starts.
    AtStart {
        /// Queries that may run at a time, brought back or new, while there are others to be brought back;
        /// one of them is brought back whatever else runs. One that waits only for a person is not
        /// counted, nor is one that was brought back more than a quarter of an hour ago.
        concurrency: usize,
    },
}

impl Recovery {
    /// Queries that may run at a time, where nothing else is said.
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
    /// What a provider may be asked of.
    #[must_use]
    pub fn of_provider(&self, name: &str) -> GatewaySettings {
        self.providers.get(name).copied().unwrap_or(self.gateway)
    }
}
