//! What a shard is told and asked.

use ractor::{ActorId, RpcReplyPort};

use super::super::{
    gateway::Ticket,
    message::local_messages,
    session::{Acknowledged, Opening, Viewed},
};
use crate::{
    kernel::Order,
    model::{QueryId, SessionKey, Sid},
};

pub(in crate::actor) enum ShardMsg {
    /// Something for a session, which comes into being if it is new.
    Command {
        key: SessionKey,
        opening: Box<Opening>,
        order: Box<Order>,
        reply: RpcReplyPort<Acknowledged>,
    },
    /// How does it stand, if it is live?
    GetView {
        key: SessionKey,
        reply: RpcReplyPort<Viewed>,
    },
    /// Bring it to life: it was cut off in the middle of something. Answered when it is.
    Recover {
        key: SessionKey,
        reply: RpcReplyPort<Viewed>,
    },
    /// Another process has it.
    Elsewhere { key: SessionKey, actor: ActorId },
    /// Is it here? Asked for another process.
    Presence {
        key: SessionKey,
        reply: RpcReplyPort<Presence>,
    },
    /// Another process needs it: let it leave memory, in the middle of something too if so it is said.
    Leave { key: SessionKey, anyway: bool },
    /// It was asked to leave memory and has something in flight.
    Stays { key: SessionKey, actor: ActorId },
    /// The end is near: what runs leaves memory as it stands, and nothing new comes to life.
    Park { done: RpcReplyPort<()> },
    /// A model call on its way out.
    Call(Box<Ticket>),
    /// What a session runs now.
    Running {
        sid: Sid,
        key: SessionKey,
        actor: ActorId,
        running: Option<(QueryId, u32)>,
    },
    /// Look at the pulses from now on, every so often.
    BeginSweeps,
    /// Look at the pulses.
    Sweep,
    /// The next few of those that were idle for too long may leave.
    PassivateNext,
    /// The pause before a restart is over.
    Revive { key: SessionKey, rest: u64 },
    /// Brings the shard down over this session, as a fault of its own would.
    #[cfg(test)]
    Fail { key: SessionKey },
    /// Whom the shard before this one has left behind was brought back, where that was due.
    Settle,
}
local_messages!(ShardMsg);

/// Whether a session is in a shard's hands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::actor) enum Presence {
    /// What is asked of it can be asked here.
    Here,
    /// The system ends, and it is on its way out.
    Leaving,
    /// It is not here.
    Away,
}

impl ShardMsg {
    /// The session that it is about.
    pub(super) fn of_whom(&self) -> Option<SessionKey> {
        match self {
            Self::Command { key, .. }
            | Self::GetView { key, .. }
            | Self::Recover { key, .. }
            | Self::Elsewhere { key, .. }
            | Self::Presence { key, .. }
            | Self::Leave { key, .. }
            | Self::Stays { key, .. }
            | Self::Running { key, .. }
            | Self::Revive { key, .. } => Some(key.clone()),
            #[cfg(test)]
            Self::Fail { key } => Some(key.clone()),
            Self::Call(ticket) => Some(ticket.key.clone()),
            _ => None,
        }
    }
}
