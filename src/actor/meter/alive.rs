//! Sessions that live, by what they are at, and what they wait for.

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
    waiting: usize,
}

impl Alive {
    pub(super) fn begin(meter: Meter) -> Self {
        let alive = Self {
            meter,
            at: Activity::Waking,
            waiting: 0,
        };
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

    /// So many messages wait in it from now on.
    pub(in crate::actor) fn holds(&mut self, waiting: usize) {
        let all = &self.meter.0.waiting;
        all.fetch_add(waiting, Ordering::Relaxed);
        all.fetch_sub(self.waiting, Ordering::Relaxed);
        self.waiting = waiting;
    }
}

impl Drop for Alive {
    fn drop(&mut self) {
        self.holds(0);
        self.place().fetch_sub(1, Ordering::Relaxed);
    }
}

/// An append that is on its way, as long as this is kept.
#[derive(Debug)]
#[must_use = "it counts as long as it is held"]
pub(in crate::actor) struct Appending(Meter);

impl Appending {
    pub(super) fn begin(meter: Meter) -> Self {
        meter.0.appends.fetch_add(1, Ordering::Relaxed);
        Self(meter)
    }
}

impl Drop for Appending {
    fn drop(&mut self) {
        self.0.0.appends.fetch_sub(1, Ordering::Relaxed);
    }
}
