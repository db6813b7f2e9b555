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
    kernel::{InFlight, Moment},
    model::Timestamp,
};

/// Where the system gets time and entropy. Cheap to clone.
#[derive(Debug, Clone)]
pub struct Clock(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    wall: Wall,
    /// Where monotonic milliseconds are counted from.
    start: Instant,
    /// State of a splitmix generator: jitter needs spread, not secrecy.
    entropy: AtomicU64,
}

#[derive(Debug)]
enum Wall {
    System,
    /// Starts here and advances with the runtime's clock, which a test can pause.
    From(Timestamp),
}

impl Clock {
    /// The machine's clock.
    #[must_use]
    pub fn system() -> Self {
        Self::new(Wall::System, RandomState::new().build_hasher().finish())
    }

    /// A clock that starts at `time`, advances with the runtime's and gives the same entropy every
    /// time: for tests and replays.
    #[must_use]
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

    /// Now, by the calendar.
    #[must_use]
    pub fn now(&self) -> Timestamp {
        match self.0.wall {
            Wall::System => {
                #[expect(
                    clippy::disallowed_methods,
                    reason = "the one place that reads the clock"
                )]
                let now = SystemTime::now();
                let since = now
                    .duration_since(SystemTime::UNIX_EPOCH)
                    .unwrap_or_default();
                Timestamp::from_millis(0).plus(since)
            }
            Wall::From(time) => time.plus(self.0.start.elapsed()),
        }
    }

    /// Milliseconds since the clock was made; never runs backwards.
    #[must_use]
    pub fn monotonic_millis(&self) -> u64 {
        u64::try_from(self.0.start.elapsed().as_millis()).unwrap_or(u64::MAX)
    }

    /// The same in microseconds.
    #[must_use]
    pub fn monotonic_micros(&self) -> u64 {
        u64::try_from(self.0.start.elapsed().as_micros()).unwrap_or(u64::MAX)
    }

    /// From half of a pause to one and a half, so that what failed together does not come back together.
    pub(super) fn spread(&self, pause: Duration) -> Duration {
        let share = u32::try_from(self.moment().entropy % 1_001).unwrap_or_default();
        pause / 2 + pause * share / 1_000
    }

    /// Now, with entropy.
    #[must_use]
    pub fn moment(&self) -> Moment {
        const STEP: u64 = 0x9e37_79b9_7f4a_7c15;
        let state = self
            .0
            .entropy
            .fetch_add(STEP, Ordering::Relaxed)
            .wrapping_add(STEP);
        let mixed = (state ^ (state >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        Moment {
            at: self.now(),
            entropy: mixed ^ (mixed >> 31),
            call: InFlight::Unsent,
            unsignalled: false,
        }
    }
}
