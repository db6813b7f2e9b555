//! State that all requests share.

use std::sync::{Arc, OnceLock};

use parking_lot::Mutex;
use tokio::time::Instant;
use tokio_util::{
    sync::CancellationToken,
    task::{TaskTracker, task_tracker::TaskTrackerToken},
};

use super::{
    Cluster, DrainSignal, HostParts, Problem, activity::ActivityTables, openai::Continuations,
    overload::Overload,
};
use crate::access::{Account, Attempts, TENANT_SHARE};

/// State that all requests share. Cheap to clone.
#[derive(Clone)]
pub struct Host {
    pub(super) shared: Arc<Shared>,
}

pub(super) struct Shared {
    parts: HostParts,
    drain: DrainSignal,
    pub overload: Overload,
    /// The origin of the times of `wrong_keys` and of the keys.
    pub began: Instant,
    pub wrong_keys: Mutex<Attempts>,
    pub submissions: TaskTracker,
    pub connections: TaskTracker,
    pub counts: TaskTracker,
    pub continuations: Continuations,
    pub activity: ActivityTables,
    cluster: OnceLock<Cluster>,
}

impl Host {
    /// Creates the state from its parts.
    pub fn new(parts: HostParts) -> Self {
        let shared = Shared {
            drain: DrainSignal::default(),
            overload: Overload::new(&parts.settings),
            began: Instant::now(),
            wrong_keys: Mutex::new(Attempts::new(parts.settings.wrong_keys_per_minute)),
            parts,
            submissions: TaskTracker::new(),
            connections: TaskTracker::new(),
            counts: TaskTracker::new(),
            continuations: Continuations::default(),
            activity: ActivityTables::default(),
            cluster: OnceLock::new(),
        };
        Self {
            shared: Arc::new(shared),
        }
    }

    /// Lets the server forward requests to the other nodes of a cluster. Later calls change nothing.
    pub fn join(&self, cluster: Cluster) {
        let _ = self.shared.cluster.set(cluster);
    }

    pub(super) fn cluster(&self) -> Option<&Cluster> {
        self.shared.cluster.get()
    }

    /// The server's graceful shutdown.
    pub fn drain(&self) -> &DrainSignal {
        &self.shared.drain
    }

    /// When the server stops accepting connections and streaming events: in a cluster, other nodes
    /// need the sessions that are here until the end of the shutdown.
    pub(super) fn end_of_access(&self) -> &CancellationToken {
        let drain = self.drain();
        self.cluster().map_or(&drain.beginning, |_| &drain.ending)
    }

    /// Whether the server or the system is draining.
    pub fn is_draining(&self) -> bool {
        self.shared.drain.has_begun() || self.oracle.is_draining()
    }

    /// Reserves capacity for a query, which counts as running until the token is dropped.
    ///
    /// # Errors
    /// A [`Problem`] with a retry hint.
    pub fn reserve_query(&self) -> Result<TaskTrackerToken, Problem> {
        // Reserved first, so that concurrent requests count each other: of two for the last place, both
        // may be refused, but never both admitted.
        let submission = self.shared.submissions.token();
        self.check_capacity(1)?;
        Ok(submission)
    }

    /// Checks that a tenant leaves others a share of the capacity for queries. The message that it
    /// submits is counted already, so that concurrent ones see each other.
    pub(super) fn check_share(&self, account: &Account) -> Result<(), Problem> {
        let load = account.load().saturating_sub(1);
        let submissions = self.shared.submissions.len();
        let (backlog, busy) = (self.oracle.backlog(), self.oracle.busy().max(load));
        for (name, used, most) in [
            ("max_backlog", backlog, self.settings.max_backlog),
            ("max_queries", busy, self.settings.max_queries),
        ] {
            let used = used + submissions;
            let free = most.saturating_sub(used);
            if load.min(used) >= TENANT_SHARE.saturating_mul(free) {
                return Err(Problem::overloaded(format!(
                    "your tenant has {load} running queries and pending messages, its share of \
                     `server.{name}` ({most}): try again"
                )));
            }
        }
        Ok(())
    }

    /// Checks the capacity for a query, beside the reservations of the caller's own.
    pub(super) fn check_capacity(&self, own: usize) -> Result<(), Problem> {
        let submissions = self.shared.submissions.len() - own;
        if self.is_draining() {
            return Err(Problem::ends());
        }
        let (waiting, most) = (
            self.oracle.backlog() + submissions,
            self.settings.max_backlog,
        );
        if waiting >= most {
            return Err(Problem::overloaded(format!(
                "{waiting} messages and model calls are pending, and `server.max_backlog` is \
                 {most}: try again"
            )));
        }
        let (running, most) = (self.oracle.busy() + submissions, self.settings.max_queries);
        if running >= most {
            return Err(Problem::overloaded(format!(
                "{running} queries are running, and `server.max_queries` is {most}: try again"
            )));
        }
        Ok(())
    }
}

impl std::ops::Deref for Host {
    type Target = HostParts;

    fn deref(&self) -> &HostParts {
        &self.shared.parts
    }
}
