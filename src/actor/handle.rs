//! How the outside reaches sessions: handles that hide mailboxes and their time-outs.
//!
//! A session is found by its key through its shard, never by a stored actor reference, so a handle
//! stays good over restarts.

use std::{
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use ractor::{RpcReplyPort, rpc::CallResult};

use super::{
    bus::{BusHandle, Filter, Notice, Subscription},
    ledger::Ledger,
    pool::Pool,
    profile::Profiles,
    session::Opening,
    shard::ShardMsg,
};
use crate::{
    journal::{self, Journal},
    kernel::{Command, Refusal, Reply},
    model::{
        IdError, Limits, Outcome, ProfileName, QueryId, SessionKey, SessionName, Submission, Usage,
        command::MAX_QUESTION, record::Finished,
    },
};

mod child;
mod look;
mod watch;

pub(super) use child::Child;
use watch::Detail;
pub use watch::{Progress, Watch};

/// Why a request to a session was not carried out.
#[derive(Debug, thiserror::Error)]
pub enum AskError {
    /// The session refused it; the text says why and what to do.
    #[error(transparent)]
    Refused(#[from] Refusal),
    /// The question is blank.
    #[error("the question is empty: say what you want to know")]
    EmptyQuestion,
    /// The question is longer than [`MAX_QUESTION`].
    #[error(
        "the question has {bytes} bytes, at most {MAX_QUESTION} are allowed: put the text into a file of the project and ask about that"
    )]
    QuestionTooLong {
        /// How long it is.
        bytes: usize,
    },
    /// A name that cannot be one.
    #[error(transparent)]
    Name(#[from] IdError),
    /// The session did not answer in time. Whether the request was recorded is not known; with an
    /// idempotency key it can be repeated safely.
    #[error("the session did not answer within {0:?}: try again")]
    Timeout(Duration),
    /// The session or the system stopped before it answered; as for `Timeout`.
    #[error("the session stopped before it answered: try again")]
    Stopped,
    /// Nobody has ever spoken with a session of this name; asking it something opens it.
    #[error("there is no session `{name}`: check the name, or ask it something to open it")]
    NoSession {
        /// The name.
        name: SessionName,
    },
    /// The journal could not be read.
    #[error(transparent)]
    Journal(#[from] journal::Error),
}

/// Knows the way to every session. Cheap to clone.
#[derive(Clone)]
pub(super) struct Router {
    pub shards: Pool<ShardMsg>,
    pub bus: BusHandle,
    pub ledger: Ledger,
    pub journal: Arc<dyn Journal>,
    pub profiles: Arc<Profiles>,
    pub acknowledge: Duration,
    pub subscriber_capacity: usize,
    /// Set once, when the system drains.
    pub draining: Arc<AtomicBool>,
}

impl Router {
    pub(super) fn session(&self, key: SessionKey, opening: Opening) -> SessionHandle {
        SessionHandle {
            router: self.clone(),
            key,
            opening,
        }
    }

    /// Brings a session to life that was cut off in the middle of something.
    pub(super) async fn recover(&self, key: &SessionKey) -> Result<(), AskError> {
        let message = |reply| ShardMsg::Recover {
            key: key.clone(),
            reply,
        };
        self.ask(key, message).await.map(drop)
    }

    async fn ask<T: Send + 'static>(
        &self,
        key: &SessionKey,
        message: impl FnOnce(RpcReplyPort<Result<T, Refusal>>) -> ShardMsg,
    ) -> Result<T, AskError> {
        let shard = self
            .shards
            .at(self.shards.index_of(key))
            .ok_or(AskError::Stopped)?;
        match shard.call(message, Some(self.acknowledge)).await {
            Ok(CallResult::Success(answer)) => Ok(answer?),
            Ok(CallResult::Timeout) => Err(AskError::Timeout(self.acknowledge)),
            Ok(CallResult::SenderError) | Err(_) => Err(AskError::Stopped),
        }
    }
}

/// A running system, as those who use it see it. Cheap to clone.
#[derive(Clone)]
pub struct Oracle {
    pub(super) router: Router,
}

impl Oracle {
    /// Takes no new messages from now on.
    pub(super) fn drain(&self) {
        self.router.draining.store(true, Ordering::Relaxed);
    }

    /// Whatever runs leaves memory as it stands, and nothing comes to life any more.
    pub(super) fn park(&self) {
        let shards = &self.router.shards;
        let all = (0..shards.size()).filter_map(|index| shards.at(index));
        all.for_each(|shard| {
            let _ = shard.cast(ShardMsg::Park);
        });
    }

    /// A session by its key; it comes into being with the first thing that is asked of it.
    #[must_use]
    pub fn session(&self, key: SessionKey) -> SessionHandle {
        self.session_of(key, ProfileName::oracle())
    }

    /// The same, by another profile if the session is new.
    #[must_use]
    pub fn session_of(&self, key: SessionKey, profile: ProfileName) -> SessionHandle {
        self.router.session(
            key,
            Opening {
                profile,
                parent: None,
            },
        )
    }

    /// What all sessions record from now on.
    #[must_use]
    pub fn subscribe(&self, filter: Filter) -> Subscription {
        self.router
            .bus
            .subscribe(filter, self.router.subscriber_capacity)
    }

    /// How many queries run.
    #[must_use]
    pub fn running(&self) -> usize {
        self.router.ledger.live()
    }
}

/// One session. Cheap to clone.
#[derive(Clone)]
pub struct SessionHandle {
    router: Router,
    key: SessionKey,
    opening: Opening,
}

/// How a query ended, for whoever asked.
#[derive(Debug, Clone, PartialEq)]
pub struct Answer {
    /// Which query.
    pub query: QueryId,
    /// How it ended.
    pub outcome: Outcome,
    /// The answer; may be empty.
    pub text: String,
    /// Turns completed.
    pub turns: u32,
    /// What it used.
    pub usage: Usage,
}

impl Answer {
    pub(super) fn new(query: QueryId, finished: Finished) -> Self {
        let Finished {
            outcome,
            answer,
            turns,
            usage,
        } = finished;
        Self {
            query,
            outcome,
            text: answer,
            turns,
            usage,
        }
    }
}

impl SessionHandle {
    /// Which session.
    #[must_use]
    pub const fn key(&self) -> &SessionKey {
        &self.key
    }

    /// Hands in a message. Returns once it is durable, not once it is answered.
    ///
    /// # Errors
    /// See [`AskError`].
    pub async fn submit(&self, submission: Submission) -> Result<QueryId, AskError> {
        // What runs may still need its sub-agents.
        if self.opening.parent.is_none() && self.router.draining.load(Ordering::Relaxed) {
            return Err(AskError::Stopped);
        }
        if submission.text.trim().is_empty() {
            return Err(AskError::EmptyQuestion);
        }
        if submission.text.len() > MAX_QUESTION {
            return Err(AskError::QuestionTooLong {
                bytes: submission.text.len(),
            });
        }
        match self.command(Command::Submit(submission)).await? {
            Reply::Query { query } => Ok(query),
            Reply::Done => Err(AskError::Stopped),
        }
    }

    /// Hands in a message and follows it to its end.
    ///
    /// # Errors
    /// See [`AskError`].
    pub async fn ask(&self, submission: Submission) -> Result<Watch, AskError> {
        self.follow(submission, Detail::All).await
    }

    /// Hands in a message and waits for its end: cheaper than [`Self::ask`], which tells what happens
    /// on the way.
    ///
    /// # Errors
    /// See [`AskError`].
    pub async fn answer(&self, submission: Submission) -> Result<Answer, AskError> {
        self.follow(submission, Detail::End).await?.answer().await
    }

    async fn follow(&self, submission: Submission, detail: Detail) -> Result<Watch, AskError> {
        let filter = detail.filter(self.key.clone());
        let events = self.subscribe_to(filter.clone());
        let maybe_repeated = submission.idempotency_key.is_some();
        let query = self.submit(submission).await?;
        if maybe_repeated {
            return Watch::from_the_journal(self.clone(), query, filter, events).await;
        }
        Ok(Watch::new(self.clone(), query, filter, events))
    }

    /// Takes back a query, or the one that runs. Returns once that is durable; a query that waits for a
    /// sub-agent ends when that has ended.
    ///
    /// # Errors
    /// See [`AskError`]; refused when nothing runs.
    pub async fn cancel(&self, query: Option<QueryId>) -> Result<(), AskError> {
        self.command(Command::Cancel { query }).await.map(drop)
    }

    /// Raises (or lowers) the budgets of the running query.
    ///
    /// # Errors
    /// See [`AskError`]; refused when nothing runs.
    pub async fn set_budget(&self, limits: Limits) -> Result<(), AskError> {
        self.command(Command::SetBudget(limits)).await.map(drop)
    }

    /// Any command of the kernel's.
    ///
    /// # Errors
    /// See [`AskError`].
    pub async fn command(&self, command: Command) -> Result<Reply, AskError> {
        let message = |reply| ShardMsg::Command {
            key: self.key.clone(),
            opening: Box::new(self.opening.clone()),
            command: Box::new(command),
            reply,
        };
        self.router.ask(&self.key, message).await
    }

    /// What it records and shows from now on.
    #[must_use]
    pub fn subscribe(&self) -> Subscription {
        self.subscribe_to(Filter::session(self.key.clone()))
    }

    fn subscribe_to(&self, filter: Filter) -> Subscription {
        self.router
            .bus
            .subscribe(filter, self.router.subscriber_capacity)
    }
}
