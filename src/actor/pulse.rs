//! A session's sign of life: its last progress, and whether progress is due.

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

/// Whether progress is due.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Expected {
    /// None for the stall limit is a stall.
    Progress,
    /// It is paused, or waits for a queue, a back-off or a child.
    Patience,
    /// It is idle or waits for a person, and may leave memory.
    Nothing,
}

/// Where its call is at the gateway.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Place {
    Waiting,
    Left,
}

/// How far a session is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Stage {
    /// It is being activated.
    Waking,
    Idle,
    Busy,
}

/// Written by a session and its tasks, read by its shard.
#[derive(Debug, Default)]
pub(super) struct Pulse {
    /// Monotonic milliseconds of the last progress.
    mark: AtomicU64,
    patient: AtomicU8,
    /// Whether its call is queued at the gateway, which the session does not know.
    queued: AtomicBool,
    stage: AtomicU8,
    /// Whether a turn or a query has ended since it was started.
    progressed: AtomicBool,
    /// The last number of the log when it was claimed, plus one; 0 before.
    claimed: AtomicU64,
    /// Messages that its shard has handed it and it has not taken.
    handed: AtomicUsize,
    /// Monotonic microseconds of when its call was sent.
    sent: AtomicU64,
    /// Microseconds that its last call waited for the gateway, and its model took.
    waited: AtomicU64,
    asked: AtomicU64,
    /// Its last model call, or that of the actor before it.
    flight: Mutex<Arc<Flight>>,
}

impl Pulse {
    pub(super) fn new(flight: Arc<Flight>) -> Self {
        Self {
            flight: Mutex::new(flight),
            ..Self::default()
        }
    }

    pub(super) fn flight(&self) -> Arc<Flight> {
        Arc::clone(&self.flight.lock())
    }

    /// A model call of about so many tokens is about to be made.
    pub(super) fn take_off(&self, tokens: u64) -> Arc<Flight> {
        let flight = Arc::new(Flight::of(tokens));
        *self.flight.lock() = Arc::clone(&flight);
        flight
    }

    pub(super) fn beat(&self, now: u64) {
        self.mark.store(now, Ordering::Relaxed);
    }

    /// Repeating what was expected is no progress, except where nothing is: there a message counts.
    pub(super) fn expect(&self, expected: Expected, now: u64) {
        let before = self.patient.swap(expected as u8, Ordering::Relaxed);
        if before != expected as u8 || expected == Expected::Nothing {
            self.beat(now);
        }
    }

    pub(super) fn queue(&self, place: Place, now: u64) {
        self.queued
            .store(place == Place::Waiting, Ordering::Relaxed);
        self.beat(now);
    }

    /// Not by message: news of an actor's end overtakes its messages.
    pub(super) fn live(&self, stage: Stage) {
        self.stage.store(stage as u8, Ordering::Relaxed);
    }

    /// A turn or a query has ended.
    pub(super) fn progresses(&self) {
        self.progressed.store(true, Ordering::Relaxed);
    }

    pub(super) fn has_progressed(&self) -> bool {
        self.progressed.load(Ordering::Relaxed)
    }

    /// Its actor has ended and is replaced soon: it counts as busy until then.
    pub(super) fn returns(&self, now: u64) {
        self.live(Stage::Busy);
        self.expect(Expected::Progress, now);
    }

    pub(super) fn claimed(&self, last: Seq) {
        self.claimed.store(last.0 + 1, Ordering::Relaxed);
    }

    pub(super) fn claimed_at(&self) -> Option<Seq> {
        self.claimed.load(Ordering::Relaxed).checked_sub(1).map(Seq)
    }

    /// Hands it one more message, if fewer than so many wait. Only its shard does that.
    pub(super) fn hand(&self, most: usize) -> bool {
        let room = self.handed.load(Ordering::Relaxed) < most;
        if room {
            self.handed.fetch_add(1, Ordering::Relaxed);
        }
        room
    }

    pub(super) fn take(&self) {
        let less = |handed: usize| Some(handed.saturating_sub(1));
        let (set, fetch) = (Ordering::Relaxed, Ordering::Relaxed);
        let _ = self.handed.fetch_update(set, fetch, less);
    }

    pub(super) fn sent(&self, micros: u64) {
        self.sent.store(micros, Ordering::Relaxed);
        self.waited.store(0, Ordering::Relaxed);
        self.asked.store(0, Ordering::Relaxed);
    }

    pub(super) fn asked(&self, from: u64, to: u64) {
        let sent = self.sent.load(Ordering::Relaxed);
        let (waited, asked) = (from.saturating_sub(sent), to.saturating_sub(from));
        self.waited.store(waited, Ordering::Relaxed);
        self.asked.store(asked, Ordering::Relaxed);
    }

    /// How long its last call waited, and its model took.
    pub(super) fn outside(&self) -> (Duration, Duration) {
        let micros = |count: &AtomicU64| Duration::from_micros(count.load(Ordering::Relaxed));
        (micros(&self.waited), micros(&self.asked))
    }

    pub(super) fn stage(&self) -> Stage {
        match self.stage.load(Ordering::Relaxed) {
            0 => Stage::Waking,
            1 => Stage::Idle,
            _ => Stage::Busy,
        }
    }

    /// Whether it works, or waits for anything but a person.
    pub(super) fn is_busy(&self) -> bool {
        !self.is(Expected::Nothing) && self.stage() != Stage::Idle
    }

    fn is(&self, expected: Expected) -> bool {
        self.patient.load(Ordering::Relaxed) == expected as u8
    }

    /// For how many milliseconds it has had nothing in flight; none if it has something.
    pub(super) fn idle_for(&self, now: u64) -> Option<u64> {
        let idle = self.is(Expected::Nothing) && self.stage() != Stage::Waking;
        idle.then(|| now.saturating_sub(self.mark.load(Ordering::Relaxed)))
    }

    /// For how many milliseconds progress has been due.
    pub(super) fn silent_for(&self, now: u64) -> u64 {
        let works = self.is(Expected::Progress) && !self.queued.load(Ordering::Relaxed);
        match works {
            true => now.saturating_sub(self.mark.load(Ordering::Relaxed)),
            false => 0,
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
