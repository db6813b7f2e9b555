//! The journal in memory: as durable as the process, and otherwise the whole contract.
//!
//! For tests, replays and deployments that choose speed over survival. Nothing
//! here ever waits.
//!
//! **Invariant:** a log is only ever extended, under its own lock, by the epoch that owns it. Where
//! both locks are taken, that of the sessions comes first.

use std::{
    cmp::Reverse,
    collections::BTreeMap,
    ops::Bound,
    sync::{
        Arc, Mutex, MutexGuard, PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard,
        atomic::AtomicU64,
    },
};

use futures_util::{FutureExt, future::BoxFuture};

use super::{
    Append, Claim, Entry, Error, Hit, Journal, Known, Only, Snapshot, Standing, search::Wanted,
};
use crate::model::{Epoch, Seq, SessionKey, SessionName, Sid, TenantId};

mod log;

use log::Log;

/// A journal that ends with the process.
#[derive(Debug, Default)]
pub struct Memory {
    // A lock, because one store is shared by all sessions. It is written only when a session comes
    // into being and never held across an await; the logs have locks of their own, so that an
    // append waits for nobody but another user of the same session.
    sessions: RwLock<Sessions>,
    /// Counts the appends in which somebody says something, of all sessions.
    landed: AtomicU64,
}

#[derive(Debug, Default)]
struct Sessions {
    /// By name within the tenant; a tree, because lists are paged by name.
    by_tenant: BTreeMap<TenantId, BTreeMap<SessionName, Sid>>,
    /// The session of `Sid(n)` stands at `n - 1`: an append finds it in constant time. None where it
    /// was deleted.
    slots: Vec<Option<Slot>>,
}

#[derive(Debug)]
struct Slot {
    key: SessionKey,
    log: Arc<Mutex<Log>>,
}

impl Memory {
    /// An empty journal.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    fn claim_now(&self, key: SessionKey, only: Only) -> Result<Claim, Error> {
        let known = read(&self.sessions).sid(&key);
        let sid = known.unwrap_or_else(|| write(&self.sessions).open(key));
        let log = self.log(sid)?;
        let mut log = lock(&log);
        only.judge(sid, log.last(), log.standing)?;
        log.epoch = log.epoch.next();
        log.claimed_at = log.records.len();
        Ok(Claim {
            sid,
            epoch: log.epoch,
            last: log.last(),
        })
    }

    fn append_now(&self, append: &Append) -> Result<Seq, Error> {
        if append.records.is_empty() {
            return Err(Error::Empty);
        }
        let log = self.log(append.sid)?;
        lock(&log).append(append, &self.landed)
    }

    fn read_now(&self, sid: Sid, after: Seq, limit: usize) -> Result<Vec<Entry>, Error> {
        let log = self.log(sid)?;
        let log = lock(&log);
        let start = usize::try_from(after.0)
            .unwrap_or(usize::MAX)
            .min(log.records.len());
        let numbers = (after.0..).map(|before| Seq(before).next());
        let records = log.records[start..].iter().take(limit);
        Ok(records
            .zip(numbers)
            .map(|(record, seq)| Entry {
                seq,
                record: record.clone(),
            })
            .collect())
    }

    fn find_now(&self, key: SessionKey) -> Result<Option<Known>, Error> {
        let sid = read(&self.sessions).sid(&key);
        Ok(sid.and_then(|sid| self.known(sid)))
    }

    fn list_now(&self, tenant: &TenantId, after: Option<SessionName>, limit: usize) -> Vec<Known> {
        let page = read(&self.sessions).page(tenant, after, limit);
        page.into_iter().filter_map(|sid| self.known(sid)).collect()
    }

    fn tenants_now(&self, after: Option<TenantId>, limit: usize) -> Vec<TenantId> {
        let from = after.map_or(Bound::Unbounded, Bound::Excluded);
        let sessions = read(&self.sessions);
        let page = sessions.by_tenant.range((from, Bound::Unbounded));
        page.map(|(tenant, _)| tenant.clone()).take(limit).collect()
    }

    fn unfinished_now(&self, after: Sid, limit: usize) -> Vec<Known> {
        let sessions = read(&self.sessions);
        let numbered = (1..).map(Sid).zip(&sessions.slots);
        let behind = numbered.filter(|(sid, _)| *sid > after);
        let known = behind.filter_map(|(sid, slot)| Some(slot.as_ref()?.known(sid)));
        let busy = known.filter(|known| known.standing == Standing::Busy);
        busy.take(limit).collect()
    }

    fn save_now(&self, sid: Sid, epoch: Epoch, snapshot: Snapshot) -> Result<(), Error> {
        let log = self.log(sid)?;
        let mut log = lock(&log);
        log.owned(sid, epoch)?;
        let newer = log
            .snapshot
            .as_ref()
            .is_none_or(|kept| kept.seq < snapshot.seq);
        if newer && snapshot.seq <= log.last() {
            log.snapshot = Some(snapshot);
        }
        Ok(())
    }

    fn snapshot_now(&self, sid: Sid) -> Result<Option<Snapshot>, Error> {
        let log = self.log(sid)?;
        Ok(lock(&log).snapshot.clone())
    }

    fn delete_now(&self, sid: Sid, epoch: Epoch) -> Result<(), Error> {
        let mut sessions = write(&self.sessions);
        let slot = sessions.slot(sid).ok_or(Error::Unknown { sid })?;
        lock(&slot.log).close(sid, epoch)?;
        sessions.forget(sid);
        Ok(())
    }

    fn search_now(&self, tenant: &TenantId, words: &str, limit: usize) -> Vec<Hit> {
        let Some(wanted) = Wanted::of(words) else {
            return Vec::new();
        };
        let sessions = read(&self.sessions);
        let named = sessions.by_tenant.get(tenant);
        let sids = named.into_iter().flat_map(BTreeMap::values);
        let slots = sids.filter_map(|&sid| sessions.slot(sid));
        let mut found: Vec<_> = slots.flat_map(|slot| slot.hits(&wanted)).collect();
        found.sort_by_key(|&(landed, _)| Reverse(landed));
        found.into_iter().map(|(_, hit)| hit).take(limit).collect()
    }

    fn known(&self, sid: Sid) -> Option<Known> {
        Some(read(&self.sessions).slot(sid)?.known(sid))
    }

    fn log(&self, sid: Sid) -> Result<Arc<Mutex<Log>>, Error> {
        let sessions = read(&self.sessions);
        let slot = sessions.slot(sid).ok_or(Error::Unknown { sid })?;
        Ok(Arc::clone(&slot.log))
    }
}

impl Slot {
    fn known(&self, sid: Sid) -> Known {
        let log = lock(&self.log);
        Known {
            sid,
            key: self.key.clone(),
            last: log.last(),
            at: log.records.last().map(|record| record.at),
            standing: log.standing,
        }
    }
}

impl Slot {
    fn hits(&self, wanted: &Wanted) -> Vec<((u64, usize), Hit)> {
        let log = lock(&self.log);
        let hit = |&(landed, index): &(u64, usize)| {
            let record = log.records.get(index)?.clone();
            let seq = Seq(index as u64 + 1);
            let hit = Hit::of(&self.key, &Entry { seq, record }, wanted)?;
            Some(((landed, index), hit))
        };
        log.said.iter().filter_map(hit).collect()
    }
}

impl Sessions {
    fn sid(&self, key: &SessionKey) -> Option<Sid> {
        self.by_tenant.get(&key.tenant)?.get(&key.name).copied()
    }

    /// The session of this name, new if it still is: another claim may have been faster.
    fn open(&mut self, key: SessionKey) -> Sid {
        let names = self.by_tenant.entry(key.tenant.clone()).or_default();
        *names.entry(key.name.clone()).or_insert_with(|| {
            let log = Arc::default();
            self.slots.push(Some(Slot { key, log }));
            Sid(self.slots.len() as u64)
        })
    }

    fn slot(&self, sid: Sid) -> Option<&Slot> {
        self.slots.get(index(sid)?)?.as_ref()
    }

    fn forget(&mut self, sid: Sid) {
        let slot = index(sid).and_then(|index| self.slots.get_mut(index));
        if let Some(Slot { key, .. }) = slot.and_then(Option::take)
            && let Some(names) = self.by_tenant.get_mut(&key.tenant)
        {
            names.remove(&key.name);
            if names.is_empty() {
                self.by_tenant.remove(&key.tenant);
            }
        }
    }

    fn page(&self, tenant: &TenantId, after: Option<SessionName>, limit: usize) -> Vec<Sid> {
        let Some(names) = self.by_tenant.get(tenant) else {
            return Vec::new();
        };
        let from = after.map_or(Bound::Unbounded, Bound::Excluded);
        let page = names.range((from, Bound::Unbounded)).take(limit);
        page.map(|(_, &sid)| sid).collect()
    }
}

fn index(sid: Sid) -> Option<usize> {
    usize::try_from(sid.0).ok()?.checked_sub(1)
}

// A poisoned lock is taken all the same: no code under these locks can panic halfway through a
// change (short of an allocation failure, which aborts).

fn lock(log: &Mutex<Log>) -> MutexGuard<'_, Log> {
    log.lock().unwrap_or_else(PoisonError::into_inner)
}

fn read(sessions: &RwLock<Sessions>) -> RwLockReadGuard<'_, Sessions> {
    sessions.read().unwrap_or_else(PoisonError::into_inner)
}

fn write(sessions: &RwLock<Sessions>) -> RwLockWriteGuard<'_, Sessions> {
    sessions.write().unwrap_or_else(PoisonError::into_inner)
}

impl Journal for Memory {
    fn claim_if(&self, key: SessionKey, only: Only) -> BoxFuture<'_, Result<Claim, Error>> {
        async move { self.claim_now(key, only) }.boxed()
    }

    fn append(&self, append: Append) -> BoxFuture<'_, Result<Seq, Error>> {
        async move { self.append_now(&append) }.boxed()
    }

    fn read(&self, sid: Sid, after: Seq, limit: usize) -> BoxFuture<'_, Result<Vec<Entry>, Error>> {
        async move { self.read_now(sid, after, limit) }.boxed()
    }

    fn find(&self, key: SessionKey) -> BoxFuture<'_, Result<Option<Known>, Error>> {
        async move { self.find_now(key) }.boxed()
    }

    fn list(
        &self,
        tenant: TenantId,
        after: Option<SessionName>,
        limit: usize,
    ) -> BoxFuture<'_, Result<Vec<Known>, Error>> {
        async move { Ok(self.list_now(&tenant, after, limit)) }.boxed()
    }

    fn tenants(
        &self,
        after: Option<TenantId>,
        limit: usize,
    ) -> BoxFuture<'_, Result<Vec<TenantId>, Error>> {
        async move { Ok(self.tenants_now(after, limit)) }.boxed()
    }

    fn unfinished(&self, after: Sid, limit: usize) -> BoxFuture<'_, Result<Vec<Known>, Error>> {
        async move { Ok(self.unfinished_now(after, limit)) }.boxed()
    }

    fn save(&self, sid: Sid, epoch: Epoch, snapshot: Snapshot) -> BoxFuture<'_, Result<(), Error>> {
        async move { self.save_now(sid, epoch, snapshot) }.boxed()
    }

    fn snapshot(&self, sid: Sid) -> BoxFuture<'_, Result<Option<Snapshot>, Error>> {
        async move { self.snapshot_now(sid) }.boxed()
    }

    fn delete(&self, sid: Sid, epoch: Epoch) -> BoxFuture<'_, Result<(), Error>> {
        async move { self.delete_now(sid, epoch) }.boxed()
    }

    fn search(
        &self,
        tenant: TenantId,
        words: String,
        limit: usize,
    ) -> BoxFuture<'_, Result<Vec<Hit>, Error>> {
        async move { Ok(self.search_now(&tenant, &words, limit)) }.boxed()
    }
}

#[cfg(test)]
mod tests;
