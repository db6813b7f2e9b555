//! State that all requests share.

use std::sync::{
    Arc,
    atomic::{AtomicUsize, Ordering},
};

use tokio_util::{sync::CancellationToken, task::TaskTracker};

use super::{Problem, Settings, door::Porter, overload::Overload};
use crate::{access::Keyring, actor::Oracle, journal::Journal};

/// State that all requests share. Cheap to clone.
#[derive(Clone)]
pub struct Host(Arc<Inner>);

struct Inner {
    shares: Shares,
    drain: Drain,
    overload: Overload,
    porter: Porter,
    handed_in: Several,
    connections: Several,
    counts: TaskTracker,
}

/// The parts of a [`Host`].
pub struct Shares {
    /// The running system.
    pub oracle: Oracle,
    /// Its journal, for lists; sessions are reached through `oracle`.
    pub journal: Arc<dyn Journal>,
    /// Address and limits.
    pub settings: Settings,
    /// The keys.
    pub keys: Arc<Keyring>,
}

impl Host {
    /// Creates the state from its parts.
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
            connections: Several::default(),
            counts: TaskTracker::new(),
        }))
    }

    /// The server's graceful shutdown.
    #[must_use]
    pub fn drain(&self) -> &Drain {
        &self.0.drain
    }

    pub(super) fn handed_in(&self) -> &Several {
        &self.0.handed_in
    }

    pub(super) fn connections(&self) -> &Several {
        &self.0.connections
    }

    pub(super) fn counts(&self) -> &TaskTracker {
        &self.0.counts
    }

    pub(super) fn overload(&self) -> &Overload {
        &self.0.overload
    }

    pub(super) fn porter(&self) -> &Porter {
        &self.0.porter
    }

    /// Whether the server or the system is draining.
    #[must_use]
    pub fn takes_nothing_new(&self) -> bool {
        self.0.drain.has_begun() || self.oracle.is_draining()
    }

    /// Reserves capacity for a query, which counts as running until the guard is dropped.
    ///
    /// # Errors
    /// A [`Problem`] with a retry hint.
    pub fn room_for_a_query(&self) -> Result<OneMore, Problem> {
        // Reserved first, so that concurrent requests count each other.
        let handed_in = self.0.handed_in.one_more();
        self.has_room(handed_in.before())?;
        Ok(handed_in)
    }

    /// Checks the capacity for a query without a reservation.
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

/// Progress of a graceful shutdown. Cheap to clone.
///
/// Once it has *begun*, the server accepts nothing new and ends event streams; streams of an answer
/// continue. Once it is *over*, every stream ends.
#[derive(Debug, Clone, Default)]
pub struct Drain {
    begun: CancellationToken,
    over: CancellationToken,
}

impl Drain {
    /// Begins the shutdown.
    pub fn begin(&self) {
        self.begun.cancel();
    }

    /// Ends all streams.
    pub fn finish(&self) {
        self.begun.cancel();
        self.over.cancel();
    }

    /// Whether the shutdown has begun.
    #[must_use]
    pub fn has_begun(&self) -> bool {
        self.begun.is_cancelled()
    }

    pub(super) const fn beginning(&self) -> &CancellationToken {
        &self.begun
    }

    /// Resolves when the shutdown begins.
    pub async fn begun(&self) {
        self.begun.cancelled().await;
    }

    /// Resolves when the shutdown is over.
    pub async fn over(&self) {
        self.over.cancelled().await;
    }
}

/// A shared counter. Clones count together.
#[derive(Debug, Clone, Default)]
pub(super) struct Several(Arc<AtomicUsize>);

/// A unit of the counter, returned on drop.
#[derive(Debug)]
#[must_use = "it counts as long as it is held"]
pub struct OneMore {
    of: Several,
    before: usize,
}

impl Several {
    pub(super) fn one_more(&self) -> OneMore {
        let before = self.0.fetch_add(1, Ordering::Relaxed);
        let of = self.clone();
        OneMore { of, before }
    }

    pub(super) fn now(&self) -> usize {
        self.0.load(Ordering::Relaxed)
    }
}

impl OneMore {
    /// The count before this one was added.
    pub(super) const fn before(&self) -> usize {
        self.before
    }
}

impl Drop for OneMore {
    fn drop(&mut self) {
        self.of.0.fetch_sub(1, Ordering::Relaxed);
    }
}
