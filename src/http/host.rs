//! What all requests share.

use std::sync::Arc;

use tokio_util::{sync::CancellationToken, task::TaskTracker};

use super::{
    Problem, Settings,
    door::Porter,
    overload::Overload,
    several::{OneMore, Several},
};
use crate::{access::Keyring, actor::Oracle, journal::Journal};

/// What all requests share. Cheap to clone.
#[derive(Clone)]
pub struct Host(Arc<Inner>);

struct Inner {
    shares: Shares,
    drain: Drain,
    overload: Overload,
    porter: Porter,
    handed_in: Several,
    counts: TaskTracker,
}

/// See [`Host`].
pub struct Shares {
    /// The running system.
    pub oracle: Oracle,
    /// Its journal, to list what is kept; sessions are reached through `oracle`.
    pub journal: Arc<dyn Journal>,
    /// How it listens, and how much it takes on.
    pub settings: Settings,
    /// Who may come in.
    pub keys: Arc<Keyring>,
}

impl Host {
    /// For the routes.
    #[must_use]
    pub fn new(shares: Shares) -> Self {
        let overload = Overload::new(&shares.settings);
        let porter = Porter::new(&shares.settings);
        Self(Arc::new(Inner {
            shares,
            drain: Drain::default(),
            overload,
            porter,
            handed_in: Several::default(),
            counts: TaskTracker::new(),
        }))
    }

    /// How far the server's end has come.
    #[must_use]
    pub fn drain(&self) -> &Drain {
        &self.0.drain
    }

    /// Messages that are being handed in.
    pub(super) fn handed_in(&self) -> &Several {
        &self.0.handed_in
    }

    /// Counts of tenants' sessions that go on.
    pub(super) fn counts(&self) -> &TaskTracker {
        &self.0.counts
    }

    pub(super) fn overload(&self) -> &Overload {
        &self.0.overload
    }

    pub(super) fn porter(&self) -> &Porter {
        &self.0.porter
    }

    /// Whether the server ends, or somebody has told the system to drain.
    #[must_use]
    pub fn takes_nothing_new(&self) -> bool {
        self.0.drain.has_begun() || self.oracle.is_draining()
    }

    /// Whether the system takes another query; asked before anything is said to the actors. It counts among
    /// those that run as long as the answer is held.
    ///
    /// # Errors
    /// A problem with a hint when to try again.
    pub fn room_for_a_query(&self) -> Result<OneMore, Problem> {
        // First of all, so that of many at once each counts the others.
        let handed_in = self.0.handed_in.one_more();
        self.has_room(handed_in.before())?;
        Ok(handed_in)
    }

    /// Whether there is room for a query now. Whoever begins one asks again.
    pub(super) fn has_room_for_a_query(&self) -> Result<(), Problem> {
        self.has_room(self.0.handed_in.now())
    }

    fn has_room(&self, handed_in: usize) -> Result<(), Problem> {
        if self.takes_nothing_new() {
            return Err(Problem::ends());
        }
        let waiting = self.oracle.backlog() + handed_in;
        if waiting >= self.settings.max_backlog {
            return Err(Problem::overloaded(format!(
                "{waiting} messages and calls of models wait their turn, and `server.max_backlog` is {}: try again",
                self.settings.max_backlog
            )));
        }
        let running = self.oracle.busy() + handed_in;
        if running >= self.settings.max_queries {
            return Err(Problem::overloaded(format!(
                "{running} queries run, and `server.max_queries` is {}: try again",
                self.settings.max_queries
            )));
        }
        Ok(())
    }
}

impl std::ops::Deref for Host {
    type Target = Shares;

    fn deref(&self) -> &Shares {
        &self.0.shares
    }
}

/// How far the server's end has come. Cheap to clone.
///
/// First it *begins*: nothing new is taken, and streams that have no end of their own (events of a session)
/// say so and end. Streams of an answer go on. When all queries have come to their ends, or the time for that
/// is up, it is *over*: every stream says so and ends at once.
#[derive(Debug, Clone, Default)]
pub struct Drain {
    begun: CancellationToken,
    over: CancellationToken,
}

impl Drain {
    /// Begins it. It does not end any more.
    pub fn begin(&self) {
        self.begun.cancel();
    }

    /// It is over.
    pub fn finish(&self) {
        self.begun.cancel();
        self.over.cancel();
    }

    /// Whether it has begun.
    #[must_use]
    pub fn has_begun(&self) -> bool {
        self.begun.is_cancelled()
    }

    /// Returns when it begins, or has begun.
    pub async fn begun(&self) {
        self.begun.cancelled().await;
    }

    /// Returns when it is over.
    pub async fn over(&self) {
        self.over.cancelled().await;
    }
}
