//! How sessions start, end, and are restarted.

use std::sync::Arc;

use ractor::{Actor, ActorId, ActorProcessingErr, ActorRef, RpcReplyPort};

use super::{ShardMsg, ShardState};
use crate::{
    actor::{
        flight::Flight,
        ledger::Ledger,
        pulse::{Pulse, Stage},
        session::{Activation, Opening, SessionActor, SessionMsg, SessionState},
    },
    journal::Error as JournalError,
    model::{ProfileName, Seq, SessionKey, record::RestartCause},
};

/// How often the journal may refuse a session's records while it takes others. With the pauses that takes a
/// quarter of an hour.
pub(super) const REFUSALS: u32 = 16;

/// A session's place in its shard.
pub(super) enum Slot {
    Live(Live),
    /// It is restarted after a pause, or earlier for a message.
    Resting {
        start: Start,
        /// The number of the pause: a timer of another one is ignored.
        rest: u64,
    },
}

pub(super) struct Live {
    pub actor: ActorRef<SessionMsg>,
    pub pulse: Arc<Pulse>,
    pub start: Start,
    /// Set when its actor is about to end; no other is started before it has.
    pub ending: Option<Ending>,
}

pub(super) struct Ending {
    pub why: Why,
    /// Since when, in monotonic milliseconds.
    pub since: u64,
    /// Requests that wait for the next actor, or for this one if it stays.
    pub waiting: Vec<SessionMsg>,
    /// Who hears when it has ended.
    pub gone: Vec<RpcReplyPort<()>>,
}

/// Why an actor is about to end.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Why {
    /// It was asked to leave memory, and may stay.
    Asked,
    /// The shard killed it, to restart it for this.
    Killed(Activation),
}

/// What a session is started with.
#[derive(Debug, Clone)]
pub(super) struct Start {
    pub opening: Opening,
    pub activation: Activation,
    /// Where its log ended when it was started for the same before and the journal did not answer. If the log
    /// is longer now, what was to be recorded first is in it.
    tried_at: Option<Seq>,
    /// Restarts in a row, without progress between them.
    restarts: u32,
    /// How often the journal refused its records and took others, in a row.
    refusals: u32,
    /// How many appends the journal had taken at the last refusal.
    appends: u64,
    /// The last model call of the actor before.
    flight: Arc<Flight>,
}

impl Start {
    pub(super) fn new(opening: Opening, activation: Activation, ledger: &Ledger) -> Self {
        Self {
            opening,
            activation,
            tried_at: None,
            restarts: 0,
            refusals: 0,
            appends: ledger.appends(),
            flight: Arc::new(Flight::unknown()),
        }
    }

    /// The journal refused its records; how often while it took others.
    fn refused(&mut self, appends: u64) -> u32 {
        self.refusals += u32::from(appends != self.appends);
        self.appends = appends;
        self.refusals
    }
}

impl Default for Opening {
    fn default() -> Self {
        Self {
            profile: ProfileName::oracle(),
            parent: None,
        }
    }
}

impl Slot {
    pub(super) fn live(&self) -> Option<&Live> {
        match self {
            Self::Live(live) => Some(live),
            Self::Resting { .. } => None,
        }
    }
}

/// How an actor ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum End {
    /// It stopped, or was killed.
    Stopped,
    /// It panicked or returned an error of its own.
    Crashed,
    /// The journal did not take its records.
    Unrecorded,
    /// Somebody else has claimed the session, and may have deleted it.
    Fenced,
    Unreadable,
}

impl End {
    pub(super) fn of(error: &(dyn std::error::Error + Send + Sync + 'static)) -> Self {
        match error.downcast_ref::<JournalError>() {
            // Only its owner can delete a session: one that is gone had another owner before.
            Some(
                JournalError::Fenced { .. }
                | JournalError::Unknown { .. }
                | JournalError::Owned { .. },
            ) => Self::Fenced,
            // One that was to begin, and began elsewhere meanwhile, is read again.
            Some(
                JournalError::Unavailable(_)
                | JournalError::Broken(_)
                | JournalError::Stands { .. },
            ) => Self::Unrecorded,
            Some(JournalError::Unreadable { .. }) => Self::Unreadable,
            _ => Self::Crashed,
        }
    }
}

/// What follows the end of an actor.
#[derive(Debug, Clone, PartialEq)]
enum Next {
    Restart(Activation),
    /// It has another owner now.
    Drop,
    /// It is quarantined in memory.
    Quarantine {
        reason: String,
    },
}

/// What follows, by how far the actor was, what it was started for, and what the shard killed it for.
fn next(
    end: End,
    at: Stage,
    was_for: &Activation,
    killed_for: Option<Activation>,
    detail: &str,
) -> Next {
    let quarantine = |when: &str| {
        let reason = format!("it crashed while {when}: {detail}");
        Next::Restart(Activation::Quarantine { reason })
    };
    match (end, at) {
        // Whatever it was killed for, it is not claimed back from its new owner.
        (End::Fenced, _) => return Next::Drop,
        (End::Unreadable, _) if killed_for.is_none() => {
            let reason = detail.to_owned();
            return Next::Quarantine { reason };
        }
        _ => {}
    }
    if let Some(activation) = killed_for {
        return match activation {
            // Its log does not take that either.
            Activation::Quarantine { reason } => Next::Quarantine { reason },
            activation => Next::Restart(activation),
        };
    }
    match (end, at, was_for) {
        (End::Unrecorded, Stage::Waking, _) => Next::Restart(was_for.clone()),
        (End::Unrecorded, ..) => Next::Restart(Activation::Again),
        (_, Stage::Busy, _) => Next::Restart(Activation::Restart {
            cause: RestartCause::Crash,
            detail: detail.to_owned(),
        }),
        (_, Stage::Idle, _) => quarantine("idle"),
        // The query that it crashed with before may be what it crashes with again: counted until it is ended.
        (_, Stage::Waking, Activation::Restart { .. }) => Next::Restart(was_for.clone()),
        (_, Stage::Waking, Activation::Quarantine { reason }) => {
            let reason = reason.clone();
            Next::Quarantine { reason }
        }
        (_, Stage::Waking, _) => quarantine("coming to life"),
    }
}

/// What a session is killed for. While it starts, what it was started for may not be recorded yet, and is not
/// replaced by a stall.
fn kill_for(at: Stage, was_for: &Activation, found: Activation) -> Activation {
    let owed = !matches!(was_for, Activation::OnDemand | Activation::Again);
    let gives_way = matches!(found, Activation::Restart { .. } | Activation::Again);
    match at == Stage::Waking && owed && gives_way {
        true => was_for.clone(),
        false => found,
    }
}

impl ShardState {
    pub(super) async fn spawn(
        &mut self,
        key: SessionKey,
        start: Start,
    ) -> Result<&Live, ActorProcessingErr> {
        let pulse = Arc::new(Pulse::new(Arc::clone(&start.flight)));
        pulse.beat(self.now());
        let state = SessionState::new(
            key.clone(),
            (start.opening.clone(), start.tried_at),
            self.me.clone(),
            self.settings.idle_timeout,
            Arc::clone(&pulse),
            self.services.clone(),
        );
        self.ledger.enter(&key, Arc::clone(&pulse));
        let parent = self.me.actor().get_cell();
        let (actor, _) = Actor::spawn_linked(None, SessionActor, state, parent).await?;
        actor.cast(SessionMsg::Activate(start.activation.clone()))?;
        self.by_actor.insert(actor.get_id(), key.clone());
        let live = Slot::Live(Live {
            actor,
            pulse,
            start,
            ending: None,
        });
        let slot = self.slots.entry(key).insert_entry(live).into_mut();
        slot.live().ok_or_else(|| "it was just put there".into())
    }

    pub(super) fn now(&self) -> u64 {
        self.services.clock.monotonic_millis()
    }

    /// Kills a session to restart it for this.
    pub(super) fn end_for(&mut self, key: &SessionKey, activation: Activation) {
        if let Some(actor) = self.ending(key, Why::Killed(activation)) {
            actor.kill();
        }
    }

    /// From now on its actor is expected to end.
    pub(super) fn ending(&mut self, key: &SessionKey, why: Why) -> Option<ActorRef<SessionMsg>> {
        let since = self.now();
        let Some(Slot::Live(live)) = self.slots.get_mut(key) else {
            return None;
        };
        if live.ending.is_some() {
            return None;
        }
        let why = match why {
            Why::Killed(found) => {
                let activation = kill_for(live.pulse.stage(), &live.start.activation, found);
                Why::Killed(activation)
            }
            Why::Asked => Why::Asked,
        };
        live.ending = Some(Ending {
            why,
            since,
            waiting: Vec::new(),
            gone: Vec::new(),
        });
        Some(live.actor.clone())
    }

    /// An actor of this shard ended.
    pub(super) async fn gone(
        &mut self,
        actor: ActorId,
        end: End,
        detail: &str,
    ) -> Result<(), ActorProcessingErr> {
        let Some(key) = self.by_actor.remove(&actor) else {
            return Ok(());
        };
        let live = self.slots.get(&key).and_then(Slot::live);
        if live.is_none_or(|live| live.actor.get_id() != actor) {
            return Ok(());
        }
        let Some(Slot::Live(live)) = self.slots.remove(&key) else {
            return Ok(());
        };
        let (why, waiting, gone) = match live.ending {
            Some(ending) => (Some(ending.why), ending.waiting, ending.gone),
            None => (None, Vec::new(), Vec::new()),
        };
        let left = end == End::Stopped && why == Some(Why::Asked);
        if left || self.parked.is_some() {
            // What it has not done is owed when it comes back.
            self.ledger.remove(&key);
        } else {
            let killed_for = match why {
                Some(Why::Killed(activation)) => Some(activation),
                Some(Why::Asked) | None => None,
            };
            self.follow(
                key.clone(),
                live.start,
                &live.pulse,
                end,
                killed_for,
                detail,
            );
        }
        for gone in gone {
            let _ = gone.send(());
        }
        for request in waiting {
            self.ask(key.clone(), request).await?;
        }
        self.all_parked();
        Ok(())
    }

    fn follow(
        &mut self,
        key: SessionKey,
        mut start: Start,
        pulse: &Pulse,
        end: End,
        killed_for: Option<Activation>,
        detail: &str,
    ) {
        if pulse.has_progressed() {
            (start.restarts, start.refusals) = (0, 0);
        }
        let refused = end == End::Unrecorded && killed_for.is_none();
        if refused && start.refused(self.ledger.appends()) >= REFUSALS {
            let reason = format!("the journal does not take its records: {detail}");
            return self.quarantine(key, reason);
        }
        match next(end, pulse.stage(), &start.activation, killed_for, detail) {
            Next::Restart(activation) => {
                // Another crash with the same cause is another one, and counts.
                let uncounted = matches!(activation, Activation::OnDemand | Activation::Again);
                let tried = uncounted || (refused && pulse.stage() == Stage::Waking);
                start.tried_at = match tried && activation == start.activation {
                    true => start.tried_at.or(pulse.claimed_at()),
                    false => None,
                };
                start.flight = pulse.flight();
                start.activation = activation;
                self.rest(key, start, pulse);
            }
            Next::Drop => {
                tracing::info!(session = %key, %detail, "session has another owner");
                self.drop_session(&key);
            }
            Next::Quarantine { reason } => self.quarantine(key, reason),
        }
    }

    /// Restarts it after a pause.
    fn rest(&mut self, key: SessionKey, mut start: Start, pulse: &Pulse) {
        let pause = self.settings.restart_pause * (1 << start.restarts.min(10));
        let pause = self.services.clock.spread(pause);
        let activation = &start.activation;
        tracing::warn!(session = %key, ?activation, ?pause, "session is restarted");
        start.restarts += 1;
        pulse.returns(self.now());
        self.rests += 1;
        let rest = self.rests;
        let slot = Slot::Resting { start, rest };
        self.slots.insert(key.clone(), slot);
        self.me
            .cast_after(pause, move || ShardMsg::Revive { key, rest });
    }

    /// The pause is over, unless a message has ended it before.
    pub(super) async fn revive(
        &mut self,
        key: SessionKey,
        timer: u64,
    ) -> Result<(), ActorProcessingErr> {
        if let Some(Slot::Resting { start, rest }) = self.slots.get(&key)
            && *rest == timer
            && self.parked.is_none()
        {
            let start = start.clone();
            self.spawn(key, start).await?;
        }
        Ok(())
    }

    /// It is out of memory for good; its followers read the journal from now on.
    pub(super) fn drop_session(&mut self, key: &SessionKey) {
        self.slots.remove(key);
        self.ledger.remove(key);
        self.services.router.bus.close(key);
    }

    pub(super) fn quarantine(&mut self, key: SessionKey, reason: String) {
        tracing::error!(session = %key, %reason, "session is quarantined");
        self.drop_session(&key);
        self.ledger.quarantine(&key, reason);
    }
}

#[cfg(test)]
mod tests;
