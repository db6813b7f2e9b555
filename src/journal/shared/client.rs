//! The end that uses another process's journal.

use std::{
    collections::HashMap,
    io,
    path::Path,
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};

use futures_util::{FutureExt, SinkExt, StreamExt, future::BoxFuture};
use tokio::{
    net::{
        UnixStream,
        unix::{OwnedReadHalf, OwnedWriteHalf},
    },
    sync::{mpsc, oneshot},
    task::JoinSet,
};
use tokio_util::{
    bytes::Bytes,
    codec::{FramedRead, FramedWrite, LengthDelimitedCodec},
};

use super::address::Address;
use super::wire::{Answer, Body, Call, Hello, PROTOCOL, Request, Response, codec, entries};
use crate::{
    journal::{Append, Claim, Entry, Error, Hit, Journal, Known, Snapshot},
    model::{Epoch, Seq, SessionKey, SessionName, Sid, TenantId},
};

/// How long the other process may take to say who it is.
const HELLO: Duration = Duration::from_secs(5);
/// Calls that wait to be sent; more wait to wait.
const WAITING: usize = 256;

/// The other process cannot be reached.
#[derive(Debug, thiserror::Error)]
pub enum ConnectError {
    /// Nobody listens, or whoever does hung up.
    #[error("nobody shares a journal there: {0}")]
    Io(#[from] io::Error),
    /// It did not say who it is.
    #[error("whoever listens there did not answer within {HELLO:?}")]
    Silent,
    /// Another version of the program.
    #[error(
        "process {pid} shares its journal by protocol {protocol}, this program speaks {PROTOCOL}: end it, or use the same version"
    )]
    Protocol {
        /// Its process.
        pid: u32,
        /// What it speaks.
        protocol: u32,
    },
}

/// The line is broken: whether what was asked was done is not known.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Gone;

type Answered = oneshot::Sender<Result<Answer, Error>>;

/// Who waits for which answer; none once the line is broken.
#[derive(Debug)]
struct Waiting(Option<HashMap<u64, Answered>>);

/// Another process's journal.
#[derive(Debug)]
pub struct Remote {
    pid: u32,
    calls: mpsc::Sender<Request>,
    // A lock, because calls are entered by whoever makes them and taken out by the task that reads;
    // held for one look-up.
    waiting: Arc<Mutex<Waiting>>,
    next: AtomicU64,
    _tasks: JoinSet<()>,
}

impl Remote {
    /// Connects to the process that listens on this path.
    ///
    /// # Errors
    /// See [`ConnectError`].
    pub async fn connect(path: &Path) -> Result<Self, ConnectError> {
        let (read, write) = UnixStream::connect(Address::of(path)?.path())
            .await?
            .into_split();
        let mut answers = FramedRead::new(read, codec());
        let hello = tokio::time::timeout(HELLO, answers.next()).await;
        let hello = hello.map_err(|_| ConnectError::Silent)?;
        let hello = hello.ok_or_else(|| io::Error::from(io::ErrorKind::UnexpectedEof))??;
        let Hello { protocol, pid } = serde_json::from_slice(&hello).map_err(io::Error::from)?;
        if protocol != PROTOCOL {
            return Err(ConnectError::Protocol { pid, protocol });
        }
        let waiting = Arc::new(Mutex::new(Waiting(Some(HashMap::new()))));
        let (calls, called) = mpsc::channel(WAITING);
        let mut tasks = JoinSet::new();
        tasks.spawn(write_all(FramedWrite::new(write, codec()), called));
        tasks.spawn(read_all(answers, Arc::clone(&waiting)));
        Ok(Self {
            pid,
            calls,
            waiting,
            next: AtomicU64::new(0),
            _tasks: tasks,
        })
    }

    /// The other process.
    #[must_use]
    pub const fn pid(&self) -> u32 {
        self.pid
    }

    /// Whether the line is broken.
    #[must_use]
    pub fn is_gone(&self) -> bool {
        lock(&self.waiting).0.is_none()
    }

    /// Makes a call.
    pub(super) async fn call(&self, call: Call) -> Result<Result<Answer, Error>, Gone> {
        let id = self.next.fetch_add(1, Ordering::Relaxed);
        let (answered, answer) = oneshot::channel();
        lock(&self.waiting).enter(id, answered)?;
        // Taken out again if the caller gives up before there is an answer.
        let _entered = Entered {
            waiting: &self.waiting,
            id,
        };
        self.calls
            .send(Request { id, call })
            .await
            .map_err(|_| Gone)?;
        answer.await.map_err(|_| Gone)
    }

    /// How many calls wait for their answers.
    #[cfg(test)]
    pub(super) fn waiting(&self) -> usize {
        lock(&self.waiting).0.as_ref().map_or(0, HashMap::len)
    }

    async fn ask<T>(&self, call: Call, take: fn(Answer) -> Option<T>) -> Result<T, Error> {
        match self.call(call).await {
            Ok(answer) => take(answer?).ok_or_else(|| self.unavailable("gave another answer")),
            Err(Gone) => Err(self.unavailable("is gone")),
        }
    }

    fn unavailable(&self, why: &str) -> Error {
        Error::Unavailable(format!("process {}, which has it open, {why}", self.pid))
    }
}

struct Entered<'a> {
    waiting: &'a Mutex<Waiting>,
    id: u64,
}

impl Drop for Entered<'_> {
    fn drop(&mut self) {
        lock(self.waiting).take(self.id);
    }
}

impl Waiting {
    fn enter(&mut self, id: u64, answered: Answered) -> Result<(), Gone> {
        self.0.as_mut().ok_or(Gone)?.insert(id, answered);
        Ok(())
    }

    fn take(&mut self, id: u64) -> Option<Answered> {
        self.0.as_mut()?.remove(&id)
    }
}

async fn write_all(
    mut frames: FramedWrite<OwnedWriteHalf, LengthDelimitedCodec>,
    mut called: mpsc::Receiver<Request>,
) {
    while let Some(request) = called.recv().await {
        let Ok(frame) = serde_json::to_vec(&request) else {
            return;
        };
        // The end of the line is the reader's to tell.
        if frames.send(Bytes::from(frame)).await.is_err() {
            return;
        }
    }
}

async fn read_all(
    mut answers: FramedRead<OwnedReadHalf, LengthDelimitedCodec>,
    waiting: Arc<Mutex<Waiting>>,
) {
    while let Some(Ok(frame)) = answers.next().await {
        let Ok(Response { id, answer }) = serde_json::from_slice(&frame) else {
            break;
        };
        if let Some(answered) = lock(&waiting).take(id) {
            let _ = answered.send(answer);
        }
    }
    // Whoever waits hears that the line is broken.
    lock(&waiting).0 = None;
}

// A poisoned lock is taken all the same: nothing under it can panic halfway through a change.
fn lock(waiting: &Mutex<Waiting>) -> MutexGuard<'_, Waiting> {
    waiting.lock().unwrap_or_else(PoisonError::into_inner)
}

/// What an answer of this kind holds.
macro_rules! taken {
    ($kind:path) => {
        |answer| {
            let $kind(held) = answer else { return None };
            Some(held)
        }
    };
}

impl Journal for Remote {
    fn claim(&self, key: SessionKey) -> BoxFuture<'_, Result<Claim, Error>> {
        self.ask(Call::Claim(key), taken!(Answer::Claim)).boxed()
    }

    fn append(&self, append: Append) -> BoxFuture<'_, Result<Seq, Error>> {
        async move {
            let call = Call::append(&append)?;
            self.ask(call, taken!(Answer::Appended)).await
        }
        .boxed()
    }

    fn read(&self, sid: Sid, after: Seq, limit: usize) -> BoxFuture<'_, Result<Vec<Entry>, Error>> {
        async move {
            let mut all: Vec<Entry> = Vec::new();
            loop {
                let after = all.last().map_or(after, |entry| entry.seq);
                let limit = limit - all.len();
                let call = Call::Read { sid, after, limit };
                let (records, more) = self
                    .ask(call, |answer| {
                        let Answer::Read { records, more } = answer else {
                            return None;
                        };
                        Some((records, more))
                    })
                    .await?;
                all.extend(entries(sid, after, &records)?);
                if !more || records.is_empty() {
                    return Ok(all);
                }
            }
        }
        .boxed()
    }

    fn find(&self, key: SessionKey) -> BoxFuture<'_, Result<Option<Known>, Error>> {
        self.ask(Call::Find(key), taken!(Answer::Found)).boxed()
    }

    fn list(
        &self,
        tenant: TenantId,
        after: Option<SessionName>,
        limit: usize,
    ) -> BoxFuture<'_, Result<Vec<Known>, Error>> {
        let call = Call::List {
            tenant,
            after,
            limit,
        };
        self.ask(call, taken!(Answer::Listed)).boxed()
    }

    fn unfinished(&self, after: Sid, limit: usize) -> BoxFuture<'_, Result<Vec<Known>, Error>> {
        self.ask(Call::Unfinished { after, limit }, taken!(Answer::Listed))
            .boxed()
    }

    fn save(&self, sid: Sid, epoch: Epoch, snapshot: Snapshot) -> BoxFuture<'_, Result<(), Error>> {
        let (seq, body) = (snapshot.seq, Body::of(&snapshot.body));
        let call = Call::Save {
            sid,
            epoch,
            seq,
            body,
        };
        self.ask(call, done).boxed()
    }

    fn snapshot(&self, sid: Sid) -> BoxFuture<'_, Result<Option<Snapshot>, Error>> {
        self.ask(Call::Snapshot(sid), |answer| {
            let kept = taken!(Answer::Snapshot)(answer)?;
            Some(kept.map(|(seq, body)| Snapshot {
                seq,
                body: body.bytes().into(),
            }))
        })
        .boxed()
    }

    fn search(
        &self,
        tenant: TenantId,
        words: String,
        limit: usize,
    ) -> BoxFuture<'_, Result<Vec<Hit>, Error>> {
        let call = Call::Search {
            tenant,
            words,
            limit,
        };
        self.ask(call, taken!(Answer::Hits)).boxed()
    }

    fn delete(&self, sid: Sid, epoch: Epoch) -> BoxFuture<'_, Result<(), Error>> {
        self.ask(Call::Delete { sid, epoch }, done).boxed()
    }
}

fn done(answer: Answer) -> Option<()> {
    matches!(answer, Answer::Done).then_some(())
}
