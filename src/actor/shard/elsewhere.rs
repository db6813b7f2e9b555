//! Sessions that another process has, or is to have (see [`crate::actor::letters`]).

use ractor::{ActorId, RpcReplyPort};

use super::{Presence, ShardState, slot::Slot};
use crate::{actor::session::SessionMsg, model::SessionKey};

impl ShardState {
    /// It came to life here for nothing: another process has it. What has come in is told so by its actor,
    /// which ends; what comes in from now on is asked there anew.
    pub(super) fn elsewhere(&mut self, key: SessionKey, who: ActorId) {
        let is_it = |slot: &Slot| matches!(slot, Slot::Live { actor, .. } if actor.get_id() == who);
        if self.slots.get(&key).is_some_and(is_it) {
            // Those who follow it look into the journal from now on.
            self.args.services.bus.close(&key);
            self.ask_to_leave(key, SessionMsg::Passivate);
        }
    }

    pub(super) fn presence(&self, key: &SessionKey, reply: RpcReplyPort<Presence>) {
        let presence = match (self.slots.contains_key(key), &self.parked) {
            (false, _) => Presence::Away,
            (true, None) => Presence::Here,
            (true, Some(_)) => Presence::Leaving,
        };
        // Whoever asks may have given up.
        let _ = reply.send(presence);
    }

    /// It is to leave for another process.
    pub(super) fn leave(&mut self, key: SessionKey, anyway: bool) {
        // Nobody lives in these, so nobody is to be asked.
        if let Some(Slot::Quarantined { .. } | Slot::Resting { .. }) = self.slots.get(&key) {
            self.forget(&key);
            self.args.services.bus.close(&key);
            self.slots.remove(&key);
            return;
        }
        if anyway {
            self.args.services.bus.close(&key);
            self.ask_to_leave(key, SessionMsg::Park);
        } else {
            self.ask_to_leave(key, SessionMsg::Passivate);
        }
    }
}
