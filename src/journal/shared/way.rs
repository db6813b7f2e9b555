//! The way to the journal of a data directory, and how it is found.

use std::{path::PathBuf, sync::Arc, time::Duration};

use futures_util::{FutureExt, future::BoxFuture};
use tokio::{
    task::spawn_blocking,
    time::{Instant, sleep, timeout_at},
};

use super::{
    ConnectError, Remote, Server,
    guests::Guests,
    inbox::Inbox,
    office::{Office, Party},
    wire::Call,
};
use crate::{
    journal::{
        Claim, Error, Journal, Only, Posted, Sqlite,
        sqlite::{OpenError, Owner},
    },
    model::{Epoch, SessionKey, Sid},
};

const SOCKET: &str = "journal.sock";
/// How long a way is looked for: whoever has the directory may be about to listen, or to leave.
const LOOK: Duration = Duration::from_secs(10);
/// How long a process that has the directory and does not listen is waited for.
const LISTEN: Duration = Duration::from_secs(5);
/// Pause between two tries.
const PAUSE: Duration = Duration::from_millis(50);
/// How long those who use a directory have to find its new owner and say which sessions are theirs.
const RETURN: Duration = Duration::from_secs(2);

/// Told, with the reason, when this process must end; see [`crate::journal::sqlite::OnBroken`].
pub(super) type OnBroken = Arc<dyn Fn(&str) + Send + Sync>;

/// A way to the journal.
pub(super) enum Way {
    /// This process has it.
    Own {
        /// Before the journal: nobody is served what is being closed.
        server: Option<Server>,
        office: Arc<Office>,
        journal: Sqlite,
    },
    /// Another process has it.
    Far(Remote),
    /// It is of no more use to this process.
    Closed,
}

/// What a way is looked for with.
pub(super) struct Seeker {
    pub directory: PathBuf,
    pub on_broken: OnBroken,
    pub inbox: Arc<Inbox>,
    pub guests: Arc<Guests>,
}

impl Way {
    pub(super) fn journal(&self) -> Option<&dyn Journal> {
        match self {
            Self::Own { journal, .. } => Some(journal),
            Self::Far(remote) => Some(remote),
            Self::Closed => None,
        }
    }

    pub(super) fn is_gone(&self) -> bool {
        match self {
            Self::Own { .. } | Self::Closed => false,
            Self::Far(remote) => remote.is_gone(),
        }
    }

    pub(super) fn claim(&self, key: SessionKey, only: Only) -> BoxFuture<'_, Result<Claim, Error>> {
        match self {
            Self::Own {
                office, journal, ..
            } => office.claim(Party::Owner, key, only, journal).boxed(),
            Self::Far(remote) => remote.claim_if(key, only),
            Self::Closed => closed(),
        }
    }

    pub(super) fn let_go(&self, key: SessionKey, epoch: Epoch) {
        match self {
            Self::Own { office, .. } => office.let_go(Party::Owner, &key, epoch),
            Self::Far(remote) => remote.tell(Call::LetGo { key, epoch }),
            Self::Closed => {}
        }
    }

    pub(super) fn deleted(&self, sid: Sid) {
        match self {
            Self::Own { office, .. } => office.deleted(sid),
            // Whoever has the journal sees that.
            Self::Far(_) | Self::Closed => {}
        }
    }

    pub(super) async fn post(
        &self,
        key: SessionKey,
        body: Vec<u8>,
        within: Duration,
    ) -> Result<Posted, Error> {
        match self {
            Self::Own { office, .. } => Ok(office.post(Party::Owner, key, body, within).await),
            Self::Far(remote) => remote.post(key, body, within).await,
            Self::Closed => closed().await,
        }
    }
}

/// The answer of what was closed.
pub(super) fn closed<'a, T: Send + 'a>() -> BoxFuture<'a, Result<T, Error>> {
    std::future::ready(Err(Error::Unavailable("it was closed".into()))).boxed()
}

impl Seeker {
    /// Opens the directory, or finds the process that has it, and says there what this process has.
    pub(super) async fn find(&self, held: Vec<(SessionKey, Claim)>) -> Result<Way, OpenError> {
        let began = Instant::now();
        loop {
            let in_use = match self.open(held.clone()).await {
                Err(error @ OpenError::InUse { .. }) => error,
                opened => return opened,
            };
            let failed = match self.connect(held.clone(), began + LOOK).await {
                Ok(remote) => return Ok(Way::Far(remote)),
                Err(error) => error,
            };
            let patience = match &failed {
                ConnectError::Protocol { .. } => Duration::ZERO,
                ConnectError::Silent => LOOK,
                ConnectError::Io(_) => LISTEN,
            };
            if Instant::now() >= began + patience {
                tracing::debug!(error = %failed, "the process that has the journal does not share it");
                return Err(self.told(in_use, &failed));
            }
            sleep(PAUSE).await;
        }
    }

    async fn connect(
        &self,
        held: Vec<(SessionKey, Claim)>,
        until: Instant,
    ) -> Result<Remote, ConnectError> {
        let (socket, inbox) = (self.directory.join(SOCKET), Arc::clone(&self.inbox));
        let remote = Remote::connect_for(&socket, inbox, until).await?;
        if !held.is_empty() {
            let said = timeout_at(until, remote.call(Call::Hold(held))).await;
            let said = said.map_err(|_| ConnectError::Silent)?;
            said.map_err(|_| std::io::Error::from(std::io::ErrorKind::UnexpectedEof))?
                .map_err(std::io::Error::other)?;
        }
        Ok(remote)
    }

    async fn open(&self, held: Vec<(SessionKey, Claim)>) -> Result<Way, OpenError> {
        let (directory, on_broken) = (self.directory.clone(), Arc::clone(&self.on_broken));
        let guests = Arc::clone(&self.guests);
        let opened = spawn_blocking(move || {
            let opened = Sqlite::open(&directory, Box::new(move |why| on_broken(why)));
            // Whether or not it is this one's, the directory is there.
            let others = match &opened {
                Ok(_) => guests.probe(&directory),
                Err(_) => guests.join(&directory).map(|()| true),
            };
            Ok((opened?, others))
        });
        let socket = self.directory.join(SOCKET);
        let (journal, others) = opened.await.map_err(|error| OpenError::Store {
            path: socket.clone(),
            detail: error.to_string(),
        })??;
        let others = others.unwrap_or_else(|error| {
            tracing::warn!(%error, "whether others use the data directory is not known");
            true
        });
        let returning = if others { RETURN } else { Duration::ZERO };
        let office = Arc::new(Office::new(Arc::clone(&self.inbox), returning));
        office.hold(Party::Owner, held);
        let served = Arc::new(journal.clone());
        let server = Server::listen_for(&socket, served, Arc::clone(&office));
        // It can be used all the same, if by this process alone.
        let server =
            server.inspect_err(|error| tracing::warn!(%error, "the journal is not shared"));
        Ok(Way::Own {
            server: server.ok(),
            office,
            journal,
        })
    }

    /// Why there is no way, for people.
    fn told(&self, in_use: OpenError, failed: &ConnectError) -> OpenError {
        let directory = self.directory.clone();
        match (failed, &in_use) {
            (ConnectError::Protocol { pid, .. }, _) => OpenError::OtherVersion {
                directory,
                owner: Owner::Process(*pid),
            },
            (ConnectError::Silent, OpenError::InUse { owner, .. }) => OpenError::Silent {
                directory,
                owner: *owner,
            },
            (ConnectError::Silent | ConnectError::Io(_), _) => in_use,
        }
    }
}
