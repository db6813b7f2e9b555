//! The journal in SQLite: a file in a data directory. An answered append is durable. Several
//! processes may open it: each session has one owner (`processes.rs`), and the statement that
//! appends checks the fence.
//!
//! One thread writes, with group commit; a few others read. Records are rows of an append-only
//! table, each with a checksum; damage affects only its session.
//!
//! - Opening blocks, and so does dropping the last handle, which first writes the queued requests.
//! - A deleted session is unknown at once. Its content is overwritten in the files, in slices between
//!   the requests of others, before the deletion is answered. If a reader still sees the state before
//!   it, this happens once the reader is done, or when the journal is closed; after a crash, the next
//!   opening continues.

use std::{fmt, io, path::Path, sync::Arc, time::Duration};

use futures_util::TryFutureExt as _;
use tokio::{task::spawn_blocking, time::sleep};

use super::{
    Append, Claim, Entry, Erasure, Error, Hit, Journal, JournalFuture, Known, Only, SessionStatus,
    Sids, Snapshot,
    copy::Usages,
    row::{Batch, NEW},
    search::SearchQuery,
};
use crate::model::{
    Day, DayUsage, Epoch, Payer, Record, Seq, SessionKey, SessionName, Sid, TenantId,
};

mod connection;
mod error;
mod files;
mod log;
mod processes;
mod query;
mod readers;
mod requests;
mod schema;
mod sql;
mod store;
mod verify;
mod writer;

pub use error::{OnBroken, OpenError};
pub use processes::processes;
pub use verify::Inspection;

use error::{Failed, Health};
use files::Files;
use processes::Process;
use query::Reader;
use readers::Readers;
use store::Store;
use writer::Writer;

const CLOSE: u32 = 250;
const PAUSE: Duration = Duration::from_millis(20);

/// A journal in a data directory. Clones share it; the last one closes it.
#[derive(Clone)]
pub struct Sqlite {
    inner: Arc<Inner>,
}

/// Dropped in the order of the fields.
struct Inner {
    readers: Readers,
    writer: Writer,
    files: Files,
    process: Arc<Process>,
}

#[derive(Clone, Copy)]
struct Tuning {
    commit: fn(&mut Store<'_>) -> rusqlite::Result<()>,
    most_pages: u32,
    /// Pages in the log that make a checkpoint due.
    long_log: i64,
    /// Commits between two checks of the log's length.
    look_after: u32,
}

impl Default for Tuning {
    fn default() -> Self {
        Self {
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
    /// Opens the journal of a data directory, and creates both if they are missing. Blocks.
    ///
    /// # Errors
    /// Returns an [`OpenError`] with the remedy.
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
        let opening = files.lock()?;
        let connection = connection::open(&files, tuning.most_pages)?;
        // A full disk does not prevent the opening.
        let _ = files
            .identity()
            .map(|it| connection::mark_in_use(&connection, it));
        let process = Process::enter(directory);
        let process = process.map_err(|source| OpenError::file(directory, source))?;
        let (process, health) = (Arc::new(process), Arc::new(Health::new(on_broken)));
        let of_writer = Arc::clone(&process);
        let writer = Writer::start(connection, of_writer, tuning, Arc::clone(&health));
        let writer = writer.map_err(|detail| OpenError::store(&files.journal, detail))?;
        let readers = Readers::start(&files.journal, &process, health)?;
        drop(opening);
        let inner = Arc::new(Inner {
            readers,
            writer,
            files,
            process,
        });
        Ok(Self { inner })
    }

    fn ask<T: Send + 'static>(
        &self,
        look: impl for<'r, 'c> FnOnce(&'r mut Reader<'c>) -> Result<T, Failed> + Send + 'static,
    ) -> JournalFuture<'_, T> {
        Box::pin(self.inner.readers.ask(move |reader, _| look(reader)))
    }

    /// Publishes the control socket of this process for others, as
    /// [`Owner::socket`](crate::model::Owner::socket).
    ///
    /// # Errors
    /// If the file of the process cannot be written.
    pub fn announce(&self, socket: &Path) -> io::Result<()> {
        self.inner.process.announce(socket)
    }

    /// Closes the journal once its other handles are dropped. After 5 s it leaves that to the last
    /// of them.
    pub async fn close(mut self) {
        for _ in 0..CLOSE {
            match Arc::try_unwrap(self.inner) {
                Ok(inner) => {
                    // Dropping waits for the disk.
                    let _ = spawn_blocking(move || drop(inner)).await;
                    return;
                }
                Err(inner) => self.inner = inner,
            }
            sleep(PAUSE).await;
        }
    }
}

impl fmt::Debug for Sqlite {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let journal = &self.inner.files.journal;
        f.debug_tuple("Sqlite").field(journal).finish()
    }
}

impl Journal for Sqlite {
    fn claim(&self, key: SessionKey) -> JournalFuture<'_, Claim> {
        let writer = &self.inner.writer;
        writer.ask(move |store| store.claim(&key, false))
    }

    fn begin(
        &self,
        key: SessionKey,
        records: Vec<Arc<Record>>,
        leaves: SessionStatus,
    ) -> JournalFuture<'_, Claim> {
        Box::pin(async move {
            let new = Claim {
                sid: NEW,
                epoch: Epoch::default(),
                last: Seq(0),
            };
            let batch = Batch::made(Append::new(new, records, leaves)).await?;
            let writer = &self.inner.writer;
            writer.ask(move |store| store.open(&key, &batch)).await
        })
    }

    fn release(&self, sid: Sid, epoch: Epoch) -> JournalFuture<'_, ()> {
        let writer = &self.inner.writer;
        writer.ask(move |store| store.release(sid, epoch))
    }

    fn append(&self, append: Append) -> JournalFuture<'_, Seq> {
        Box::pin(async move {
            let (sid, epoch) = (append.sid, append.epoch);
            let batch = Batch::made(append).await?;
            let writer = &self.inner.writer;
            writer
                .ask(move |store| store.append(&batch, sid, epoch))
                .await
        })
    }

    fn read(&self, sid: Sid, after: Seq, limit: usize) -> JournalFuture<'_, Vec<Entry>> {
        self.ask(move |reader| reader.read(sid, after, limit))
    }

    fn find(&self, key: SessionKey) -> JournalFuture<'_, Option<Known>> {
        self.ask(move |reader| reader.find(&key))
    }

    fn list(
        &self,
        tenant: TenantId,
        after: Option<SessionName>,
        limit: usize,
    ) -> JournalFuture<'_, Vec<Known>> {
        self.ask(move |reader| reader.list(&tenant, after.as_ref(), limit))
    }

    fn newest(&self, tenant: TenantId, limit: usize) -> JournalFuture<'_, Vec<Known>> {
        self.ask(move |reader| reader.newest(&tenant, limit))
    }

    fn tenants(&self, after: Option<TenantId>, limit: usize) -> JournalFuture<'_, Vec<TenantId>> {
        self.ask(move |reader| reader.tenants(after.as_ref(), limit))
    }

    fn unfinished(
        &self,
        of: Option<TenantId>,
        sids: Sids,
        limit: usize,
    ) -> JournalFuture<'_, Vec<Known>> {
        self.ask(move |reader| reader.unfinished(of.as_ref(), &sids, limit))
    }

    fn save(&self, sid: Sid, epoch: Epoch, snapshot: Snapshot) -> JournalFuture<'_, ()> {
        let writer = &self.inner.writer;
        writer.ask(move |store| store.save(sid, epoch, &snapshot))
    }

    fn snapshot(&self, sid: Sid) -> JournalFuture<'_, Option<Snapshot>> {
        self.ask(move |reader| reader.snapshot(sid))
    }

    fn usage(&self, payer: Payer, since: Day) -> JournalFuture<'_, Vec<DayUsage>> {
        self.ask(move |reader| reader.usage(&payer, since))
    }

    fn delete(&self, sid: Sid, only: Only) -> JournalFuture<'_, Vec<Known>> {
        Box::pin(async move {
            let (gone, erased) = self.forget(sid, only).await?;
            erased.await?;
            Ok(gone)
        })
    }

    fn forget(&self, sid: Sid, only: Only) -> JournalFuture<'_, (Vec<Known>, Erasure)> {
        Box::pin(async move {
            let writer = &self.inner.writer;
            let (gone, erased) = writer.ask(move |store| store.delete(sid, only)).await?;
            let why = format!("session {sid} is deleted, but some of it could not be erased");
            let erased = erased.map_err(|_| Error::Unavailable(why));
            Ok((gone, Box::pin(erased) as Erasure))
        })
    }

    fn search(&self, tenant: TenantId, words: String, limit: usize) -> JournalFuture<'_, Vec<Hit>> {
        Box::pin(async move {
            let Some(wanted) = SearchQuery::of(&words) else {
                return Ok(Vec::new());
            };
            let readers = &self.inner.readers;
            let hits = readers.ask_at_length(move |reader, given_up| {
                reader.search(&tenant, &wanted, limit, given_up)
            });
            hits.await
        })
    }
}

impl Usages for Sqlite {
    fn usages(&self) -> JournalFuture<'_, Vec<(String, DayUsage)>> {
        self.ask(|reader| reader.usages())
    }

    fn set_usages(&self, usages: Vec<(String, DayUsage)>) -> JournalFuture<'_, ()> {
        self.inner
            .writer
            .ask(move |store| store.set_usages(&usages))
    }
}

#[cfg(test)]
mod tests;
