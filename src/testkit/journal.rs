//! A journal that gets in the way in ways that [`super::faulty`] does not: records that
//! cannot be read, and appends that never answer.

use std::{
    sync::{
        Arc, Mutex, PoisonError,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};

use futures_util::{FutureExt, future::BoxFuture};

use super::Panics;
use crate::{
    journal::{Append, Claim, Entry, Error, Hit, Journal, Known, Only, Snapshot, Standing},
    model::{Epoch, Record, Seq, SessionKey, SessionName, Sid, TenantId},
};

/// What the journal does at present.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Obstacle {
    /// Nothing but its work.
    #[default]
    None,
    /// Reading this session fails: its first record is said to be broken.
    Unreadable(Sid),
    /// Reading this session panics, once.
    Panic(Sid),
    /// Reading a session is never answered.
    SilentReads,
    /// Appends are done, but never answered.
    SilentAppends,
    /// Appends are done at once, and answered so much later.
    LateAppends(Duration),
    /// Appends to this session are neither done nor answered.
    Stuck(Sid),
    /// Snapshots are neither kept nor answered.
    SilentSnapshots,
    /// Appends fail and are not done.
    RefusedAppends,
    /// Appends of more than so many bytes fail and are not done.
    RefusedLarge(usize),
    /// Lists of sessions take so long.
    SlowLists(Duration),
    /// Nothing works.
    Down,
    /// What was to be durable may not be: nothing is done any more.
    Broken,
}

/// A journal behind an obstacle that can be set at any time. Clones share it.
#[derive(Clone)]
pub struct Obstructed {
    inner: Arc<dyn Journal>,
    // A lock, because tests set it while sessions read it; held for a copy only.
    obstacle: Arc<Mutex<Obstacle>>,
    hits: Arc<AtomicU64>,
    read: Arc<AtomicU64>,
    listed: Arc<AtomicU64>,
}

impl Obstructed {
    /// Around a journal, with nothing in the way.
    pub fn new(inner: Arc<dyn Journal>) -> Self {
        Self {
            inner,
            obstacle: Arc::default(),
            hits: Arc::default(),
            read: Arc::default(),
            listed: Arc::default(),
        }
    }

    /// From now on.
    pub fn set(&self, obstacle: Obstacle) {
        *self.obstacle.lock().unwrap_or_else(PoisonError::into_inner) = obstacle;
    }

    /// How often a call met the obstacle.
    #[must_use]
    pub fn hits(&self) -> u64 {
        self.hits.load(Ordering::Relaxed)
    }

    /// How many records were read.
    #[must_use]
    pub fn records_read(&self) -> u64 {
        self.read.load(Ordering::Relaxed)
    }

    /// How often sessions were listed.
    #[must_use]
    pub fn listings(&self) -> u64 {
        self.listed.load(Ordering::Relaxed)
    }

    fn now(&self) -> Obstacle {
        *self.obstacle.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn hit<T>(&self, error: Error) -> Result<T, Error> {
        self.hits.fetch_add(1, Ordering::Relaxed);
        Err(error)
    }

    /// Appends records, as far as the obstacle lets them through.
    async fn land<T>(
        &self,
        sid: Option<Sid>,
        records: &[Arc<Record>],
        append: impl Future<Output = Result<T, Error>>,
    ) -> Result<T, Error> {
        self.up()?;
        match self.now() {
            Obstacle::SilentAppends => {
                self.hits.fetch_add(1, Ordering::Relaxed);
                append.await?;
                std::future::pending().await
            }
            Obstacle::LateAppends(time) => {
                self.hits.fetch_add(1, Ordering::Relaxed);
                let appended = append.await;
                tokio::time::sleep(time).await;
                appended
            }
            Obstacle::Stuck(stuck) if Some(stuck) == sid => {
                self.hits.fetch_add(1, Ordering::Relaxed);
                std::future::pending().await
            }
            Obstacle::RefusedLarge(most) if size(records) > most => {
                self.hit(Error::Unavailable("there is no room for so much".into()))
            }
            Obstacle::RefusedAppends => self.hit(Error::Unavailable("it is full".into())),
            _ => append.await,
        }
    }

    fn up(&self) -> Result<(), Error> {
        match self.now() {
            Obstacle::Down => self.hit(Error::Unavailable("it is down".into())),
            Obstacle::Broken => self.hit(Error::Broken("the disk lies".into())),
            _ => Ok(()),
        }
    }
}

/// How many bytes the records take as JSON.
fn size(records: &[Arc<Record>]) -> usize {
    let bytes = records.iter().map(serde_json::to_vec);
    bytes.flatten().map(|bytes| bytes.len()).sum()
}

impl Journal for Obstructed {
    fn claim(&self, key: SessionKey) -> BoxFuture<'_, Result<Claim, Error>> {
        async move {
            self.up()?;
            self.inner.claim(key).await
        }
        .boxed()
    }

    fn begin(
        &self,
        key: SessionKey,
        records: Vec<Arc<Record>>,
        leaves: Standing,
    ) -> BoxFuture<'_, Result<Claim, Error>> {
        async move {
            let begun = self.inner.begin(key, records.clone(), leaves);
            self.land(None, &records, begun).await
        }
        .boxed()
    }

    fn release(&self, sid: Sid, epoch: Epoch) -> BoxFuture<'_, Result<(), Error>> {
        self.inner.release(sid, epoch)
    }

    fn append(&self, append: Append) -> BoxFuture<'_, Result<Seq, Error>> {
        async move {
            let (sid, records) = (append.sid, append.records.clone());
            let appended = self.inner.append(append);
            self.land(Some(sid), &records, appended).await
        }
        .boxed()
    }

    fn read(&self, sid: Sid, after: Seq, limit: usize) -> BoxFuture<'_, Result<Vec<Entry>, Error>> {
        async move {
            self.up()?;
            if self.now() == Obstacle::Unreadable(sid) {
                let (seq, why) = (Seq(1), "it is broken".into());
                return self.hit(Error::Unreadable { sid, seq, why });
            }
            if self.now() == Obstacle::SilentReads {
                self.hits.fetch_add(1, Ordering::Relaxed);
                return std::future::pending().await;
            }
            if self.now() == Obstacle::Panic(sid) {
                self.set(Obstacle::None);
                self.hits.fetch_add(1, Ordering::Relaxed);
                Panics::times(1).maybe();
            }
            let entries = self.inner.read(sid, after, limit).await?;
            self.read.fetch_add(entries.len() as u64, Ordering::Relaxed);
            Ok(entries)
        }
        .boxed()
    }

    fn find(&self, key: SessionKey) -> BoxFuture<'_, Result<Option<Known>, Error>> {
        async move {
            self.up()?;
            self.inner.find(key).await
        }
        .boxed()
    }

    fn list(
        &self,
        tenant: TenantId,
        after: Option<SessionName>,
        limit: usize,
    ) -> BoxFuture<'_, Result<Vec<Known>, Error>> {
        async move {
            self.up()?;
            self.listed.fetch_add(1, Ordering::Relaxed);
            // As one that has to wait for a disk.
            tokio::task::yield_now().await;
            if let Obstacle::SlowLists(time) = self.now() {
                self.hits.fetch_add(1, Ordering::Relaxed);
                tokio::time::sleep(time).await;
            }
            self.inner.list(tenant, after, limit).await
        }
        .boxed()
    }

    fn tenants(
        &self,
        after: Option<TenantId>,
        limit: usize,
    ) -> BoxFuture<'_, Result<Vec<TenantId>, Error>> {
        async move {
            self.up()?;
            self.inner.tenants(after, limit).await
        }
        .boxed()
    }

    fn unfinished(&self, after: Sid, limit: usize) -> BoxFuture<'_, Result<Vec<Known>, Error>> {
        async move {
            self.up()?;
            self.inner.unfinished(after, limit).await
        }
        .boxed()
    }

    fn save(&self, sid: Sid, epoch: Epoch, snapshot: Snapshot) -> BoxFuture<'_, Result<(), Error>> {
        async move {
            self.up()?;
            if self.now() == Obstacle::SilentSnapshots {
                self.hits.fetch_add(1, Ordering::Relaxed);
                return std::future::pending().await;
            }
            self.inner.save(sid, epoch, snapshot).await
        }
        .boxed()
    }

    fn snapshot(&self, sid: Sid) -> BoxFuture<'_, Result<Option<Snapshot>, Error>> {
        async move {
            self.up()?;
            self.inner.snapshot(sid).await
        }
        .boxed()
    }

    fn delete(&self, sid: Sid, only: Only) -> BoxFuture<'_, Result<Vec<Known>, Error>> {
        async move {
            self.up()?;
            self.inner.delete(sid, only).await
        }
        .boxed()
    }

    fn search(
        &self,
        tenant: TenantId,
        words: String,
        limit: usize,
    ) -> BoxFuture<'_, Result<Vec<Hit>, Error>> {
        async move {
            self.up()?;
            self.inner.search(tenant, words, limit).await
        }
        .boxed()
    }
}
