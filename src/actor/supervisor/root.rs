//! Root: what a host sees of a system among its own actors.
//!
//! Supervised by the host, if there is one: it hears from it how the system ended, and ends the system by
//! ending it. Stopped, it waits for the system's orderly end; killed, as by its host's own end, it leaves that
//! to the [`keeper`](super::keeper). Nothing of the system is linked below it.

use std::time::Duration;

use ractor::{Actor, ActorProcessingErr, ActorRef};

use super::keeper::{KeeperMsg, STOP};
use crate::actor::message::local_messages;

pub(super) enum RootMsg {
    /// The system has ended by itself, because of this.
    Failed(String),
}
local_messages!(RootMsg);

pub(super) struct RootActor;

pub(super) struct RootState {
    pub keeper: ActorRef<KeeperMsg>,
    /// How long what runs may go on.
    pub drain: Duration,
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

    async fn post_stop(
        &self,
        _: ActorRef<RootMsg>,
        state: &mut RootState,
    ) -> Result<(), ActorProcessingErr> {
        let drain = state.drain;
        let end = |done| KeeperMsg::End {
            drain,
            done: Some(done),
        };
        // Answered by the end itself: nobody is left to send a word.
        let _ = state.keeper.call(end, Some(drain + STOP * 4)).await;
        Ok(())
    }
}
