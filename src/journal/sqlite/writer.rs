//! The one thread that writes, and the queue in front of it.
//!
//! It takes what has queued up while it was busy into one transaction, commits, and then answers
//! all of it. Where others were there the last time it waits a little for them, so that a commit is
//! shared by all who write; who writes alone never waits.
//!
//! **Invariant:** nothing is answered as done before its commit has succeeded. When that leaves in
//! doubt what is on the disk, nothing is answered as done ever again.

use std::{
    panic::{AssertUnwindSafe, catch_unwind},
    sync::{
        Arc,
        mpsc::{self, Receiver, RecvTimeoutError, Sender, TryRecvError},
    },
    thread::{self, JoinHandle},
    time::{Duration, Instant},
};

use rusqlite::{Connection, config::DbConfig};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use super::{
    Tuning,
    error::{Failed, Reach, is_full, reach, told},
    health::Health,
    log::Log,
    processes::Process,
    request::{Work, request},
    store::Store,
};
use crate::journal::Error;

/// Requests that wait or are being done; more wait for room outside.
const QUEUE: usize = 1_024;
/// Requests in one transaction.
const BATCH: usize = 256;
/// Longest wait for others to share a commit with.
const COMPANY: Duration = Duration::from_millis(2);
const PANICKED: &str = "its writer has panicked";
/// How soon what a deleted session left in the files is tried again to be erased.
const ERASE_AGAIN: Duration = Duration::from_millis(100);

/// The handle on the writing thread, which ends when this is dropped.
#[derive(Debug)]
pub(super) struct Writer {
    /// None once it is to end.
    queue: Option<Sender<Queued>>,
    room: Arc<Semaphore>,
    health: Arc<Health>,
    thread: Option<JoinHandle<()>>,
}

struct Queued {
    work: Box<dyn Work>,
    /// Given back when it was answered.
    _room: OwnedSemaphorePermit,
}

impl Writer {
    /// Starts the thread.
    ///
    /// # Errors
    /// If the statements do not fit the database, or there is no thread to be had.
    pub(super) fn start(
        connection: Connection,
        process: Arc<Process>,
        tuning: Tuning,
        health: Arc<Health>,
    ) -> Result<Self, String> {
        let (queue, requests) = mpsc::channel();
        let (ready, started) = mpsc::sync_channel(1);
        let of_thread = Arc::clone(&health);
        let thread = thread::Builder::new().name("journal-writer".to_owned());
        let thread = thread.spawn(move || {
            let work = || {
                write(
                    (&connection, &process),
                    tuning,
                    &requests,
                    &of_thread,
                    &ready,
                )
            };
            if catch_unwind(AssertUnwindSafe(work)).is_err() {
                of_thread.give_up(PANICKED.to_owned());
            }
            close(connection, &of_thread);
        });
        let thread = thread.map_err(|error| error.to_string())?;
        started
            .recv()
            .unwrap_or_else(|_| Err("its writer did not start".to_owned()))?;
        Ok(Self {
            queue: Some(queue),
            room: Arc::new(Semaphore::new(QUEUE)),
            health,
            thread: Some(thread),
        })
    }

    /// Has something done within a transaction; answers when that is durable. Waits for room.
    pub(super) async fn ask<T: Send + 'static>(
        &self,
        run: impl for<'s, 'c> Fn(&'s mut Store<'c>) -> Result<T, Failed> + Send + 'static,
    ) -> Result<T, Error> {
        self.health.check()?;
        let room = Arc::clone(&self.room).acquire_owned().await;
        let (work, answer) = request(run);
        let sent = room.ok().and_then(|room| {
            let queued = Queued { work, _room: room };
            self.queue.as_ref()?.send(queued).ok()
        });
        let answer = match sent {
            Some(()) => answer.await.ok(),
            None => None,
        };
        // It ends before its handle only by a panic.
        answer.unwrap_or_else(|| {
            self.health.check()?;
            Err(Error::Broken(PANICKED.to_owned()))
        })
    }
}

impl Drop for Writer {
    fn drop(&mut self) {
        drop(self.queue.take());
        if let Some(thread) = self.thread.take() {
            // It catches its own panics.
            let _ = thread.join();
        }
    }
}

/// The thread's life.
fn write(
    (connection, process): (&Connection, &Process),
    tuning: Tuning,
    requests: &Receiver<Queued>,
    health: &Health,
    ready: &mpsc::SyncSender<Result<(), String>>,
) {
    let store = Store::new(connection, process)
        .and_then(|store| Ok((store, Log::new(connection, tuning)?)));
    let (store, log) = match store {
        Ok(started) => started,
        Err(error) => {
            let _ = ready.send(Err(told(&error)));
            return;
        }
    };
    let mut writing = Writing {
        store,
        log,
        tuning,
        health,
        company: 1,
        patience: Duration::ZERO,
    };
    // Before anything is answered: what was deleted before a crash is to be gone.
    writing.tidy();
    if ready.send(Ok(())).is_err() {
        return;
    }
    while let Some(batch) = writing.gather(requests) {
        writing.perform(batch);
    }
}

/// Leaves nothing in the log, unless the log is what is in doubt: then it stays for whoever looks.
fn close(connection: Connection, health: &Health) {
    if health.check().is_err() {
        let _ = connection.set_db_config(DbConfig::SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, true);
    }
    // SQLite moves the log over and removes it; whatever cannot be moved is there at the next start.
    let _ = connection.close();
}

struct Writing<'c> {
    store: Store<'c>,
    log: Log<'c>,
    tuning: Tuning,
    health: &'c Health,
    /// How many requests the last batch had.
    company: usize,
    /// How long it is worth to wait for as many again.
    patience: Duration,
}

/// How a transaction ended.
enum Ended {
    Committed,
    /// One request cannot be done, and all was taken back.
    Without(usize, rusqlite::Error),
    /// Nothing of it can be done now.
    TakenBack(rusqlite::Error),
    Doubtful(rusqlite::Error),
}

impl Writing<'_> {
    /// The next requests; none when there will be no more.
    fn gather(&mut self, requests: &Receiver<Queued>) -> Option<Vec<Queued>> {
        let mut batch = vec![self.first(requests)?];
        let until = now() + self.patience;
        while batch.len() < BATCH {
            match requests.try_recv() {
                Ok(queued) => batch.push(queued),
                Err(TryRecvError::Empty) if batch.len() < self.company => {
                    let left = until.saturating_duration_since(now());
                    let Ok(queued) = requests.recv_timeout(left) else {
                        break;
                    };
                    batch.push(queued);
                }
                Err(TryRecvError::Empty | TryRecvError::Disconnected) => break,
            }
        }
        self.company = batch.len();
        Some(batch)
    }

    fn first(&mut self, requests: &Receiver<Queued>) -> Option<Queued> {
        while self.log.owes() {
            match requests.recv_timeout(ERASE_AGAIN) {
                Ok(queued) => return Some(queued),
                Err(RecvTimeoutError::Timeout) => self.tidy(),
                Err(RecvTimeoutError::Disconnected) => return None,
            }
        }
        requests.recv().ok()
    }

    fn perform(&mut self, mut batch: Vec<Queued>) {
        while !batch.is_empty() {
            if let Err(error) = self.health.check() {
                return refuse(batch, &error);
            }
            match self.transact(&mut batch) {
                Ended::Committed => {
                    if self.store.take_erasure() {
                        self.log.owe();
                        self.tidy();
                    }
                    match self.health.check() {
                        Ok(()) => batch.into_iter().for_each(|queued| queued.work.answer()),
                        Err(error) => refuse(batch, &error),
                    }
                    return self.tidy();
                }
                Ended::Without(index, error) => {
                    let refused = batch.remove(index);
                    refused.work.refuse(Error::Unavailable(told(&error)));
                }
                Ended::TakenBack(error) => {
                    if is_full(&error) {
                        // The log may take room that it does not need, and is empty afterwards.
                        self.log.owe();
                        self.tidy();
                    }
                    return refuse(batch, &Error::Unavailable(told(&error)));
                }
                Ended::Doubtful(error) => self.health.give_up(told(&error)),
            }
        }
    }

    fn transact(&mut self, batch: &mut [Queued]) -> Ended {
        if let Err(error) = self.store.begin() {
            return self.taken_back(error);
        }
        for (index, queued) in batch.iter_mut().enumerate() {
            if let Err(error) = queued.work.run(&mut self.store) {
                // At once: it asks the system too, which knows only of what failed last.
                let reach = reach(&error);
                self.store.roll_back();
                return match reach {
                    Reach::Request => Ended::Without(index, error),
                    Reach::Batch => Ended::TakenBack(error),
                    Reach::Journal => Ended::Doubtful(error),
                };
            }
        }
        let before = now();
        match (self.tuning.commit)(&mut self.store) {
            Ok(()) => {
                self.patience = COMPANY.min(now().saturating_duration_since(before) / 2);
                Ended::Committed
            }
            Err(error) => self.taken_back(error),
        }
    }

    fn taken_back(&mut self, error: rusqlite::Error) -> Ended {
        let reach = reach(&error);
        self.store.roll_back();
        match reach {
            Reach::Request | Reach::Batch => Ended::TakenBack(error),
            Reach::Journal => Ended::Doubtful(error),
        }
    }

    /// Keeps the log short, and erases what was deleted.
    fn tidy(&mut self) {
        if self.health.check().is_ok()
            && let Err(error) = self.log.tidy()
            && reach(&error) == Reach::Journal
        {
            self.health.give_up(told(&error));
        }
    }
}

fn refuse(batch: Vec<Queued>, error: &Error) {
    for queued in batch {
        queued.work.refuse(error.clone());
    }
}

/// The time, to pace this thread by; nothing that is written depends on it.
#[expect(
    clippy::disallowed_methods,
    reason = "a thread of its own, outside of any runtime; what it writes does not depend on it"
)]
fn now() -> Instant {
    Instant::now()
}
