//! A running system and its orderly end.
//!
//! A host's actor has only a system's *root* below it: it hears from it how the system ended, and ends the system by
//! ending it. Nothing of the system is linked below the root. A task, which is linked to nothing, keeps both: it
//! ends the system in order when the root goes, and the root when the system has ended.
//!
//! **Invariant:** the root goes last, so that a host that hears of its end can start the next system.

use std::time::Duration;

use ractor::{Actor, ActorCell, ActorProcessingErr, ActorRef, SpawnErr};
use tokio::{
    sync::mpsc,
    task::JoinHandle,
    time::{Instant, sleep, timeout},
};
use tokio_util::sync::CancellationToken;

use super::{Oracle, Services, SupervisorActor, SupervisorMsg, SystemArgs};
use crate::{actor::message::local_messages, model::SessionName};

/// How long the actors may take to stop.
const STOP: Duration = Duration::from_secs(5);
/// Why a system that was told to end did.
const SHUT_DOWN: &str = "shut down";
/// Orders that may wait; of several the last one counts.
const ORDERS: usize = 8;

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
    orders: mpsc::Sender<Order>,
    ended: JoinHandle<()>,
    oracle: Oracle,
}

/// How the system is to end.
enum Order {
    /// What runs may go on for so long.
    End(Duration),
    /// At once.
    Abort,
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

    /// The handle for its users.
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
        let _ = (&mut self.ended).await;
    }

    /// Takes no new messages, lets running queries end, for `drain` at most, then stops. What was
    /// acknowledged and is not done by then leaves memory in order: it stays in the journal, and goes
    /// on from there without being counted as a fault.
    pub async fn shut_down(self, drain: Duration) {
        self.end(Order::End(drain)).await;
    }

    /// Stops at once. What runs is cut off as by a death of the process, and is counted as one when it
    /// comes back.
    pub async fn abort(self) {
        self.end(Order::Abort).await;
    }

    async fn end(mut self, order: Order) {
        // Where nobody is there to hear it, it has ended.
        let _ = self.orders.send(order).await;
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
    let state = (args, services.clone(), (log, writer));
    let (supervisor, gone) = Actor::spawn(None, SupervisorActor, state).await?;
    let (orders, taken) = mpsc::channel(ORDERS);
    let (parent, drain) = parent.unzip();
    // Without a parent, a holder sees to it that a system ends that is told to.
    let hosted = parent.is_some();
    let root = RootState {
        orders: orders.clone(),
        drain: drain.unwrap_or_default(),
        ended: services.router.ended.clone(),
    };
    let root = match parent {
        Some(parent) => Actor::spawn_linked(None, RootActor, root, parent).await,
        None => Actor::spawn(None, RootActor, root).await,
    };
    let (root, root_gone) = match root {
        Ok(root) => root,
        Err(error) => {
            // The parent is about to end; what was brought back meanwhile leaves again in order.
            end(oracle, supervisor, Duration::ZERO).await;
            return Err(error.into());
        }
    };
    let kept = Kept {
        services,
        supervisor,
        oracle: oracle.clone(),
        root: root.clone(),
        drain: drain.unwrap_or_default(),
        hosted,
    };
    #[expect(
        clippy::disallowed_methods,
        reason = "it outlives whoever holds the system, and ends with it"
    )]
    let ended = tokio::spawn(kept.keep(gone, root_gone, taken));
    Ok(System {
        root,
        orders,
        ended,
        oracle,
    })
}

struct Kept {
    services: Services,
    supervisor: ActorRef<SupervisorMsg>,
    oracle: Oracle,
    root: ActorRef<RootMsg>,
    /// How long what runs may go on when the root has gone.
    drain: Duration,
    hosted: bool,
}

impl Kept {
    async fn keep(
        self,
        mut gone: JoinHandle<()>,
        root_gone: JoinHandle<()>,
        mut orders: mpsc::Receiver<Order>,
    ) {
        let alone = async {
            match self.hosted {
                true => tokio::select! {
                    _ = root_gone => {}
                    () = self.oracle.told_to_end() => {}
                },
                false => drop(root_gone.await),
            }
        };
        let mut order = tokio::select! {
            biased;
            _ = &mut gone => None,
            Some(order) = orders.recv() => Some(order),
            () = alone => Some(Order::End(self.drain)),
        };
        let told = order.is_some();
        // Of several orders the last one counts.
        while let Some(now) = order.take() {
            let (oracle, supervisor) = (self.oracle.clone(), self.supervisor.clone());
            let ending = async {
                match now {
                    Order::End(drain) => end(oracle, supervisor, drain).await,
                    Order::Abort => {
                        oracle.deletions.end();
                        stop(supervisor).await;
                    }
                }
            };
            tokio::select! {
                biased;
                _ = &mut gone => {}
                () = ending => {}
                Some(next) = orders.recv() => order = Some(next),
            }
        }
        self.oracle.router().ended.cancel();
        let failure = self.services.failure.get();
        let failure = failure.map_or("it stopped", String::as_str).to_owned();
        match told {
            true => self.root.stop(Some(SHUT_DOWN.into())),
            // Where there is no root any more, nobody is there to be told.
            false => drop(self.root.cast(RootMsg::Failed(failure))),
        }
    }
}

/// Takes nothing new, lets what runs end for so long, has the rest leave memory as it stands, and stops.
async fn end(oracle: Oracle, supervisor: ActorRef<SupervisorMsg>, drain: Duration) {
    const LOOK: Duration = Duration::from_millis(10);
    oracle.stop_taking();
    let deadline = Instant::now() + drain;
    while oracle.running() > 0 && Instant::now() < deadline {
        sleep(LOOK).await;
    }
    oracle.park(STOP).await;
    // What people did to the system is on record when it has ended.
    if timeout(STOP, oracle.settled()).await.is_err() {
        tracing::warn!("what was done last is not in the system's log");
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

/// What a host sees of a system among its own actors.
struct RootActor;

enum RootMsg {
    /// The system has ended by itself, because of this.
    Failed(String),
}
local_messages!(RootMsg);

struct RootState {
    orders: mpsc::Sender<Order>,
    /// How long what runs may go on.
    drain: Duration,
    /// Cancelled when the system has ended.
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

    /// Waits for the system's orderly end. Where the root is killed, as by its host's own end, this does not run.
    async fn post_stop(
        &self,
        _: ActorRef<RootMsg>,
        state: &mut RootState,
    ) -> Result<(), ActorProcessingErr> {
        let _ = state.orders.send(Order::End(state.drain)).await;
        let _ = timeout(state.drain + STOP * 4, state.ended.cancelled()).await;
        Ok(())
    }
}
