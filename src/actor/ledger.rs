//! Live sessions of the system, and those quarantined in memory. Outlives shards.
//!
//! Shards enter and remove sessions; lists, gauges and recovery read them. It also limits log lines that
//! an outage would repeat for each session.

use std::{
    collections::HashSet,
    mem,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};

use dashmap::DashMap;
use parking_lot::Mutex;
use tokio::time::Instant;

use super::{live_session::LiveSession, meter::Meter};
use crate::{
    access::{SessionUsage, Tenants},
    model::{By, QueryId, SessionKey, SessionState},
};

/// Shortest time between two warnings of an outage.
const QUIET: Duration = Duration::from_secs(5);

/// Cheap to clone; no reference is held across an await.
#[derive(Debug, Clone, Default)]
pub(super) struct Ledger(Arc<Tables>);

#[derive(Debug, Default)]
struct Tables {
    live: DashMap<SessionKey, Arc<LiveSession>>,
    /// Sessions quarantined in memory, not necessarily in their logs, with the reason.
    quarantined: DashMap<SessionKey, String>,
    appended: AtomicU64,
    /// When the last warning of an outage was logged, and how many were not logged since.
    warned: Mutex<(Option<Instant>, u64)>,
}

impl Ledger {
    /// Makes the record of a new actor, which replaces that of the actor before.
    pub(super) fn enter(
        &self,
        key: &SessionKey,
        meter: &Meter,
        tenants: &Tenants,
    ) -> Arc<LiveSession> {
        let (before, usage) = (
            self.get(key),
            SessionUsage::new(tenants.account(&key.tenant)),
        );
        let live = Arc::new(LiveSession::new(meter.clone(), usage, before.as_deref()));
        self.0.live.insert(key.clone(), Arc::clone(&live));
        if let Some(before) = before {
            before.end();
        }
        live
    }

    pub(super) fn get(&self, key: &SessionKey) -> Option<Arc<LiveSession>> {
        self.0.live.get(key).map(|live| Arc::clone(&live))
    }

    pub(super) fn remove(&self, key: &SessionKey) {
        if let Some((_, live)) = self.0.live.remove(key) {
            live.end();
        }
    }

    pub(super) fn take(&self, of: impl Fn(&SessionKey) -> bool) -> HashSet<SessionKey> {
        let keys = self.0.live.iter().map(|live| live.key().clone());
        let keys: HashSet<_> = keys.filter(of).collect();
        keys.iter().for_each(|key| self.remove(key));
        keys
    }

    /// The running queries here with their callers.
    pub(super) fn running_with_callers(&self) -> Vec<(SessionKey, QueryId, By)> {
        let live = self.0.live.iter().filter_map(|live| {
            let (query, by) = live.running()?;
            Some((live.key().clone(), query, by))
        });
        live.collect()
    }

    /// Counts the sessions in `of` that have work in flight.
    pub(super) fn busy(&self, of: impl Fn(&SessionKey) -> bool) -> usize {
        let live = self.0.live.iter();
        live.filter(|live| live.is_busy() && of(live.key())).count()
    }

    /// The state of a session that is live or quarantined here.
    pub(super) fn state(&self, key: &SessionKey) -> Option<SessionState> {
        if self.0.quarantined.contains_key(key) {
            return Some(SessionState::Quarantined);
        }
        self.0.live.get(key).map(|live| live.state())
    }

    /// Whether a query of the session is in memory here.
    pub(super) fn has_query(&self, key: &SessionKey) -> bool {
        self.state(key).is_some_and(SessionState::has_query)
    }

    pub(super) fn quarantine(&self, key: &SessionKey, reason: String) {
        self.remove(key);
        self.0.quarantined.insert(key.clone(), reason);
    }

    pub(super) fn quarantined(&self, key: &SessionKey) -> Option<String> {
        let reason = self.0.quarantined.get(key);
        reason.map(|reason| reason.clone())
    }

    pub(super) fn all_quarantined(&self) -> Vec<(SessionKey, String)> {
        let all = self.0.quarantined.iter();
        all.map(|one| (one.key().clone(), one.value().clone()))
            .collect()
    }

    pub(super) fn release(&self, key: &SessionKey) -> bool {
        self.0.quarantined.remove(key).is_some()
    }

    /// Logs a warning of an outage, with the number of those that were left out since the last one,
    /// or leaves it out.
    pub(super) fn warn(&self, log: impl FnOnce(u64)) {
        let now = Instant::now();
        let mut warned = self.0.warned.lock();
        if warned.0.is_some_and(|last| now - last < QUIET) {
            warned.1 += 1;
            return;
        }
        let (_, more) = mem::replace(&mut *warned, (Some(now), 0));
        drop(warned);
        log(more);
    }

    pub(super) fn appended(&self) {
        self.0.appended.fetch_add(1, Ordering::Relaxed);
    }

    pub(super) fn appends(&self) -> u64 {
        self.0.appended.load(Ordering::Relaxed)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn warnings_of_an_outage_are_counted_instead_of_repeated() {
        let (ledger, mut logged) = (Ledger::default(), Vec::new());
        for _ in 0..100 {
            ledger.warn(|more| logged.push(more));
            tokio::time::advance(QUIET / 20).await;
        }
        assert_eq!(logged, [0, 19, 19, 19, 19]);
    }
}
