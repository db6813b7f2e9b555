//! Time and entropy, read here and passed to the kernel as values.

use std::{
    hash::{BuildHasher, Hasher, RandomState},
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    time::{Duration, SystemTime},
};

use tokio::time::Instant;

use crate::{
    kernel::DecisionContext,
    model::{SPLITMIX_STEP, Timestamp, splitmix},
};

/// Source of time and entropy for a system. Cheap to clone.
#[derive(Debug, Clone)]
pub struct Clock(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    wall: Wall,
    /// Origin of monotonic time.
    start: Instant,
    /// State of a splitmix generator: jitter needs spread, not secrecy.
    entropy: AtomicU64,
}

#[derive(Debug)]
enum Wall {
    System,
    /// Advances from this time with the runtime's clock, which a test can pause.
    From(Timestamp),
}

impl Clock {
    /// Creates a clock that reads the machine's time.
    pub fn system() -> Self {
        Self::new(Wall::System, RandomState::new().build_hasher().finish())
    }

    /// Creates a clock that starts at `time`, advances with the runtime's clock and yields the same
    /// entropy on every run: for tests and replays.
    pub fn from(time: Timestamp) -> Self {
        Self::new(Wall::From(time), 0)
    }

    fn new(wall: Wall, entropy: u64) -> Self {
        let entropy = AtomicU64::new(entropy);
        Self(Arc::new(Inner {
            wall,
            start: Instant::now(),
            entropy,
        }))
    }

    /// Current wall-clock time.
    pub fn now(&self) -> Timestamp {
        match self.0.wall {
            Wall::System => {
                #[expect(
                    clippy::disallowed_methods,
                    reason = "the one place that reads the clock"
                )]
                let now = SystemTime::now();
                let since = now.duration_since(SystemTime::UNIX_EPOCH);
                Timestamp::from_millis(0).plus(since.unwrap_or_default())
            }
            Wall::From(time) => time.plus(self.0.start.elapsed()),
        }
    }

    /// Milliseconds since the clock was created; never runs backwards.
    pub fn monotonic_millis(&self) -> u64 {
        millis(self.0.start.elapsed())
    }

    /// Microseconds since the clock was created; never runs backwards.
    pub fn monotonic_micros(&self) -> u64 {
        u64::try_from(self.0.start.elapsed().as_micros()).unwrap_or(u64::MAX)
    }

    /// Adds jitter: returns half to one and a half times a pause, so that actors that failed
    /// together do not retry together.
    pub(super) fn spread(&self, pause: Duration) -> Duration {
        let share = u32::try_from(self.moment().entropy % 1_001).unwrap_or_default();
        pause / 2 + pause * share / 1_000
    }

    /// Current wall-clock time, with fresh entropy.
    pub fn moment(&self) -> DecisionContext {
        let state = self.0.entropy.fetch_add(SPLITMIX_STEP, Ordering::Relaxed);
        DecisionContext {
            entropy: splitmix(state),
            ..DecisionContext::at(self.now())
        }
    }
}

pub(super) fn millis(time: Duration) -> u64 {
    u64::try_from(time.as_millis()).unwrap_or(u64::MAX)
}
