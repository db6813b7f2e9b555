//! Keeper: has the supervisor below it, and says what became of it.
//!
//! Supervised by nobody: ractor ends whatever is linked below an actor with it, all the way down and without
//! a word, which is no orderly end. So a host has only the [`root`](super::root) of a system below its own
//! actors, and this one, which is linked to nothing of the host's, ends the system when the root goes. It
//! decides nothing else and waits for nothing; what takes time is a task.
//!
//! **Invariant:** the root goes last, so that a host that hears of its end can start the next system.

use std::time::Duration;

use ractor::{Actor, ActorProcessingErr, ActorRef, RpcReplyPort, SupervisionEvent};
use tokio::{task::JoinHandle, time::Instant};

use super::{SupervisorMsg, root::RootMsg};
use crate::actor::{Oracle, message::local_messages, task::Task};

/// How long the actors may take to stop.
pub(super) const STOP: Duration = Duration::from_secs(5);

pub(super) enum KeeperMsg {
    /// The system is there; and so ends the task of its root.
    Keep(Box<Kept>, JoinHandle<()>),
    /// It is to end in order; what runs may go on for so long. Of several the last one counts.
    End {
        drain: Duration,
        /// Closes when it has ended.
        done: Option<RpcReplyPort<()>>,
    },
    /// It is to end at once.
    Abort,
    /// There is no root any more, or somebody has told the system to end.
    Alone,
    /// The actors had their time to stop.
    Over,
}
local_messages!(KeeperMsg);

/// A system to be kept.
pub(super) struct Kept {
    pub supervisor: ActorRef<SupervisorMsg>,
    pub oracle: Oracle,
    pub root: ActorRef<RootMsg>,
    /// How long what runs may go on when its root has gone.
    pub drain: Duration,
    pub told: Told,
}

/// Who sees to it that a system ends that is told to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Told {
    /// It does.
    Itself,
    /// Whoever holds it.
    Holder,
}

pub(super) struct KeeperActor;

#[derive(Default)]
pub(super) struct KeeperState {
    kept: Option<Box<Kept>>,
    /// Waits for the root's end.
    watch: Option<Task>,
    /// Ends the system.
    ending: Option<Task>,
    /// Those who wait for its end.
    waiting: Vec<RpcReplyPort<()>>,
    /// Why it ended, if it did before it was to be kept.
    over: Option<String>,
}

impl Actor for KeeperActor {
    type Msg = KeeperMsg;
    type State = KeeperState;
    type Arguments = ();

    async fn pre_start(
        &self,
        _: ActorRef<KeeperMsg>,
        (): (),
    ) -> Result<KeeperState, ActorProcessingErr> {
        Ok(KeeperState::default())
    }

    async fn handle(
        &self,
        me: ActorRef<KeeperMsg>,
        message: KeeperMsg,
        state: &mut KeeperState,
    ) -> Result<(), ActorProcessingErr> {
        match message {
            KeeperMsg::Keep(kept, root) => state.keep(&me, kept, root),
            KeeperMsg::End { drain, done } => {
                state.waiting.extend(done);
                state.end(&me, drain);
            }
            KeeperMsg::Abort => state.abort(&me),
            KeeperMsg::Alone => state.alone(&me),
            KeeperMsg::Over => state.over(&me, "it did not stop in time".into()),
        }
        Ok(())
    }

    /// Overridden, because the default would stop it before it has said what happened.
    async fn handle_supervisor_evt(
        &self,
        me: ActorRef<KeeperMsg>,
        event: SupervisionEvent,
        state: &mut KeeperState,
    ) -> Result<(), ActorProcessingErr> {
        match event {
            SupervisionEvent::ActorFailed(_, error) => state.over(&me, error.to_string()),
            SupervisionEvent::ActorTerminated(_, _, reason) => {
                state.over(&me, reason.unwrap_or_else(|| "it stopped".into()));
            }
            // Nothing to do for the others, which ractor may add to.
            _ => {}
        }
        Ok(())
    }
}

impl KeeperState {
    fn keep(&mut self, me: &ActorRef<KeeperMsg>, kept: Box<Kept>, root: JoinHandle<()>) {
        let (keeper, oracle, told) = (me.clone(), kept.oracle.clone(), kept.told);
        let told_to_end = async move {
            match told {
                Told::Itself => oracle.told_to_end().await,
                Told::Holder => std::future::pending().await,
            }
        };
        self.watch = Some(Task::spawn(async move {
            tokio::select! {
                // However it ended.
                _ = root => {}
                () = told_to_end => {}
            }
            // Where there is no keeper any more, the system has ended.
            let _ = keeper.cast(KeeperMsg::Alone);
        }));
        self.kept = Some(kept);
        if let Some(why) = self.over.take() {
            self.over(me, why);
        }
    }

    fn end(&mut self, me: &ActorRef<KeeperMsg>, drain: Duration) {
        let Some(kept) = &self.kept else {
            return;
        };
        let (keeper, oracle) = (me.clone(), kept.oracle.clone());
        let supervisor = kept.supervisor.clone();
        self.ending = Some(Task::spawn(async move {
            leave(&oracle, drain).await;
            oracle.deletions.end();
            stop(&supervisor).await;
            let _ = keeper.cast(KeeperMsg::Over);
        }));
    }

    fn abort(&mut self, me: &ActorRef<KeeperMsg>) {
        let Some(kept) = &self.kept else {
            return;
        };
        kept.oracle.deletions.end();
        let (keeper, supervisor) = (me.clone(), kept.supervisor.clone());
        self.ending = Some(Task::spawn(async move {
            stop(&supervisor).await;
            let _ = keeper.cast(KeeperMsg::Over);
        }));
    }

    /// Whoever has begun to end it goes on.
    fn alone(&mut self, me: &ActorRef<KeeperMsg>) {
        let drain = self.kept.as_ref().map(|kept| kept.drain);
        if let (None, Some(drain)) = (&self.ending, drain) {
            self.end(me, drain);
        }
    }

    fn over(&mut self, me: &ActorRef<KeeperMsg>, why: String) {
        let Some(kept) = &self.kept else {
            self.over = Some(why);
            return;
        };
        kept.oracle.router.ended.cancel();
        match self.ending {
            Some(_) => kept.root.stop(Some(SHUT_DOWN.into())),
            // Where there is no root any more, nobody is there to be told.
            None => drop(kept.root.cast(RootMsg::Failed(why))),
        }
        me.stop(None);
    }
}

/// Why a system that was told to end did.
const SHUT_DOWN: &str = "shut down";

/// Takes nothing new, lets what runs end for so long, and has the rest leave memory as it stands.
pub(super) async fn leave(oracle: &Oracle, drain: Duration) {
    const LOOK: Duration = Duration::from_millis(10);
    oracle.stop_taking();
    let deadline = Instant::now() + drain;
    while oracle.running() > 0 && Instant::now() < deadline {
        tokio::time::sleep(LOOK).await;
    }
    oracle.park(STOP).await;
    // What people did to the system is on record when it has ended.
    if tokio::time::timeout(STOP, oracle.settled()).await.is_err() {
        tracing::warn!("what was done last is not in the system's log");
    }
}

pub(super) async fn stop(supervisor: &ActorRef<SupervisorMsg>) {
    let why = Some(SHUT_DOWN.into());
    if supervisor.stop_and_wait(why, Some(STOP)).await.is_err() {
        supervisor.kill();
    }
}
