//! How long things take: a histogram with fixed bounds.

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

/// Upper bounds of the buckets in microseconds, from a step of ours to the slowest model.
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

/// Counts by duration. `prometheus_client`'s own takes a lock for each value.
#[derive(Debug, Clone, Default)]
pub(super) struct Histogram(Arc<Buckets>);

#[derive(Debug, Default)]
struct Buckets {
    buckets: [AtomicU64; BOUNDS.len()],
    count: AtomicU64,
    micros: AtomicU64,
}

impl Histogram {
    pub(super) fn add(&self, took: Duration) {
        let micros = u64::try_from(took.as_micros()).unwrap_or(u64::MAX);
        let at = BOUNDS.partition_point(|bound| *bound < micros);
        if let Some(bucket) = self.0.buckets.get(at) {
            bucket.fetch_add(1, Relaxed);
        }
        self.0.micros.fetch_add(micros, Relaxed);
        self.0.count.fetch_add(1, Relaxed);
    }

    pub(super) fn read(&self) -> Timing {
        let counts = self.0.buckets.iter().map(|bucket| bucket.load(Relaxed));
        let bounds = BOUNDS.into_iter().map(Duration::from_micros);
        Timing {
            count: self.0.count.load(Relaxed),
            sum: Duration::from_micros(self.0.micros.load(Relaxed)),
            buckets: bounds.zip(counts).collect(),
        }
    }
}

impl EncodeMetric for Histogram {
    fn encode(&self, mut encoder: MetricEncoder<'_>) -> fmt::Result {
        let Timing {
            count,
            sum,
            buckets,
        } = self.read();
        let bounds = buckets.iter();
        let mut buckets: Vec<_> = bounds
            .map(|(at, count)| (at.as_secs_f64(), *count))
            .collect();
        // The counts are not of the same moment.
        let within: u64 = buckets.iter().map(|(_, count)| count).sum();
        buckets.push((f64::INFINITY, count.saturating_sub(within)));
        let count = count.max(within);
        encoder.encode_histogram::<NoLabelSet>(sum.as_secs_f64(), count, &buckets, None)
    }

    fn metric_type(&self) -> MetricType {
        MetricType::Histogram
    }
}

/// How long things took. What took longer than the last bound is in `count` and `sum` alone.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Timing {
    /// How many were measured.
    pub count: u64,
    /// Sum of all.
    pub sum: Duration,
    /// Upper bounds in ascending order, each with the number above the one before it.
    pub buckets: Vec<(Duration, u64)>,
}

impl Timing {
    /// The upper bound of the quantile `share` (0 to 1), if there is one.
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
