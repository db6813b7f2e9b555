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

use futures_util::{SinkExt, StreamExt};
use tokio::{
    net::unix::{OwnedReadHalf, OwnedWriteHalf},
    sync::{mpsc, oneshot, watch},
    task::JoinSet,
    time::{Instant, timeout, timeout_at},
};
use tokio_util::{
    bytes::Bytes,
    codec::{FramedRead, FramedWrite, LengthDelimitedCodec},
};

use super::{
    address,
    inbox::Inbox,
    wire::{Answer, Body, Call, Hello, PROTOCOL, Reply, Request, Response, Told, codec},
};
use crate::{
    journal::{Delivery, Error, LETTERS, Posted, Said},
    model::SessionKey,
};

mod port;

/// How long the other process may take to say who it is.
const HELLO: Duration = Duration::from_secs(5);
/// How long the other process may take to answer a call. Longer than it waits itself for those who come back.
const ANSWER: Duration = Duration::from_secs(20);
/// Calls that wait to be sent; more wait to wait.
const WAITING: usize = 256;
/// How much longer than a letter its sender waits for word of it.
const GRACE: Duration = Duration::from_secs(1);

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
    /// Set when the line is broken.
    gone: watch::Receiver<bool>,
    _tasks: JoinSet<()>,
}

impl Remote {
    /// Connects to the process that listens on this path.
    ///
    /// # Errors
    /// See [`ConnectError`].
    pub async fn connect(path: &Path) -> Result<Self, ConnectError> {
        Self::connect_for(path, Arc::default(), Instant::now() + HELLO).await
    }

    /// The same, with letters for this process going there, until then.
    pub(super) async fn connect_for(
        path: &Path,
        inbox: Arc<Inbox>,
        until: Instant,
    ) -> Result<Self, ConnectError> {
        let until = until.min(Instant::now() + HELLO);
        let stream = timeout_at(until, address::connect(path));
        let stream = stream.await.map_err(|_| ConnectError::Silent)??;
        let (read, write) = stream.into_split();
        let mut told = FramedRead::new(read, codec());
        let hello = timeout_at(until, told.next()).await;
        let hello = hello.map_err(|_| ConnectError::Silent)?;
        let hello = hello.ok_or_else(|| io::Error::from(io::ErrorKind::UnexpectedEof))??;
        let Hello { protocol, pid } = serde_json::from_slice(&hello).map_err(io::Error::from)?;
        if protocol != PROTOCOL {
            return Err(ConnectError::Protocol { pid, protocol });
        }
        let waiting = Arc::new(Mutex::new(Waiting(Some(HashMap::new()))));
        let (calls, called) = mpsc::channel(WAITING);
        let (ends, gone) = watch::channel(false);
        let reader = Reader {
            waiting: Arc::clone(&waiting),
            inbox,
            replies: calls.downgrade(),
        };
        let mut tasks = JoinSet::new();
        tasks.spawn(write_all(FramedWrite::new(write, codec()), called));
        tasks.spawn(async move {
            reader.read_all(told).await;
            // Nobody may be there to hear it.
            let _ = ends.send(true);
        });
        Ok(Self {
            pid,
            calls,
            waiting,
            next: AtomicU64::new(0),
            gone,
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

    /// Waits for the end of the line.
    pub(super) fn gone(&self) -> impl Future<Output = ()> + Send + 'static {
        let mut gone = self.gone.clone();
        async move {
            // Without a sender it is gone too.
            let _ = gone.wait_for(|gone| *gone).await;
        }
    }

    /// Sends a letter.
    pub(super) async fn post(
        &self,
        key: SessionKey,
        body: Vec<u8>,
        within: Duration,
    ) -> Result<Posted, Error> {
        let call = Call::Post {
            key,
            body: Body::of(&body),
            within_ms: u64::try_from(within.as_millis()).unwrap_or(u64::MAX),
        };
        match timeout(within + GRACE, self.call(call)).await {
            Ok(Ok(Ok(Answer::Posted(posted)))) => Ok(posted.into()),
            Ok(Ok(Ok(_))) => Err(self.unavailable("gave another answer")),
            Ok(Ok(Err(error))) => Err(error),
            Ok(Err(Gone)) => Ok(Posted::Lost),
            Err(_) => Ok(Posted::Silent {
                process: Some(self.pid),
            }),
        }
    }

    /// Says something that is not answered, unless too much waits to be said.
    pub(super) fn tell(&self, call: Call) {
        let id = self.next.fetch_add(1, Ordering::Relaxed);
        if self.calls.try_send(Request { id, call }).is_err() {
            tracing::debug!("the process that has the journal is not told");
        }
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
        match timeout(ANSWER, self.call(call)).await {
            Ok(Ok(answer)) => take(answer?).ok_or_else(|| self.unavailable("gave another answer")),
            Ok(Err(Gone)) => Err(self.unavailable("is gone")),
            Err(_) => Err(self.unavailable(&format!(
                "did not answer within {ANSWER:?}: if it is stopped, let it go on (`kill -CONT {}`), else end \
                 it, and try again",
                self.pid
            ))),
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

/// Takes in what the other process says.
struct Reader {
    waiting: Arc<Mutex<Waiting>>,
    inbox: Arc<Inbox>,
    /// For answers to letters. Weak: they do not keep the line open.
    replies: mpsc::WeakSender<Request>,
}

impl Reader {
    async fn read_all(self, mut told: FramedRead<OwnedReadHalf, LengthDelimitedCodec>) {
        let mut letters = JoinSet::new();
        while let Some(Ok(frame)) = told.next().await {
            while letters.try_join_next().is_some() {}
            match serde_json::from_slice(&frame) {
                Ok(Told::Answer(Response { id, answer })) => {
                    if let Some(answered) = lock(&self.waiting).take(id) {
                        let _ = answered.send(answer);
                    }
                }
                // More are not sent at a time; those that are late were given up.
                Ok(Told::Letter { letter, .. }) if letters.len() >= LETTERS => {
                    let (id, reply) = (u64::MAX, Reply::Full);
                    let call = Call::Reply { letter, reply };
                    if let Some(replies) = self.replies.upgrade() {
                        // Where there is no room for that either, the sender gives up in its time.
                        let _ = replies.try_send(Request { id, call });
                    }
                }
                Ok(Told::Letter { letter, key, body }) => {
                    let (answer, answered) = oneshot::channel();
                    let body = body.bytes();
                    self.inbox.deliver(Delivery { key, body, answer });
                    letters.spawn(reply(letter, answered, self.replies.clone()));
                }
                Err(_) => break,
            }
        }
        // Whoever waits hears that the line is broken.
        lock(&self.waiting).0 = None;
    }
}

/// Sends the answer to a letter when it is there.
async fn reply(letter: u64, answered: oneshot::Receiver<Said>, replies: mpsc::WeakSender<Request>) {
    let reply = match answered.await {
        Ok(Said::Answer(body)) => Reply::Answered(Body::of(&body)),
        Ok(Said::NotHere) => Reply::NotHere,
        Ok(Said::Full) => Reply::Full,
        Err(_) => Reply::Lost,
    };
    let call = Call::Reply { letter, reply };
    if let Some(replies) = replies.upgrade() {
        // Without a line the sender hears that it is broken. The number is nobody's: there is no answer.
        let _ = replies.send(Request { id: u64::MAX, call }).await;
    }
}

// A poisoned lock is taken all the same: nothing under it can panic halfway through a change.
fn lock(waiting: &Mutex<Waiting>) -> MutexGuard<'_, Waiting> {
    waiting.lock().unwrap_or_else(PoisonError::into_inner)
}
