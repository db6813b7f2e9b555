//! A session's place in its shard.

use std::sync::Arc;

use ractor::ActorRef;

use crate::actor::{
    pulse::Pulse,
    session::{Activation, SessionMsg},
};

/// See the module.
pub(super) enum Slot {
    /// It lives, or comes to life.
    Live {
        actor: ActorRef<SessionMsg>,
        pulse: Arc<Pulse>,
        /// Restarts in a row, without a sign of life between them.
        restarts: u32,
        /// Set when the shard kills it: what it is to be brought back for.
        then: Option<Activation>,
    },
    /// It waits to be brought back; what comes in waits with it.
    Resting { restarts: u32 },
    /// It is set aside.
    Quarantined { reason: String },
}

impl Slot {
    /// A query ended well: restarts in a row are counted anew.
    pub(super) fn at_rest(&mut self) {
        match self {
            Self::Live { restarts, .. } => *restarts = 0,
            Self::Resting { .. } | Self::Quarantined { .. } => {}
        }
    }

    /// For how long it should have got on and did not, in milliseconds.
    pub(super) fn silent_for(&self, now: u64) -> u64 {
        match self {
            Self::Live {
                pulse, then: None, ..
            } => pulse.silent_for(now),
            Self::Live { .. } | Self::Resting { .. } | Self::Quarantined { .. } => 0,
        }
    }
}
