//! The handle to a running system.

use std::{sync::atomic::Ordering, time::Duration};

use futures_util::future::join_all;
use tokio_util::sync::CancellationToken;

use super::{SessionHandle, deletion::Deletions, reload::Source, tool_servers::Servers};
use crate::{
    access::Tenants,
    actor::{
        bus::{Filter, Subscription},
        clock::Clock,
        gateway::{ProviderState, SharedStatus},
        mailbox::Admission,
        profile::Opening,
        protocol::ShardMsg,
        router::SessionRouter,
        services::{QueueDepths, Services},
        system_log::SystemLog,
    },
    model::{By, IdError, SessionKey, SessionName},
};

/// A handle to a running system. Cheap to clone.
#[derive(Clone)]
pub struct Oracle {
    pub(in crate::actor) services: Services,
    pub(in crate::actor) log: SystemLog,
    pub(in crate::actor) deletions: Deletions,
    pub(in crate::actor) shutdown: CancellationToken,
    pub(in crate::actor) source: Source,
    pub(in crate::actor) servers: Servers,
    pub(in crate::actor) by: By,
}

impl Oracle {
    /// Returns a handle for another caller, under whose name actions are recorded. The default is
    /// `local`.
    pub fn acting(&self, by: By) -> Self {
        Self { by, ..self.clone() }
    }

    pub(in crate::actor) fn router(&self) -> &SessionRouter {
        &self.services.router
    }

    pub(in crate::actor) async fn park(&self, within: Duration) {
        let shards = &self.router().shards;
        let all = (0..shards.size()).filter_map(|index| shards.at(index));
        let parked = all.map(|shard| async move {
            let park = |done| ShardMsg::Park { done };
            let _ = shard.ask(park, Admission::Always, within).await;
        });
        join_all(parked).await;
    }

    /// Returns a session of the local tenant by its name. The first message creates it.
    ///
    /// # Errors
    /// When the name is invalid: see [`SessionName::new`](crate::model::SessionName::new).
    pub fn session(&self, name: impl AsRef<str>) -> Result<SessionHandle, IdError> {
        Ok(self.session_by_key(SessionName::new(name.as_ref())?))
    }

    /// Returns a session by its key, which names the tenant too. The first message creates it.
    #[must_use]
    pub fn session_by_key(&self, key: impl Into<SessionKey>) -> SessionHandle {
        let session = self.router().session(key.into(), Opening::default());
        session.acting(self.by.clone())
    }

    /// Subscribes to new records of all sessions, or of one.
    pub fn subscribe(&self, filter: Filter) -> Subscription {
        let router = self.router();
        let capacity = filter.capacity.unwrap_or(router.subscriber_capacity);
        router.bus.subscribe(filter, capacity)
    }

    /// Number of running queries, and of messages that are prepared before they are recorded.
    pub fn running(&self) -> usize {
        self.services.meter.running()
    }

    /// Usage and limits of the tenants.
    pub fn tenants(&self) -> &Tenants {
        &self.services.tenants
    }

    /// Divides the configured limits of providers and tenants by the number of nodes that share
    /// them, at least 1 of each.
    pub fn divide_limits(&self, nodes: usize) {
        let nodes = nodes.max(1);
        if nodes != self.services.nodes.swap(nodes, Ordering::Relaxed) {
            tracing::info!(nodes, "limits of providers and tenants are divided");
            self.services.tenants.divide(nodes);
        }
    }

    /// The system's clock.
    pub fn clock(&self) -> &Clock {
        &self.services.clock
    }

    /// State of the model providers, in order of their names. Sends no message to an actor.
    pub fn providers(&self) -> Vec<ProviderState> {
        let providers = self.services.providers.values();
        providers.map(SharedStatus::read).collect()
    }

    /// Number of messages pending for each shared actor.
    pub fn depths(&self) -> QueueDepths {
        self.services.depths()
    }
}
