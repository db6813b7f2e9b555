//! The SQLite journal on a paused clock, which stands still while the disk works.
//!
//! A paused clock advances whenever the runtime is idle, unless one of its own threads is busy; the
//! journal's threads are not the runtime's.

use std::{future::Future, path::Path, sync::Arc};

use futures_util::{FutureExt, future::BoxFuture};
use oracle_agent::{
    journal::{
        Append, Claim, Entry, Error, Hit, Journal, Known, Only, SessionStatus, Sids, Snapshot,
        Sqlite,
    },
    model::{Day, DayUsage, Epoch, Payer, Record, Seq, SessionKey, SessionName, Sid, TenantId},
};
use tokio::{runtime::Handle, task::spawn_blocking};

/// A journal whose every call keeps a thread of the runtime busy.
pub(super) struct Held(Sqlite);

impl Held {
    pub(super) fn open(folder: &Path) -> Self {
        let broken = |why: &str| panic!("the journal is broken: {why}");
        Self(Sqlite::open(folder, Box::new(broken)).unwrap())
    }

    fn held<T: Send + 'static, F: Future<Output = Result<T, Error>>>(
        &self,
        call: impl FnOnce(Sqlite) -> F + Send + 'static,
    ) -> BoxFuture<'_, Result<T, Error>> {
        let (journal, runtime) = (self.0.clone(), Handle::current());
        async move {
            let done = spawn_blocking(move || runtime.block_on(call(journal)));
            done.await.unwrap()
        }
        .boxed()
    }
}

impl Journal for Held {
    fn claim(&self, key: SessionKey) -> BoxFuture<'_, Result<Claim, Error>> {
        self.held(async move |journal| journal.claim(key).await)
    }

    fn begin(
        &self,
        key: SessionKey,
        records: Vec<Arc<Record>>,
        leaves: SessionStatus,
    ) -> BoxFuture<'_, Result<Claim, Error>> {
        self.held(async move |journal| journal.begin(key, records, leaves).await)
    }

    fn release(&self, sid: Sid, epoch: Epoch) -> BoxFuture<'_, Result<(), Error>> {
        self.held(async move |journal| journal.release(sid, epoch).await)
    }

    fn append(&self, append: Append) -> BoxFuture<'_, Result<Seq, Error>> {
        self.held(async move |journal| journal.append(append).await)
    }

    fn read(&self, sid: Sid, after: Seq, limit: usize) -> BoxFuture<'_, Result<Vec<Entry>, Error>> {
        self.held(async move |journal| journal.read(sid, after, limit).await)
    }

    fn find(&self, key: SessionKey) -> BoxFuture<'_, Result<Option<Known>, Error>> {
        self.held(async move |journal| journal.find(key).await)
    }

    fn list(
        &self,
        tenant: TenantId,
        after: Option<SessionName>,
        limit: usize,
    ) -> BoxFuture<'_, Result<Vec<Known>, Error>> {
        self.held(async move |journal| journal.list(tenant, after, limit).await)
    }

    fn tenants(
        &self,
        after: Option<TenantId>,
        limit: usize,
    ) -> BoxFuture<'_, Result<Vec<TenantId>, Error>> {
        self.held(async move |journal| journal.tenants(after, limit).await)
    }

    fn unfinished(
        &self,
        of: Option<TenantId>,
        sids: Sids,
        limit: usize,
    ) -> BoxFuture<'_, Result<Vec<Known>, Error>> {
        self.held(async move |journal| journal.unfinished(of, sids, limit).await)
    }

    fn save(&self, sid: Sid, epoch: Epoch, snapshot: Snapshot) -> BoxFuture<'_, Result<(), Error>> {
        self.held(async move |journal| journal.save(sid, epoch, snapshot).await)
    }

    fn snapshot(&self, sid: Sid) -> BoxFuture<'_, Result<Option<Snapshot>, Error>> {
        self.held(async move |journal| journal.snapshot(sid).await)
    }

    fn usage(&self, payer: Payer, since: Day) -> BoxFuture<'_, Result<Vec<DayUsage>, Error>> {
        self.held(async move |journal| journal.usage(payer, since).await)
    }

    fn delete(&self, sid: Sid, only: Only) -> BoxFuture<'_, Result<Vec<Known>, Error>> {
        self.held(async move |journal| journal.delete(sid, only).await)
    }

    fn search(
        &self,
        tenant: TenantId,
        words: String,
        limit: usize,
    ) -> BoxFuture<'_, Result<Vec<Hit>, Error>> {
        self.held(async move |journal| journal.search(tenant, words, limit).await)
    }
}
