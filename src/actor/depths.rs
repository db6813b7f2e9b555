//! Mailbox depths of the shared actors.

use std::collections::BTreeMap;

use super::services::Services;

/// Number of messages pending in the mailbox of each shared actor.
#[derive(Debug, Clone, Default, PartialEq, Eq, serde::Serialize)]
pub struct QueueDepths {
    /// Depth of each shard.
    pub shards: Vec<usize>,
    /// Depth of each bus.
    pub buses: Vec<usize>,
    /// Depth of each provider's gateway, without the calls in its queue.
    pub gateways: BTreeMap<String, usize>,
}

impl QueueDepths {
    pub(super) fn of(services: &Services) -> Self {
        let gateways = services.gateways.iter();
        let gateways = gateways.map(|(provider, pool)| {
            let waiting = pool.waiting().into_iter().sum();
            (provider.clone(), waiting)
        });
        Self {
            shards: services.router.shards.waiting(),
            buses: services.router.bus.buses().waiting(),
            gateways: gateways.collect(),
        }
    }
}
