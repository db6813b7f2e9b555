//! The end that has the system.

use std::{
    fs::{self, File, TryLockError},
    io,
    os::unix::fs::MetadataExt as _,
    path::{Path, PathBuf},
    sync::Arc,
    time::Duration,
};

use futures_util::{SinkExt as _, StreamExt as _};
use tokio::{
    net::{
        UnixListener, UnixStream,
        unix::{OwnedReadHalf, OwnedWriteHalf},
    },
    sync::{OwnedSemaphorePermit, Semaphore},
    task::JoinSet,
    time::timeout,
};
use tokio_util::{
    codec::{FramedRead, FramedWrite, LinesCodec, LinesCodecError},
    sync::CancellationToken,
};

use super::wire::{self, Line, Request};
use crate::{
    control::{Code, Controller, Follow, MAX_REQUEST, Refused, Seen},
    journal::shared::{Owner, bind, connect},
    model::Principal,
};

/// Connections at a time; more are told so.
const CONNECTIONS: usize = 64;
/// Of these may watch: the others are for verbs.
const WATCHING: usize = 48;
/// How many are being told at a time that there is no room.
const LOBBY: usize = 64;
/// How long whoever finds no room may take to hear it.
const IN_LOBBY: Duration = Duration::from_secs(2);
/// A connection on which nothing is asked for this long is closed.
const IDLE: Duration = Duration::from_secs(600);
/// How long a verb may take.
const WORK: Duration = Duration::from_secs(60);
/// How long whoever asked may take to take an answer.
const WRITE: Duration = Duration::from_secs(30);
/// Pause after a connection could not be taken, for want of file handles.
const ACCEPT_AGAIN: Duration = Duration::from_millis(100);
/// How long those who watch have to be told that it is over.
const LAST_WORDS: Duration = Duration::from_secs(1);

/// The control channel cannot be opened.
#[derive(Debug, thiserror::Error)]
pub enum ServeError {
    /// Another process has it in this directory.
    #[error("another process has the control channel of this data directory, at `{path}`")]
    Taken {
        /// The socket.
        path: PathBuf,
    },
    /// There can be no socket.
    #[error("the control channel cannot be opened at `{path}`: {source}")]
    Socket {
        /// The socket.
        path: PathBuf,
        /// Why not.
        source: io::Error,
    },
}

/// The control channel of a system on a socket; closed when this is dropped.
#[derive(Debug)]
#[must_use = "dropping it closes the channel"]
pub struct Server {
    path: PathBuf,
    /// Which file it made: another process may have put its own there since.
    file: Option<(u64, u64)>,
    /// Nothing more is to be asked.
    ending: CancellationToken,
    tasks: JoinSet<()>,
    /// Locked for as long as this process has the channel: two that begin at once do not both get it.
    _lock: File,
}

impl Server {
    /// Listens on this path, for the owner of this process alone.
    ///
    /// # Errors
    /// When another process listens there, or the socket cannot be made.
    pub async fn listen(path: &Path, controller: Controller) -> Result<Self, ServeError> {
        let path = path.to_path_buf();
        let lock = match lock(&path) {
            Ok(lock) => lock,
            Err(TryLockError::WouldBlock) => return Err(ServeError::Taken { path }),
            Err(TryLockError::Error(source)) => return Err(ServeError::Socket { path, source }),
        };
        // One of a version that knows of no lock.
        if connect(&path).await.is_ok() {
            return Err(ServeError::Taken { path });
        }
        let made = Owner::this_process().and_then(|owner| Ok((owner, bind(&path)?)));
        let (owner, listener) = match made {
            Ok(made) => made,
            Err(source) => return Err(ServeError::Socket { path, source }),
        };
        let file = file_at(&path);
        let (mut tasks, ending) = (JoinSet::new(), CancellationToken::new());
        let shared = Shared {
            controller,
            ending: ending.clone(),
            watching: Arc::new(Semaphore::new(WATCHING)),
        };
        tasks.spawn(accept(listener, owner, shared));
        Ok(Self {
            path,
            file,
            ending,
            tasks,
            _lock: lock,
        })
    }

    /// Takes nothing new. What is under way is answered, and whoever watches is told that it is over, if the
    /// system has ended and they listen.
    pub async fn close(mut self) {
        self.ending.cancel();
        // Whoever is late is cut off.
        let _ = timeout(LAST_WORDS, self.tasks.join_next()).await;
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        if self.file.is_some() && file_at(&self.path) == self.file {
            // Nobody listens any more; a path that stays is replaced by the next one.
            let _ = fs::remove_file(&self.path);
        }
    }
}

fn file_at(path: &Path) -> Option<(u64, u64)> {
    let file = fs::symlink_metadata(path).ok()?;
    Some((file.dev(), file.ino()))
}

/// Of the folder that the socket is in: nothing is left of it, however the process ends.
fn lock(path: &Path) -> Result<File, TryLockError> {
    let folder = path.parent().unwrap_or(path);
    let folder = File::open(folder).map_err(TryLockError::Error)?;
    folder.try_lock()?;
    Ok(folder)
}

/// What all connections share.
#[derive(Clone)]
struct Shared {
    controller: Controller,
    ending: CancellationToken,
    watching: Arc<Semaphore>,
}

async fn accept(listener: UnixListener, owner: Owner, shared: Shared) {
    let room = Arc::new(Semaphore::new(CONNECTIONS));
    let lobby = Arc::new(Semaphore::new(LOBBY));
    let mut connections = JoinSet::new();
    loop {
        while connections.try_join_next().is_some() {}
        let accepted = tokio::select! {
            accepted = listener.accept() => accepted,
            () = shared.ending.cancelled() => break,
        };
        match accepted {
            Ok((stream, _)) if owner.lets_in(&stream) => {
                let conversation = Conversation::new(stream, shared.clone());
                if let Ok(permit) = Arc::clone(&room).try_acquire_owned() {
                    connections.spawn(conversation.serve(permit));
                } else if let Ok(permit) = Arc::clone(&lobby).try_acquire_owned() {
                    connections.spawn(conversation.turn_away(permit));
                }
            }
            Ok(_) => {
                tracing::warn!("somebody else wants to use the control channel, and may not");
            }
            Err(error) => {
                tracing::warn!(%error, "a connection to the control channel could not be taken");
                tokio::time::sleep(ACCEPT_AGAIN).await;
            }
        }
    }
    drop(listener);
    while connections.join_next().await.is_some() {}
}

/// A connection: what comes in, what goes out.
struct Conversation {
    requests: FramedRead<OwnedReadHalf, LinesCodec>,
    answers: FramedWrite<OwnedWriteHalf, LinesCodec>,
    shared: Shared,
    who: Principal,
}

/// Nobody is there any more.
struct Gone;

impl Conversation {
    fn new(stream: UnixStream, shared: Shared) -> Self {
        let (read, write) = stream.into_split();
        Self {
            requests: FramedRead::new(read, wire::requests()),
            answers: FramedWrite::new(write, wire::answers()),
            shared,
            who: Principal::local(),
        }
    }

    async fn serve(self, _room: OwnedSemaphorePermit) {
        // However it ended.
        let Err(Gone) = self.hold().await;
    }

    /// Tells that there is no room, when something is asked.
    async fn turn_away(mut self, _room: OwnedSemaphorePermit) {
        let told = async {
            let _ = self.requests.next().await;
            self.say(&Line::Refused(no_room(CONNECTIONS))).await
        };
        // Whoever asks nothing needs no answer.
        let _ = timeout(IN_LOBBY, told).await;
    }

    async fn hold(mut self) -> Result<std::convert::Infallible, Gone> {
        loop {
            let line = tokio::select! {
                line = timeout(IDLE, self.requests.next()) => line,
                () = self.shared.ending.cancelled() => return Err(Gone),
            };
            let request = match line.ok().flatten().ok_or(Gone)? {
                Ok(line) => Request::read(&line),
                Err(LinesCodecError::MaxLineLengthExceeded) => {
                    self.say(&Line::Refused(too_long())).await?;
                    return Err(Gone);
                }
                Err(LinesCodecError::Io(_)) => return Err(Gone),
            };
            match request {
                Ok(Request::Do(verb)) => {
                    let work = self.shared.controller.carry_out(&self.who, verb);
                    let done = timeout(WORK, work).await;
                    let done = done.unwrap_or_else(|_| Err(unanswered()));
                    self.say(&done.map_or_else(Line::Refused, Line::Ok)).await?;
                }
                Ok(Request::Watch(wanted)) => {
                    let Ok(_watches) = Arc::clone(&self.shared.watching).try_acquire_owned() else {
                        self.say(&Line::Refused(no_room(WATCHING))).await?;
                        continue;
                    };
                    match self.shared.controller.watch(&self.who, wanted).await {
                        Ok(follow) => return self.show(follow).await,
                        Err(refused) => self.say(&Line::Refused(refused)).await?,
                    }
                }
                Err(refused) => self.say(&Line::Refused(refused)).await?,
            }
        }
    }

    /// Shows what is recorded, until the one at the other end says anything more or leaves.
    async fn show(&mut self, mut follow: Follow) -> Result<std::convert::Infallible, Gone> {
        self.say(&Line::Watching {}).await?;
        loop {
            let seen = tokio::select! {
                seen = follow.next() => seen.ok_or(Gone)?,
                _ = self.requests.next() => return Err(Gone),
            };
            let is_end = matches!(seen, Seen::End { .. });
            self.say(&Line::Seen(seen)).await?;
            if is_end {
                return Err(Gone);
            }
        }
    }

    async fn say(&mut self, line: &Line) -> Result<(), Gone> {
        let line = serde_json::to_string(line).map_err(|_| Gone)?;
        match timeout(WRITE, self.answers.send(line)).await {
            Ok(Ok(())) => Ok(()),
            Ok(Err(_)) | Err(_) => Err(Gone),
        }
    }
}

fn no_room(most: usize) -> Refused {
    Refused::overloaded(format!(
        "{most} use the control channel, and more cannot: end an `oracle ctl watch`, or try again"
    ))
}

fn too_long() -> Refused {
    let what = format!("a request may have {MAX_REQUEST} bytes: send less");
    Refused::new(Code::TooLong, what)
}

fn unanswered() -> Refused {
    let what =
        format!("it was not done within {WORK:?}, and may still be: look before you try again");
    Refused::unavailable(what)
}
