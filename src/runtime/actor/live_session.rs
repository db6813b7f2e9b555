//! What the rest of the system knows of a live session, in one record.
//!
//! The kernel has the truth, and the journal what is durable; a [`LiveSession`] is what shards,
//! gateways, lists and metrics read without asking the session. It is shared memory, because the news
//! of an actor's end overtakes its messages. Each actor of a session has its own, so that a late write
//! of a killed one does not count for its successor.
//!
//! After each step the session replaces its [`Status`]. [`transition`] says what follows from the
//! difference, and nothing else changes a total: the gauges of the [`Meter`] and the load of the tenant
//! have exactly the records that have not ended.

use std::sync::{
    Arc,
    atomic::{AtomicBool, AtomicU64, Ordering::Relaxed},
};

use parking_lot::Mutex;

use super::{
    call_progress::CallProgress,
    meter::{Gauges, Meter},
};
use crate::{
    access::{SessionLoad, SessionUsage},
    kernel::Session,
    model::{By, QueryId, Seq, SessionState, Turn},
};

/// A session as its last step left it. Once its actor has ended it is [`SessionState::Suspended`]: it
/// takes no memory, but a query that is to be restarted still counts as running.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Status {
    pub state: SessionState,
    /// Whether nothing is in flight, so that the session may be passivated.
    pub rests: bool,
    pub query: Option<RunningQuery>,
    /// Messages queued behind the query.
    pub inbox: usize,
    /// About how many bytes of memory it takes.
    pub bytes: usize,
    /// Whether it waits for an operator, which is published for lists.
    pub asks: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct RunningQuery {
    pub id: QueryId,
    /// Completed turns.
    pub turns: u32,
    pub max_turns: u32,
}

impl Status {
    /// What an earlier actor has published is still there.
    const WAKING: Self = Self {
        state: SessionState::Waking,
        rests: false,
        query: None,
        inbox: 0,
        bytes: 0,
        asks: true,
    };

    pub(super) fn of(session: &Session, bytes: usize) -> Self {
        let state = session.state();
        let query = session.query().map(|query| RunningQuery {
            id: query.id,
            turns: query.turns,
            max_turns: query.limits.max_turns,
        });
        Self {
            state,
            rests: session.may_passivate(),
            query,
            inbox: session.waiting(),
            bytes,
            asks: state.awaits_operator() || session.waiting_calls().next().is_some(),
        }
    }

    /// Whether a query has begun, or is prepared before it is recorded.
    fn has_query(&self) -> bool {
        self.query.is_some() || self.state == SessionState::Preparing
    }

    fn gauges(&self) -> Gauges {
        Gauges {
            state: Some(self.state).filter(|state| *state != SessionState::Suspended),
            has_query: self.has_query(),
            inbox: self.inbox,
        }
    }

    /// A query costs nothing until its caller returns, which may be never. Before it is recorded, it
    /// counts as its caller's submission.
    fn load(&self) -> SessionLoad {
        let is_free = matches!(self.state, SessionState::Client | SessionState::Suspended);
        SessionLoad {
            running: self.query.is_some() && !is_free,
            pending: self.inbox,
            bytes: self.bytes,
        }
    }
}

/// What follows from a change of status.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Transition {
    gauges: (Gauges, Gauges),
    load: SessionLoad,
    /// Whether it is a sign of life. Repeating a state is none, except at rest, where a message is.
    beats: bool,
    /// Whether a turn or a query has ended since the session was started.
    progresses: bool,
    /// Whether something is published for lists.
    pub asked: bool,
}

fn transition(before: &Status, after: &Status) -> Transition {
    let turns = |status: &Status| status.query.map(|query| (query.id, query.turns));
    Transition {
        gauges: (before.gauges(), after.gauges()),
        load: after.load(),
        beats: before.state != after.state || before.rests != after.rests || after.rests,
        progresses: match before.state {
            SessionState::Waking => after.query.is_none(),
            _ => turns(before) != turns(after),
        },
        asked: before.asks,
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ChargeResult {
    Allowed,
    /// The query is over its turn limit.
    Violated {
        started: u32,
        limit: u32,
    },
    /// No such query runs.
    NotLive,
}

/// Written by a session, its tasks and its shard. Times are in monotonic milliseconds.
#[derive(Debug)]
pub(super) struct LiveSession {
    meter: Meter,
    current: Mutex<Current>,
    /// Time of the last progress.
    mark: AtomicU64,
    /// Whether the gateway has queued its call; the session does not know this.
    queued: AtomicBool,
}

#[derive(Debug)]
struct Current {
    status: Status,
    usage: SessionUsage,
    /// Turns of the query that are completed or were charged.
    charged: u32,
    payer: Option<By>,
    progressed: bool,
    /// Last number of the log when it was claimed.
    claimed: Option<Seq>,
    /// Messages that the shard has sent and the session has not taken.
    handed: usize,
    /// Last model call, possibly of the previous actor.
    call_progress: Arc<CallProgress>,
}

impl LiveSession {
    /// The record of a new actor, which goes on with the query and the call of the one `before`.
    pub(super) fn new(meter: Meter, usage: SessionUsage, before: Option<&Self>) -> Self {
        let mut current = Current {
            status: Status::WAKING,
            usage,
            charged: 0,
            payer: None,
            progressed: false,
            claimed: None,
            handed: 0,
            call_progress: Arc::new(CallProgress::unknown()),
        };
        if let Some(before) = before {
            let before = before.current.lock();
            current.status.query = before.status.query;
            (current.charged, current.payer) = (before.charged, before.payer.clone());
            current.call_progress = Arc::clone(&before.call_progress);
        }
        meter.replace(Gauges::default(), current.status.gauges());
        Self {
            meter,
            current: Mutex::new(current),
            mark: AtomicU64::new(0),
            queued: AtomicBool::new(false),
        }
    }

    /// Takes the status after a step, and the payer of its query. A late step of an actor that the
    /// shard has seen the end of changes nothing: `None`.
    pub(super) fn update(
        &self,
        after: Status,
        payer: impl FnOnce() -> By,
        now: u64,
    ) -> Option<Transition> {
        let mut current = self.current.lock();
        let ran = current.status.query.map(|query| query.id);
        let change = self.replace(&mut current, after)?;
        if let Some(query) = current.status.query {
            if ran != Some(query.id) {
                (current.charged, current.payer) = (0, Some(payer()));
            }
            current.charged = current.charged.max(query.turns);
        }
        current.progressed |= change.progresses;
        if change.beats {
            self.beat(now);
        }
        Some(change)
    }

    /// Another process owns the session: its actor refuses callers until the shard ends it.
    pub(super) fn set_unclaimed(&self, now: u64) {
        let mut current = self.current.lock();
        let after = Status {
            state: SessionState::Waking,
            rests: true,
            ..current.status
        };
        if self.replace(&mut current, after).is_some() {
            self.beat(now);
        }
    }

    /// The actor has ended, and the session waits for its restart.
    pub(super) fn suspend(&self) {
        let query = self.status().query;
        self.without_actor(query);
    }

    /// The session has left memory, or another record takes its place.
    pub(super) fn end(&self) {
        self.without_actor(None);
    }

    fn without_actor(&self, query: Option<RunningQuery>) {
        let after = Status {
            state: SessionState::Suspended,
            query,
            ..Status::WAKING
        };
        self.replace(&mut self.current.lock(), after);
    }

    fn replace(&self, current: &mut Current, after: Status) -> Option<Transition> {
        let has_ended = |status: &Status| status.state == SessionState::Suspended;
        if has_ended(&current.status) && !has_ended(&after) {
            return None;
        }
        let change = transition(&current.status, &after);
        self.meter.replace(change.gauges.0, change.gauges.1);
        current.usage.set(change.load);
        current.status = after;
        Some(change)
    }

    /// Charges a turn, once over all its calls.
    pub(super) fn charge(&self, query: QueryId, turn: Turn) -> ChargeResult {
        let mut current = self.current.lock();
        let Some(running) = current.status.query.filter(|running| running.id == query) else {
            return ChargeResult::NotLive;
        };
        let (started, limit) = (turn.0.saturating_add(1), running.max_turns);
        // An admitted turn may be retried, even if the budget was lowered since.
        if started > limit && started > current.charged {
            return ChargeResult::Violated { started, limit };
        }
        current.charged = current.charged.max(started);
        ChargeResult::Allowed
    }

    /// Charges tokens to the tenant.
    pub(super) fn used(&self, tokens: u64) {
        self.current.lock().usage.used(tokens);
    }

    /// The running query with its payer.
    pub(super) fn running(&self) -> Option<(QueryId, By)> {
        let current = self.current.lock();
        let query = current.status.query?;
        Some((query.id, current.payer.clone()?))
    }

    pub(super) fn call_progress(&self) -> Arc<CallProgress> {
        Arc::clone(&self.current.lock().call_progress)
    }

    pub(super) fn begin_call(&self, tokens: u64) -> Arc<CallProgress> {
        let call_progress = Arc::new(CallProgress::of(tokens));
        self.current.lock().call_progress = Arc::clone(&call_progress);
        call_progress
    }

    pub(super) fn beat(&self, now: u64) {
        self.mark.store(now, Relaxed);
    }

    /// The gateway has queued the call of the session, or no longer has it in the queue.
    pub(super) fn set_queued(&self, is_queued: bool, now: u64) {
        self.queued.store(is_queued, Relaxed);
        self.beat(now);
    }

    pub(super) fn has_progressed(&self) -> bool {
        self.current.lock().progressed
    }

    pub(super) fn set_claimed(&self, last: Seq) {
        self.current.lock().claimed = Some(last);
    }

    pub(super) fn claimed(&self) -> Option<Seq> {
        self.current.lock().claimed
    }

    /// Counts one more message, if fewer than `most` are pending.
    pub(super) fn hand(&self, most: usize) -> bool {
        let handed = &mut self.current.lock().handed;
        let has_room = *handed < most;
        *handed += usize::from(has_room);
        has_room
    }

    pub(super) fn take(&self) {
        let handed = &mut self.current.lock().handed;
        *handed = handed.saturating_sub(1);
    }

    fn status(&self) -> Status {
        self.current.lock().status
    }

    pub(super) fn bytes(&self) -> usize {
        self.status().bytes
    }

    pub(super) fn state(&self) -> SessionState {
        self.status().state
    }

    /// Whether the session works, or waits for anything but a person.
    pub(super) fn is_busy(&self) -> bool {
        let Status { state, rests, .. } = self.status();
        !rests && (state.has_query() || state == SessionState::Waking)
    }

    /// Milliseconds since anything was in flight, or `None` while something is.
    pub(super) fn idle_for(&self, now: u64) -> Option<u64> {
        let Status { state, rests, .. } = self.status();
        let idle = rests && state != SessionState::Waking;
        idle.then(|| now.saturating_sub(self.mark.load(Relaxed)))
    }

    /// Milliseconds for which progress has been due; 0 at rest, during a pause with nothing in flight, a
    /// back-off, a delegation, or a wait for a person or in the queue.
    pub(super) fn silent_for(&self, now: u64) -> u64 {
        let Status { state, rests, .. } = self.status();
        let waits = matches!(
            state,
            SessionState::BackingOff | SessionState::Delegating | SessionState::Ending
        );
        match waits || state.awaits_person() || rests || self.queued.load(Relaxed) {
            true => 0,
            false => now.saturating_sub(self.mark.load(Relaxed)),
        }
    }
}

#[cfg(test)]
pub(super) mod tests;
