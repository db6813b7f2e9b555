//! What waits for the actors that sessions share, for those who watch a system.

use std::collections::BTreeMap;

use super::{
    bus::BusMsg,
    gateway::GatewayMsg,
    pool::Pool,
    services::{Gateways, Services},
    shard::ShardMsg,
    workers::{ClassifierMsg, ComposerMsg},
};

/// How many messages waited for each actor when it was asked: sent, and not yet taken.
#[derive(Debug, Clone, Default, PartialEq, Eq, serde::Serialize)]
pub struct Depths {
    /// By number of the shard.
    pub shards: Vec<usize>,
    /// By number of the classifier.
    pub classifiers: Vec<usize>,
    /// By number of the composer.
    pub composers: Vec<usize>,
    /// By number of the bus.
    pub buses: Vec<usize>,
    /// By provider. Calls that the gateway lets wait for their turn are not among them.
    pub gateways: BTreeMap<String, usize>,
}

impl Depths {
    /// Of all of them together.
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
    classifiers: Pool<ClassifierMsg>,
    composers: Pool<ComposerMsg>,
    buses: Pool<BusMsg>,
    gateways: Gateways,
}

impl Gauges {
    pub(super) fn new(services: &Services, gateways: &Gateways) -> Self {
        Self {
            shards: services.router.shards.clone(),
            classifiers: services.classifier.pool.clone(),
            composers: services.composer.pool.clone(),
            buses: services.bus.buses().clone(),
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
