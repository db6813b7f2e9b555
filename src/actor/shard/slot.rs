//! A session's place in its shard.

use std::sync::Arc;

use ractor::{ActorId, ActorRef};

use super::work::Work;
use crate::{
    actor::{
        pulse::Pulse,
        session::{Activation, Opening, SessionMsg},
    },
    model::Seq,
};

/// See the module.
pub(super) enum Slot {
    /// It lives, or comes to life.
    Live {
        actor: ActorRef<SessionMsg>,
        pulse: Arc<Pulse>,
        /// What it was brought to life with and for.
        start: Start,
    },
    /// Its actor is about to end, and no other is made before it has. What comes in waits.
    Going {
        actor: ActorRef<SessionMsg>,
        pulse: Arc<Pulse>,
        start: Start,
        why: Going,
        waiting: Vec<Work>,
    },
    /// It waits to be brought back; what comes in ends the wait.
    Resting(Start),
    /// It is set aside, and its log could not be told.
    Quarantined { reason: String },
}

/// Why an actor is about to end.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Going {
    /// It was asked to leave memory, and may say that it stays.
    Asked,
    /// The shard killed it, in order to bring it back for this.
    Killed(Activation),
}

/// What a session is brought to life with.
#[derive(Debug, Clone)]
pub(super) struct Start {
    /// For a session that has no records yet.
    pub opening: Opening,
    /// What for.
    pub activation: Activation,
    /// Where its log ended when it was brought to life for this before, and the journal did not answer.
    /// If the log is longer now, what was to be recorded first stands there.
    pub tried_at: Option<Seq>,
    /// Restarts in a row, without a query that came to its end between them.
    pub restarts: u32,
}

impl Start {
    /// For the first time, because somebody has something for it.
    pub(super) const fn on_demand(opening: Opening) -> Self {
        Self {
            opening,
            activation: Activation::OnDemand,
            tried_at: None,
            restarts: 0,
        }
    }
}

impl Slot {
    /// Its actor, if it has one.
    pub(super) fn actor(&self) -> Option<ActorId> {
        match self {
            Self::Live { actor, .. } | Self::Going { actor, .. } => Some(actor.get_id()),
            Self::Resting(_) | Self::Quarantined { .. } => None,
        }
    }

    /// A query ended: restarts in a row are counted anew.
    pub(super) fn at_rest(&mut self) {
        match self {
            Self::Live { start, .. } | Self::Going { start, .. } => start.restarts = 0,
            Self::Resting(_) | Self::Quarantined { .. } => {}
        }
    }

    /// For how long it should have got on and did not, in milliseconds.
    pub(super) fn silent_for(&self, now: u64) -> u64 {
        match self {
            Self::Live { pulse, .. } => pulse.silent_for(now),
            Self::Going { .. } | Self::Resting(_) | Self::Quarantined { .. } => 0,
        }
    }

    /// For how long nothing has been in flight, in milliseconds; none if it cannot leave memory.
    pub(super) fn idle_for(&self, now: u64) -> Option<u64> {
        match self {
            Self::Live { pulse, .. } => pulse.idle_for(now),
            Self::Going { .. } | Self::Resting(_) | Self::Quarantined { .. } => None,
        }
    }
}
