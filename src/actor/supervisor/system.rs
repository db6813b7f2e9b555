//! A running system and its orderly end.

use std::time::Duration;

use ractor::{ActorCell, ActorRef};
use tokio::{task::JoinHandle, time::Instant};

use super::{Oracle, SupervisorMsg, SystemArgs, start};

/// The system did not start.
#[derive(Debug, thiserror::Error)]
#[error("the system did not start: {0}")]
pub struct StartError(pub(super) String);

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

    /// Takes no new messages, lets running queries end, for `drain` at most, then stops. What was acknowledged and is not done
    /// by then stays in the journal and can be resumed.
    pub async fn shut_down(self, drain: Duration) {
        const LOOK: Duration = Duration::from_millis(10);
        const STOP: Duration = Duration::from_secs(5);
        self.oracle.drain();
        let deadline = Instant::now() + drain;
        while self.oracle.running() > 0 && Instant::now() < deadline {
            tokio::time::sleep(LOOK).await;
        }
        self.supervisor.stop(Some("shut down".into()));
        if tokio::time::timeout(STOP, self.ended).await.is_err() {
            self.supervisor.kill();
        }
    }
}
