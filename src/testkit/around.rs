//! A trait for journals that intercept the calls to another one.

use std::sync::Arc;

use futures_util::{FutureExt, future::BoxFuture};

use crate::{
    journal::{Append, Claim, Entry, Error, Hit, Journal, Known, Only, Sids, Snapshot, Standing},
    model::{Epoch, Record, Seq, SessionKey, SessionName, Sid, TenantId},
};

/// Kind of a call. Releases are not intercepted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Operation {
    /// [`Journal::claim`]
    Claim,
    /// [`Journal::append`] or [`Journal::begin`]
    Append,
    /// [`Journal::read`]
    Read,
    /// [`Journal::find`]
    Find,
    /// [`Journal::list`]
    List,
    /// [`Journal::tenants`]
    Tenants,
    /// [`Journal::unfinished`]
    Unfinished,
    /// [`Journal::save`]
    Save,
    /// [`Journal::snapshot`]
    Snapshot,
    /// [`Journal::delete`]
    Delete,
    /// [`Journal::search`]
    Search,
}

/// An intercepted call.
#[derive(Debug)]
pub struct Call {
    /// Kind.
    pub operation: Operation,
    /// Session, if the call names it by id.
    pub sid: Option<Sid>,
    /// Records to append.
    pub records: Vec<Arc<Record>>,
}

/// A [`Journal`] that intercepts the calls to another one.
pub trait Around: Send + Sync + 'static {
    /// The other journal.
    fn inner(&self) -> &dyn Journal;

    /// Answers a call; `done` passes it on to the other journal.
    fn around<'a, T: Send + 'a>(
        &'a self,
        call: Call,
        done: impl FnOnce() -> BoxFuture<'a, Result<T, Error>> + Send + 'a,
    ) -> BoxFuture<'a, Result<T, Error>>;

    /// Observes how many records a call has read.
    fn has_read(&self, _: usize) {}

    /// Observes which records a call has appended.
    fn has_landed(&self, _: Sid, _: &[Arc<Record>]) {}
}

fn call(operation: Operation, sid: Option<Sid>) -> Call {
    Call {
        operation,
        sid,
        records: Vec::new(),
    }
}

impl<A: Around> Journal for A {
    fn claim(&self, key: SessionKey) -> BoxFuture<'_, Result<Claim, Error>> {
        let done = move || self.inner().claim(key);
        self.around(call(Operation::Claim, None), done)
    }

    fn begin(
        &self,
        key: SessionKey,
        records: Vec<Arc<Record>>,
        leaves: Standing,
    ) -> BoxFuture<'_, Result<Claim, Error>> {
        let call = Call {
            records: records.clone(),
            ..call(Operation::Append, None)
        };
        let done = move || {
            async move {
                let claim = self.inner().begin(key, records.clone(), leaves).await?;
                self.has_landed(claim.sid, &records);
                Ok(claim)
            }
            .boxed()
        };
        self.around(call, done)
    }

    fn release(&self, sid: Sid, epoch: Epoch) -> BoxFuture<'_, Result<(), Error>> {
        self.inner().release(sid, epoch)
    }

    fn append(&self, append: Append) -> BoxFuture<'_, Result<Seq, Error>> {
        let call = Call {
            records: append.records.clone(),
            ..call(Operation::Append, Some(append.sid))
        };
        let done = move || {
            async move {
                let (sid, records) = (append.sid, append.records.clone());
                let last = self.inner().append(append).await?;
                self.has_landed(sid, &records);
                Ok(last)
            }
            .boxed()
        };
        self.around(call, done)
    }

    fn read(&self, sid: Sid, after: Seq, limit: usize) -> BoxFuture<'_, Result<Vec<Entry>, Error>> {
        let done = move || {
            async move {
                let entries = self.inner().read(sid, after, limit).await?;
                self.has_read(entries.len());
                Ok(entries)
            }
            .boxed()
        };
        self.around(call(Operation::Read, Some(sid)), done)
    }

    fn find(&self, key: SessionKey) -> BoxFuture<'_, Result<Option<Known>, Error>> {
        let done = move || self.inner().find(key);
        self.around(call(Operation::Find, None), done)
    }

    fn list(
        &self,
        tenant: TenantId,
        after: Option<SessionName>,
        limit: usize,
    ) -> BoxFuture<'_, Result<Vec<Known>, Error>> {
        let done = move || self.inner().list(tenant, after, limit);
        self.around(call(Operation::List, None), done)
    }

    fn tenants(
        &self,
        after: Option<TenantId>,
        limit: usize,
    ) -> BoxFuture<'_, Result<Vec<TenantId>, Error>> {
        let done = move || self.inner().tenants(after, limit);
        self.around(call(Operation::Tenants, None), done)
    }

    fn unfinished(&self, sids: Sids, limit: usize) -> BoxFuture<'_, Result<Vec<Known>, Error>> {
        let done = move || self.inner().unfinished(sids, limit);
        self.around(call(Operation::Unfinished, None), done)
    }

    fn save(&self, sid: Sid, epoch: Epoch, snapshot: Snapshot) -> BoxFuture<'_, Result<(), Error>> {
        let done = move || self.inner().save(sid, epoch, snapshot);
        self.around(call(Operation::Save, Some(sid)), done)
    }

    fn snapshot(&self, sid: Sid) -> BoxFuture<'_, Result<Option<Snapshot>, Error>> {
        let done = move || self.inner().snapshot(sid);
        self.around(call(Operation::Snapshot, Some(sid)), done)
    }

    fn delete(&self, sid: Sid, only: Only) -> BoxFuture<'_, Result<Vec<Known>, Error>> {
        let done = move || self.inner().delete(sid, only);
        self.around(call(Operation::Delete, Some(sid)), done)
    }

    fn search(
        &self,
        tenant: TenantId,
        words: String,
        limit: usize,
    ) -> BoxFuture<'_, Result<Vec<Hit>, Error>> {
        let done = move || self.inner().search(tenant, words, limit);
        self.around(call(Operation::Search, None), done)
    }
}
