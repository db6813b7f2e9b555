//! Implements [`Journal`] for an `Arc` of a journal.

use std::sync::Arc;

use super::{
    Append, Claim, Entry, Hit, Journal, JournalFuture, Known, Only, SessionStatus, Sids, Snapshot,
};
use crate::model::{
    Day, DayUsage, Epoch, Payer, Record, Seq, SessionKey, SessionName, Sid, TenantId,
};

impl<J: Journal + ?Sized> Journal for Arc<J> {
    fn claim(&self, key: SessionKey) -> JournalFuture<'_, Claim> {
        (**self).claim(key)
    }

    fn begin(
        &self,
        key: SessionKey,
        records: Vec<Arc<Record>>,
        leaves: SessionStatus,
    ) -> JournalFuture<'_, Claim> {
        (**self).begin(key, records, leaves)
    }

    fn release(&self, sid: Sid, epoch: Epoch) -> JournalFuture<'_, ()> {
        (**self).release(sid, epoch)
    }

    fn append(&self, append: Append) -> JournalFuture<'_, Seq> {
        (**self).append(append)
    }

    fn read(&self, sid: Sid, after: Seq, limit: usize) -> JournalFuture<'_, Vec<Entry>> {
        (**self).read(sid, after, limit)
    }

    fn find(&self, key: SessionKey) -> JournalFuture<'_, Option<Known>> {
        (**self).find(key)
    }

    fn list(
        &self,
        tenant: TenantId,
        after: Option<SessionName>,
        limit: usize,
    ) -> JournalFuture<'_, Vec<Known>> {
        (**self).list(tenant, after, limit)
    }

    fn tenants(&self, after: Option<TenantId>, limit: usize) -> JournalFuture<'_, Vec<TenantId>> {
        (**self).tenants(after, limit)
    }

    fn unfinished(&self, sids: Sids, limit: usize) -> JournalFuture<'_, Vec<Known>> {
        (**self).unfinished(sids, limit)
    }

    fn save(&self, sid: Sid, epoch: Epoch, snapshot: Snapshot) -> JournalFuture<'_, ()> {
        (**self).save(sid, epoch, snapshot)
    }

    fn snapshot(&self, sid: Sid) -> JournalFuture<'_, Option<Snapshot>> {
        (**self).snapshot(sid)
    }

    fn usage(&self, payer: Payer, since: Day) -> JournalFuture<'_, Vec<DayUsage>> {
        (**self).usage(payer, since)
    }

    fn delete(&self, sid: Sid, only: Only) -> JournalFuture<'_, Vec<Known>> {
        (**self).delete(sid, only)
    }

    fn search(&self, tenant: TenantId, words: String, limit: usize) -> JournalFuture<'_, Vec<Hit>> {
        (**self).search(tenant, words, limit)
    }
}
