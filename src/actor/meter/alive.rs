//! Sessions that live, by what they are at.

use std::sync::atomic::{AtomicUsize, Ordering};

use super::Meter;

/// What a live session is at.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::actor) enum Activity {
    /// It comes to life.
    Waking,
    /// Nothing runs.
    Idle,
    /// Its query is classified, and its prompt composed.
    Preparing,
    /// A model is asked.
    Calling,
    /// Tools run.
    Tools,
    /// It asks again later.
    BackingOff,
    /// A sub-agent works for it.
    Delegating,
    /// A person has to answer.
    Approval,
    /// Somebody has paused it.
    Paused,
}

impl Activity {
    pub(super) const NAMES: [&str; 9] = [
        "waking",
        "idle",
        "preparing",
        "calling",
        "tools",
        "backing_off",
        "delegating",
        "approval",
        "paused",
    ];

    /// Those in which a query runs.
    pub(super) const BUSY: std::ops::Range<usize> = Self::Preparing as usize..Self::NAMES.len();
}

/// A session that is counted as long as this is kept.
#[derive(Debug)]
pub(in crate::actor) struct Alive {
    meter: Meter,
    at: Activity,
}

impl Alive {
    pub(super) fn begin(meter: Meter) -> Self {
        let at = Activity::Waking;
        let alive = Self { meter, at };
        alive.place().fetch_add(1, Ordering::Relaxed);
        alive
    }

    fn place(&self) -> &AtomicUsize {
        &self.meter.0.live[self.at as usize]
    }

    /// What it is at from now on.
    pub(in crate::actor) fn now_at(&mut self, activity: Activity) {
        if self.at != activity {
            self.place().fetch_sub(1, Ordering::Relaxed);
            self.at = activity;
            self.place().fetch_add(1, Ordering::Relaxed);
        }
    }
}

impl Drop for Alive {
    fn drop(&mut self) {
        self.place().fetch_sub(1, Ordering::Relaxed);
    }
}
