//! Progress of a session: when it was last made, and whether it is due.

use std::sync::{
    Arc,
    atomic::{AtomicBool, AtomicU8, AtomicU64, AtomicUsize, Ordering},
};

use parking_lot::Mutex;

use super::{call_progress::CallProgress, meter::Activity};
use crate::model::Seq;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Stage {
    /// The session is being activated.
    Waking,
    Idle,
    Busy,
}

/// Written by a session and its tasks, read by its shard. Shared memory, because the news of an
/// actor's end overtakes its messages.
#[derive(Debug, Default)]
pub(super) struct ProgressTracker {
    /// Time of the last progress, in monotonic milliseconds.
    mark: AtomicU64,
    activity: AtomicU8,
    /// Whether nothing is in flight (the session is idle or waits for a person), so that it may be
    /// passivated.
    rests: AtomicBool,
    /// Whether the gateway has queued its call; the session does not know this.
    queued: AtomicBool,
    /// Whether a turn or a query has ended since the session was started.
    progressed: AtomicBool,
    /// Last number of the log when it was claimed, plus one; 0 before.
    claimed: AtomicU64,
    /// Messages that the shard has sent and the session has not taken.
    handed: AtomicUsize,
    /// About how many bytes of memory it takes.
    bytes: AtomicUsize,
    /// Last model call, possibly of the previous actor.
    call_progress: Mutex<Arc<CallProgress>>,
}

impl ProgressTracker {
    pub(super) fn new(call_progress: Arc<CallProgress>) -> Self {
        Self {
            call_progress: Mutex::new(call_progress),
            ..Self::default()
        }
    }

    pub(super) fn call_progress(&self) -> Arc<CallProgress> {
        Arc::clone(&self.call_progress.lock())
    }

    pub(super) fn begin_call(&self, tokens: u64) -> Arc<CallProgress> {
        let call_progress = Arc::new(CallProgress::of(tokens));
        *self.call_progress.lock() = Arc::clone(&call_progress);
        call_progress
    }

    pub(super) fn beat(&self, now: u64) {
        self.mark.store(now, Ordering::Relaxed);
    }

    /// Repeating an activity is no progress, except at rest, where a message counts.
    pub(super) fn at(&self, activity: Activity, rests: bool, now: u64) {
        let before = self.activity.swap(activity as u8, Ordering::Relaxed);
        let rested = self.rests.swap(rests, Ordering::Relaxed);
        if before != activity as u8 || rested != rests || rests {
            self.beat(now);
        }
    }

    pub(super) fn enqueued(&self, now: u64) {
        self.queued.store(true, Ordering::Relaxed);
        self.beat(now);
    }

    pub(super) fn dequeued(&self, now: u64) {
        self.queued.store(false, Ordering::Relaxed);
        self.beat(now);
    }

    pub(super) fn record_progress(&self) {
        self.progressed.store(true, Ordering::Relaxed);
    }

    pub(super) fn has_progressed(&self) -> bool {
        self.progressed.load(Ordering::Relaxed)
    }

    /// Marks the session as busy: it waits for its restart, or is about to record a query.
    pub(super) fn set_busy(&self, now: u64) {
        self.at(Activity::Preparing, false, now);
    }

    pub(super) fn claimed(&self, last: Seq) {
        self.claimed.store(last.0 + 1, Ordering::Relaxed);
    }

    pub(super) fn claimed_seq(&self) -> Option<Seq> {
        self.claimed.load(Ordering::Relaxed).checked_sub(1).map(Seq)
    }

    /// Counts one more message, if fewer than `most` are pending. Called by the shard alone.
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

    pub(super) fn weighs(&self, bytes: usize) {
        self.bytes.store(bytes, Ordering::Relaxed);
    }

    pub(super) fn bytes(&self) -> usize {
        self.bytes.load(Ordering::Relaxed)
    }

    pub(super) fn stage(&self) -> Stage {
        match self.activity.load(Ordering::Relaxed) {
            waking if waking == Activity::Waking as u8 => Stage::Waking,
            idle if idle == Activity::Idle as u8 => Stage::Idle,
            _ => Stage::Busy,
        }
    }

    fn rests(&self) -> bool {
        self.rests.load(Ordering::Relaxed)
    }

    /// Whether the session works, or waits for anything but a person.
    pub(super) fn is_busy(&self) -> bool {
        !self.rests() && self.stage() != Stage::Idle
    }

    /// Milliseconds since anything was in flight, or `None` while something is.
    pub(super) fn idle_for(&self, now: u64) -> Option<u64> {
        let idle = self.rests() && self.stage() != Stage::Waking;
        idle.then(|| now.saturating_sub(self.mark.load(Ordering::Relaxed)))
    }

    /// Milliseconds for which progress has been due; 0 at rest and during a pause, a back-off, a
    /// delegation, or a wait for a person or in the queue.
    pub(super) fn silent_for(&self, now: u64) -> u64 {
        let activity = self.activity.load(Ordering::Relaxed);
        let waits = [
            Activity::Approval,
            Activity::BackingOff,
            Activity::Delegating,
            Activity::Paused,
        ];
        let waits = waits.iter().any(|wait| *wait as u8 == activity);
        match waits || self.rests() || self.queued.load(Ordering::Relaxed) {
            true => 0,
            false => now.saturating_sub(self.mark.load(Ordering::Relaxed)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn handed_messages_are_bounded() {
        let progress_tracker = ProgressTracker::default();
        let handed = [
            progress_tracker.hand(2),
            progress_tracker.hand(2),
            progress_tracker.hand(2),
        ];
        assert_eq!(handed, [true, true, false]);
        progress_tracker.take();
        assert_eq!(
            [progress_tracker.hand(2), progress_tracker.hand(2)],
            [true, false]
        );
    }

    #[test]
    fn repeating_an_activity_is_no_progress() {
        let progress_tracker = ProgressTracker::default();
        progress_tracker.at(Activity::BackingOff, false, 50);
        progress_tracker.at(Activity::Calling, false, 100);
        progress_tracker.at(Activity::Calling, false, 600);
        assert_eq!(progress_tracker.silent_for(700), 600);
        progress_tracker.at(Activity::Idle, true, 700);
        progress_tracker.at(Activity::Idle, true, 800);
        assert_eq!(
            progress_tracker.idle_for(900),
            Some(100),
            "somebody talked to it"
        );
    }

    #[test]
    fn only_a_working_session_can_stall() {
        let progress_tracker = ProgressTracker::default();
        progress_tracker.beat(100);
        assert_eq!(progress_tracker.silent_for(700), 600, "it comes to life");
        progress_tracker.beat(650);
        assert_eq!(progress_tracker.silent_for(700), 50);
        for patient in [Activity::BackingOff, Activity::Delegating, Activity::Paused] {
            progress_tracker.at(patient, false, 700);
            assert_eq!(progress_tracker.silent_for(9_999_999), 0, "{patient:?}");
            assert_eq!(progress_tracker.idle_for(9_999_999), None, "{patient:?}");
            assert!(progress_tracker.is_busy(), "{patient:?}");
        }
        progress_tracker.at(Activity::Approval, true, 700);
        assert!(!progress_tracker.is_busy(), "a person is waited for");
        assert_eq!(progress_tracker.silent_for(9_999_999), 0);
        assert_eq!(progress_tracker.idle_for(900), Some(200));
        progress_tracker.at(Activity::Calling, false, 700);
        assert_eq!(progress_tracker.idle_for(900), None);
        progress_tracker.enqueued(700);
        progress_tracker.at(Activity::Calling, false, 800);
        assert_eq!(
            progress_tracker.silent_for(9_999_999),
            0,
            "whatever the session says meanwhile"
        );
        progress_tracker.dequeued(900);
        assert_eq!(progress_tracker.silent_for(1_000), 100);
    }
}
