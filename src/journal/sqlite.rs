//! The journal in SQLite: a file in a data directory, durable when an append is answered.
//!
//! One thread writes and shares each commit among all who wait for one; a few others read.
//! Records are rows of an append-only table, each with a checksum; what is damaged is refused by
//! name, for its session only.
//!
//! - Opening blocks for as long as the disk takes, and so does dropping the last handle: it finishes
//!   what is queued, moves the write-ahead log over and gives up the directory.
//! - What a deleted session left in the files is overwritten before the deletion is answered; where
//!   somebody still reads the state before it, as soon as they are done; where a crash comes between,
//!   when the journal is opened again.
//!
//! What is not here: any knowledge of what a record means, apart from the words in it.

use std::{fmt, path::Path, sync::Arc, thread};

use futures_util::{FutureExt, future::BoxFuture};
use tokio::sync::oneshot;

use super::{Append, Claim, Entry, Error, Hit, Journal, Known, Only, Snapshot, search::Wanted};
use crate::model::{Epoch, Seq, SessionKey, SessionName, Sid, TenantId};

mod connection;
mod error;
mod files;
mod health;
mod inspection;
mod lock;
mod log;
mod query;
mod readers;
mod request;
mod row;
mod schema;
mod sql;
mod stats;
mod store;
mod verify;
mod writer;

pub use error::{OpenError, Owner};
pub use health::OnBroken;
pub use inspection::Inspection;
pub use stats::Stats;
pub use verify::Problem;

use files::Files;
use health::Health;
use lock::Lock;
use readers::Readers;
use row::Batch;
use store::Store;
use writer::Writer;

/// A journal in a data directory. Clones share it; the last one closes it.
#[derive(Clone)]
pub struct Sqlite {
    inner: Arc<Inner>,
}

/// In the order in which it is closed.
struct Inner {
    readers: Readers,
    writer: Writer,
    files: Files,
    _lock: Lock,
}

/// What only tests set otherwise.
#[derive(Clone, Copy)]
struct Tuning {
    steps: &'static [&'static str],
    commit: fn(&mut Store<'_>) -> rusqlite::Result<()>,
    /// The size of the database.
    most_pages: u32,
    /// Pages in the write-ahead log from which on they are moved to the database.
    long_log: i64,
    /// Commits after which its length is looked at.
    look_after: u32,
}

impl Default for Tuning {
    fn default() -> Self {
        Self {
            steps: schema::STEPS,
            commit: |store| store.commit(),
            // SQLite's own limit: 16 TiB.
            most_pages: u32::MAX - 1,
            // 16 MiB.
            long_log: 4_096,
            look_after: 16,
        }
    }
}

impl Sqlite {
    /// Opens the journal of a data directory, and makes both where they are not there yet. Blocks.
    ///
    /// # Errors
    /// See [`OpenError`].
    pub fn open(directory: &Path, on_broken: OnBroken) -> Result<Self, OpenError> {
        Self::open_tuned(directory, on_broken, Tuning::default())
    }

    fn open_tuned(
        directory: &Path,
        on_broken: OnBroken,
        tuning: Tuning,
    ) -> Result<Self, OpenError> {
        let files = Files::within(directory);
        files.make_directory()?;
        let lock = Lock::take(directory)?;
        let connection = connection::open(&files, tuning)?;
        let health = Arc::new(Health::new(on_broken));
        let writer = Writer::start(connection, tuning, Arc::clone(&health));
        let writer = writer.map_err(|detail| OpenError::Store {
            path: files.journal.clone(),
            detail,
        })?;
        let readers = Readers::start(&files.journal, health)?;
        let inner = Arc::new(Inner {
            readers,
            writer,
            files,
            _lock: lock,
        });
        Ok(Self { inner })
    }
}

impl Sqlite {
    /// See [`Inspection::verify`]; takes a thread of its own, and holds up nobody.
    ///
    /// # Errors
    /// [`Error::Unavailable`] if the file cannot be read at all.
    pub async fn verify(&self) -> Result<Vec<Problem>, Error> {
        self.inspect(Inspection::verify).await
    }

    /// See [`Inspection::stats`]; takes a thread of its own, and holds up nobody.
    ///
    /// # Errors
    /// [`Error::Unavailable`] if the file cannot be read.
    pub async fn stats(&self) -> Result<Stats, Error> {
        self.inspect(Inspection::stats).await
    }

    async fn inspect<T: Send + 'static>(
        &self,
        look: fn(&Inspection) -> Result<T, Error>,
    ) -> Result<T, Error> {
        let (reply, answer) = oneshot::channel();
        let files = self.inner.files.clone();
        let thread = thread::Builder::new().name("journal-inspector".to_owned());
        let started = thread.spawn(move || {
            let inspection = Inspection::of(files);
            let unavailable = |error: OpenError| Error::Unavailable(error.to_string());
            let _ = reply.send(inspection.map_err(unavailable).and_then(|it| look(&it)));
        });
        started.map_err(|error| Error::Unavailable(error.to_string()))?;
        let ended = || Error::Unavailable("it was not looked at to the end".to_owned());
        answer.await.unwrap_or_else(|_| Err(ended()))
    }
}

impl fmt::Debug for Sqlite {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Sqlite")
            .field(&self.inner.files.journal)
            .finish()
    }
}

impl Journal for Sqlite {
    fn claim_if(&self, key: SessionKey, only: Only) -> BoxFuture<'_, Result<Claim, Error>> {
        let writer = &self.inner.writer;
        writer.ask(move |store| store.claim(&key, only)).boxed()
    }

    fn append(&self, append: Append) -> BoxFuture<'_, Result<Seq, Error>> {
        async move {
            if append.records.is_empty() {
                return Err(Error::Empty);
            }
            let batch = Batch::of(&append)?;
            let writer = &self.inner.writer;
            writer.ask(move |store| store.append(&batch)).await
        }
        .boxed()
    }

    fn read(&self, sid: Sid, after: Seq, limit: usize) -> BoxFuture<'_, Result<Vec<Entry>, Error>> {
        let readers = &self.inner.readers;
        readers
            .ask(move |reader| reader.read(sid, after, limit))
            .boxed()
    }

    fn find(&self, key: SessionKey) -> BoxFuture<'_, Result<Option<Known>, Error>> {
        let readers = &self.inner.readers;
        readers.ask(move |reader| reader.find(&key)).boxed()
    }

    fn list(
        &self,
        tenant: TenantId,
        after: Option<SessionName>,
        limit: usize,
    ) -> BoxFuture<'_, Result<Vec<Known>, Error>> {
        let readers = &self.inner.readers;
        readers
            .ask(move |reader| reader.list(&tenant, after.as_ref(), limit))
            .boxed()
    }

    fn tenants(
        &self,
        after: Option<TenantId>,
        limit: usize,
    ) -> BoxFuture<'_, Result<Vec<TenantId>, Error>> {
        let readers = &self.inner.readers;
        readers
            .ask(move |reader| reader.tenants(after.as_ref(), limit))
            .boxed()
    }

    fn unfinished(&self, after: Sid, limit: usize) -> BoxFuture<'_, Result<Vec<Known>, Error>> {
        let readers = &self.inner.readers;
        readers
            .ask(move |reader| reader.unfinished(after, limit))
            .boxed()
    }

    fn save(&self, sid: Sid, epoch: Epoch, snapshot: Snapshot) -> BoxFuture<'_, Result<(), Error>> {
        let writer = &self.inner.writer;
        writer
            .ask(move |store| store.save(sid, epoch, &snapshot))
            .boxed()
    }

    fn snapshot(&self, sid: Sid) -> BoxFuture<'_, Result<Option<Snapshot>, Error>> {
        let readers = &self.inner.readers;
        readers.ask(move |reader| reader.snapshot(sid)).boxed()
    }

    fn delete(&self, sid: Sid, epoch: Epoch) -> BoxFuture<'_, Result<(), Error>> {
        let writer = &self.inner.writer;
        writer.ask(move |store| store.delete(sid, epoch)).boxed()
    }

    fn search(
        &self,
        tenant: TenantId,
        words: String,
        limit: usize,
    ) -> BoxFuture<'_, Result<Vec<Hit>, Error>> {
        async move {
            let Some(wanted) = Wanted::of(&words) else {
                return Ok(Vec::new());
            };
            let readers = &self.inner.readers;
            readers
                .ask_at_length(move |reader, given_up| {
                    reader.search(&tenant, &wanted, limit, given_up)
                })
                .await
        }
        .boxed()
    }
}

#[cfg(test)]
mod tests;
