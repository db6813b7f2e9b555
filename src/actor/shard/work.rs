//! What a shard hands to a session, or keeps for it. Of both there is a bound.

use std::sync::Arc;

use ractor::{ActorRef, RpcReplyPort};

use crate::{
    actor::{
        pulse::Pulse,
        session::{Acknowledged, SessionMsg, Viewed},
    },
    kernel::{Command, Order, Refusal},
};

/// What may wait for one session: handed to it and not taken yet, or kept while it is on its way out. Either
/// takes one append, as a rule.
pub(super) const WAITING: usize = 1_024;

/// A session that lives: itself, and its sign of life.
pub(super) type Alive = (ActorRef<SessionMsg>, Arc<Pulse>);

/// Something for a session, with whoever waits for the answer.
pub(super) enum Work {
    /// Somebody asks for something.
    Command {
        order: Order,
        reply: RpcReplyPort<Acknowledged>,
    },
    /// How does it stand?
    View { reply: RpcReplyPort<Viewed> },
}

impl Work {
    /// Whether it is what lifts a quarantine.
    pub(super) fn releases(&self) -> bool {
        match self {
            Self::Command { order, .. } => order.command == Command::Release,
            Self::View { .. } => false,
        }
    }

    /// Whether its session is stopped first, and brought back from its records.
    pub(super) fn restarts(&self) -> bool {
        match self {
            Self::Command { order, .. } => order.command == Command::Restart,
            Self::View { .. } => false,
        }
    }

    /// A session that dies before it answers drops the port; the caller hears of that.
    pub(super) fn hand_to(self, (session, pulse): &Alive) {
        if !pulse.hand(WAITING) {
            return self.refuse(Refusal::InboxFull { waiting: WAITING });
        }
        let message = match self {
            Self::Command { order, reply } => SessionMsg::Command { order, reply },
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
