//! A running system and its orderly end.

use std::time::Duration;

use ractor::{Actor, ActorCell, ActorRef, SpawnErr};
use tokio::task::JoinHandle;

use super::{
    Oracle, SupervisorActor, SystemArgs,
    keeper::{self, KeeperActor, KeeperMsg, Kept, Told},
    root::{RootActor, RootMsg, RootState},
};
use crate::actor::system_log::SystemLog;

/// The system did not start.
#[derive(Debug, thiserror::Error)]
#[error("the system did not start: {0}")]
pub struct StartError(String);

impl From<SpawnErr> for StartError {
    fn from(error: SpawnErr) -> Self {
        Self(error.to_string())
    }
}

/// A running system. Whoever holds it ends it; dropping it ends nothing.
pub struct System {
    root: ActorRef<RootMsg>,
    keeper: ActorRef<KeeperMsg>,
    ended: JoinHandle<()>,
    oracle: Oracle,
}

impl System {
    /// Starts a system of its own.
    ///
    /// # Errors
    /// When an actor does not start.
    pub async fn start(args: SystemArgs) -> Result<Self, StartError> {
        start(args, None).await
    }

    /// Starts a system as a child of an actor of the host's.
    ///
    /// - When the parent ends, in whatever way, or ends its child, the system ends in order: it takes no new
    ///   messages, queries may go on for `drain`, and what is not done by then leaves memory as it stands, to go
    ///   on when a system is started over the same journal.
    /// - When the system has ended, the parent gets `SupervisionEvent::ActorTerminated`; when it failed,
    ///   `SupervisionEvent::ActorFailed`, with the reason. Both are about [`Self::cell`]. By then another one can
    ///   be started.
    /// - Told to end through the control channel ([`Oracle::shut_down`]), it does.
    ///
    /// # Errors
    /// When an actor does not start, or the parent is about to end.
    pub async fn start_under(
        args: SystemArgs,
        parent: ActorCell,
        drain: Duration,
    ) -> Result<Self, StartError> {
        start(args, Some((parent, drain))).await
    }

    /// For those who use it.
    #[must_use]
    pub const fn oracle(&self) -> &Oracle {
        &self.oracle
    }

    /// What other actors see of it: a parent hears of its end by this, and ends it by stopping it.
    #[must_use]
    pub fn cell(&self) -> ActorCell {
        self.root.get_cell()
    }

    /// Returns when it has ended, by itself because something in it failed too often, or by its parent's end.
    pub async fn ended(&mut self) {
        // However it ended.
        let _ = (&mut self.ended).await;
    }

    /// Takes no new messages, lets running queries end, for `drain` at most, then stops. What was
    /// acknowledged and is not done by then leaves memory in order: it stays in the journal, and goes
    /// on from there without being counted as a fault.
    pub async fn shut_down(self, drain: Duration) {
        let done = None;
        self.end(KeeperMsg::End { drain, done }).await;
    }

    /// Stops at once. What runs is cut off as by a death of the process, and is counted as one when it
    /// comes back.
    pub async fn abort(self) {
        self.end(KeeperMsg::Abort).await;
    }

    async fn end(mut self, how: KeeperMsg) {
        // Where nobody is there to hear it, it has ended.
        let _ = self.keeper.cast(how);
        self.ended().await;
    }
}

async fn start(
    args: SystemArgs,
    parent: Option<(ActorCell, Duration)>,
) -> Result<System, StartError> {
    let (keeper, ended) = Actor::spawn(None, KeeperActor, ()).await?;
    let system = start_kept(args, parent, &keeper).await;
    // With what there may already be below it.
    let (root, oracle) = system.inspect_err(|_| keeper.stop(None))?;
    Ok(System {
        root,
        keeper,
        ended,
        oracle,
    })
}

async fn start_kept(
    args: SystemArgs,
    parent: Option<(ActorCell, Duration)>,
    keeper: &ActorRef<KeeperMsg>,
) -> Result<(ActorRef<RootMsg>, Oracle), SpawnErr> {
    let services = SupervisorActor::services(&args);
    let gateways = SupervisorActor::gateways(&args);
    let (log, unwritten) = SystemLog::of_system(args.clock.clone());
    let oracle = SupervisorActor::oracle(&services, &gateways, log.clone());
    let state = (args, services, gateways, (log, unwritten));
    let started = Actor::spawn_linked(None, SupervisorActor, state, keeper.get_cell()).await?;
    let (supervisor, _) = started;
    let told = match parent {
        Some(_) => Told::Itself,
        None => Told::Holder,
    };
    let drain = parent.as_ref().map(|(_, drain)| *drain);
    let drain = drain.unwrap_or_default();
    let root = RootState {
        keeper: keeper.clone(),
        drain,
    };
    let root = match parent {
        Some((parent, _)) => Actor::spawn_linked(None, RootActor, root, parent).await,
        None => Actor::spawn(None, RootActor, root).await,
    };
    let (root, root_ended) = match root {
        Ok(root) => root,
        Err(error) => {
            // The parent is about to end; what was brought back meanwhile leaves again in order.
            keeper::leave(&oracle, Duration::ZERO).await;
            oracle.deletions.end();
            keeper::stop(&supervisor).await;
            oracle.router.ended.cancel();
            return Err(error);
        }
    };
    let kept = Kept {
        supervisor,
        oracle: oracle.clone(),
        root: root.clone(),
        drain,
        told,
    };
    // It cannot be gone: only its own end is its end.
    let _ = keeper.cast(KeeperMsg::Keep(Box::new(kept), root_ended));
    Ok((root, oracle))
}
