//! A running system and its orderly end.

use std::time::Duration;

use ractor::{ActorCell, ActorRef};
use tokio::{task::JoinHandle, time::Instant};

use super::{Oracle, SupervisorMsg, SystemArgs, start};

/// The system did not start.
#[derive(Debug, thiserror::Error)]
#[error("the system did not start: {0}")]
pub struct StartError(pub(super) String);

/// How long the actors may take to stop.
const STOP: Duration = Duration::from_secs(5);

/// A running system. Whoever holds it ends it.
pub struct System {
    supervisor: ActorRef<SupervisorMsg>,
    ended: JoinHandle<()>,
    oracle: Oracle,
}

impl System {
    /// Starts a system of its own.
    ///
    /// # Errors
    /// When an actor does not start.
    pub async fn start(args: SystemArgs) -> Result<Self, StartError> {
        Self::start_under(args, None).await
    }

    /// Starts a system, linked under an actor of the host if one is given: it ends with its parent, and
    /// the parent hears of its end.
    ///
    /// # Errors
    /// When an actor does not start.
    pub async fn start_under(
        args: SystemArgs,
        parent: Option<ActorCell>,
    ) -> Result<Self, StartError> {
        let (supervisor, ended, oracle) = start(args, parent).await?;
        Ok(Self {
            supervisor,
            ended,
            oracle,
        })
    }

    /// For those who use it.
    #[must_use]
    pub const fn oracle(&self) -> &Oracle {
        &self.oracle
    }

    /// Returns when it has ended by itself, because something in it failed too often.
    pub async fn ended(&mut self) {
        // However it ended.
        let _ = (&mut self.ended).await;
    }

    /// Takes no new messages, lets running queries end, for `drain` at most, then stops. What was
    /// acknowledged and is not done by then leaves memory in order: it stays in the journal, and goes
    /// on from there without being counted as a fault.
    pub async fn shut_down(self, drain: Duration) {
        const LOOK: Duration = Duration::from_millis(10);
        self.oracle.stop_taking();
        let deadline = Instant::now() + drain;
        while self.oracle.running() > 0 && Instant::now() < deadline {
            tokio::time::sleep(LOOK).await;
        }
        self.oracle.park(STOP).await;
        // What people did to the system is on record when it has ended.
        let settled = tokio::time::timeout(STOP, self.oracle.settled()).await;
        if settled.is_err() {
            tracing::warn!("what was done last is not in the system's log");
        }
        self.end().await;
    }

    /// Stops at once. What runs is cut off as by a death of the process, and is counted as one when it
    /// comes back.
    pub async fn abort(self) {
        self.end().await;
    }

    async fn end(self) {
        self.oracle.deletions.end();
        self.supervisor.stop(Some("shut down".into()));
        if tokio::time::timeout(STOP, self.ended).await.is_err() {
            self.supervisor.kill();
        }
    }
}
