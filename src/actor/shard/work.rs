//! What a shard hands to a session.

use ractor::{ActorRef, RpcReplyPort};

use crate::{
    actor::session::{Acknowledged, SessionMsg, Viewed},
    kernel::{Command, Refusal},
};

/// Something for a session, with whoever waits for the answer.
pub(super) enum Work {
    /// Somebody asks for something.
    Command {
        command: Command,
        reply: RpcReplyPort<Acknowledged>,
    },
    /// How does it stand?
    View { reply: RpcReplyPort<Viewed> },
}

impl Work {
    /// Whether it is what lifts a quarantine.
    pub(super) fn releases(&self) -> bool {
        match self {
            Self::Command { command, .. } => *command == Command::Release,
            Self::View { .. } => false,
        }
    }

    /// A session that dies before it answers drops the port; the caller hears of that.
    pub(super) fn hand_to(self, session: &ActorRef<SessionMsg>) {
        let message = match self {
            Self::Command { command, reply } => SessionMsg::Command { command, reply },
            Self::View { reply } => SessionMsg::GetView { reply },
        };
        let _ = session.cast(message);
    }

    /// The caller may have given up; that is its right.
    pub(super) fn refuse(self, refusal: Refusal) {
        match self {
            Self::Command { reply, .. } => {
                let _ = reply.send(Err(refusal));
            }
            Self::View { reply } => {
                let _ = reply.send(Err(refusal));
            }
        }
    }
}
