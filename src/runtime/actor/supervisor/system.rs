//! A running system and its graceful shutdown.
//!
//! The host's actor supervises only the *root* of a system: it learns from the root how the system
//! ended, and ends the system by stopping the root. No other actor is linked below the root. An
//! unlinked task holds the root and the supervisor: it shuts the system down when the root stops,
//! and stops the root when the system has ended.
//!
//! **Invariant:** the root stops last, so that its end tells the host that the next system can
//! start.

use std::time::Duration;

use ractor::{Actor, ActorCell, ActorProcessingErr, ActorRef, SpawnErr};
use tokio::{
    sync::mpsc,
    task::JoinHandle,
    time::{Instant, sleep, timeout},
};
use tokio_util::sync::CancellationToken;

use super::{Oracle, SupervisorActor, SupervisorMsg, SystemArgs};
use crate::{actor::message::local_messages, model::SessionName};

/// How long the actors may take to stop.
const STOP: Duration = Duration::from_secs(5);
/// Stop reason of a requested shutdown.
const SHUT_DOWN: &str = "shut down";
/// Most pending requests; the latest one counts.
const REQUEST_CAPACITY: usize = 8;

/// The system did not start.
#[derive(Debug, thiserror::Error)]
#[error("the system failed to start: {0}")]
pub struct StartError(String);

impl From<SpawnErr> for StartError {
    fn from(error: SpawnErr) -> Self {
        Self(error.to_string())
    }
}

/// A running system. Its owner has to end it: dropping it does not.
pub struct System {
    root: ActorRef<RootMsg>,
    requests: mpsc::Sender<ShutdownRequest>,
    ended: JoinHandle<()>,
    oracle: Oracle,
}

enum ShutdownRequest {
    /// Let running queries continue for this long.
    End(Duration),
    Abort,
}

impl System {
    /// Starts a system without a host.
    ///
    /// # Errors
    /// When an actor does not start.
    pub async fn start(args: SystemArgs) -> Result<Self, StartError> {
        start(args, None).await
    }

    /// Starts a system as a child of a host's actor.
    ///
    /// - When the parent ends, in whatever way, or stops its child, the system shuts down
    ///   gracefully: it rejects new messages and lets queries continue for `drain`. Queries that
    ///   have not ended by then are passivated, and resume when a system starts over the same
    ///   journal.
    /// - When the system has ended, the parent gets `SupervisionEvent::ActorTerminated`, or
    ///   `SupervisionEvent::ActorFailed` with the reason, for [`Self::cell`]. The parent can then
    ///   start another system.
    /// - [`Oracle::shut_down`], which the control channel calls, also ends the system.
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

    /// Handle to the system's sessions and operation.
    pub const fn oracle(&self) -> &Oracle {
        &self.oracle
    }

    /// Root actor of the system: a parent receives its end as an event, and stops it to end the
    /// system.
    pub fn cell(&self) -> ActorCell {
        self.root.get_cell()
    }

    /// Returns when the system has ended, for instance because an actor failed too often or the
    /// parent ended.
    pub async fn ended(&mut self) {
        let _ = (&mut self.ended).await;
    }

    /// Shuts down gracefully: rejects new messages, lets running queries continue for at most
    /// `drain`, then stops. Queries that have not ended by then are passivated; they resume from
    /// the journal, which does not count as a crash.
    pub async fn shut_down(self, drain: Duration) {
        self.end(ShutdownRequest::End(drain)).await;
    }

    /// Stops at once. Running queries are cut off as by a crash of the process, and count it as one
    /// when they are recovered.
    pub async fn abort(self) {
        self.end(ShutdownRequest::Abort).await;
    }

    async fn end(mut self, order: ShutdownRequest) {
        // If the order has no receiver, the system has ended.
        let _ = self.requests.send(order).await;
        self.ended().await;
    }
}

async fn start(
    args: SystemArgs,
    parent: Option<(ActorCell, Duration)>,
) -> Result<System, StartError> {
    let services = SupervisorActor::services(&args);
    let bus = services.router.bus.clone();
    let (log, writer) = SupervisorActor::log(&args, SessionName::system(), bus);
    let oracle = SupervisorActor::oracle(&services, log.clone());
    let ended = services.router.ended.clone();
    let state = (args, services, (log, writer));
    let (supervisor, gone) = Actor::spawn(None, SupervisorActor, state).await?;
    let (requests, taken) = mpsc::channel(REQUEST_CAPACITY);
    let (parent, drain) = parent.unzip();
    let root = RootState {
        requests: requests.clone(),
        drain: drain.unwrap_or_default(),
        ended,
    };
    let root = match parent {
        Some(parent) => Actor::spawn_linked(None, RootActor, root, parent).await,
        None => Actor::spawn(None, RootActor, root).await,
    };
    let (root, root_gone) = match root {
        Ok(root) => root,
        Err(error) => {
            // The parent is about to end; sessions that were recovered meanwhile are passivated
            // again.
            end(oracle, supervisor, Duration::ZERO).await;
            return Err(error.into());
        }
    };
    let kept = ShutdownTask {
        supervisor,
        oracle: oracle.clone(),
        root: root.clone(),
        drain,
    };
    #[expect(
        clippy::disallowed_methods,
        reason = "it outlives whoever holds the system, and ends with it"
    )]
    let ended = tokio::spawn(kept.keep(gone, root_gone, taken));
    Ok(System {
        root,
        requests,
        ended,
        oracle,
    })
}

struct ShutdownTask {
    supervisor: ActorRef<SupervisorMsg>,
    oracle: Oracle,
    root: ActorRef<RootMsg>,
    /// How long running queries may continue after the root has stopped. `None` without a parent:
    /// the owner of the system then responds to a requested shutdown.
    drain: Option<Duration>,
}

impl ShutdownTask {
    async fn keep(
        self,
        mut gone: JoinHandle<()>,
        root_gone: JoinHandle<()>,
        mut requests: mpsc::Receiver<ShutdownRequest>,
    ) {
        let alone = async {
            match self.drain.is_some() {
                true => tokio::select! {
                    _ = root_gone => {}
                    () = self.oracle.shutdown_requested() => {}
                },
                false => drop(root_gone.await),
            }
        };
        let mut order = tokio::select! {
            biased;
            _ = &mut gone => None,
            Some(order) = requests.recv() => Some(order),
            () = alone => Some(ShutdownRequest::End(self.drain.unwrap_or_default())),
        };
        let told = order.is_some();
        // The latest order replaces earlier ones.
        while let Some(now) = order.take() {
            let (oracle, supervisor) = (self.oracle.clone(), self.supervisor.clone());
            let ending = async {
                match now {
                    ShutdownRequest::End(drain) => end(oracle, supervisor, drain).await,
                    ShutdownRequest::Abort => {
                        oracle.deletions.end();
                        stop(supervisor).await;
                    }
                }
            };
            tokio::select! {
                biased;
                _ = &mut gone => {}
                () = ending => {}
                Some(next) = requests.recv() => order = Some(next),
            }
        }
        self.oracle.router().ended.cancel();
        let failure = self.oracle.services.failure.get();
        let failure = failure.map_or("it stopped", String::as_str).to_owned();
        match told {
            true => self.root.stop(Some(SHUT_DOWN.into())),
            // Fails only if the root has stopped, and then no parent waits for it.
            false => drop(self.root.cast(RootMsg::Failed(failure))),
        }
    }
}

/// Rejects new messages, lets running queries continue for `drain`, passivates the rest, and stops.
async fn end(oracle: Oracle, supervisor: ActorRef<SupervisorMsg>, drain: Duration) {
    const LOOK: Duration = Duration::from_millis(10);
    oracle.reject_new();
    let deadline = Instant::now() + drain;
    while oracle.running() > 0 && Instant::now() < deadline {
        sleep(LOOK).await;
    }
    oracle.park(STOP).await;
    // Operators' actions are recorded before the system ends.
    if timeout(STOP, oracle.settled()).await.is_err() {
        tracing::warn!("the last operator actions are missing from the log of `system`");
    }
    oracle.deletions.end();
    stop(supervisor).await;
    oracle.router().ended.cancel();
}

async fn stop(supervisor: ActorRef<SupervisorMsg>) {
    let why = Some(SHUT_DOWN.into());
    if supervisor.stop_and_wait(why, Some(STOP)).await.is_err() {
        supervisor.kill();
    }
}

/// Represents a system among the actors of a host.
struct RootActor;

enum RootMsg {
    /// The system failed, for this reason.
    Failed(String),
}
local_messages!(RootMsg);

struct RootState {
    requests: mpsc::Sender<ShutdownRequest>,
    drain: Duration,
    ended: CancellationToken,
}

impl Actor for RootActor {
    type Msg = RootMsg;
    type State = RootState;
    type Arguments = RootState;

    async fn pre_start(
        &self,
        _: ActorRef<RootMsg>,
        state: RootState,
    ) -> Result<RootState, ActorProcessingErr> {
        Ok(state)
    }

    async fn handle(
        &self,
        _: ActorRef<RootMsg>,
        RootMsg::Failed(why): RootMsg,
        _: &mut RootState,
    ) -> Result<(), ActorProcessingErr> {
        Err(why.into())
    }

    /// Waits for the graceful shutdown. Does not run when the root is killed, for instance by the
    /// end of its host.
    async fn post_stop(
        &self,
        _: ActorRef<RootMsg>,
        state: &mut RootState,
    ) -> Result<(), ActorProcessingErr> {
        let _ = state.requests.send(ShutdownRequest::End(state.drain)).await;
        let _ = timeout(state.drain + STOP * 4, state.ended.cancelled()).await;
        Ok(())
    }
}
