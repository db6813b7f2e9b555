//! Handles to the system and its sessions. A handle finds a session by its key through its shard,
//! so it outlives restarts.

use std::{
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use futures_util::future::join_all;
use ractor::RpcReplyPort;
use tokio_util::sync::CancellationToken;

use super::{
    approvals::Approvals,
    bus::{BusHandle, Filter, Notice, Subscription},
    clock::Clock,
    deletion::Deletions,
    ephemeral::Ephemerals,
    gateway::{ProviderState, SharedStatus},
    ledger::Ledger,
    mailbox::{Admission, Unanswered},
    pool::Pool,
    profile::ProfileStore,
    reload::Source,
    replay::REPLY_DEADLINE,
    services::{QueueDepths, Services},
    session::{Opening, SessionMsg},
    shard::ShardMsg,
    system_log::SystemLog,
    tool_servers::Servers,
    trace::Origin,
};
use crate::{
    access::Tenants,
    journal::Journal,
    kernel::{Command, CommandReply, IssuedCommand},
    model::{By, IdError, ProfileName, QueryId, SessionKey, SessionName},
};

mod child;
mod error;
mod family;
mod fork;
mod list;
mod look;
mod operate;
mod stream;
mod submit;
mod watch;

pub(super) use child::ChildSession;
pub use error::AskError;
pub use family::{SubAgent, sub_agents};
pub use list::{SessionFilter, SessionPage, SessionState, SessionSummary, TenantPage};
pub use look::{QueryAccount, QueryPage, RecordPage};
pub use stream::{Detail, EventStream, Progress};
pub use watch::{Answer, Watch};
pub(crate) use watch::{AnswerText, Piece, QueryStream};

#[derive(Clone)]
pub(super) struct SessionRouter {
    pub shards: Pool<ShardMsg>,
    pub bus: BusHandle,
    pub ledger: Ledger,
    pub journal: Arc<dyn Journal>,
    pub ephemerals: Arc<Ephemerals>,
    pub profiles: ProfileStore,
    pub subscriber_capacity: usize,
    /// Set once, when the system drains.
    pub draining: Arc<AtomicBool>,
    pub approvals: Approvals,
    /// Cancelled when the system has ended.
    pub ended: CancellationToken,
}

impl SessionRouter {
    /// Activates a session whose query was cut off.
    pub(super) async fn recover(&self, key: &SessionKey) -> Result<(), AskError> {
        let message = |reply| ShardMsg::Ask {
            key: key.clone(),
            request: Box::new(SessionMsg::GetView { reply }),
        };
        self.ask(key, Admission::Always, message).await.map(drop)
    }

    pub(super) fn session(&self, key: SessionKey, opening: Opening) -> SessionHandle {
        SessionHandle {
            router: self.clone(),
            key,
            opening,
            by: By::local(),
            detail: Detail::All,
        }
    }

    pub(super) fn is_draining(&self) -> bool {
        self.draining.load(Ordering::Relaxed)
    }

    pub(super) async fn ask<T: Send + 'static>(
        &self,
        key: &SessionKey,
        admission: Admission,
        message: impl FnOnce(RpcReplyPort<Result<T, AskError>>) -> ShardMsg,
    ) -> Result<T, AskError> {
        let shard = self.shards.at(self.shards.index_of(key));
        let shard = shard.ok_or(AskError::Stopped)?;
        match shard.ask(message, admission, REPLY_DEADLINE).await {
            Ok(answer) => answer,
            Err(Unanswered::Full(waiting)) => Err(AskError::full(waiting)),
            Err(Unanswered::Timeout) => Err(AskError::Timeout(REPLY_DEADLINE)),
            Err(Unanswered::Stopped) => Err(AskError::Stopped),
        }
    }
}

/// A handle to a running system. Cheap to clone.
#[derive(Clone)]
pub struct Oracle {
    pub(super) services: Services,
    pub(super) log: SystemLog,
    pub(super) deletions: Deletions,
    pub(super) shutdown: CancellationToken,
    pub(super) source: Source,
    pub(super) servers: Servers,
    pub(super) by: By,
}

impl Oracle {
    /// Returns a handle for another caller, under whose name actions are recorded. The default is
    /// `local`.
    pub fn acting(&self, by: By) -> Self {
        Self { by, ..self.clone() }
    }

    pub(super) fn router(&self) -> &SessionRouter {
        &self.services.router
    }

    pub(super) async fn park(&self, within: Duration) {
        let shards = &self.router().shards;
        let all = (0..shards.size()).filter_map(|index| shards.at(index));
        let parked = all.map(|shard| async move {
            let park = |done| ShardMsg::Park { done };
            let _ = shard.ask(park, Admission::Always, within).await;
        });
        join_all(parked).await;
    }

    /// Returns a session of the local tenant by its name. The first message creates it.
    ///
    /// # Errors
    /// When the name is invalid: see [`SessionName::new`](crate::model::SessionName::new).
    pub fn session(&self, name: impl AsRef<str>) -> Result<SessionHandle, IdError> {
        Ok(self.session_by_key(SessionName::new(name.as_ref())?))
    }

    /// Returns a session by its key, which names the tenant too. The first message creates it.
    #[must_use]
    pub fn session_by_key(&self, key: impl Into<SessionKey>) -> SessionHandle {
        let session = self.router().session(key.into(), Opening::default());
        session.acting(self.by.clone())
    }

    /// Subscribes to new records of all sessions, or of one.
    pub fn subscribe(&self, filter: Filter) -> Subscription {
        let router = self.router();
        let capacity = filter.capacity.unwrap_or(router.subscriber_capacity);
        router.bus.subscribe(filter, capacity)
    }

    /// Number of running queries.
    pub fn running(&self) -> usize {
        self.router().ledger.running()
    }

    /// Usage and limits of the tenants.
    pub fn tenants(&self) -> &Tenants {
        &self.services.tenants
    }

    /// Divides the configured limits of providers and tenants by the number of nodes that share
    /// them, at least 1 of each.
    pub fn divide_limits(&self, nodes: usize) {
        let nodes = nodes.max(1);
        if nodes != self.services.nodes.swap(nodes, Ordering::Relaxed) {
            tracing::info!(nodes, "limits of providers and tenants are divided");
            self.services.tenants.divide(nodes);
        }
    }

    /// The system's clock.
    pub fn clock(&self) -> &Clock {
        &self.services.clock
    }

    /// State of the model providers, in order of their names. Sends no message to an actor.
    pub fn providers(&self) -> Vec<ProviderState> {
        let providers = self.services.providers.values();
        providers.map(SharedStatus::read).collect()
    }

    /// Number of messages pending for each shared actor.
    pub fn depths(&self) -> QueueDepths {
        self.services.depths()
    }
}

/// A handle to one session, which outlives its restarts. Cheap to clone.
///
/// ```
/// use oracle_agent::prelude::*;
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # let system = Oracle::builder().start().await?;
/// let session = system.oracle().session("s")?;
///
/// // Wait for the answer, or follow the records and the text.
/// session.answer("hello").await?;
/// let mut watch = session.ask("hello again").await?;
/// while let Some(progress) = watch.next().await? {
///     match progress {
///         Progress::Record(record) => println!("{} {}", record.seq, record.kind()),
///         Progress::Frame(frame) => print!("{}", frame.text),
///         _ => {}
///     }
/// }
/// println!("{}", watch.answer().await?.text);
/// assert_eq!(session.view().await?.state, "idle");
/// # Ok(())
/// # }
/// ```
#[derive(Clone)]
pub struct SessionHandle {
    router: SessionRouter,
    key: SessionKey,
    opening: Opening,
    by: By,
    detail: Detail,
}

impl SessionHandle {
    /// Key of the session.
    pub const fn key(&self) -> &SessionKey {
        &self.key
    }

    /// Returns a handle for another caller, under whose name actions are recorded. The default is
    /// `local`.
    #[must_use]
    pub fn acting(self, by: By) -> Self {
        Self { by, ..self }
    }

    /// Returns a handle that opens the session with this profile, if the session is new. The default
    /// is `oracle`.
    #[must_use]
    pub fn profile(mut self, profile: ProfileName) -> Self {
        self.opening.profile = profile;
        self
    }

    /// Returns a handle whose [`ask`](Self::ask) and [`watch`](Self::watch) report in this detail:
    /// the less, the cheaper. The default is [`Detail::All`].
    #[must_use]
    pub fn detail(self, detail: Detail) -> Self {
        Self { detail, ..self }
    }

    /// Cancels a query, by default the running one. Returns once that is durable; a query that
    /// waits for a sub-agent ends after it.
    ///
    /// # Errors
    /// See [`AskError`]; refused when no query runs.
    pub async fn cancel(&self, query: Option<QueryId>) -> Result<(), AskError> {
        self.command(Command::Cancel { query }).await.map(drop)
    }

    /// Sends a command to the session.
    ///
    /// # Errors
    /// See [`AskError`].
    pub async fn command(&self, command: Command) -> Result<CommandReply, AskError> {
        let (key, opening) = (&self.key, &self.opening);
        let is_parent = opening.parent.is_some();
        let begins = matches!(command, Command::Submit(_) | Command::Continue(_));
        if key.name.is_reserved()
            || self.router.ephemerals.is_over(key)
            || key.name.is_sub_agent() && begins && !is_parent
        {
            return Err(AskError::Reserved(key.name.clone()));
        }
        let starts = match command {
            Command::Continue(_) => true,
            // Begins a query if none runs.
            Command::Steer { .. } => !self.runs_here(),
            _ => false,
        };
        if starts && !is_parent {
            self.router.check_accepting()?;
        }
        let by = self.by.clone();
        let order = IssuedCommand { by, command };
        let opening = Box::new(opening.clone());
        let message = |reply| ShardMsg::Ask {
            key: key.clone(),
            request: Box::new(SessionMsg::Command {
                opening,
                origin: Origin::current(),
                order,
                reply,
            }),
        };
        self.router.ask(key, self.admission(), message).await
    }

    /// Always admits the messages of sub-agents, which belong to an admitted query.
    pub(super) const fn admission(&self) -> Admission {
        match self.opening.parent {
            None => Admission::IfRoom,
            Some(_) => Admission::Always,
        }
    }

    pub(super) fn is_reachable(&self) -> Result<(), AskError> {
        match self.router.ended.is_cancelled() {
            true => Err(AskError::Stopped),
            false => Ok(()),
        }
    }

    pub(crate) fn runs_here(&self) -> bool {
        self.router.ledger.state(&self.key).is_some()
    }

    /// Subscribes to the records and frames of the session from now on.
    pub(crate) fn subscribe(&self) -> Subscription {
        let (bus, capacity) = (&self.router.bus, self.router.subscriber_capacity);
        bus.subscribe(Filter::session(self.key.clone()), capacity)
    }
}

#[cfg(test)]
mod tests;
