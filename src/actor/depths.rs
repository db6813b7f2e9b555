//! Depths of the mailboxes of shared actors.

use std::collections::BTreeMap;

use super::services::Services;

/// Messages that were sent to each shared actor and not yet taken.
#[derive(Debug, Clone, Default, PartialEq, Eq, serde::Serialize)]
pub struct Depths {
    /// Of each shard.
    pub shards: Vec<usize>,
    /// Of each classifier.
    pub classifiers: Vec<usize>,
    /// Of each composer.
    pub composers: Vec<usize>,
    /// Of each bus.
    pub buses: Vec<usize>,
    /// Of each provider's gateway, without the calls in its queue.
    pub gateways: BTreeMap<String, usize>,
}

impl Depths {
    pub(super) fn of(services: &Services) -> Self {
        let gateways = services.gateways.iter();
        let gateways = gateways.map(|(provider, pool)| {
            let waiting = pool.waiting().into_iter().sum();
            (provider.clone(), waiting)
        });
        Self {
            shards: services.router.shards.waiting(),
            classifiers: services.classifiers.waiting(),
            composers: services.composers.waiting(),
            buses: services.router.bus.buses().waiting(),
            gateways: gateways.collect(),
        }
    }

    /// The sum of all.
    #[must_use]
    pub fn total(&self) -> usize {
        let numbered = [
            &self.shards,
            &self.classifiers,
            &self.composers,
            &self.buses,
        ];
        numbered
            .into_iter()
            .flatten()
            .chain(self.gateways.values())
            .sum()
    }
}
