//! A session's place in its shard.

use std::sync::Arc;

use ractor::{ActorId, ActorRef};

use super::work::Work;
use crate::{
    actor::{
        flight::Flight,
        pulse::Pulse,
        session::{Activation, Opening, SessionMsg},
    },
    model::{QueryId, Seq},
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
        /// Since when, in monotonic milliseconds.
        since: u64,
        waiting: Vec<Work>,
    },
    /// It waits to be brought back; what comes in ends the wait.
    Resting {
        start: Start,
        /// Which wait, in this shard: a timer that was set for another one means nothing to it.
        rest: u64,
    },
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
pub(in crate::actor) struct Start {
    /// For a session that has no records yet.
    pub opening: Opening,
    /// What for.
    pub activation: Activation,
    /// Where its log ended when it was brought to life for this before, and the journal did not answer.
    /// If the log is longer now, what was to be recorded first stands there.
    pub tried_at: Option<Seq>,
    /// Restarts in a row, without a query that came to its end between them.
    pub restarts: u32,
    /// What the journal would not take of it.
    pub refused: Option<Refused>,
    /// The last model call of the actor before; unknown in a new process.
    pub flight: Arc<Flight>,
}

/// Where the journal refused what a query had to record, though it took something else before.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::actor) struct Refused {
    /// Of which query.
    pub query: QueryId,
    /// After how many turns: a query that has completed another one since has got on.
    pub turns: u32,
    /// How often in a row.
    pub times: u32,
}

impl Start {
    /// For the first time, because somebody has something for it.
    pub(super) fn on_demand(opening: Opening) -> Self {
        Self {
            opening,
            activation: Activation::OnDemand,
            tried_at: None,
            restarts: 0,
            refused: None,
            flight: Arc::new(Flight::unknown()),
        }
    }

    /// For no fault of its own.
    pub(super) fn excused(opening: Opening) -> Self {
        Self {
            activation: Activation::Again,
            ..Self::on_demand(opening)
        }
    }

    /// Left behind by a shard, and not brought back since: there may be nothing to bring it back for.
    pub(super) fn is_orphan(&self) -> bool {
        self.activation == Activation::Orphaned && self.restarts == 0
    }

    /// The journal refused it once more.
    pub(super) fn count_refusal(&mut self, query: QueryId, turns: u32) -> u32 {
        let same = |refused: &Refused| (refused.query, refused.turns) == (query, turns);
        let before = self.refused.filter(same).map_or(0, |refused| refused.times);
        let times = before + 1;
        self.refused = Some(Refused {
            query,
            turns,
            times,
        });
        times
    }
}

impl Slot {
    /// Its actor, if it has one.
    pub(super) fn actor(&self) -> Option<ActorId> {
        match self {
            Self::Live { actor, .. } | Self::Going { actor, .. } => Some(actor.get_id()),
            Self::Resting { .. } | Self::Quarantined { .. } => None,
        }
    }

    /// A query ended: restarts in a row are counted anew.
    pub(super) fn at_rest(&mut self) {
        match self {
            Self::Live { start, .. } | Self::Going { start, .. } => {
                (start.restarts, start.refused) = (0, None);
            }
            Self::Resting { .. } | Self::Quarantined { .. } => {}
        }
    }

    /// For how long it should have got on and did not, in milliseconds.
    pub(super) fn silent_for(&self, now: u64) -> u64 {
        match self {
            Self::Live { pulse, .. } => pulse.silent_for(now),
            Self::Going { .. } | Self::Resting { .. } | Self::Quarantined { .. } => 0,
        }
    }

    /// For how long it has been about to end, in milliseconds.
    pub(super) fn going_for(&self, now: u64) -> u64 {
        match self {
            Self::Going { since, .. } => now.saturating_sub(*since),
            Self::Live { .. } | Self::Resting { .. } | Self::Quarantined { .. } => 0,
        }
    }

    /// For how long nothing has been in flight, in milliseconds; none if it cannot leave memory.
    pub(super) fn idle_for(&self, now: u64) -> Option<u64> {
        match self {
            Self::Live { pulse, .. } => pulse.idle_for(now),
            Self::Going { .. } | Self::Resting { .. } | Self::Quarantined { .. } => None,
        }
    }
}
