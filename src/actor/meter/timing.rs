//! How long things take: a histogram with fixed bounds.

use std::{
    sync::atomic::{AtomicU64, Ordering},
    time::Duration,
};

/// The upper bounds of the buckets, in microseconds: about three to a tenfold, from what a step of ours takes
/// to what a model may.
const BOUNDS: [u64; 20] = [
    50,
    100,
    250,
    500,
    1_000,
    2_000,
    4_000,
    8_000,
    15_000,
    25_000,
    40_000,
    100_000,
    250_000,
    500_000,
    1_000_000,
    2_500_000,
    10_000_000,
    30_000_000,
    60_000_000,
    600_000_000,
];

/// Counts by duration.
#[derive(Debug, Default)]
pub(super) struct Histogram {
    buckets: [AtomicU64; BOUNDS.len()],
    count: AtomicU64,
    micros: AtomicU64,
}

impl Histogram {
    pub(super) fn add(&self, took: Duration) {
        let micros = u64::try_from(took.as_micros()).unwrap_or(u64::MAX);
        let at = BOUNDS.partition_point(|bound| *bound < micros);
        if let Some(bucket) = self.buckets.get(at) {
            bucket.fetch_add(1, Ordering::Relaxed);
        }
        self.micros.fetch_add(micros, Ordering::Relaxed);
        self.count.fetch_add(1, Ordering::Relaxed);
    }

    pub(super) fn read(&self) -> Timing {
        let counts = self.buckets.iter();
        let counts = counts.map(|bucket| bucket.load(Ordering::Relaxed));
        let bounds = BOUNDS.into_iter().map(Duration::from_micros);
        Timing {
            count: self.count.load(Ordering::Relaxed),
            sum: Duration::from_micros(self.micros.load(Ordering::Relaxed)),
            buckets: bounds.zip(counts).collect(),
        }
    }
}

/// How long things took: their number, the sum, and how many were within each bound and above the one before
/// it. What was above the last bound is in the number alone.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Timing {
    /// How many.
    pub count: u64,
    /// All together.
    pub sum: Duration,
    /// Upper bound and number, the least bound first.
    pub buckets: Vec<(Duration, u64)>,
}

impl Timing {
    /// The bound that this share of all (0 to 1) is within; none if there are none, or they are above all
    /// bounds.
    #[must_use]
    pub fn within(&self, share: f64) -> Option<Duration> {
        #[expect(
            clippy::cast_precision_loss,
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            reason = "a share of a count, to the next whole one"
        )]
        let wanted = ((self.count as f64 * share).ceil() as u64).max(1);
        let mut seen = 0;
        let mut buckets = self.buckets.iter();
        let found = buckets.find(|(_, count)| {
            seen += count;
            seen >= wanted
        });
        found.map(|(bound, _)| *bound)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_duration_counts_in_the_first_bucket_that_holds_it() {
        let histogram = Histogram::default();
        let micros = Duration::from_micros;
        for took in [0, 50, 51, 600_000_000, 600_000_001] {
            histogram.add(micros(took));
        }
        let timing = histogram.read();
        assert_eq!((timing.count, timing.sum), (5, micros(1_200_000_102)));
        let filled = timing.buckets.iter().filter(|(_, count)| *count > 0);
        let filled: Vec<_> = filled.copied().collect();
        let want = [(50, 2), (100, 1), (600_000_000, 1)];
        assert_eq!(filled, want.map(|(bound, count)| (micros(bound), count)));
        assert_eq!(timing.within(0.5), Some(micros(100)));
        assert_eq!(timing.within(0.0), Some(micros(50)));
        assert_eq!(timing.within(1.0), None, "one took longer than all bounds");
        assert_eq!(Timing::default().within(0.5), None);
    }
}
