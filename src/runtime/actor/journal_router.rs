//! The system's journal: the durable one, joined with a journal in memory.
//!
//! An ephemeral session and its sub-agents live in memory until their handle is dropped. They are
//! listed and controlled like others, because a [`JournalRouter`] routes by reserved names and high
//! session numbers. Only the usage of their model calls is durable: an estimate before each call and
//! the actual usage after it, in the reserved session `usage`.

use std::sync::Arc;

use dashmap::DashSet;

use crate::{
    journal::{
        Append, Claim, Entry, Erasure, Error, Hit, Journal, JournalFuture, Known, Memory, Only,
        SessionStatus, Sids, Snapshot,
    },
    model::{Day, DayUsage, Epoch, Payer, Record, Seq, SessionKey, SessionName, Sid, TenantId},
};

/// Sessions in memory have higher numbers than this.
const FIRST: Sid = Sid(1 << 62);

#[derive(Debug)]
pub(super) struct Ephemerals {
    pub(super) live: DashSet<SessionKey>,
    memory: Memory,
}

impl Default for Ephemerals {
    fn default() -> Self {
        Self {
            live: DashSet::new(),
            memory: Memory::after(FIRST),
        }
    }
}

impl Ephemerals {
    /// Whether a key names an ephemeral session, or its sub-agent, whose handle was dropped.
    pub(super) fn is_over(&self, key: &SessionKey) -> bool {
        let tenant = key.tenant.clone();
        let root = key.name.ephemeral_root();
        root.is_some_and(|name| !self.live.contains(&SessionKey { tenant, name }))
    }

    /// Undoes a claim that raced with the end of its session, which removed only what existed then.
    fn reject_if_ended(&self, key: &SessionKey, claim: Claim) -> Result<Claim, Error> {
        if self.is_over(key) {
            self.memory.clear(key);
            return Err(Error::Unknown { sid: claim.sid });
        }
        Ok(claim)
    }

    pub(super) fn end(&self, root: &SessionKey) -> Vec<SessionKey> {
        self.live.remove(root);
        self.memory.clear(root)
    }
}

/// The system's journal: the durable one joined with that of ephemeral sessions.
pub(super) struct JournalRouter {
    pub durable: Arc<dyn Journal>,
    pub ephemerals: Arc<Ephemerals>,
}

impl JournalRouter {
    fn of(&self, sid: Sid) -> &dyn Journal {
        match sid > FIRST {
            true => &self.ephemerals.memory,
            false => &*self.durable,
        }
    }

    fn named(&self, name: &SessionName) -> &dyn Journal {
        match name.is_ephemeral() {
            true => &self.ephemerals.memory,
            false => &*self.durable,
        }
    }
}

impl Journal for JournalRouter {
    fn claim(&self, key: SessionKey) -> JournalFuture<'_, Claim> {
        Box::pin(async move {
            let claim = self.named(&key.name).claim(key.clone()).await?;
            self.ephemerals.reject_if_ended(&key, claim)
        })
    }

    fn begin(
        &self,
        key: SessionKey,
        records: Vec<Arc<Record>>,
        leaves: SessionStatus,
    ) -> JournalFuture<'_, Claim> {
        Box::pin(async move {
            let journal = self.named(&key.name);
            let claim = journal.begin(key.clone(), records, leaves).await?;
            self.ephemerals.reject_if_ended(&key, claim)
        })
    }

    fn losses(&self) -> u64 {
        self.durable.losses()
    }

    fn release(&self, sid: Sid, epoch: Epoch) -> JournalFuture<'_, ()> {
        self.of(sid).release(sid, epoch)
    }

    fn append(&self, append: Append) -> JournalFuture<'_, Seq> {
        self.of(append.sid).append(append)
    }

    fn read(&self, sid: Sid, after: Seq, limit: usize) -> JournalFuture<'_, Vec<Entry>> {
        self.of(sid).read(sid, after, limit)
    }

    fn find(&self, key: SessionKey) -> JournalFuture<'_, Option<Known>> {
        self.named(&key.name).find(key)
    }

    fn list(
        &self,
        tenant: TenantId,
        after: Option<SessionName>,
        limit: usize,
    ) -> JournalFuture<'_, Vec<Known>> {
        Box::pin(async move {
            let (durable, memory) = (&self.durable, &self.ephemerals.memory);
            let mut all = memory.list(tenant.clone(), after.clone(), limit).await?;
            all.extend(durable.list(tenant, after, limit).await?);
            all.sort_by(|one, other| one.key.name.cmp(&other.key.name));
            all.truncate(limit);
            Ok(all)
        })
    }

    fn tenants(&self, after: Option<TenantId>, limit: usize) -> JournalFuture<'_, Vec<TenantId>> {
        self.durable.tenants(after, limit)
    }

    fn unfinished(
        &self,
        of: Option<TenantId>,
        sids: Sids,
        limit: usize,
    ) -> JournalFuture<'_, Vec<Known>> {
        Box::pin(async move {
            let (durable, memory) = (&self.durable, &self.ephemerals.memory);
            let mut all = match *sids.start() <= FIRST {
                true => durable.unfinished(of.clone(), sids.clone(), limit).await?,
                false => Vec::new(),
            };
            let room = limit - all.len();
            all.extend(memory.unfinished(of, sids, room).await?);
            Ok(all)
        })
    }

    fn save(&self, sid: Sid, epoch: Epoch, snapshot: Snapshot) -> JournalFuture<'_, ()> {
        self.of(sid).save(sid, epoch, snapshot)
    }

    fn snapshot(&self, sid: Sid) -> JournalFuture<'_, Option<Snapshot>> {
        self.of(sid).snapshot(sid)
    }

    fn usage(&self, payer: Payer, since: Day) -> JournalFuture<'_, Vec<DayUsage>> {
        self.durable.usage(payer, since)
    }

    fn delete(&self, sid: Sid, only: Only) -> JournalFuture<'_, Vec<Known>> {
        self.of(sid).delete(sid, only)
    }

    fn forget(&self, sid: Sid, only: Only) -> JournalFuture<'_, (Vec<Known>, Erasure)> {
        self.of(sid).forget(sid, only)
    }

    fn search(&self, tenant: TenantId, words: String, limit: usize) -> JournalFuture<'_, Vec<Hit>> {
        self.durable.search(tenant, words, limit)
    }
}
