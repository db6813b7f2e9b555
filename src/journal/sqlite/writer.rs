//! The writing thread, with group commit: it runs all queued requests in one transaction, commits,
//! and answers them. After a batch of several it waits briefly for as many again; a lone writer
//! never waits.
//!
//! Between two batches, and while none waits, it erases a slice of what was deleted.
//!
//! **Invariant:** no request is answered as done before its commit has succeeded, and none at all
//! after a failure that puts the state of the disk in doubt.

use std::{
    panic::{AssertUnwindSafe, catch_unwind},
    sync::{Arc, mpsc},
    thread::{self, JoinHandle},
    time::{Duration, Instant},
};

use parking_lot::Mutex;
use rusqlite::{Connection, config::DbConfig};
use tokio::{
    runtime::{self, Handle},
    sync::{
        OwnedSemaphorePermit, Semaphore,
        mpsc::{UnboundedSender, unbounded_channel},
        oneshot,
    },
    task,
};

use super::{
    Tuning,
    connection::BUSY,
    error::{Failed, FailureScope, Health, describe, is_damage, is_full, passing, reach},
    log::{PATIENCE, WalEraser},
    processes::Process,
    requests::Requests,
    store::Store,
};
use crate::journal::{Error, JournalFuture};

/// Requests queued or in flight; further ones wait for a permit.
const QUEUE: usize = 1_024;
const BATCH: usize = 256;
/// Longest wait for others to share a commit with.
const COMPANY: Duration = Duration::from_millis(2);
const PANICKED: &str = "its writer panicked";
const ERASE_AGAIN: Duration = Duration::from_millis(100);
/// When a slice of an erasure is long enough.
const SLICE: Duration = Duration::from_millis(10);

type Run<T> = Box<dyn for<'s, 'c> Fn(&'s mut Store<'c>) -> Result<T, Failed> + Send>;

trait Work: Send {
    /// Runs within the transaction, again after a roll-back, and keeps the answer until it is
    /// durable. Fails only if SQLite does.
    fn run(&mut self, store: &mut Store<'_>) -> rusqlite::Result<()>;

    fn answer(self: Box<Self>);

    fn refuse(self: Box<Self>, error: Error);
}

struct Request<T> {
    run: Run<T>,
    kept: Option<Result<T, Error>>,
    reply: oneshot::Sender<Result<T, Error>>,
}

fn request<T: Send + 'static>(
    run: impl for<'s, 'c> Fn(&'s mut Store<'c>) -> Result<T, Failed> + Send + 'static,
) -> (Box<dyn Work>, oneshot::Receiver<Result<T, Error>>) {
    let (reply, answer) = oneshot::channel();
    let (run, kept) = (Box::new(run), None);
    (Box::new(Request { run, kept, reply }), answer)
}

impl<T: Send> Work for Request<T> {
    fn run(&mut self, store: &mut Store<'_>) -> rusqlite::Result<()> {
        self.kept = Some(match (self.run)(store) {
            Ok(done) => Ok(done),
            Err(Failed::Refused(error)) => Err(error),
            Err(Failed::Store(error)) => return Err(error),
        });
        Ok(())
    }

    fn answer(self: Box<Self>) {
        if let Some(answer) = self.kept {
            let _ = self.reply.send(answer);
        }
    }

    fn refuse(self: Box<Self>, error: Error) {
        let _ = self.reply.send(Err(error));
    }
}

pub(super) struct Writer {
    requests: Arc<Requests<Queued>>,
    runtimes: Runtimes,
    room: Arc<Semaphore>,
    health: Arc<Health>,
    thread: Option<JoinHandle<()>>,
}

struct Queued {
    work: Box<dyn Work>,
    _room: OwnedSemaphorePermit,
    answers: Option<Answers>,
}

impl Queued {
    fn answer(self) {
        let done = Done(Some(self.work));
        match self.answers {
            None => drop(done),
            // If the runtime has ended, this drops it.
            Some(answers) => drop(answers.send(done)),
        }
    }
}

/// Durable work, which is answered on drop.
struct Done(Option<Box<dyn Work>>);

impl Drop for Done {
    fn drop(&mut self) {
        if let Some(work) = self.0.take() {
            work.answer();
        }
    }
}

/// Work to answer within the runtime of its callers: waking each caller from this thread would be a
/// system call each. It holds no more than callers wait for.
type Answers = UnboundedSender<Done>;

#[derive(Default)]
struct Runtimes(Mutex<Vec<(runtime::Id, Answers)>>);

impl Runtimes {
    /// `None` outside of tasks, where nothing may drive the runtime while the caller waits.
    fn current(&self) -> Option<Answers> {
        task::try_id()?;
        let id = Handle::try_current().ok()?.id();
        let mut known = self.0.lock();
        known.retain(|(_, answers)| !answers.is_closed());
        if let Some((_, answers)) = known.iter().find(|(known, _)| *known == id) {
            return Some(answers.clone());
        }
        let (answers, mut done) = unbounded_channel();
        #[expect(
            clippy::disallowed_methods,
            reason = "ends when the writer and its requests are dropped"
        )]
        tokio::spawn(async move { while done.recv().await.is_some() {} });
        known.push((id, answers.clone()));
        Some(answers)
    }
}

impl Writer {
    pub(super) fn start(
        connection: Connection,
        process: Arc<Process>,
        tuning: Tuning,
        health: Arc<Health>,
    ) -> Result<Self, String> {
        let requests = Arc::new(Requests::new());
        let queue = Arc::clone(&requests);
        let (ready, started) = mpsc::sync_channel(1);
        let shared = Arc::clone(&health);
        let thread = thread::Builder::new().name("journal-writer".to_owned());
        let thread = thread.spawn(move || {
            let work = || write((&connection, &process), tuning, &queue, &shared, &ready);
            let ended = catch_unwind(AssertUnwindSafe(work));
            queue.abandon();
            if ended.is_err() {
                shared.give_up(PANICKED.to_owned());
            }
            close(connection, &shared);
        });
        let thread = thread.map_err(|error| error.to_string())?;
        let started = started.recv();
        started.unwrap_or_else(|_| Err("its writer failed to start".to_owned()))?;
        Ok(Self {
            requests,
            runtimes: Runtimes::default(),
            room: Arc::new(Semaphore::new(QUEUE)),
            health,
            thread: Some(thread),
        })
    }

    /// Answers once the transaction is durable.
    pub(super) fn ask<T: Send + 'static>(
        &self,
        run: impl for<'s, 'c> Fn(&'s mut Store<'c>) -> Result<T, Failed> + Send + 'static,
    ) -> JournalFuture<'_, T> {
        Box::pin(async move {
            self.health.check()?;
            let room = Arc::clone(&self.room).acquire_owned().await;
            let _room = room.map_err(|_| Error::Broken(PANICKED.to_owned()))?;
            let (work, answer) = request(run);
            let answers = self.runtimes.current();
            self.requests.add(Queued {
                work,
                _room,
                answers,
            });
            // Only a panic ends the writer before its handle.
            answer.await.unwrap_or_else(|_| {
                self.health.check()?;
                Err(Error::Broken(PANICKED.to_owned()))
            })
        })
    }
}

impl Drop for Writer {
    fn drop(&mut self) {
        self.requests.close();
        if let Some(thread) = self.thread.take() {
            // The thread catches its own panics.
            let _ = thread.join();
        }
    }
}

fn write(
    (connection, process): (&Connection, &Process),
    tuning: Tuning,
    requests: &Requests<Queued>,
    health: &Health,
    ready: &mpsc::SyncSender<Result<(), String>>,
) {
    let store = Store::new(connection, process);
    let (store, log) = match store.and_then(|it| Ok((it, WalEraser::new(connection, tuning)?))) {
        Ok(started) => started,
        Err(error) => {
            let _ = ready.send(Err(describe(&error)));
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
        is_hindered: false,
    };
    // Erases content that was deleted before a crash.
    writing.tidy();
    if !process.came_alone {
        writing.log.forgive();
    }
    if ready.send(Ok(())).is_err() {
        return;
    }
    loop {
        let batch = writing.gather(requests);
        if batch.is_empty() {
            break;
        }
        writing.perform(batch);
        writing.erase();
    }
    writing.settle();
    if process.is_alone() && health.check().is_ok() {
        // A mark that remains is right as long as the log does.
        let _ = connection.execute("DELETE FROM in_use", ());
    }
}

/// Empties the log, unless the journal is broken: then it stays as evidence.
fn close(connection: Connection, health: &Health) {
    if health.check().is_err() {
        let _ = connection.set_db_config(DbConfig::SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, true);
    }
    let _ = connection.close();
}

struct Writing<'c> {
    store: Store<'c>,
    log: WalEraser<'c>,
    tuning: Tuning,
    health: &'c Health,
    /// Size of the last batch.
    company: usize,
    /// How long to wait for a batch of that size.
    patience: Duration,
    /// Whether the last slice of an erasure failed.
    is_hindered: bool,
}

enum Ended {
    Committed,
    /// Rolled back because of one request.
    Without(usize, rusqlite::Error),
    /// Rolled back; the requests may be retried.
    TakenBack(rusqlite::Error),
    Doubtful(rusqlite::Error),
}

impl Writing<'_> {
    /// The next batch; empty at the end of the queue.
    fn gather(&mut self, requests: &Requests<Queued>) -> Vec<Queued> {
        while !self.store.deleted.is_empty() || self.log.owes() {
            let is_next = !self.store.deleted.is_empty() && !self.is_hindered;
            if requests.wait_for(1, if is_next { Duration::ZERO } else { ERASE_AGAIN }) {
                break;
            }
            match self.store.deleted.is_empty() {
                true => self.tidy(),
                false => self.erase(),
            }
        }
        requests.wait();
        requests.wait_for(self.company, self.patience);
        let batch = requests.take(BATCH);
        self.company = batch.len();
        batch
    }

    /// Erases a slice of what was deleted. What fails is tried again, except damaged content, which
    /// must not keep the journal from working.
    fn erase(&mut self) {
        if self.health.check().is_err() {
            self.store.deleted.clear();
        }
        if self.store.deleted.is_empty() {
            return;
        }
        // After a failure, a slice is a single record: if that is damaged, its session is known.
        let (until, is_single) = (now() + SLICE, self.is_hindered);
        let erased = self.store.begin().and_then(|()| {
            let erased = self.store.erase(|| is_single || now() >= until)?;
            (self.tuning.commit)(&mut self.store)?;
            Ok(erased)
        });
        self.is_hindered = erased.is_err();
        self.log.look_soon();
        match erased {
            Ok(0) => self.tidy(),
            Ok(sessions) => {
                self.log.owe(PATIENCE);
                self.tidy();
                if self.health.check().is_ok() {
                    let erased = self.store.deleted.drain(..sessions);
                    let waits = erased.filter_map(|(_, waits)| waits);
                    waits.for_each(|waits| _ = waits.send(()));
                }
            }
            Err(error) if is_damage(&error) => {
                self.store.roll_back();
                if !is_single {
                    return;
                }
                let sid = self.store.deleted.pop_front().map(|(sid, _)| sid);
                tracing::error!(?sid, %error, "a deleted session cannot be erased: run `oracle journal verify`");
            }
            Err(error) => match self.roll_back(error, None) {
                Ended::Doubtful(error) => self.health.give_up(describe(&error)),
                Ended::TakenBack(error) => self.make_room(&error),
                Ended::Committed | Ended::Without(..) => {}
            },
        }
    }

    /// A shorter log frees space on a full disk.
    fn make_room(&mut self, error: &rusqlite::Error) {
        if is_full(error) {
            self.log.owe(PATIENCE);
            self.tidy();
        }
    }

    fn perform(&mut self, mut batch: Vec<Queued>) {
        while !batch.is_empty() {
            if let Err(error) = self.health.check() {
                return refuse(batch, &error);
            }
            match self.transact(&mut batch) {
                Ended::Committed => {
                    batch.into_iter().for_each(Queued::answer);
                    return self.tidy();
                }
                Ended::Without(index, error) => {
                    let refused = batch.remove(index);
                    refused.work.refuse(Error::Unavailable(describe(&error)));
                }
                Ended::TakenBack(error) => {
                    self.make_room(&error);
                    return refuse(batch, &passing(&error));
                }
                Ended::Doubtful(error) => self.health.give_up(describe(&error)),
            }
        }
    }

    fn transact(&mut self, batch: &mut [Queued]) -> Ended {
        if let Err(error) = self.store.begin() {
            return self.roll_back(error, None);
        }
        for (index, queued) in batch.iter_mut().enumerate() {
            if let Err(error) = queued.work.run(&mut self.store) {
                return self.roll_back(error, Some(index));
            }
        }
        let before = now();
        match (self.tuning.commit)(&mut self.store) {
            Ok(()) => {
                self.patience = COMPANY.min(now().saturating_duration_since(before) / 2);
                Ended::Committed
            }
            Err(error) => self.roll_back(error, None),
        }
    }

    /// Rolls back after the failure of one request, or of all.
    fn roll_back(&mut self, error: rusqlite::Error, request: Option<usize>) -> Ended {
        // First, because it reads errno.
        let reach = reach(&error);
        self.store.roll_back();
        match (reach, request) {
            (FailureScope::Journal, _) => Ended::Doubtful(error),
            (FailureScope::Request, Some(index)) => Ended::Without(index, error),
            (FailureScope::Request | FailureScope::Batch, _) => Ended::TakenBack(error),
        }
    }

    /// No other process knows what this one still has to erase.
    fn settle(&mut self) {
        if !self.log.owes() || self.health.check().is_err() {
            return;
        }
        self.log.owe(BUSY);
        self.tidy();
        if self.log.owes() {
            tracing::warn!(
                "deleted content may remain in the journal's log while a reader uses it"
            );
        }
    }

    fn tidy(&mut self) {
        if self.health.check().is_ok()
            && let Err(error) = self.log.tidy()
            && reach(&error) == FailureScope::Journal
        {
            self.health.give_up(describe(&error));
        }
    }
}

fn refuse(batch: Vec<Queued>, error: &Error) {
    for queued in batch {
        queued.work.refuse(error.clone());
    }
}

#[expect(
    clippy::disallowed_methods,
    reason = "a thread of its own, outside of any runtime; what it writes does not depend on it"
)]
fn now() -> Instant {
    Instant::now()
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicBool, Ordering};

    use super::*;

    struct Probe(Arc<AtomicBool>);

    impl Work for Probe {
        fn run(&mut self, _: &mut Store<'_>) -> rusqlite::Result<()> {
            Ok(())
        }

        fn answer(self: Box<Self>) {
            self.0.store(true, Ordering::Relaxed);
        }

        fn refuse(self: Box<Self>, error: Error) {
            panic!("{error}");
        }
    }

    #[test]
    fn durable_work_is_answered_although_its_runtime_has_ended() {
        for ends_first in [true, false] {
            let (answers, runtime) = unbounded_channel();
            let mut runtime = Some(runtime).filter(|_| !ends_first);
            let answered = Arc::new(AtomicBool::new(false));
            let queued = Queued {
                work: Box::new(Probe(Arc::clone(&answered))),
                _room: Arc::new(Semaphore::new(1)).try_acquire_owned().unwrap(),
                answers: Some(answers),
            };
            queued.answer();
            drop(runtime.take());
            assert!(answered.load(Ordering::Relaxed), "{ends_first}");
        }
    }
}
