//! Live sessions of the system, and those quarantined in memory. Outlives shards.
//!
//! Shards enter and remove sessions; lists, gauges and recovery read them. It also limits log lines that
//! an outage would repeat for each session.

use std::{
    collections::HashSet,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
};

use dashmap::DashMap;

use super::{live_session::LiveSession, meter::Meter, warnings::Warnings};
use crate::{
    access::{SessionUsage, Tenants},
    model::{By, QueryId, SessionKey, SessionState},
};

/// Cheap to clone; no reference is held across an await.
#[derive(Debug, Clone, Default)]
pub(super) struct Ledger(Arc<Tables>);

#[derive(Debug, Default)]
struct Tables {
    live: DashMap<SessionKey, Arc<LiveSession>>,
    /// Sessions quarantined in memory, not necessarily in their logs, with the reason.
    quarantined: DashMap<SessionKey, String>,
    appended: AtomicU64,
    /// Of outages.
    warnings: Warnings,
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
        // It counts before the one before it ends, so that the totals miss its query at no moment: a
        // system that drains waits for them.
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

    /// Logs a warning of an outage, or leaves it out.
    pub(super) fn warn(&self, log: impl FnOnce(u64)) {
        self.0.warnings.warn(log);
    }

    pub(super) fn appended(&self) {
        self.0.appended.fetch_add(1, Ordering::Relaxed);
    }

    pub(super) fn appends(&self) -> u64 {
        self.0.appended.load(Ordering::Relaxed)
    }
}
