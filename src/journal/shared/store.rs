//! The journal of a data directory, by whichever way there is to it.
//!
//! The first process to open the directory has the journal and serves it; later ones use it over the
//! socket. When the first one ends, however it ends, one of those that are left opens the directory
//! and serves the others, and every call that was under way is made again: an append is known again by
//! what it says, so that none lands twice.

use std::{
    path::{Path, PathBuf},
    sync::{Arc, PoisonError, RwLock},
    time::Duration,
};

use futures_util::{FutureExt, future::BoxFuture};
use tokio::{sync::Mutex, task::spawn_blocking, time::Instant};

use super::{Remote, Server};
use crate::{
    journal::{
        Append, Claim, Entry, Error, Hit, Journal, Known, Snapshot, Sqlite, sqlite::OpenError,
    },
    model::{Epoch, Seq, SessionKey, SessionName, Sid, TenantId},
};

const SOCKET: &str = "journal.sock";
/// How often a way is looked for: whoever has the directory may be about to listen, or to leave.
const TRIES: u32 = 100;
/// Pause between two tries.
const PAUSE: Duration = Duration::from_millis(50);
/// How long closing waits for calls under way.
const CLOSE: Duration = Duration::from_secs(5);
/// How often one call is made again on another way.
const WAYS: u32 = 5;

/// Told, with the reason, when this process must end; see [`crate::journal::sqlite::OnBroken`].
type OnBroken = Arc<dyn Fn(&str) + Send + Sync>;

/// A journal that several processes of a person use at once. Cheap to clone.
#[derive(Clone)]
pub struct Shared(Arc<Inner>);

struct Inner {
    directory: PathBuf,
    on_broken: OnBroken,
    // A lock, because the way changes under those who use it; held for a copy only.
    way: RwLock<Arc<Way>>,
    /// Held by whoever looks for another way.
    looking: Mutex<()>,
}

/// A way to the journal.
enum Way {
    /// This process has it.
    Own {
        /// Before the journal: nobody is served what is being closed.
        server: Option<Server>,
        journal: Sqlite,
    },
    /// Another process has it.
    Far(Remote),
    /// It is of no more use to this process.
    Closed,
}

impl Way {
    fn journal(&self) -> Option<&dyn Journal> {
        match self {
            Self::Own { journal, .. } => Some(journal),
            Self::Far(remote) => Some(remote),
            Self::Closed => None,
        }
    }

    fn is_gone(&self) -> bool {
        match self {
            Self::Own { .. } | Self::Closed => false,
            Self::Far(remote) => remote.is_gone(),
        }
    }
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
        let on_broken: OnBroken = Arc::new(on_broken);
        let way = find(directory, &on_broken).await?;
        Ok(Self(Arc::new(Inner {
            directory: directory.to_path_buf(),
            on_broken,
            way: RwLock::new(Arc::new(way)),
            looking: Mutex::new(()),
        })))
    }

    /// Gives the directory up in order, once the calls under way are done: the next process finds it tidy.
    /// Whoever still uses this finds it closed.
    pub async fn close(&self) {
        let mut way = self.set(Way::Closed);
        let until = Instant::now() + CLOSE;
        let own = loop {
            match Arc::try_unwrap(way) {
                Ok(own) => break own,
                // It ends with the process, without having been tidied up.
                Err(_) if Instant::now() >= until => return,
                Err(shared) => way = shared,
            }
            tokio::time::sleep(PAUSE).await;
        };
        if let Way::Own { server, journal } = own {
            if let Some(server) = server {
                server.close().await;
            }
            // Waits for the disk.
            let _ = spawn_blocking(move || drop(journal)).await;
        }
    }

    /// Unless this was closed in the meantime: then the way that was found is given up again.
    async fn replace(&self, gone: &Arc<Way>, found: Way) {
        let unwanted = {
            let mut now = self.0.way.write().unwrap_or_else(PoisonError::into_inner);
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
        let mut now = self.0.way.write().unwrap_or_else(PoisonError::into_inner);
        std::mem::replace(&mut *now, Arc::new(way))
    }

    /// The process that has the journal; none if it is this one.
    #[must_use]
    pub fn owner(&self) -> Option<u32> {
        match &*self.way() {
            Way::Own { .. } | Way::Closed => None,
            Way::Far(remote) => Some(remote.pid()),
        }
    }

    fn way(&self) -> Arc<Way> {
        let way = self.0.way.read().unwrap_or_else(PoisonError::into_inner);
        Arc::clone(&way)
    }

    /// Makes a call, again where the way to the journal ends under it.
    async fn call<T>(
        &self,
        call: impl Fn(&dyn Journal) -> BoxFuture<'_, Result<T, Error>>,
    ) -> Result<T, Error> {
        let mut ways = 1;
        loop {
            let way = self.way();
            let Some(journal) = way.journal() else {
                return Err(Error::Unavailable("it was closed".into()));
            };
            match call(journal).await {
                Err(Error::Unavailable(_)) if way.is_gone() && ways < WAYS => {
                    self.look_for_another(&way).await?;
                }
                answer => return answer,
            }
            ways += 1;
        }
    }

    async fn look_for_another(&self, gone: &Arc<Way>) -> Result<(), Error> {
        let _looking = self.0.looking.lock().await;
        if !Arc::ptr_eq(&self.way(), gone) {
            return Ok(());
        }
        let way = find(&self.0.directory, &self.0.on_broken).await;
        let way = way.map_err(|error| Error::Unavailable(error.to_string()))?;
        self.replace(gone, way).await;
        Ok(())
    }
}

async fn find(directory: &Path, on_broken: &OnBroken) -> Result<Way, OpenError> {
    let mut tries = 1;
    loop {
        let in_use = match open(directory.to_path_buf(), Arc::clone(on_broken)).await {
            Err(error @ OpenError::InUse { .. }) => error,
            opened => return opened,
        };
        match Remote::connect(&directory.join(SOCKET)).await {
            Ok(remote) => return Ok(Way::Far(remote)),
            Err(error) if tries == TRIES => {
                tracing::warn!(%error, "the process that has the journal does not share it");
                return Err(in_use);
            }
            Err(_) => {}
        }
        tries += 1;
        tokio::time::sleep(PAUSE).await;
    }
}

async fn open(directory: PathBuf, on_broken: OnBroken) -> Result<Way, OpenError> {
    let socket = directory.join(SOCKET);
    let opened =
        spawn_blocking(move || Sqlite::open(&directory, Box::new(move |why| on_broken(why))));
    let journal = opened.await.map_err(|error| OpenError::Store {
        path: socket.clone(),
        detail: error.to_string(),
    })??;
    let server = Server::listen(&socket, Arc::new(journal.clone()));
    // It can be used all the same, if by this process alone.
    let server = server.inspect_err(|error| tracing::warn!(%error, "the journal is not shared"));
    Ok(Way::Own {
        server: server.ok(),
        journal,
    })
}

impl Journal for Shared {
    fn claim(&self, key: SessionKey) -> BoxFuture<'_, Result<Claim, Error>> {
        self.call(move |journal| journal.claim(key.clone())).boxed()
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
        self.call(move |journal| journal.delete(sid, epoch)).boxed()
    }
}
