//! Services that a session needs from the rest of the system.

use std::{
    collections::{BTreeMap, HashMap},
    sync::{Arc, OnceLock, atomic::AtomicUsize},
    time::Duration,
};

use super::{
    clock::Clock,
    gateway::ProviderStatuses,
    meter::Meter,
    pool::Pool,
    protocol::{ClassifierMsg, Compose, GatewayMsg},
    router::SessionRouter,
    signal_tracker::SignalTracker,
    usage_log::UsageLog,
};
use crate::access::Tenants;

/// A single pointer, because every session and each of its tasks holds it.
pub(super) type Services = Arc<All>;

pub(super) type Gateways = Arc<HashMap<String, Pool<GatewayMsg>>>;

pub(super) struct All {
    pub clock: Clock,
    pub classifier: Pool<ClassifierMsg>,
    pub composer: Pool<Compose>,
    pub usage: Arc<UsageLog>,
    pub router: SessionRouter,
    pub gateways: Gateways,
    pub providers: ProviderStatuses,
    pub meter: Meter,
    pub tool_deadline: Duration,
    pub signal_tracker: SignalTracker,
    pub tenants: Tenants,
    /// The nodes of a cluster that share the configured limits; 1 without a cluster.
    pub nodes: Arc<AtomicUsize>,
    pub project: Option<Arc<str>>,
    /// Why the supervisor failed, if it did.
    pub failure: OnceLock<String>,
}

/// Number of messages pending in the mailbox of each shared actor.
#[derive(Debug, Clone, Default, PartialEq, Eq, serde::Serialize)]
pub struct QueueDepths {
    /// Depth of each shard.
    pub shards: Vec<usize>,
    /// Depth of each bus.
    pub buses: Vec<usize>,
    /// Depth of each provider's gateway, without the calls in its queue.
    pub gateways: BTreeMap<String, usize>,
    /// Depth of each classifier, without the queries of its batches.
    pub classifiers: Vec<usize>,
    /// Depth of each composer.
    pub composers: Vec<usize>,
}

impl All {
    pub(super) fn depths(&self) -> QueueDepths {
        let gateways = self.gateways.iter();
        let gateways = gateways.map(|(provider, pool)| {
            let waiting = pool.waiting().into_iter().sum();
            (provider.clone(), waiting)
        });
        QueueDepths {
            shards: self.router.shards.waiting(),
            buses: self.router.bus.buses.waiting(),
            gateways: gateways.collect(),
            classifiers: self.classifier.waiting(),
            composers: self.composer.waiting(),
        }
    }
}
