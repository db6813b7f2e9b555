//! The sign of life of a session: when it last got on, and whether it has to (spec 10).

use std::{
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicU8, AtomicU64, AtomicUsize, Ordering},
    },
    time::Duration,
};

use parking_lot::Mutex;

use super::flight::Flight;
use crate::model::Seq;

/// Whether the session is expected to get on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Expected {
    /// It works: no progress for the stall limit is a stall.
    Progress,
    /// It is paused, or waits for a place in a queue, a back-off or a child.
    Patience,
    /// Nothing is in flight: it is idle, or waits for a person, as long as it takes. It may leave memory.
    Nothing,
}

/// Where a session's call is at the gateway.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Place {
    /// In the queue.
    Waiting,
    /// Out of it: made, or taken back.
    Left,
}

/// How far a session is in its life.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Stage {
    /// It was told to come to life and has not said anything yet.
    Waking,
    /// Nothing runs.
    Idle,
    /// A query runs.
    Busy,
}

/// Shared by a session, its tasks and its shard. Written by the first two, read by the third.
#[derive(Debug, Default)]
pub(super) struct Pulse {
    /// Monotonic milliseconds of the last progress.
    mark: AtomicU64,
    patient: AtomicU8,
    /// Whether its call waits for its turn at the gateway. Apart from `patient`, because the session
    /// does not know and may say that it works in the meantime.
    queued: AtomicBool,
    stage: AtomicU8,
    /// Whether a turn or a query has ended since it was started.
    progressed: AtomicBool,
    /// Where the log ended when the session claimed it, plus one; 0 before.
    claimed: AtomicU64,
    /// What its shard has handed it and it has not taken.
    handed: AtomicUsize,
    /// Monotonic microseconds of when its call was sent.
    sent: AtomicU64,
    /// Microseconds that its last call waited for the gateway, and that its model then took.
    waited: AtomicU64,
    asked: AtomicU64,
    /// Its last model call; of the actor before it, until it makes one.
    flight: Mutex<Arc<Flight>>,
}

impl Pulse {
    /// Of a session that is about to come to life; `flight` is the last call of the actor before it.
    pub(super) fn new(flight: Arc<Flight>) -> Self {
        Self {
            flight: Mutex::new(flight),
            ..Self::default()
        }
    }

    /// Its last model call.
    pub(super) fn flight(&self) -> Arc<Flight> {
        Arc::clone(&self.flight.lock())
    }

    /// It is about to make another model call, of about so many tokens.
    pub(super) fn take_off(&self, tokens: u64) -> Arc<Flight> {
        let flight = Arc::new(Flight::of(tokens));
        *self.flight.lock() = Arc::clone(&flight);
        flight
    }

    /// It got on.
    pub(super) fn beat(&self, now: u64) {
        self.mark.store(now, Ordering::Relaxed);
    }

    /// It waits, or works. That it goes on with what it was at is no progress; of one that has nothing in
    /// flight nobody expects any, and that somebody talks to it counts.
    pub(super) fn expect(&self, expected: Expected, now: u64) {
        let patient = match expected {
            Expected::Progress => 0,
            Expected::Patience => 1,
            Expected::Nothing => 2,
        };
        let before = self.patient.swap(patient, Ordering::Relaxed);
        if before != patient || expected == Expected::Nothing {
            self.beat(now);
        }
    }

    /// Its call waits for its turn, or no longer.
    pub(super) fn queue(&self, place: Place, now: u64) {
        let queued = match place {
            Place::Waiting => true,
            Place::Left => false,
        };
        self.queued.store(queued, Ordering::Relaxed);
        self.beat(now);
    }

    /// It is this far. Not by message: news of an actor's end overtakes its messages.
    pub(super) fn live(&self, stage: Stage) {
        let stage = match stage {
            Stage::Waking => 0,
            Stage::Idle => 1,
            Stage::Busy => 2,
        };
        self.stage.store(stage, Ordering::Relaxed);
    }

    /// A turn or a query has ended.
    pub(super) fn progresses(&self) {
        self.progressed.store(true, Ordering::Relaxed);
    }

    /// Whether a turn or a query has ended since it was started.
    pub(super) fn has_progressed(&self) -> bool {
        self.progressed.load(Ordering::Relaxed)
    }

    /// Its actor has ended and is replaced soon: it counts as busy until then.
    pub(super) fn returns(&self, now: u64) {
        self.live(Stage::Busy);
        self.expect(Expected::Progress, now);
    }

    /// It has claimed its log, which ends there.
    pub(super) fn claimed(&self, last: Seq) {
        self.claimed.store(last.0 + 1, Ordering::Relaxed);
    }

    /// Where the log ended when it was claimed, if it was.
    pub(super) fn claimed_at(&self) -> Option<Seq> {
        self.claimed.load(Ordering::Relaxed).checked_sub(1).map(Seq)
    }

    /// Its shard hands it one more, if fewer than so many wait. The shard alone does that.
    pub(super) fn hand(&self, most: usize) -> bool {
        let room = self.handed.load(Ordering::Relaxed) < most;
        if room {
            self.handed.fetch_add(1, Ordering::Relaxed);
        }
        room
    }

    /// It takes one of those that wait.
    pub(super) fn take(&self) {
        let less = |handed: usize| Some(handed.saturating_sub(1));
        let (set, fetch) = (Ordering::Relaxed, Ordering::Relaxed);
        // It never fails: there is always a next value.
        let _ = self.handed.fetch_update(set, fetch, less);
    }

    /// A call is sent, at this microsecond.
    pub(super) fn sent(&self, micros: u64) {
        self.sent.store(micros, Ordering::Relaxed);
        self.waited.store(0, Ordering::Relaxed);
        self.asked.store(0, Ordering::Relaxed);
    }

    /// The model was asked from this microsecond to that.
    pub(super) fn asked(&self, from: u64, to: u64) {
        let sent = self.sent.load(Ordering::Relaxed);
        let (waited, asked) = (from.saturating_sub(sent), to.saturating_sub(from));
        self.waited.store(waited, Ordering::Relaxed);
        self.asked.store(asked, Ordering::Relaxed);
    }

    /// How long its last call waited, and how long its model took.
    pub(super) fn outside(&self) -> (Duration, Duration) {
        let micros = |count: &AtomicU64| Duration::from_micros(count.load(Ordering::Relaxed));
        (micros(&self.waited), micros(&self.asked))
    }

    /// How far it is.
    pub(super) fn stage(&self) -> Stage {
        match self.stage.load(Ordering::Relaxed) {
            0 => Stage::Waking,
            1 => Stage::Idle,
            _ => Stage::Busy,
        }
    }

    /// Whether it works, or waits for something that comes without a person.
    pub(super) fn is_busy(&self) -> bool {
        self.patient.load(Ordering::Relaxed) != 2 && self.stage() != Stage::Idle
    }

    /// For how long it has had nothing in flight, in milliseconds; none if it has something.
    pub(super) fn idle_for(&self, now: u64) -> Option<u64> {
        let idle = self.patient.load(Ordering::Relaxed) == 2 && self.stage() != Stage::Waking;
        idle.then(|| now.saturating_sub(self.mark.load(Ordering::Relaxed)))
    }

    /// For how long it should have got on and did not, in milliseconds.
    pub(super) fn silent_for(&self, now: u64) -> u64 {
        if self.queued.load(Ordering::Relaxed) {
            return 0;
        }
        match self.patient.load(Ordering::Relaxed) {
            0 => now.saturating_sub(self.mark.load(Ordering::Relaxed)),
            _ => 0,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn so_many_may_wait() {
        let pulse = Pulse::default();
        let handed = [pulse.hand(2), pulse.hand(2), pulse.hand(2)];
        assert_eq!(handed, [true, true, false]);
        pulse.take();
        assert_eq!([pulse.hand(2), pulse.hand(2)], [true, false]);
    }

    #[test]
    fn who_goes_on_with_the_same_has_not_got_on() {
        let pulse = Pulse::default();
        pulse.expect(Expected::Patience, 50);
        pulse.expect(Expected::Progress, 100);
        pulse.expect(Expected::Progress, 600);
        assert_eq!(pulse.silent_for(700), 600);
        pulse.live(Stage::Idle);
        pulse.expect(Expected::Nothing, 700);
        pulse.expect(Expected::Nothing, 800);
        assert_eq!(pulse.idle_for(900), Some(100), "somebody talked to it");
    }

    #[test]
    fn only_who_should_get_on_is_silent() {
        let pulse = Pulse::default();
        pulse.beat(100);
        pulse.expect(Expected::Progress, 100);
        assert_eq!(pulse.silent_for(700), 600);
        pulse.beat(650);
        assert_eq!(pulse.silent_for(700), 50);
        pulse.expect(Expected::Patience, 700);
        assert_eq!(pulse.silent_for(9_999_999), 0);
        assert_eq!(pulse.idle_for(9_999_999), None, "a child may end");
        pulse.live(Stage::Busy);
        assert!(pulse.is_busy());
        pulse.expect(Expected::Nothing, 700);
        assert!(!pulse.is_busy(), "a person is waited for");
        assert_eq!(pulse.silent_for(9_999_999), 0);
        assert_eq!(pulse.idle_for(900), Some(200));
        pulse.expect(Expected::Progress, 700);
        assert_eq!(pulse.idle_for(900), None);
        pulse.queue(Place::Waiting, 700);
        pulse.expect(Expected::Progress, 800);
        assert_eq!(
            pulse.silent_for(9_999_999),
            0,
            "whatever the session says meanwhile"
        );
        pulse.queue(Place::Left, 900);
        assert_eq!(pulse.silent_for(1_000), 100);
    }
}
