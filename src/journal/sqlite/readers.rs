//! A few threads that read, each with a connection of its own.

use std::{
    panic::{AssertUnwindSafe, catch_unwind},
    path::Path,
    sync::{
        Arc, Mutex, PoisonError,
        mpsc::{self, Receiver, Sender},
    },
    thread::{self, JoinHandle},
};

use rusqlite::Connection;
use tokio::sync::{Semaphore, oneshot};

use super::{
    connection,
    error::{Failed, OpenError, told},
    health::Health,
    processes::Process,
    query::Reader,
};
use crate::journal::Error;

/// Threads. A read takes microseconds where its pages are in memory, and waits for the disk
/// where they are not.
const THREADS: usize = 3;
/// Of them, those that may be busy with what takes long.
const LONG: usize = THREADS - 1;
/// Questions that wait or are being answered; more wait for room outside.
const QUEUE: usize = 1_024;

type Question = Box<dyn for<'r, 'c> FnOnce(&'r mut Reader<'c>) + Send>;

/// Whether nobody waits for the answer any more.
pub(super) type GivenUp<'a> = &'a dyn Fn() -> bool;

/// The handle on the reading threads, which end when this is dropped.
#[derive(Debug)]
pub(super) struct Readers {
    /// None once they are to end.
    queue: Option<Sender<Question>>,
    room: Arc<Semaphore>,
    /// For what may take long.
    long: Arc<Semaphore>,
    health: Arc<Health>,
    threads: Vec<JoinHandle<()>>,
}

impl Readers {
    /// Opens the connections and starts the threads; they are ready when this returns.
    pub(super) fn start(
        path: &Path,
        process: &Arc<Process>,
        health: Arc<Health>,
    ) -> Result<Self, OpenError> {
        let (queue, questions) = mpsc::channel();
        let (ready, started) = mpsc::channel();
        // A lock, because whoever is free takes the next question; held while waiting for one.
        let questions = Arc::new(Mutex::new(questions));
        let mut readers = Self {
            queue: Some(queue),
            room: Arc::new(Semaphore::new(QUEUE)),
            long: Arc::new(Semaphore::new(LONG)),
            health,
            threads: Vec::new(),
        };
        for number in 1..=THREADS {
            let connection = connection::reading(path)?;
            let (questions, ready) = (Arc::clone(&questions), ready.clone());
            let process = Arc::clone(process);
            let thread = thread::Builder::new().name(format!("journal-reader-{number}"));
            let thread = thread.spawn(move || serve((&connection, &process), &questions, &ready));
            let thread = thread.map_err(|source| OpenError::File {
                path: path.to_owned(),
                source,
            })?;
            readers.threads.push(thread);
        }
        drop(ready);
        for _ in 1..=THREADS {
            let heard = started.recv();
            let heard = heard.unwrap_or_else(|_| Err("a reader did not start".to_owned()));
            heard.map_err(|detail| OpenError::Store {
                path: path.to_owned(),
                detail,
            })?;
        }
        Ok(readers)
    }

    /// Asks whoever is free.
    pub(super) async fn ask<T: Send + 'static>(
        &self,
        look: impl for<'r, 'c> FnOnce(&'r mut Reader<'c>) -> Result<T, Failed> + Send + 'static,
    ) -> Result<T, Error> {
        self.put(move |reader, _| look(reader)).await
    }

    /// Asks what may take long: it is to look now and then whether anybody still waits for it. One thread
    /// is always left for what is short.
    pub(super) async fn ask_at_length<T: Send + 'static>(
        &self,
        look: impl for<'r, 'c> FnOnce(&'r mut Reader<'c>, GivenUp<'_>) -> Result<T, Failed>
        + Send
        + 'static,
    ) -> Result<T, Error> {
        let turn = Arc::clone(&self.long).acquire_owned().await;
        self.put(move |reader, given_up| {
            // Kept until the thread is free again, whoever may have given up before.
            let _turn = turn;
            look(reader, given_up)
        })
        .await
    }

    async fn put<T: Send + 'static>(
        &self,
        look: impl for<'r, 'c> FnOnce(&'r mut Reader<'c>, GivenUp<'_>) -> Result<T, Failed>
        + Send
        + 'static,
    ) -> Result<T, Error> {
        self.health.check()?;
        let room = Arc::clone(&self.room).acquire_owned().await;
        let (reply, answer) = oneshot::channel();
        let question: Question = Box::new(move |reader| {
            let _room = room;
            // Nobody waits for a question whose future was dropped.
            if !reply.is_closed() {
                let found = look(reader, &|| reply.is_closed());
                let _ = reply.send(found.map_err(Failed::of_reading));
            }
        });
        let gone = || Error::Unavailable("its readers have ended".to_owned());
        let queue = self.queue.as_ref().ok_or_else(gone)?;
        queue.send(question).map_err(|_| gone())?;
        answer.await.unwrap_or_else(|_| Err(gone()))
    }
}

impl Drop for Readers {
    fn drop(&mut self) {
        drop(self.queue.take());
        for thread in self.threads.drain(..) {
            // It catches the panics of its questions.
            let _ = thread.join();
        }
    }
}

fn serve(
    (connection, process): (&Connection, &Process),
    questions: &Mutex<Receiver<Question>>,
    ready: &Sender<Result<(), String>>,
) {
    let reader = Reader::new(connection, process);
    let heard = ready.send(reader.as_ref().map(drop).map_err(told));
    let (Ok(mut reader), Ok(())) = (reader, heard) else {
        return;
    };
    let next = || {
        let questions = questions.lock().unwrap_or_else(PoisonError::into_inner);
        questions.recv().ok()
    };
    while let Some(question) = next() {
        // Whoever asked is told by the lost answer.
        let asked = catch_unwind(AssertUnwindSafe(|| question(&mut reader)));
        if asked.is_err() {
            reader.recover();
        }
    }
}
