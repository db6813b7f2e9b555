//! The reading threads, each with its own connection.

use std::{
    panic::{AssertUnwindSafe, catch_unwind},
    path::Path,
    sync::{
        Arc,
        mpsc::{self, Receiver, Sender},
    },
    thread::{self, JoinHandle},
};

use parking_lot::Mutex;
use rusqlite::Connection;
use tokio::sync::{Semaphore, oneshot};

use super::{
    connection,
    error::{Failed, Health, OpenError, describe},
    processes::Process,
    query::Reader,
};
use crate::journal::Error;

const THREADS: usize = 3;
/// Threads that long reads may occupy.
const LONG: usize = THREADS - 1;
/// Requests queued or in flight; further ones wait for a permit.
const QUEUE: usize = 1_024;

type ReadRequest = Box<dyn for<'r, 'c> FnOnce(&'r mut Reader<'c>) + Send>;

/// Whether the caller has dropped its future.
pub(super) type AbandonFlag<'a> = &'a dyn Fn() -> bool;

pub(super) struct Readers {
    queue: Option<Sender<ReadRequest>>,
    room: Arc<Semaphore>,
    long: Arc<Semaphore>,
    health: Arc<Health>,
    threads: Vec<JoinHandle<()>>,
}

impl Readers {
    pub(super) fn start(
        path: &Path,
        process: &Arc<Process>,
        health: Arc<Health>,
    ) -> Result<Self, OpenError> {
        let (queue, questions) = mpsc::channel();
        let (ready, started) = mpsc::channel();
        // Locked by the idle thread that waits for the next request.
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
            let thread = thread.map_err(|source| OpenError::file(path, source))?;
            readers.threads.push(thread);
        }
        drop(ready);
        for _ in 1..=THREADS {
            let heard = started.recv();
            let heard = heard.unwrap_or_else(|_| Err("a reader thread failed to start".to_owned()));
            heard.map_err(|detail| OpenError::store(path, detail))?;
        }
        Ok(readers)
    }

    /// Runs a long read, which checks from time to time whether it is abandoned. One thread stays
    /// free for short ones.
    pub(super) async fn ask_at_length<T: Send + 'static>(
        &self,
        look: impl for<'r, 'c> FnOnce(&'r mut Reader<'c>, AbandonFlag<'_>) -> Result<T, Failed>
        + Send
        + 'static,
    ) -> Result<T, Error> {
        let turn = Arc::clone(&self.long).acquire_owned().await;
        self.ask(move |reader, given_up| {
            // Kept until the thread is free again.
            let _turn = turn;
            look(reader, given_up)
        })
        .await
    }

    /// Runs a read.
    pub(super) async fn ask<T: Send + 'static>(
        &self,
        look: impl for<'r, 'c> FnOnce(&'r mut Reader<'c>, AbandonFlag<'_>) -> Result<T, Failed>
        + Send
        + 'static,
    ) -> Result<T, Error> {
        self.health.check()?;
        let room = Arc::clone(&self.room).acquire_owned().await;
        let (reply, answer) = oneshot::channel();
        let question: ReadRequest = Box::new(move |reader| {
            let _room = room;
            if !reply.is_closed() {
                let found = look(reader, &|| reply.is_closed());
                let _ = reply.send(found.map_err(Failed::of_reading));
            }
        });
        let gone = || Error::Unavailable("its reader threads have ended".to_owned());
        let queue = self.queue.as_ref().ok_or_else(gone)?;
        queue.send(question).map_err(|_| gone())?;
        answer.await.unwrap_or_else(|_| Err(gone()))
    }
}

impl Drop for Readers {
    fn drop(&mut self) {
        drop(self.queue.take());
        for thread in self.threads.drain(..) {
            let _ = thread.join();
        }
    }
}

fn serve(
    (connection, process): (&Connection, &Process),
    questions: &Mutex<Receiver<ReadRequest>>,
    ready: &Sender<Result<(), String>>,
) {
    let reader = Reader::new(connection, process);
    let heard = ready.send(reader.as_ref().map(drop).map_err(describe));
    let (Ok(mut reader), Ok(())) = (reader, heard) else {
        return;
    };
    let next = || questions.lock().recv().ok();
    while let Some(question) = next() {
        // The caller sees a closed channel.
        let asked = catch_unwind(AssertUnwindSafe(|| question(&mut reader)));
        if asked.is_err() {
            reader.recover();
        }
    }
}
