//! The journal in memory: as durable as the process, and otherwise the whole contract.
//!
//! For tests, replays and deployments that choose speed over survival. Nothing
//! here ever waits.
//!
//! **Invariant:** a log is only ever extended, under its own lock, by the epoch that owns it.

use std::{
    collections::BTreeMap,
    ops::Bound,
    sync::{Arc, Mutex, MutexGuard, PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard},
};

use futures_util::{FutureExt, future::BoxFuture};

use super::{Append, Claim, Entry, Error, Journal, Known};
use crate::model::{Epoch, Record, Seq, SessionKey, SessionName, Sid, TenantId};

/// A journal that ends with the process.
#[derive(Debug, Default)]
pub struct Memory {
    // A lock, because one store is shared by all sessions. It is written only when a session comes
    // into being and never held across an await; the logs have locks of their own, so that an
    // append waits for nobody but another user of the same session.
    sessions: RwLock<Sessions>,
}

#[derive(Debug, Default)]
struct Sessions {
    /// By name within the tenant; a tree, because lists are paged by name.
    by_tenant: BTreeMap<TenantId, BTreeMap<SessionName, Sid>>,
    /// The log of `Sid(n)` stands at `n - 1`: an append finds it in constant time.
    logs: Vec<Arc<Mutex<Log>>>,
}

#[derive(Debug, Default)]
struct Log {
    /// The record with sequence number `n` stands at `n - 1`.
    records: Vec<Arc<Record>>,
    /// The owner; 0 before the first claim.
    epoch: Epoch,
    /// Where the log ended when the owner claimed it: what stands behind was written by the owner.
    claimed_at: usize,
}

impl Memory {
    /// An empty journal.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    fn claim_now(&self, key: SessionKey) -> Result<Claim, Error> {
        let known = read(&self.sessions).sid(&key);
        let sid = known.unwrap_or_else(|| write(&self.sessions).open(key));
        let log = self.log(sid)?;
        let mut log = lock(&log);
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
        lock(&log).append(append)
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
        sid.map(|sid| self.known(sid, key)).transpose()
    }

    fn list_now(
        &self,
        tenant: &TenantId,
        after: Option<SessionName>,
        limit: usize,
    ) -> Result<Vec<Known>, Error> {
        let page = read(&self.sessions).page(tenant, after, limit);
        page.into_iter()
            .map(|(name, sid)| {
                self.known(
                    sid,
                    SessionKey {
                        tenant: tenant.clone(),
                        name,
                    },
                )
            })
            .collect()
    }

    fn known(&self, sid: Sid, key: SessionKey) -> Result<Known, Error> {
        let log = self.log(sid)?;
        let last = lock(&log).last();
        Ok(Known { sid, key, last })
    }

    fn log(&self, sid: Sid) -> Result<Arc<Mutex<Log>>, Error> {
        let sessions = read(&self.sessions);
        let index = usize::try_from(sid.0)
            .ok()
            .and_then(|number| number.checked_sub(1));
        let log = index.and_then(|index| sessions.logs.get(index));
        log.cloned().ok_or(Error::Unknown { sid })
    }
}

impl Sessions {
    fn sid(&self, key: &SessionKey) -> Option<Sid> {
        self.by_tenant.get(&key.tenant)?.get(&key.name).copied()
    }

    /// The session of this name, new if it still is: another claim may have been faster.
    fn open(&mut self, key: SessionKey) -> Sid {
        let names = self.by_tenant.entry(key.tenant).or_default();
        *names.entry(key.name).or_insert_with(|| {
            self.logs.push(Arc::default());
            Sid(self.logs.len() as u64)
        })
    }

    fn page(
        &self,
        tenant: &TenantId,
        after: Option<SessionName>,
        limit: usize,
    ) -> Vec<(SessionName, Sid)> {
        let Some(names) = self.by_tenant.get(tenant) else {
            return Vec::new();
        };
        let from = after.map_or(Bound::Unbounded, Bound::Excluded);
        let page = names.range((from, Bound::Unbounded)).take(limit);
        page.map(|(name, &sid)| (name.clone(), sid)).collect()
    }
}

impl Log {
    fn last(&self) -> Seq {
        Seq(self.records.len() as u64)
    }

    fn append(&mut self, append: &Append) -> Result<Seq, Error> {
        let Append {
            sid,
            epoch,
            after,
            ref records,
        } = *append;
        if epoch != self.epoch {
            return Err(Error::Fenced {
                sid,
                mine: epoch,
                current: self.epoch,
            });
        }
        if after == self.last() {
            self.records.extend(records.iter().cloned());
            return Ok(self.last());
        }
        if self.repeats(after, records) {
            return Ok(Seq(after.0 + records.len() as u64));
        }
        Err(Error::Conflict {
            sid,
            expected: after,
            last: self.last(),
        })
    }

    /// Whether the owner has appended exactly this at this position before.
    fn repeats(&self, after: Seq, records: &[Arc<Record>]) -> bool {
        let Ok(start) = usize::try_from(after.0) else {
            return false;
        };
        let there = start
            .checked_add(records.len())
            .and_then(|end| self.records.get(start..end));
        start >= self.claimed_at && there.is_some_and(|there| same(there, records))
    }
}

fn same(there: &[Arc<Record>], again: &[Arc<Record>]) -> bool {
    there
        .iter()
        .zip(again)
        .all(|(a, b)| Arc::ptr_eq(a, b) || a == b)
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
    fn claim(&self, key: SessionKey) -> BoxFuture<'_, Result<Claim, Error>> {
        async move { self.claim_now(key) }.boxed()
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
        async move { self.list_now(&tenant, after, limit) }.boxed()
    }
}

#[cfg(test)]
mod tests;
