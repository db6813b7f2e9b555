//! The end that has the journal.

use std::{
    fs, io,
    panic::AssertUnwindSafe,
    path::{Path, PathBuf},
    sync::{Arc, Weak},
    time::Duration,
};

use futures_util::{FutureExt, SinkExt, StreamExt};
use tokio::{
    net::{
        UnixListener, UnixStream,
        unix::{OwnedReadHalf, OwnedWriteHalf},
    },
    sync::{OwnedSemaphorePermit, Semaphore, mpsc},
    task::JoinSet,
    time::{Instant, sleep, timeout},
};
use tokio_util::{
    bytes::Bytes,
    codec::{FramedRead, FramedWrite, LengthDelimitedCodec},
};

use super::{
    address::{Owner, bind},
    inbox::Inbox,
    office::{Office, Party},
    wire::{
        Answer, Body, Call, Hello, PROTOCOL, Reply, Request, Response, Told, codec, entries, raw,
    },
};
use crate::journal::{Append, Entry, Error, Journal, LETTERS, Posted, Said, Snapshot};

/// Processes served at a time; more wait to be let in.
const CONNECTIONS: usize = 256;
/// Calls of one process under way, besides its letters; more are read when these are answered.
const CALLS: usize = 256;
/// How long a process may take to take an answer.
const WRITE: Duration = Duration::from_secs(30);
/// Pause after a connection could not be taken, for want of file handles.
const ACCEPT_AGAIN: Duration = Duration::from_millis(100);
/// Pause before it is looked again whether anybody is served.
const PAUSE: Duration = Duration::from_millis(5);
/// A page is cut when its records are this large together, in bytes.
const PAGE: usize = 4 * 1024 * 1024;
/// Records in a page at most.
const PAGE_RECORDS: usize = 4_096;

/// The journal cannot be served.
#[derive(Debug, thiserror::Error)]
#[error("the journal cannot be shared on `{path}`: {source}")]
pub struct ServeError {
    /// The socket.
    pub path: PathBuf,
    /// Why not.
    pub source: io::Error,
}

/// Serves a journal until it is dropped, which ends every call under way.
#[derive(Debug)]
pub struct Server {
    path: PathBuf,
    /// Whether anybody is served still.
    journal: Weak<dyn Journal>,
    tasks: JoinSet<()>,
}

impl Server {
    /// Listens on this path, which nobody but the owner of the process may connect to. What is left
    /// there of a process that died is replaced: whoever calls this has made sure that no other is alive.
    ///
    /// # Errors
    /// When the socket cannot be made.
    pub fn listen(path: &Path, journal: Arc<dyn Journal>) -> Result<Self, ServeError> {
        let office = Office::new(Arc::new(Inbox::default()), Duration::ZERO);
        Self::listen_for(path, journal, Arc::new(office))
    }

    /// The same, where it is known already who has what.
    pub(super) fn listen_for(
        path: &Path,
        journal: Arc<dyn Journal>,
        office: Arc<Office>,
    ) -> Result<Self, ServeError> {
        let failed = |source| ServeError {
            path: path.to_path_buf(),
            source,
        };
        let owner = Owner::this_process().map_err(failed)?;
        let bound = bind(path).map_err(failed)?;
        let mut tasks = JoinSet::new();
        let weak = Arc::downgrade(&journal);
        tasks.spawn(accept(bound, owner, Served { journal, office }));
        Ok(Self {
            path: path.to_path_buf(),
            journal: weak,
            tasks,
        })
    }
}

impl Server {
    /// Hangs up on everybody, and returns when nobody is served any more; at the latest then.
    pub(super) async fn close(mut self, until: Instant) {
        self.tasks.shutdown().await;
        // A call that is carried out right now has the journal until it is told to end.
        while self.journal.strong_count() > 0 && Instant::now() < until {
            sleep(PAUSE).await;
        }
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        // Nobody listens any more; a path that stays is replaced by the next one.
        let _ = fs::remove_file(&self.path);
    }
}

/// What is served.
#[derive(Clone)]
struct Served {
    journal: Arc<dyn Journal>,
    office: Arc<Office>,
}

async fn accept(listener: UnixListener, owner: Owner, served: Served) {
    let room = Arc::new(Semaphore::new(CONNECTIONS));
    let mut connections = JoinSet::new();
    loop {
        while connections.try_join_next().is_some() {}
        let Ok(permit) = Arc::clone(&room).acquire_owned().await else {
            return;
        };
        match listener.accept().await {
            Ok((stream, _)) => {
                if !owner.lets_in(&stream) {
                    tracing::warn!("somebody else wants to use the journal, and may not");
                    continue;
                }
                connections.spawn(serve(stream, served.clone(), permit));
            }
            Err(error) => {
                tracing::warn!(%error, "a connection to the journal could not be taken");
                sleep(ACCEPT_AGAIN).await;
            }
        }
    }
}

async fn serve(stream: UnixStream, served: Served, _room: OwnedSemaphorePermit) {
    let process = stream.peer_cred().ok().and_then(|peer| peer.pid());
    let process = process.and_then(|process| u32::try_from(process).ok());
    let (read, write) = stream.into_split();
    let (answers, answered) = mpsc::channel(CALLS);
    let line = served.office.join(process, answers.clone());
    let mut tasks = JoinSet::new();
    let mut requests = FramedRead::new(read, codec());
    let guest = (&served, line.number());
    // A process that takes no answers is cut off: what it has must not stay with it unheard.
    let ended = tokio::select! {
        ended = read_all(&mut requests, guest, &answers, &mut tasks) => ended,
        ended = write_all(FramedWrite::new(write, codec()), answered) => ended,
    };
    if let Err(error) = ended {
        tracing::warn!(%error, "a process that uses the journal is cut off");
    }
}

async fn read_all(
    requests: &mut FramedRead<OwnedReadHalf, LengthDelimitedCodec>,
    (served, guest): (&Served, u64),
    answers: &mpsc::Sender<Told>,
    tasks: &mut JoinSet<()>,
) -> io::Result<()> {
    let room = Arc::new(Semaphore::new(CALLS));
    let letters = Arc::new(Semaphore::new(LETTERS));
    while let Some(frame) = requests.next().await {
        let Request { id, call } = serde_json::from_slice(&frame?)?;
        let Some(call) = taken(&served.office, guest, call) else {
            continue;
        };
        let permit = match &call {
            // It waits for another process: no call, and no answer to a letter, may wait behind it.
            Call::Post { .. } => Arc::clone(&letters).try_acquire_owned().ok(),
            _ => Arc::clone(&room).acquire_owned().await.ok(),
        };
        let Some(permit) = permit else {
            let answer = Ok(Answer::Posted(Posted::Full.into()));
            // A process that is gone needs no answer.
            let _ = answers.send(Told::Answer(Response { id, answer })).await;
            continue;
        };
        while tasks.try_join_next().is_some() {}
        let (served, answers) = (served.clone(), answers.clone());
        tasks.spawn(async move {
            let _permit = permit;
            // Somebody waits for an answer, whatever becomes of the call.
            let answer = AssertUnwindSafe(answer(&served, guest, call))
                .catch_unwind()
                .await;
            let crashed = |_| Err(Error::Unavailable("the call crashed it".into()));
            let answer = answer.unwrap_or_else(crashed);
            // A process that is gone needs no answer.
            let answer = Told::Answer(Response { id, answer });
            let _ = answers.send(answer).await;
        });
    }
    Ok(())
}

/// Does what needs no time and no answer, and gives back any other call. An answer to a letter must not wait
/// behind letters.
fn taken(office: &Office, guest: u64, call: Call) -> Option<Call> {
    match call {
        Call::LetGo { key, epoch } => office.let_go(Party::Guest(guest), &key, epoch),
        Call::Reply { letter, reply } => match reply {
            Reply::Answered(body) => office.answered(guest, letter, Said::Answer(body.bytes())),
            Reply::NotHere => office.answered(guest, letter, Said::NotHere),
            Reply::Full => office.answered(guest, letter, Said::Full),
            Reply::Lost => office.lost(guest, letter),
        },
        other => return Some(other),
    }
    None
}

async fn write_all(
    mut frames: FramedWrite<OwnedWriteHalf, LengthDelimitedCodec>,
    mut answered: mpsc::Receiver<Told>,
) -> io::Result<()> {
    let hello = Hello {
        protocol: PROTOCOL,
        pid: std::process::id(),
    };
    let mut next = serde_json::to_vec(&hello);
    loop {
        let sent = timeout(WRITE, frames.send(Bytes::from(next?))).await;
        if sent?.is_err() {
            // It is gone, and needs no answer.
            return Ok(());
        }
        let Some(told) = answered.recv().await else {
            return Ok(());
        };
        next = serde_json::to_vec(&told);
    }
}

async fn answer(served: &Served, guest: u64, call: Call) -> Result<Answer, Error> {
    let Served { journal, office } = served;
    let party = Party::Guest(guest);
    Ok(match call {
        Call::Claim { key, only } => {
            Answer::Claim(office.claim(party, key, only, &**journal).await?)
        }
        Call::Append {
            sid,
            epoch,
            after,
            leaves,
            records,
        } => {
            let records = entries(sid, after, &records)?;
            let records = records.into_iter().map(|entry| entry.record).collect();
            let append = Append {
                sid,
                epoch,
                after,
                records,
                leaves,
            };
            Answer::Appended(journal.append(append).await?)
        }
        Call::Read { sid, after, limit } => {
            let page = journal.read(sid, after, limit.min(PAGE_RECORDS)).await?;
            let cut = page.len() == PAGE_RECORDS && limit > PAGE_RECORDS;
            self::page(&page, cut)?
        }
        Call::Find(key) => Answer::Found(journal.find(key).await?),
        Call::List {
            tenant,
            after,
            limit,
        } => Answer::Listed(journal.list(tenant, after, limit).await?),
        Call::Tenants { after, limit } => Answer::Tenants(journal.tenants(after, limit).await?),
        Call::Unfinished { after, limit } => {
            Answer::Listed(journal.unfinished(after, limit).await?)
        }
        Call::Search {
            tenant,
            words,
            limit,
        } => Answer::Hits(journal.search(tenant, words, limit).await?),
        Call::Save {
            sid,
            epoch,
            seq,
            body,
        } => {
            let body = body.bytes().into();
            journal.save(sid, epoch, Snapshot { seq, body }).await?;
            Answer::Done
        }
        Call::Snapshot(sid) => {
            let kept = journal.snapshot(sid).await?;
            Answer::Snapshot(kept.map(|kept| (kept.seq, Body::of(&kept.body))))
        }
        Call::Delete { sid, epoch } => {
            let deleted = journal.delete(sid, epoch).await;
            // A deletion that is made again finds no session, and nobody has it any more.
            if matches!(deleted, Ok(()) | Err(Error::Unknown { .. })) {
                office.deleted(sid);
            }
            deleted?;
            Answer::Done
        }
        Call::Hold(claims) => {
            office.hold(party, claims);
            Answer::Done
        }
        Call::Post {
            key,
            body,
            within_ms,
        } => {
            let within = Duration::from_millis(within_ms);
            let posted = office.post(party, key, body.bytes(), within).await;
            Answer::Posted(posted.into())
        }
        // Taken on arrival.
        Call::LetGo { .. } | Call::Reply { .. } => Answer::Done,
    })
}

/// As much of a page as goes into one answer.
fn page(entries: &[Entry], cut: bool) -> Result<Answer, Error> {
    let (mut records, mut size) = (Vec::new(), 0);
    for entry in entries {
        if size > PAGE {
            return Ok(Answer::Read {
                records,
                more: true,
            });
        }
        let raw = raw(&entry.record).map_err(|error| Error::Unavailable(error.to_string()))?;
        size += raw.get().len();
        records.push(raw);
    }
    Ok(Answer::Read { records, more: cut })
}
