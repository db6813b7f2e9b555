//! Implements [`Journal`] for an `Arc` of a journal.

use std::sync::Arc;

use futures_util::future::BoxFuture;

use super::{
    Append, Claim, Entry, Error, Hit, Journal, Known, Only, SessionStatus, Sids, Snapshot,
};
use crate::model::{Epoch, Record, Seq, SessionKey, SessionName, Sid, TenantId};

impl<J: Journal + ?Sized> Journal for Arc<J> {
    fn claim(&self, key: SessionKey) -> BoxFuture<'_, Result<Claim, Error>> {
        (**self).claim(key)
    }

    fn begin(
        &self,
        key: SessionKey,
        records: Vec<Arc<Record>>,
        leaves: SessionStatus,
    ) -> BoxFuture<'_, Result<Claim, Error>> {
        (**self).begin(key, records, leaves)
    }

    fn release(&self, sid: Sid, epoch: Epoch) -> BoxFuture<'_, Result<(), Error>> {
        (**self).release(sid, epoch)
    }

    fn append(&self, append: Append) -> BoxFuture<'_, Result<Seq, Error>> {
        (**self).append(append)
    }

    fn read(&self, sid: Sid, after: Seq, limit: usize) -> BoxFuture<'_, Result<Vec<Entry>, Error>> {
        (**self).read(sid, after, limit)
    }

    fn find(&self, key: SessionKey) -> BoxFuture<'_, Result<Option<Known>, Error>> {
        (**self).find(key)
    }

    fn list(
        &self,
        tenant: TenantId,
        after: Option<SessionName>,
        limit: usize,
    ) -> BoxFuture<'_, Result<Vec<Known>, Error>> {
        (**self).list(tenant, after, limit)
    }

    fn tenants(
        &self,
        after: Option<TenantId>,
        limit: usize,
    ) -> BoxFuture<'_, Result<Vec<TenantId>, Error>> {
        (**self).tenants(after, limit)
    }

    fn unfinished(&self, sids: Sids, limit: usize) -> BoxFuture<'_, Result<Vec<Known>, Error>> {
        (**self).unfinished(sids, limit)
    }

    fn save(&self, sid: Sid, epoch: Epoch, snapshot: Snapshot) -> BoxFuture<'_, Result<(), Error>> {
        (**self).save(sid, epoch, snapshot)
    }

    fn snapshot(&self, sid: Sid) -> BoxFuture<'_, Result<Option<Snapshot>, Error>> {
        (**self).snapshot(sid)
    }

    fn delete(&self, sid: Sid, only: Only) -> BoxFuture<'_, Result<Vec<Known>, Error>> {
        (**self).delete(sid, only)
    }

    fn search(
        &self,
        tenant: TenantId,
        words: String,
        limit: usize,
    ) -> BoxFuture<'_, Result<Vec<Hit>, Error>> {
        (**self).search(tenant, words, limit)
    }
}
