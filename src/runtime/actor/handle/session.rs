//! The handle to a session.

use super::AskError;
use crate::{
    actor::{
        bus::{Filter, Subscription},
        mailbox::Admission,
        profile::Opening,
        protocol::{CommandRequest, SessionMsg, ShardMsg},
        router::SessionRouter,
        trace::Origin,
    },
    kernel::{Command, CommandReply, IssuedCommand},
    model::{By, ProfileName, QueryId, SessionKey},
};

/// How much a [`Watch`](super::Watch) reports.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Detail {
    /// Every record, and text as it arrives.
    All,
    /// Every record, and text as it arrives, with little memory for readers that may be slow: text
    /// that they miss is in the record of its reply.
    Text,
    /// Every record, with little memory for readers that may be slow.
    Events,
    /// Only the end of the query.
    End,
}

/// A handle to one session, which outlives its restarts. Cheap to clone.
///
/// ```
/// # mod oracle_agent { pub mod prelude { pub use futures_util::{StreamExt as _, TryStreamExt as _}; pub use oracle_runtime::actor::*; pub use oracle_core::model::{Outcome, Submission, record::{Fact, QueryFact}}; } }
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
/// while let Some(progress) = watch.try_next().await? {
///     match progress {
///         Progress::Record(record) => println!("{} {}", record.seq, record.kind()),
///         Progress::Frame(frame) => print!("{}", frame.text),
///         _ => {}
///     }
/// }
/// println!("{}", watch.answer().await?.text);
/// assert_eq!(session.view().await?.state.as_str(), "idle");
/// # Ok(())
/// # }
/// ```
#[derive(Clone)]
pub struct SessionHandle {
    pub(super) router: SessionRouter,
    pub(super) key: SessionKey,
    pub(super) opening: Opening,
    pub(super) by: By,
    pub(super) detail: Detail,
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
            request: Box::new(SessionMsg::Command(CommandRequest {
                opening,
                origin: Origin::current(),
                order,
                reply,
            })),
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

    pub(in crate::actor) fn is_reachable(&self) -> Result<(), AskError> {
        match self.router.ended.is_cancelled() {
            true => Err(AskError::Stopped),
            false => Ok(()),
        }
    }

    #[doc(hidden)]
    pub fn runs_here(&self) -> bool {
        self.router.ledger.has_query(&self.key)
    }

    /// Subscribes to the records and frames of the session from now on.
    #[doc(hidden)]
    pub fn subscribe(&self) -> Subscription {
        let (bus, capacity) = (&self.router.bus, self.router.subscriber_capacity);
        bus.subscribe(Filter::session(self.key.clone()), capacity)
    }
}

impl SessionRouter {
    /// Activates a session whose query was cut off.
    pub(in crate::actor) async fn recover(&self, key: &SessionKey) -> Result<(), AskError> {
        let message = |reply| ShardMsg::Ask {
            key: key.clone(),
            request: Box::new(SessionMsg::GetView { reply }),
        };
        self.ask(key, Admission::Always, message).await.map(drop)
    }

    pub(in crate::actor) fn session(&self, key: SessionKey, opening: Opening) -> SessionHandle {
        SessionHandle {
            router: self.clone(),
            key,
            opening,
            by: By::local(),
            detail: Detail::All,
        }
    }
}
