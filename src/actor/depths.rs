//! Depths of the mailboxes of shared actors.

use std::collections::BTreeMap;

use super::{
    bus::BusMsg,
    gateway::GatewayMsg,
    pool::Pool,
    services::{Gateways, Services},
    shard::ShardMsg,
    workers::{Composition, Preparation},
};

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

#[derive(Clone)]
pub(super) struct Gauges {
    shards: Pool<ShardMsg>,
    classifiers: Pool<Preparation>,
    composers: Pool<Composition>,
    buses: Pool<BusMsg>,
    gateways: Gateways,
}

impl Gauges {
    pub(super) fn new(services: &Services, gateways: &Gateways) -> Self {
        Self {
            shards: services.router.shards.clone(),
            classifiers: services.classifiers.clone(),
            composers: services.composers.clone(),
            buses: services.router.bus.buses().clone(),
            gateways: Gateways::clone(gateways),
        }
    }

    pub(super) fn read(&self) -> Depths {
        let gateways = self.gateways.iter();
        let gateway = |(provider, pool): (&String, &Pool<GatewayMsg>)| {
            (provider.clone(), pool.waiting().into_iter().sum())
        };
        Depths {
            shards: self.shards.waiting(),
            classifiers: self.classifiers.waiting(),
            composers: self.composers.waiting(),
            buses: self.buses.waiting(),
            gateways: gateways.map(gateway).collect(),
        }
    }
}
