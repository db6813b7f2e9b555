//! The journal of a data directory, by whichever way there is to it.
//!
//! The first process to open the directory has the journal and serves it; later ones use it over the
//! socket. When the first one ends, however it ends, one of those that are left opens the directory
//! and serves the others, and every call that was under way is made again: an append is known again by
//! what it says, so that none lands twice, and a deletion is done where the session is not there any more.

use std::{
    collections::HashMap,
    path::Path,
    sync::{Arc, Mutex, MutexGuard, PoisonError, RwLock, Weak},
    time::Duration,
};

use futures_util::{FutureExt, future::BoxFuture};
use tokio::{
    sync::mpsc,
    task::{JoinSet, spawn_blocking},
    time::{Instant, timeout_at},
};

use super::way::{Seeker, Way, closed};
use crate::{
    journal::{
        Append, Claim, Delivery, Entry, Error, Hit, Journal, Known, Letters, Only, Posted,
        Snapshot, sqlite::OpenError,
    },
    model::{Epoch, Seq, SessionKey, SessionName, Sid, TenantId},
};

/// Pause before it is looked again whether calls are over.
const PAUSE: Duration = Duration::from_millis(50);
/// How long closing waits for calls under way.
const CLOSE: Duration = Duration::from_secs(5);
/// How often one call is made again on another way.
const WAYS: u32 = 5;
/// Pause before a way is looked for again where there was none.
const AGAIN: Duration = Duration::from_secs(1);

/// A journal that several processes of a person use at once. Cheap to clone.
#[derive(Clone)]
pub struct Shared {
    inner: Arc<Inner>,
    /// Looks for another way as soon as one ends: what this process has is to be known.
    _keeper: Arc<JoinSet<()>>,
}

struct Inner {
    seeker: Seeker,
    // A lock, because the way changes under those who use it; held for a copy only.
    way: RwLock<Arc<Way>>,
    /// Held by whoever looks for another way.
    looking: tokio::sync::Mutex<()>,
    // A lock, because sessions are claimed and let go side by side; held for look-ups.
    held: Mutex<HashMap<SessionKey, Claim>>,
}

impl Shared {
    /// Opens a data directory, or finds the process that has it open.
    ///
    /// # Errors
    /// When the directory cannot be opened; [`OpenError::InUse`] where it is in use by a process that
    /// does not share it.
    pub async fn open(
        directory: &Path,
        on_broken: impl Fn(&str) + Send + Sync + 'static,
    ) -> Result<Self, OpenError> {
        let seeker = Seeker {
            directory: directory.to_path_buf(),
            on_broken: Arc::new(on_broken),
            inbox: Arc::default(),
            guests: Arc::default(),
        };
        let way = seeker.find(Vec::new()).await?;
        let inner = Arc::new(Inner {
            seeker,
            way: RwLock::new(Arc::new(way)),
            looking: tokio::sync::Mutex::new(()),
            held: Mutex::default(),
        });
        let mut keeper = JoinSet::new();
        keeper.spawn(keep(Arc::downgrade(&inner)));
        let _keeper = Arc::new(keeper);
        Ok(Self { inner, _keeper })
    }

    /// Gives the directory up in order, once the calls under way are done: the next process finds it tidy.
    /// Whoever still uses this finds it closed.
    pub async fn close(&self) {
        let mut way = self.inner.set(Way::Closed);
        let until = Instant::now() + CLOSE;
        // Whoever looks for another way gives up what it finds.
        drop(timeout_at(until, self.inner.looking.lock()).await);
        let own = loop {
            match Arc::try_unwrap(way) {
                Ok(own) => break own,
                // It ends with the process, without having been tidied up.
                Err(_) if Instant::now() >= until => return,
                Err(shared) => way = shared,
            }
            tokio::time::sleep(PAUSE).await;
        };
        if let Way::Own {
            server, journal, ..
        } = own
        {
            if let Some(server) = server {
                server.close(until).await;
            }
            // Waits for the disk.
            let _ = spawn_blocking(move || drop(journal)).await;
        }
    }

    /// The process that has the journal; none if it is this one.
    #[must_use]
    pub fn owner(&self) -> Option<u32> {
        match &*self.inner.way() {
            Way::Own { .. } | Way::Closed => None,
            Way::Far(remote) => Some(remote.pid()),
        }
    }

    /// Makes a call of the port.
    async fn call<T: Send + 'static>(
        &self,
        call: impl Fn(&dyn Journal) -> BoxFuture<'_, Result<T, Error>>,
    ) -> Result<T, Error> {
        self.on_a_way(|way| way.journal().map_or_else(|| closed(), &call))
            .await
    }

    /// Makes a call, again where the way to the journal ends under it.
    async fn on_a_way<T>(
        &self,
        call: impl Fn(&Way) -> BoxFuture<'_, Result<T, Error>>,
    ) -> Result<T, Error> {
        let mut ways = 1;
        loop {
            let way = self.inner.way();
            match call(&way).await {
                Err(Error::Unavailable(_)) if way.is_gone() && ways < WAYS => {
                    self.inner.look_for_another(&way).await?;
                }
                answer => return answer,
            }
            ways += 1;
        }
    }
}

/// For as long as anybody uses the journal.
async fn keep(inner: Weak<Inner>) {
    loop {
        let gone = {
            let Some(inner) = inner.upgrade() else { return };
            match &*inner.way() {
                Way::Far(remote) => remote.gone(),
                // It does not end before this process.
                Way::Own { .. } | Way::Closed => return,
            }
        };
        gone.await;
        let Some(inner) = inner.upgrade() else { return };
        let way = inner.way();
        if way.is_gone()
            && let Err(error) = inner.look_for_another(&way).await
        {
            tracing::warn!(%error, "there is no way to the journal");
            drop((way, inner));
            tokio::time::sleep(AGAIN).await;
        }
    }
}

impl Inner {
    async fn look_for_another(&self, gone: &Arc<Way>) -> Result<(), Error> {
        let _looking = self.looking.lock().await;
        if !Arc::ptr_eq(&self.way(), gone) {
            return Ok(());
        }
        let way = self.seeker.find(self.all_held()).await;
        let way = way.map_err(|error| Error::Unavailable(error.to_string()))?;
        self.replace(gone, way).await;
        Ok(())
    }

    /// Unless this was closed in the meantime: then the way that was found is given up again.
    async fn replace(&self, gone: &Arc<Way>, found: Way) {
        let unwanted = {
            let mut now = self.way.write().unwrap_or_else(PoisonError::into_inner);
            if Arc::ptr_eq(&now, gone) {
                *now = Arc::new(found);
                None
            } else {
                Some(found)
            }
        };
        if let Some(unwanted) = unwanted {
            // Waits for the disk.
            let _ = spawn_blocking(move || drop(unwanted)).await;
        }
    }

    fn set(&self, way: Way) -> Arc<Way> {
        let mut now = self.way.write().unwrap_or_else(PoisonError::into_inner);
        std::mem::replace(&mut *now, Arc::new(way))
    }

    fn way(&self) -> Arc<Way> {
        let way = self.way.read().unwrap_or_else(PoisonError::into_inner);
        Arc::clone(&way)
    }

    fn all_held(&self) -> Vec<(SessionKey, Claim)> {
        let held = self.held();
        held.iter()
            .map(|(key, claim)| (key.clone(), *claim))
            .collect()
    }

    /// What this process has.
    fn held(&self) -> MutexGuard<'_, HashMap<SessionKey, Claim>> {
        self.held.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Letters for Shared {
    fn post(
        &self,
        key: SessionKey,
        body: Vec<u8>,
        within: Duration,
    ) -> BoxFuture<'_, Result<Posted, Error>> {
        async move {
            let mut way = self.inner.way();
            if way.is_gone() {
                self.inner.look_for_another(&way).await?;
                way = self.inner.way();
            }
            // Never again: it may have been read.
            way.post(key, body, within).await
        }
        .boxed()
    }

    fn receive(&self) -> mpsc::Receiver<Delivery> {
        self.inner.seeker.inbox.receive()
    }

    fn let_go(&self, key: &SessionKey) {
        let claim = self.inner.held().remove(key);
        if let Some(claim) = claim {
            self.inner.way().let_go(key.clone(), claim.epoch);
        }
    }
}

impl Journal for Shared {
    fn claim_if(&self, key: SessionKey, only: Only) -> BoxFuture<'_, Result<Claim, Error>> {
        async move {
            let claim = self.on_a_way(|way| way.claim(key.clone(), only)).await?;
            self.inner.held().insert(key.clone(), claim);
            Ok(claim)
        }
        .boxed()
    }

    fn append(&self, append: Append) -> BoxFuture<'_, Result<Seq, Error>> {
        self.call(move |journal| journal.append(append.clone()))
            .boxed()
    }

    fn read(&self, sid: Sid, after: Seq, limit: usize) -> BoxFuture<'_, Result<Vec<Entry>, Error>> {
        self.call(move |journal| journal.read(sid, after, limit))
            .boxed()
    }

    fn find(&self, key: SessionKey) -> BoxFuture<'_, Result<Option<Known>, Error>> {
        self.call(move |journal| journal.find(key.clone())).boxed()
    }

    fn list(
        &self,
        tenant: TenantId,
        after: Option<SessionName>,
        limit: usize,
    ) -> BoxFuture<'_, Result<Vec<Known>, Error>> {
        self.call(move |journal| journal.list(tenant.clone(), after.clone(), limit))
            .boxed()
    }

    fn tenants(
        &self,
        after: Option<TenantId>,
        limit: usize,
    ) -> BoxFuture<'_, Result<Vec<TenantId>, Error>> {
        self.call(move |journal| journal.tenants(after.clone(), limit))
            .boxed()
    }

    fn unfinished(&self, after: Sid, limit: usize) -> BoxFuture<'_, Result<Vec<Known>, Error>> {
        self.call(move |journal| journal.unfinished(after, limit))
            .boxed()
    }

    fn search(
        &self,
        tenant: TenantId,
        words: String,
        limit: usize,
    ) -> BoxFuture<'_, Result<Vec<Hit>, Error>> {
        self.call(move |journal| journal.search(tenant.clone(), words.clone(), limit))
            .boxed()
    }

    fn save(&self, sid: Sid, epoch: Epoch, snapshot: Snapshot) -> BoxFuture<'_, Result<(), Error>> {
        self.call(move |journal| journal.save(sid, epoch, snapshot.clone()))
            .boxed()
    }

    fn snapshot(&self, sid: Sid) -> BoxFuture<'_, Result<Option<Snapshot>, Error>> {
        self.call(move |journal| journal.snapshot(sid)).boxed()
    }

    fn delete(&self, sid: Sid, epoch: Epoch) -> BoxFuture<'_, Result<(), Error>> {
        async move {
            let way = self.inner.way();
            match self.call(move |journal| journal.delete(sid, epoch)).await {
                // It was made again on another way: what was done on the first is not known there.
                Err(Error::Unknown { .. }) if !Arc::ptr_eq(&way, &self.inner.way()) => {}
                deleted => deleted?,
            }
            self.inner.way().deleted(sid);
            self.inner.held().retain(|_, claim| claim.sid != sid);
            Ok(())
        }
        .boxed()
    }

    fn letters(&self) -> Option<&dyn Letters> {
        Some(self)
    }
}
