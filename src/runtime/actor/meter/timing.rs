//! A histogram of durations with fixed bounds.

use std::{
    fmt,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering::Relaxed},
    },
    time::Duration,
};

use prometheus_client::{
    encoding::{EncodeMetric, MetricEncoder, NoLabelSet},
    metrics::MetricType,
};

/// In seconds.
const BOUNDS: [f64; 20] = [
    0.00005, 0.0001, 0.00025, 0.0005, 0.001, 0.002, 0.004, 0.008, 0.015, 0.025, 0.04, 0.1, 0.25,
    0.5, 1.0, 2.5, 10.0, 30.0, 60.0, 600.0,
];

/// A histogram of durations. Unlike that of `prometheus_client`, it takes no lock per value. Clones
/// share the counts.
#[derive(Debug, Clone, Default)]
pub struct Timing(Arc<Buckets>);

#[derive(Debug, Default)]
struct Buckets {
    /// The last count is for durations above all bounds.
    counts: [AtomicU64; BOUNDS.len() + 1],
    micros: AtomicU64,
}

impl Timing {
    pub(super) fn add(&self, took: Duration) {
        let micros = u64::try_from(took.as_micros()).unwrap_or(u64::MAX);
        let seconds = Duration::from_micros(micros).as_secs_f64();
        let at = BOUNDS.partition_point(|bound| *bound < seconds);
        self.0.counts[at].fetch_add(1, Relaxed);
        self.0.micros.fetch_add(micros, Relaxed);
    }

    fn counts(&self) -> impl Iterator<Item = u64> {
        self.0.counts.iter().map(|count| count.load(Relaxed))
    }

    /// Number of durations.
    pub fn count(&self) -> u64 {
        self.counts().sum()
    }

    /// Sum of all durations.
    pub fn sum(&self) -> Duration {
        Duration::from_micros(self.0.micros.load(Relaxed))
    }

    /// Upper bound of the quantile `share` (0 to 1); `None` without durations, or if it is above
    /// all bounds.
    pub fn within(&self, share: f64) -> Option<Duration> {
        #[expect(
            clippy::cast_precision_loss,
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            reason = "a share of a count, to the next whole one"
        )]
        let wanted = ((self.count() as f64 * share).ceil() as u64).max(1);
        let mut seen = 0;
        let found = self.counts().position(|count| {
            seen += count;
            seen >= wanted
        });
        found.and_then(|at| BOUNDS.get(at).copied().map(Duration::from_secs_f64))
    }
}

impl EncodeMetric for Timing {
    fn encode(&self, mut encoder: MetricEncoder<'_>) -> fmt::Result {
        let bounds = BOUNDS.into_iter();
        let buckets: Vec<_> = bounds.chain([f64::INFINITY]).zip(self.counts()).collect();
        let count = buckets.iter().map(|(_, count)| count).sum();
        encoder.encode_histogram::<NoLabelSet>(self.sum().as_secs_f64(), count, &buckets, None)
    }

    fn metric_type(&self) -> MetricType {
        MetricType::Histogram
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn duration_falls_into_the_first_bucket_that_holds_it() {
        let timing = Timing::default();
        let micros = Duration::from_micros;
        for took in [0, 50, 51, 600_000_000, 600_000_001] {
            timing.add(micros(took));
        }
        assert_eq!((timing.count(), timing.sum()), (5, micros(1_200_000_102)));
        let filled = timing.counts().enumerate().filter(|(_, count)| *count > 0);
        let filled: Vec<_> = filled.collect();
        assert_eq!(
            filled,
            [(0, 2), (1, 1), (BOUNDS.len() - 1, 1), (BOUNDS.len(), 1)]
        );
        assert_eq!(timing.within(0.5), Some(micros(100)));
        assert_eq!(timing.within(0.0), Some(micros(50)));
        assert_eq!(timing.within(1.0), None, "one took longer than all bounds");
        assert_eq!(Timing::default().within(0.5), None);
    }
}
