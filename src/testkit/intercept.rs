//! A trait for journals that intercept the calls to another one.

use std::sync::Arc;

use futures_util::FutureExt;

use crate::{
    journal::{
        Append, Claim, Entry, Hit, Journal, JournalFuture, Known, Only, SessionStatus, Sids,
        Snapshot,
    },
    model::{Day, DayUsage, Epoch, Payer, Record, Seq, SessionKey, SessionName, Sid, TenantId},
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
    /// [`Journal::usage`]
    Usage,
    /// [`Journal::delete`]
    Delete,
    /// [`Journal::search`]
    Search,
}

/// An intercepted call.
#[derive(Debug)]
pub struct InterceptedCall {
    /// Kind.
    pub operation: Operation,
    /// Session, if the call names it by id.
    pub sid: Option<Sid>,
    /// Records to append.
    pub records: Vec<Arc<Record>>,
}

/// A [`Journal`] that intercepts the calls to another one.
pub trait InterceptedJournal: Send + Sync + 'static {
    /// The other journal.
    fn inner(&self) -> &dyn Journal;

    /// Answers a call; `done` passes it on to the other journal.
    fn intercept<'a, T: Send + 'a>(
        &'a self,
        call: InterceptedCall,
        done: impl FnOnce() -> JournalFuture<'a, T> + Send + 'a,
    ) -> JournalFuture<'a, T>;

    /// Observes how many records a call has read.
    fn on_read(&self, _: usize) {}

    /// Observes which records a call has appended.
    fn on_appended(&self, _: Sid, _: &[Arc<Record>]) {}
}

fn call(operation: Operation, sid: Option<Sid>) -> InterceptedCall {
    InterceptedCall {
        operation,
        sid,
        records: Vec::new(),
    }
}

impl<A: InterceptedJournal> Journal for A {
    fn claim(&self, key: SessionKey) -> JournalFuture<'_, Claim> {
        let done = move || self.inner().claim(key);
        self.intercept(call(Operation::Claim, None), done)
    }

    fn begin(
        &self,
        key: SessionKey,
        records: Vec<Arc<Record>>,
        leaves: SessionStatus,
    ) -> JournalFuture<'_, Claim> {
        let call = InterceptedCall {
            records: records.clone(),
            ..call(Operation::Append, None)
        };
        let done = move || {
            async move {
                let claim = self.inner().begin(key, records.clone(), leaves).await?;
                self.on_appended(claim.sid, &records);
                Ok(claim)
            }
            .boxed()
        };
        self.intercept(call, done)
    }

    fn losses(&self) -> u64 {
        self.inner().losses()
    }

    fn release(&self, sid: Sid, epoch: Epoch) -> JournalFuture<'_, ()> {
        self.inner().release(sid, epoch)
    }

    fn append(&self, append: Append) -> JournalFuture<'_, Seq> {
        let call = InterceptedCall {
            records: append.records.clone(),
            ..call(Operation::Append, Some(append.sid))
        };
        let done = move || {
            async move {
                let (sid, records) = (append.sid, append.records.clone());
                let last = self.inner().append(append).await?;
                self.on_appended(sid, &records);
                Ok(last)
            }
            .boxed()
        };
        self.intercept(call, done)
    }

    fn read(&self, sid: Sid, after: Seq, limit: usize) -> JournalFuture<'_, Vec<Entry>> {
        let done = move || {
            async move {
                let entries = self.inner().read(sid, after, limit).await?;
                self.on_read(entries.len());
                Ok(entries)
            }
            .boxed()
        };
        self.intercept(call(Operation::Read, Some(sid)), done)
    }

    fn find(&self, key: SessionKey) -> JournalFuture<'_, Option<Known>> {
        let done = move || self.inner().find(key);
        self.intercept(call(Operation::Find, None), done)
    }

    fn list(
        &self,
        tenant: TenantId,
        after: Option<SessionName>,
        limit: usize,
    ) -> JournalFuture<'_, Vec<Known>> {
        let done = move || self.inner().list(tenant, after, limit);
        self.intercept(call(Operation::List, None), done)
    }

    fn tenants(&self, after: Option<TenantId>, limit: usize) -> JournalFuture<'_, Vec<TenantId>> {
        let done = move || self.inner().tenants(after, limit);
        self.intercept(call(Operation::Tenants, None), done)
    }

    fn unfinished(
        &self,
        of: Option<TenantId>,
        sids: Sids,
        limit: usize,
    ) -> JournalFuture<'_, Vec<Known>> {
        let done = move || self.inner().unfinished(of, sids, limit);
        self.intercept(call(Operation::Unfinished, None), done)
    }

    fn save(&self, sid: Sid, epoch: Epoch, snapshot: Snapshot) -> JournalFuture<'_, ()> {
        let done = move || self.inner().save(sid, epoch, snapshot);
        self.intercept(call(Operation::Save, Some(sid)), done)
    }

    fn snapshot(&self, sid: Sid) -> JournalFuture<'_, Option<Snapshot>> {
        let done = move || self.inner().snapshot(sid);
        self.intercept(call(Operation::Snapshot, Some(sid)), done)
    }

    fn usage(&self, payer: Payer, since: Day) -> JournalFuture<'_, Vec<DayUsage>> {
        let done = move || self.inner().usage(payer, since);
        self.intercept(call(Operation::Usage, None), done)
    }

    fn delete(&self, sid: Sid, only: Only) -> JournalFuture<'_, Vec<Known>> {
        let done = move || self.inner().delete(sid, only);
        self.intercept(call(Operation::Delete, Some(sid)), done)
    }

    fn search(&self, tenant: TenantId, words: String, limit: usize) -> JournalFuture<'_, Vec<Hit>> {
        let done = move || self.inner().search(tenant, words, limit);
        self.intercept(call(Operation::Search, None), done)
    }
}
