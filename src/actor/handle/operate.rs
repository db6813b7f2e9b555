//! Operating the system as a whole: its metrics, drain and shutdown.

use std::sync::{Arc, atomic::Ordering};

use futures_util::{StreamExt as _, stream};
use prometheus_client::collector::Collector;

use super::{AskError, Oracle, SessionRouter};
use crate::{
    actor::{gateway::SharedStatus, meter::Metrics},
    kernel::Refusal,
    model::{By, TenantId, record::ControlFact},
};

/// Queries that are cancelled at the same time.
const CANCELLED_AT_ONCE: usize = 16;

impl Oracle {
    /// Number of running queries as their sessions count them: cheaper than [`Self::running`], and
    /// slightly delayed.
    pub fn busy(&self) -> usize {
        self.services.meter.busy()
    }

    /// Pending work: sessions being activated, queries before their first call, and calls queued at
    /// the gateways. Grows under overload. Sends no message to an actor.
    pub fn backlog(&self) -> usize {
        let waiting = self.services.providers.values().map(SharedStatus::waiting);
        self.services.meter.beginning() + waiting.sum::<usize>()
    }

    /// Number of running queries that wait for a person: for an approval, for results of the
    /// caller's tools, or for the end of a pause.
    pub fn awaiting_person(&self) -> usize {
        self.services.meter.awaiting_person()
    }

    /// Counters and histograms since the start of the system. Sends no message to an actor.
    pub fn metrics(&self) -> Arc<Metrics> {
        Arc::clone(&self.services.meter.0)
    }

    /// The metrics, for a Prometheus registry.
    pub fn collector(&self) -> impl Collector + use<> {
        self.services.meter.clone()
    }

    /// Cancels the running queries of these callers. Logs those that it cannot cancel.
    pub(crate) async fn cancel_queries_of(&self, of: impl Fn(&TenantId, &By) -> bool) {
        let oracle = &self.acting(By::oracle());
        let running = stream::iter(self.router().ledger.running_of(of));
        let cancel = async |(key, query)| {
            let session = oracle.session_by_key(key);
            match session.cancel(Some(query)).await {
                Ok(()) => {
                    tracing::info!(session = %session.key(), %query, "query cancelled: its key is not valid any more")
                }
                Err(error) => {
                    tracing::warn!(session = %session.key(), %query, %error, "query runs on without a valid key")
                }
            }
        };
        running.for_each_concurrent(CANCELLED_AT_ONCE, cancel).await;
    }

    /// Rejects new messages from now on, while running queries continue. Only a restart undoes
    /// this. Recorded in the log of `system`.
    pub fn drain(&self) {
        if !self.router().draining.swap(true, Ordering::Relaxed) {
            self.log.note(ControlFact::Drained(self.by.clone().into()));
        }
    }

    /// Drains, and asks the owner of the [`System`](crate::actor::System) to shut it down. Recorded
    /// in the log of `system`.
    pub fn shut_down(&self) {
        if !self.shutdown.is_cancelled() {
            self.log.note(ControlFact::ShutDown(self.by.clone().into()));
        }
        self.reject_new();
        self.shutdown.cancel();
    }

    /// Rejects new messages from now on, because the process is about to end. Not recorded.
    pub(crate) fn reject_new(&self) {
        self.router().draining.store(true, Ordering::Relaxed);
    }

    /// Whether new messages are rejected.
    pub fn is_draining(&self) -> bool {
        self.router().is_draining()
    }

    pub(in crate::actor) async fn settled(&self) {
        self.deletions.ended().await;
        self.services.usage.log.written().await;
        self.log.written().await;
    }

    /// Whether the system has ended.
    pub fn has_ended(&self) -> bool {
        self.router().ended.is_cancelled()
    }

    /// Waits until [`Self::shut_down`] is called.
    pub async fn shutdown_requested(&self) {
        self.shutdown.cancelled().await;
    }
}

impl SessionRouter {
    pub(super) fn check_accepting(&self) -> Result<(), AskError> {
        match (self.is_draining(), self.ended.is_cancelled()) {
            (false, _) => Ok(()),
            (true, false) => Err(Refusal::Draining.into()),
            (true, true) => Err(AskError::Stopped),
        }
    }
}
