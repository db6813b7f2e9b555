//! Operating the system as a whole: its metrics, drain and shutdown.

use std::{
    collections::HashSet,
    sync::{Arc, atomic::Ordering},
    time::Duration,
};

use futures_util::{StreamExt as _, stream};
use prometheus_client::collector::Collector;
use tokio::time::timeout;

use super::{AskError, Oracle};
use crate::{
    actor::{gateway::SharedStatus, meter::Metrics, router::SessionRouter},
    kernel::Refusal,
    model::{By, QueryId, SessionKey, TenantId, record::ControlFact},
};

/// Most queries that are cancelled at the same time, and how long each may take.
const CANCELLED_AT_ONCE: usize = 64;
const CANCEL_DEADLINE: Duration = Duration::from_secs(1);

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

    /// Cancels the queries that run here and whose callers `lapsed` selects. Logs those that it cannot
    /// cancel soon.
    #[doc(hidden)]
    pub async fn cancel_queries_of(
        &self,
        lapsed: impl FnOnce(HashSet<(TenantId, By)>) -> HashSet<(TenantId, By)>,
    ) {
        let caller = |key: &SessionKey, by: &By| (key.tenant.clone(), by.clone());
        let mut running = self.router().ledger.running_with_callers();
        let callers = running.iter().map(|(key, _, by)| caller(key, by));
        let lapsed = lapsed(callers.collect());
        running.retain(|(key, _, by)| lapsed.contains(&caller(key, by)));
        let oracle = &self.acting(By::oracle());
        let cancel = async |(key, query, _): (SessionKey, QueryId, By)| {
            let session = oracle.session_by_key(key);
            let cancelled = timeout(CANCEL_DEADLINE, session.cancel(Some(query))).await;
            match cancelled.unwrap_or(Err(AskError::Timeout(CANCEL_DEADLINE))) {
                Ok(()) => {
                    tracing::info!(session = %session.key(), %query, "query cancelled: its key is no longer valid");
                }
                Err(AskError::Refused(Refusal::NothingRunning | Refusal::OtherRunning { .. })) => {}
                Err(error) => self.router().ledger.warn(|more| {
                    tracing::warn!(session = %session.key(), %query, %error, more, "query without a valid key could not be cancelled");
                }),
            }
        };
        let running = stream::iter(running);
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
    #[doc(hidden)]
    pub fn reject_new(&self) {
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
