//! The journal in memory, which keeps the whole contract while the process lives. No call blocks.
//!
//! **Invariant:** the lock of the sessions is taken before the lock of a log, and that of the usage
//! last.

use std::{
    cmp::Reverse,
    collections::{BTreeMap, HashMap},
    ops::Bound,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
};

use parking_lot::{Mutex, RwLock};

use super::{
    Append, Claim, Entry, Error, Hit, Journal, JournalFuture, Known, Only, SessionStatus, Sids,
    Snapshot, opened_below, search::SearchQuery,
};
use crate::model::{
    Charge, Day, DayUsage, Epoch, Payer, Record, Seq, SessionKey, SessionName, Sid, TenantId,
};

/// A journal that ends with the process.
#[derive(Debug, Default)]
pub struct Memory {
    // Locked for writing only when a session is created or deleted.
    sessions: RwLock<Sessions>,
    landed: AtomicU64,
    usage: Mutex<HashMap<Payer, BTreeMap<Day, DayUsage>>>,
}

#[derive(Debug, Default)]
struct Sessions {
    /// Lists are paged by name.
    by_tenant: BTreeMap<TenantId, BTreeMap<SessionName, Sid>>,
    slots: BTreeMap<Sid, Slot>,
    newest: Sid,
}

#[derive(Debug)]
struct Slot {
    key: SessionKey,
    log: Arc<Mutex<MemoryLog>>,
}

impl Memory {
    /// Creates an empty journal.
    pub fn new() -> Self {
        Self::default()
    }

    /// Creates an empty journal whose session ids follow `sid`.
    #[doc(hidden)]
    pub fn after(sid: Sid) -> Self {
        let memory = Self::new();
        memory.sessions.write().newest = sid;
        memory
    }

    /// Deletes a session with its sub-agents, at any depth. Returns their keys.
    #[doc(hidden)]
    pub fn clear(&self, root: &SessionKey) -> Vec<SessionKey> {
        let mut sessions = self.sessions.write();
        let (mut gone, mut next) = (Vec::new(), Some(root.name.clone()));
        while let Some(first) = next.take() {
            let names = sessions.by_tenant.get(&root.tenant).into_iter();
            let names = names.flat_map(|names| names.range(first.clone()..));
            let theirs = names.take_while(|(name, _)| name.as_str().starts_with(first.as_str()));
            let sids: Vec<Sid> = theirs.map(|(_, sid)| *sid).collect();
            if !sids.is_empty() {
                next = first.below();
            }
            gone.extend(sids.into_iter().filter_map(|sid| sessions.forget(sid)));
        }
        gone
    }

    fn count(&self, charges: Vec<Charge>) {
        let mut all = self.usage.lock();
        for Charge { payer, usage } in charges {
            let days = all.entry(payer).or_default();
            let of_day = days.entry(usage.day).or_insert(DayUsage {
                day: usage.day,
                tokens: 0,
                nano_usd: 0,
            });
            of_day.tokens = of_day.tokens.saturating_add(usage.tokens);
            of_day.nano_usd = of_day.nano_usd.saturating_add(usage.nano_usd);
        }
    }

    /// All sessions, as their owners know them.
    #[cfg(any(test, feature = "testkit"))]
    #[doc(hidden)]
    pub fn claims(&self) -> Vec<Claim> {
        let sessions = self.sessions.read();
        let claim = |(sid, slot): (&Sid, &Slot)| slot.log.lock().current(*sid);
        sessions.slots.iter().map(claim).collect()
    }

    /// Makes the next claim of a session yield the number and epoch that another journal chose.
    #[cfg(any(test, feature = "testkit"))]
    #[doc(hidden)]
    pub fn adopt(&self, key: &SessionKey, claim: Claim) {
        let mut sessions = self.sessions.write();
        if sessions.sid(key).is_none() && sessions.slot(claim.sid).is_none() {
            let newest = sessions.newest;
            sessions.newest = Sid(claim.sid.0 - 1);
            sessions.open(key.clone());
            sessions.newest = newest.max(claim.sid);
        }
        if sessions.sid(key) == Some(claim.sid)
            && let Some(slot) = sessions.slot(claim.sid)
        {
            slot.log.lock().epoch = Epoch(claim.epoch.0 - 1);
        }
    }

    fn known(&self, sid: Sid) -> Option<Known> {
        Some(self.sessions.read().slot(sid)?.known(sid))
    }

    fn log(&self, sid: Sid) -> Result<Arc<Mutex<MemoryLog>>, Error> {
        let sessions = self.sessions.read();
        let slot = sessions.slot(sid).ok_or(Error::Unknown { sid })?;
        Ok(Arc::clone(&slot.log))
    }
}

impl Slot {
    fn known(&self, sid: Sid) -> Known {
        let log = self.log.lock();
        Known {
            sid,
            key: self.key.clone(),
            last: log.last(),
            at: log.records.last().map(|record| record.at),
            standing: log.standing,
        }
    }
    fn hits(&self, wanted: &SearchQuery) -> Vec<((u64, usize), Hit)> {
        let log = self.log.lock();
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

    /// Another claim may have created the session meanwhile.
    fn open(&mut self, key: SessionKey) -> Sid {
        let names = self.by_tenant.entry(key.tenant.clone()).or_default();
        *names.entry(key.name.clone()).or_insert_with(|| {
            let log = Arc::default();
            self.newest = self.newest.next();
            self.slots.insert(self.newest, Slot { key, log });
            self.newest
        })
    }

    /// Whether the parent exists, if these records open a sub-agent's session.
    fn has_parent(
        &self,
        key: &SessionKey,
        sid: Sid,
        after: Seq,
        records: &[Arc<Record>],
    ) -> Result<(), Error> {
        let below = opened_below(after, records).filter(|(name, _)| **name == key.name);
        let parent = below.map(|(_, parent)| key.with_name(parent.clone()));
        match parent {
            Some(parent) if self.sid(&parent).is_none() => Err(Error::Unknown { sid }),
            _ => Ok(()),
        }
    }

    fn below(&self, parent: &SessionKey) -> Vec<Sid> {
        let names = self.by_tenant.get(&parent.tenant).into_iter().flatten();
        let below = names.filter(|(name, sid)| {
            self.slot(**sid).is_some_and(|slot| {
                let log = slot.log.lock();
                opened_below(Seq(0), &log.records) == Some((*name, &parent.name))
            })
        });
        below.map(|(_, sid)| *sid).collect()
    }

    fn slot(&self, sid: Sid) -> Option<&Slot> {
        self.slots.get(&sid)
    }

    fn forget(&mut self, sid: Sid) -> Option<SessionKey> {
        let Slot { key, log } = self.slots.remove(&sid)?;
        log.lock().deleted = true;
        if let Some(names) = self.by_tenant.get_mut(&key.tenant) {
            names.remove(&key.name);
            if names.is_empty() {
                self.by_tenant.remove(&key.tenant);
            }
        }
        Some(key)
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

/// The log of one session.
#[derive(Debug, Default)]
struct MemoryLog {
    /// The record with sequence number `n` is at index `n - 1`.
    records: Vec<Arc<Record>>,
    epoch: Epoch,
    /// Records from here on are the present owner's.
    claimed_at: usize,
    standing: SessionStatus,
    snapshot: Option<Snapshot>,
    /// Searchable records: number of the append, and index.
    said: Vec<(u64, usize)>,
    /// An append that found the log before its deletion must not land.
    deleted: bool,
}

impl MemoryLog {
    fn last(&self) -> Seq {
        Seq(self.records.len() as u64)
    }

    fn claim(&mut self, sid: Sid) -> Claim {
        self.epoch = self.epoch.next();
        self.claimed_at = self.records.len();
        self.current(sid)
    }

    fn current(&self, sid: Sid) -> Claim {
        let (epoch, last) = (self.epoch, self.last());
        Claim { sid, epoch, last }
    }

    fn append(&mut self, append: &Append, landed: &AtomicU64) -> Result<Seq, Error> {
        let (sid, expected, records) = (append.sid, append.after, &append.records);
        self.owned(sid, append.epoch)?;
        let last = self.last();
        if expected == last {
            self.index_texts(records, landed);
            self.records.extend(records.iter().cloned());
            self.standing = append.leaves;
            return Ok(self.last());
        }
        if self.repeats(expected, records) {
            return Ok(Seq(expected.0 + records.len() as u64));
        }
        Err(Error::conflict(sid, expected, last))
    }

    fn index_texts(&mut self, records: &[Arc<Record>], landed: &AtomicU64) {
        let text = |&(_, record): &(usize, &Arc<Record>)| record.text().is_some();
        let mut behind = (self.records.len()..).zip(records).filter(text).peekable();
        if behind.peek().is_some() {
            let landed = landed.fetch_add(1, Ordering::Relaxed);
            self.said.extend(behind.map(|(index, _)| (landed, index)));
        }
    }

    fn owned(&self, sid: Sid, mine: Epoch) -> Result<(), Error> {
        let current = self.epoch;
        if self.deleted {
            return Err(Error::Unknown { sid });
        }
        if mine == current {
            return Ok(());
        }
        Err(Error::Fenced { sid, mine, current })
    }

    /// Whether the owner has already appended these records here.
    fn repeats(&self, after: Seq, records: &[Arc<Record>]) -> bool {
        let start = usize::try_from(after.0).unwrap_or(usize::MAX);
        let there = self.records.get(start..start.saturating_add(records.len()));
        let same = |(a, b): (&Arc<Record>, &Arc<Record>)| Arc::ptr_eq(a, b) || a == b;
        start >= self.claimed_at && there.is_some_and(|there| there.iter().zip(records).all(same))
    }
}

impl Journal for Memory {
    fn claim(&self, key: SessionKey) -> JournalFuture<'_, Claim> {
        Box::pin(async move {
            let known = self.sessions.read().sid(&key);
            let sid = known.unwrap_or_else(|| self.sessions.write().open(key));
            let log = self.log(sid)?;
            Ok(log.lock().claim(sid))
        })
    }

    fn begin(
        &self,
        key: SessionKey,
        records: Vec<Arc<Record>>,
        leaves: SessionStatus,
    ) -> JournalFuture<'_, Claim> {
        Box::pin(async move {
            if records.is_empty() {
                return Err(Error::Empty);
            }
            let mut sessions = self.sessions.write();
            sessions.has_parent(&key, Sid::default(), Seq(0), &records)?;
            let sid = sessions.open(key);
            let slot = sessions.slot(sid).ok_or(Error::Unknown { sid })?;
            let mut log = slot.log.lock();
            if log.last() != Seq(0) {
                return Err(Error::status_conflict(sid, log.last(), log.standing));
            }
            let claim = log.claim(sid);
            let append = Append::new(claim, records, leaves);
            let last = log.append(&append, &self.landed)?;
            Ok(Claim { last, ..claim })
        })
    }

    fn release(&self, sid: Sid, epoch: Epoch) -> JournalFuture<'_, ()> {
        Box::pin(async move {
            let log = self.log(sid)?;
            log.lock().owned(sid, epoch)
        })
    }

    fn append(&self, append: Append) -> JournalFuture<'_, Seq> {
        Box::pin(async move {
            if append.records.is_empty() {
                return Err(Error::Empty);
            }
            let sessions = self.sessions.read();
            let sid = append.sid;
            let slot = sessions.slot(sid).ok_or(Error::Unknown { sid })?;
            sessions.has_parent(&slot.key, sid, append.after, &append.records)?;
            // Under both locks, so that the parent cannot be deleted in between.
            let mut log = slot.log.lock();
            let before = log.last();
            let last = log.append(&append, &self.landed)?;
            if log.last() > before {
                self.count(append.charges);
            }
            Ok(last)
        })
    }

    fn read(&self, sid: Sid, after: Seq, limit: usize) -> JournalFuture<'_, Vec<Entry>> {
        Box::pin(async move {
            let log = self.log(sid)?;
            let log = log.lock();
            let start = usize::try_from(after.0).unwrap_or(usize::MAX);
            let records = log.records.iter().skip(start).take(limit);
            Ok(Entry::numbered(after, records.cloned().collect()))
        })
    }

    fn find(&self, key: SessionKey) -> JournalFuture<'_, Option<Known>> {
        Box::pin(async move {
            let sid = self.sessions.read().sid(&key);
            Ok(sid.and_then(|sid| self.known(sid)))
        })
    }

    fn list(
        &self,
        tenant: TenantId,
        after: Option<SessionName>,
        limit: usize,
    ) -> JournalFuture<'_, Vec<Known>> {
        Box::pin(async move {
            let page = self.sessions.read().page(&tenant, after, limit);
            let known = page.into_iter().filter_map(|sid| self.known(sid));
            Ok(known.collect())
        })
    }

    fn tenants(&self, after: Option<TenantId>, limit: usize) -> JournalFuture<'_, Vec<TenantId>> {
        Box::pin(async move {
            let from = after.map_or(Bound::Unbounded, Bound::Excluded);
            let sessions = self.sessions.read();
            let page = sessions.by_tenant.range((from, Bound::Unbounded));
            let page = page.map(|(tenant, _)| tenant.clone());
            Ok(page.take(limit).collect())
        })
    }

    fn unfinished(
        &self,
        of: Option<TenantId>,
        sids: Sids,
        limit: usize,
    ) -> JournalFuture<'_, Vec<Known>> {
        Box::pin(async move {
            let sessions = self.sessions.read();
            let slots = sessions.slots.range(sids);
            let known = slots.map(|(sid, slot)| slot.known(*sid));
            let is_wanted = |known: &Known| of.as_ref().is_none_or(|of| known.key.tenant == *of);
            let busy =
                known.filter(|known| known.standing == SessionStatus::Busy && is_wanted(known));
            Ok(busy.take(limit).collect())
        })
    }

    fn save(&self, sid: Sid, epoch: Epoch, snapshot: Snapshot) -> JournalFuture<'_, ()> {
        Box::pin(async move {
            let log = self.log(sid)?;
            let mut log = log.lock();
            log.owned(sid, epoch)?;
            let kept = log.snapshot.as_ref();
            let newer = kept.is_none_or(|kept| kept.seq < snapshot.seq);
            if newer && snapshot.seq <= log.last() {
                log.snapshot = Some(snapshot);
            }
            Ok(())
        })
    }

    fn snapshot(&self, sid: Sid) -> JournalFuture<'_, Option<Snapshot>> {
        Box::pin(async move {
            let log = self.log(sid)?;
            Ok(log.lock().snapshot.clone())
        })
    }

    fn usage(&self, payer: Payer, since: Day) -> JournalFuture<'_, Vec<DayUsage>> {
        Box::pin(async move {
            let all = self.usage.lock();
            let days = all.get(&payer).into_iter();
            let since = days.flat_map(|days| days.range(since..));
            Ok(since.map(|(_, usage)| *usage).collect())
        })
    }

    fn delete(&self, sid: Sid, only: Only) -> JournalFuture<'_, Vec<Known>> {
        Box::pin(async move {
            let mut sessions = self.sessions.write();
            let mut family = vec![sid];
            let mut gone = Vec::new();
            while let Some(&sid) = family.get(gone.len()) {
                let slot = sessions.slot(sid).ok_or(Error::Unknown { sid })?;
                let known = slot.known(sid);
                only.judge(sid, known.last, known.standing)?;
                let below = sessions.below(&known.key).into_iter();
                let new: Vec<_> = below.filter(|child| !family.contains(child)).collect();
                family.extend(new);
                gone.push(known);
            }
            for sid in family {
                sessions.forget(sid);
            }
            Ok(gone)
        })
    }

    fn search(&self, tenant: TenantId, words: String, limit: usize) -> JournalFuture<'_, Vec<Hit>> {
        Box::pin(async move {
            let Some(wanted) = SearchQuery::of(&words) else {
                return Ok(Vec::new());
            };
            let sessions = self.sessions.read();
            let named = sessions.by_tenant.get(&tenant);
            let sids = named.into_iter().flat_map(BTreeMap::values);
            let slots = sids.filter_map(|&sid| sessions.slot(sid));
            let mut found: Vec<_> = slots.flat_map(|slot| slot.hits(&wanted)).collect();
            found.sort_by_key(|&(landed, _)| Reverse(landed));
            Ok(found.into_iter().map(|(_, hit)| hit).take(limit).collect())
        })
    }
}

#[cfg(test)]
mod tests;
