//! How sessions start, end and are restarted.

use std::{sync::Arc, time::Duration};

use ractor::{Actor, ActorId, ActorProcessingErr, ActorRef, RpcReplyPort};

use super::{ShardState, WAITING};
use crate::{
    actor::{
        clock::millis,
        ledger::Ledger,
        live_session::LiveSession,
        profile::Opening,
        protocol::{Activation, SessionMsg, ShardMsg},
        session::{SessionActor, SessionShell},
    },
    journal::Error as JournalError,
    model::{ProfileName, Seq, SessionKey, SessionState, record::RestartCause},
};

/// How often the journal may refuse a session's records while it accepts others. With the pauses,
/// this takes a quarter of an hour.
pub(super) const REFUSALS: u32 = 16;
/// Longest pause while the journal accepts no records or the disk is full, before it is spread: with
/// that, at most 9 s.
const LONGEST: Duration = Duration::from_secs(6);
/// Restarts with such pauses, for three minutes, while the disk has room for other records: each may
/// repeat a model call.
const HOPEFUL: u32 = 32;
/// Most sessions that a shard restarts at once when the journal accepts records again.
const AT_ONCE: usize = 256;

pub(super) enum Slot {
    Live(Live),
    /// The session is restarted after a pause, or earlier by a message or the end of an outage.
    BackingOff {
        start: Box<Start>,
        /// Number of the pause: the timers of other pauses are ignored.
        rest: u64,
    },
}

pub(super) struct Live {
    pub actor: ActorRef<SessionMsg>,
    pub session: Arc<LiveSession>,
    pub start: Box<Start>,
    /// Set when the actor is about to end; no other actor is started before then.
    pub ending: Option<Box<Ending>>,
}

#[derive(Default)]
pub(super) struct Ending {
    /// The activation of the next actor, if the shard killed this one. Otherwise it was asked to
    /// leave memory, and may stay.
    pub killed_for: Option<Activation>,
    /// When the end was requested, in monotonic milliseconds.
    pub since: u64,
    /// Requests for the next actor, or for this one if it stays.
    pub waiting: Vec<SessionMsg>,
    pub gone: Vec<RpcReplyPort<()>>,
}

#[derive(Debug, Clone)]
pub(super) struct Start {
    pub opening: Opening,
    pub activation: Activation,
    /// Where the log ended at an earlier start with this activation that the journal did not
    /// answer. If the log is longer now, it has the record of that start.
    last_attempt_seq: Option<Seq>,
    restarts: u32,
    /// Consecutive times that the journal refused the session's records while accepting others.
    refusals: u32,
    /// Appends that the journal had accepted at the last refusal.
    appends: u64,
    /// Whether the journal refused all records, and not only those of this session.
    in_outage: bool,
    /// When the last pause ends, in monotonic milliseconds, unless something ended it early.
    due: u64,
}

impl Start {
    pub(super) fn new(opening: Opening, activation: Activation, ledger: &Ledger) -> Box<Self> {
        Box::new(Self {
            opening,
            activation,
            last_attempt_seq: None,
            restarts: 0,
            refusals: 0,
            appends: ledger.appends(),
            in_outage: false,
            due: 0,
        })
    }

    /// Counts a refusal if the journal has accepted other records since the last one, unless that
    /// says nothing about the session's own: if the disk is full, or somebody ended the pause early.
    fn refused(&mut self, appends: u64, is_full: bool, now: u64) -> bool {
        self.in_outage = appends == self.appends;
        self.appends = appends;
        let counts = !self.in_outage && !is_full && self.due <= now;
        self.refusals += u32::from(counts);
        counts
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
            Self::BackingOff { .. } => None,
        }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ActorEnd {
    Stopped,
    /// It panicked or returned an error of its own.
    Crashed,
    /// The journal did not accept its records.
    Unrecorded,
    /// So it was because the disk is full.
    NoRoom,
    /// Another owner has claimed the session, and may have deleted it.
    Fenced,
    Unreadable,
}

impl ActorEnd {
    pub(super) fn of(error: &(dyn std::error::Error + Send + Sync + 'static)) -> Self {
        match error.downcast_ref::<JournalError>() {
            // An unknown session was deleted by another owner.
            Some(
                JournalError::Fenced { .. }
                | JournalError::Unknown { .. }
                | JournalError::Owned { .. },
            ) => Self::Fenced,
            // A session that began elsewhere in the meantime is read again.
            Some(
                JournalError::Unavailable(_)
                | JournalError::Broken(_)
                | JournalError::StatusConflict { .. },
            ) => Self::Unrecorded,
            Some(JournalError::Full) => Self::NoRoom,
            Some(JournalError::Unreadable { .. }) => Self::Unreadable,
            _ => Self::Crashed,
        }
    }
}

#[derive(Debug, Clone, PartialEq)]
enum Next {
    Restart(Activation),
    /// The session has another owner.
    Drop,
    Quarantine {
        reason: String,
    },
}

/// Decides what follows an actor's end, from its state, the reason for its start, and the reason
/// why the shard killed it.
fn next(
    end: ActorEnd,
    at: SessionState,
    was_for: &Activation,
    killed_for: Option<Activation>,
    detail: &str,
) -> Next {
    let quarantine = |when: &str| {
        let reason = format!("it crashed while {when}: {detail}");
        Next::Restart(Activation::Quarantine { reason })
    };
    match (end, at) {
        // A session with a new owner is not claimed back, whatever it was killed for.
        (ActorEnd::Fenced, _) => return Next::Drop,
        (ActorEnd::Unreadable, _) if killed_for.is_none() => {
            let reason = detail.to_owned();
            return Next::Quarantine { reason };
        }
        _ => {}
    }
    if let Some(activation) = killed_for {
        return match activation {
            // The quarantine could not be recorded either.
            Activation::Quarantine { reason } => Next::Quarantine { reason },
            activation => Next::Restart(activation),
        };
    }
    match (end, at, was_for) {
        (ActorEnd::Unrecorded | ActorEnd::NoRoom, SessionState::Waking, _) => {
            Next::Restart(was_for.clone())
        }
        (ActorEnd::Unrecorded | ActorEnd::NoRoom, ..) => Next::Restart(Activation::Again),
        // That query may crash the session again; each crash counts until the kernel ends the
        // query.
        (_, SessionState::Waking, Activation::Restart { .. }) => Next::Restart(was_for.clone()),
        (_, SessionState::Waking, Activation::Quarantine { reason }) => {
            let reason = reason.clone();
            Next::Quarantine { reason }
        }
        (_, SessionState::Waking, _) => quarantine("activating"),
        _ if at.has_query() => Next::Restart(Activation::Restart {
            cause: RestartCause::Crash,
            detail: detail.to_owned(),
        }),
        _ => quarantine("idle"),
    }
}

/// Chooses the activation after a kill. During activation, the reason for the start may not be
/// recorded yet, so a stall does not replace it.
fn kill_for(at: SessionState, was_for: &Activation, found: Activation) -> Activation {
    let owed = !matches!(was_for, Activation::OnDemand | Activation::Again);
    let gives_way = matches!(found, Activation::Restart { .. } | Activation::Again);
    match at == SessionState::Waking && owed && gives_way {
        true => was_for.clone(),
        false => found,
    }
}

impl ShardState {
    pub(super) async fn spawn(
        &mut self,
        key: SessionKey,
        start: Box<Start>,
        first: Option<SessionMsg>,
    ) -> Result<(), ActorProcessingErr> {
        let services = &self.services;
        let session = self.ledger.enter(&key, &services.meter, &services.tenants);
        session.beat(self.now());
        let state = SessionShell::new(
            key.clone(),
            (start.opening.clone(), start.last_attempt_seq),
            self.me.clone(),
            self.settings.idle_timeout,
            Arc::clone(&session),
            self.services.clone(),
        );
        let parent = self.me.actor().get_cell();
        let (actor, _) = Actor::spawn_linked(None, SessionActor, state, parent).await?;
        if first.is_some() {
            session.hand(WAITING);
        }
        actor.cast(SessionMsg::Activate {
            activation: start.activation.clone(),
            first: first.map(Box::new),
        })?;
        self.by_actor.insert(actor.get_id(), key.clone());
        let live = Slot::Live(Live {
            actor,
            session,
            start,
            ending: None,
        });
        self.slots.insert(key, live);
        Ok(())
    }

    pub(super) fn now(&self) -> u64 {
        self.services.clock.monotonic_millis()
    }

    pub(super) fn end_for(&mut self, key: &SessionKey, activation: Activation) {
        if let Some(actor) = self.ending(key, Some(activation)) {
            actor.kill();
        }
    }

    /// Marks a live actor as about to end, unless it is marked already.
    pub(super) fn ending(
        &mut self,
        key: &SessionKey,
        killed_for: Option<Activation>,
    ) -> Option<ActorRef<SessionMsg>> {
        let since = self.now();
        let Some(Slot::Live(live)) = self.slots.get_mut(key) else {
            return None;
        };
        if live.ending.is_some() {
            return None;
        }
        let at = live.session.state();
        live.ending = Some(Box::new(Ending {
            killed_for: killed_for.map(|found| kill_for(at, &live.start.activation, found)),
            since,
            ..Ending::default()
        }));
        Some(live.actor.clone())
    }

    pub(super) async fn gone(
        &mut self,
        actor: ActorId,
        end: ActorEnd,
        detail: &str,
    ) -> Result<(), ActorProcessingErr> {
        let Some(key) = self.by_actor.remove(&actor) else {
            return Ok(());
        };
        let live = self.slots.get(&key).and_then(Slot::live);
        if live.is_none_or(|live| live.actor.get_id() != actor) {
            return Ok(());
        }
        let Some(Slot::Live(mut live)) = self.slots.remove(&key) else {
            return Ok(());
        };
        let was_asked = |ending: &Ending| ending.killed_for.is_none();
        let left = end == ActorEnd::Stopped && live.ending.as_deref().is_some_and(was_asked);
        // Empty for an actor that nobody has asked to end; `left` has told them apart.
        let ending = *live.ending.take().unwrap_or_default();
        if left || self.parked.is_some() {
            // Pending work resumes at the next activation.
            self.ledger.remove(&key);
        } else {
            self.follow(key.clone(), live, end, ending.killed_for, detail);
        }
        for gone in ending.gone {
            let _ = gone.send(());
        }
        for request in ending.waiting {
            self.ask(key.clone(), request).await?;
        }
        self.all_parked();
        Ok(())
    }

    fn follow(
        &mut self,
        key: SessionKey,
        live: Live,
        end: ActorEnd,
        killed_for: Option<Activation>,
        detail: &str,
    ) {
        let (mut start, session) = (live.start, &live.session);
        if session.has_progressed() {
            (start.restarts, start.refusals, start.due) = (0, 0, 0);
        }
        let (is_full, now) = (end == ActorEnd::NoRoom, self.now());
        let refused = (is_full || end == ActorEnd::Unrecorded) && killed_for.is_none();
        let counts = refused && start.refused(self.ledger.appends(), is_full, now);
        if counts && start.refusals >= REFUSALS {
            return self.quarantine(key, format!("the journal rejects its records: {detail}"));
        }
        let (at, was_for) = (session.state(), &start.activation);
        match next(end, at, was_for, killed_for, detail) {
            Next::Restart(activation) => {
                // A repeated crash with the same cause is a new fact, and counts.
                let uncounted = matches!(activation, Activation::OnDemand | Activation::Again);
                let tried = uncounted || (refused && at == SessionState::Waking);
                start.last_attempt_seq = match tried && activation == start.activation {
                    true => start.last_attempt_seq.or(session.claimed()),
                    false => None,
                };
                start.activation = activation;
                start.in_outage &= refused;
                let outage = refused.then_some((detail, counts));
                self.rest(key, start, session, outage);
            }
            Next::Drop => {
                tracing::info!(session = %key, %detail, "session is owned by another process");
                self.drop_session(&key);
            }
            Next::Quarantine { reason } => self.quarantine(key, reason),
        }
    }

    /// `outage` is what the journal said, which it may say of all sessions, and whether that counts
    /// against this one. A restart before its time changes neither the time nor the next pauses.
    fn rest(
        &mut self,
        key: SessionKey,
        mut start: Box<Start>,
        session: &LiveSession,
        outage: Option<(&str, bool)>,
    ) {
        let now = self.now();
        let shortest = self.settings.restart_pause;
        let doubled = |times: u32| shortest * (1 << times.min(10));
        let pause = match outage {
            Some(_) if start.due > now => Duration::from_millis(start.due - now),
            Some((_, true)) => self.services.clock.spread(doubled(start.refusals - 1)),
            Some(_) if start.in_outage || start.restarts < HOPEFUL => {
                let pause = doubled(start.restarts).min(LONGEST.max(shortest));
                self.services.clock.spread(pause)
            }
            _ => self.services.clock.spread(doubled(start.restarts)),
        };
        start.restarts += u32::from(outage.is_none() || start.due <= now);
        start.due = now + millis(pause);
        let activation = &start.activation;
        match outage {
            Some((error, _)) => self.ledger.warn(|more| {
                tracing::warn!(session = %key, %error, ?pause, more, "restarting session");
            }),
            None => tracing::warn!(session = %key, ?activation, ?pause, "restarting session"),
        }
        session.suspend();
        self.rests += 1;
        let rest = self.rests;
        let slot = Slot::BackingOff { start, rest };
        self.slots.insert(key.clone(), slot);
        self.me
            .cast_after(pause, move || ShardMsg::Revive { key, rest });
    }

    /// Ends the pause, unless a message did so earlier.
    pub(super) async fn revive(
        &mut self,
        key: SessionKey,
        timer: u64,
    ) -> Result<(), ActorProcessingErr> {
        if let Some(Slot::BackingOff { start, rest }) = self.slots.get(&key)
            && *rest == timer
            && self.parked.is_none()
        {
            let start = start.clone();
            self.spawn(key, start, None).await?;
        }
        Ok(())
    }

    /// Restarts sessions that rest because the journal accepted no records, once it accepts some
    /// again: those that have rested for longest, a part of them at each sweep.
    pub(super) async fn revive_after_outage(&mut self) -> Result<(), ActorProcessingErr> {
        let appends = self.ledger.appends();
        let slots = self.slots.iter().filter_map(|(key, slot)| match slot {
            Slot::BackingOff { start, rest } if start.in_outage && start.appends != appends => {
                Some((*rest, key.clone()))
            }
            _ => None,
        });
        let mut resting: Vec<_> = slots.collect();
        resting.sort_unstable();
        for (rest, key) in resting.into_iter().take(AT_ONCE) {
            self.revive(key, rest).await?;
        }
        Ok(())
    }

    /// Removes a session from memory; its followers read the journal from now on.
    pub(super) fn drop_session(&mut self, key: &SessionKey) {
        self.slots.remove(key);
        self.ledger.remove(key);
        self.services.router.approvals.forget(key);
        self.services.router.bus.close(key);
    }

    pub(super) fn quarantine(&mut self, key: SessionKey, reason: String) {
        tracing::error!(session = %key, %reason, "session quarantined: release it with `oracle ctl release`");
        self.drop_session(&key);
        self.ledger.quarantine(&key, reason);
    }
}

#[cfg(test)]
mod tests;
