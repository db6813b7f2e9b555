//! Counts over the last while, in a fixed space: time in ten slices, the oldest dropped whole.

use std::time::Duration;

const SLICES: u64 = 10;

/// `N` counts over a window that goes with the time.
#[derive(Debug, Clone)]
pub(super) struct Slices<const N: usize> {
    /// Nanoseconds.
    slice: u64,
    counts: [[u64; N]; SLICES as usize],
    /// The number of the newest slice.
    newest: u64,
}

impl<const N: usize> Slices<N> {
    /// Nothing was counted yet.
    pub(super) fn over(window: Duration) -> Self {
        let slice = u64::try_from(window.as_nanos()).unwrap_or(u64::MAX) / SLICES;
        Self {
            slice: slice.max(1),
            counts: [[0; N]; SLICES as usize],
            newest: 0,
        }
    }

    /// One more of this kind.
    pub(super) fn add(&mut self, now: Duration, kind: usize) {
        self.turn(now);
        self.counts[(self.newest % SLICES) as usize][kind] += 1;
    }

    /// All that were counted lately.
    pub(super) fn totals(&mut self, now: Duration) -> [u64; N] {
        self.turn(now);
        let mut totals = [0; N];
        for slice in &self.counts {
            for (total, count) in totals.iter_mut().zip(slice) {
                *total += count;
            }
        }
        totals
    }

    /// Forgets everything.
    pub(super) fn clear(&mut self) {
        self.counts = [[0; N]; SLICES as usize];
    }

    fn turn(&mut self, now: Duration) {
        let nanos = u64::try_from(now.as_nanos()).unwrap_or(u64::MAX);
        let current = nanos / self.slice;
        for gone in (self.newest + 1..=current).take(SLICES as usize) {
            self.counts[(gone % SLICES) as usize] = [0; N];
        }
        self.newest = self.newest.max(current);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_older_than_the_window_is_forgotten() {
        let at = Duration::from_secs;
        let mut slices = Slices::<2>::over(at(10));
        for second in 0..5 {
            slices.add(at(second), 0);
        }
        slices.add(at(4), 1);
        for (name, now, totals) in [
            ("all are there", 4, [5, 1]),
            ("still", 9, [5, 1]),
            ("the first has gone", 10, [4, 1]),
            ("one is left of each", 13, [1, 1]),
            ("none", 14, [0, 0]),
        ] {
            assert_eq!(slices.totals(at(now)), totals, "{name}");
        }
        slices.add(at(100_000), 1);
        assert_eq!(slices.totals(at(100_000)), [0, 1], "after a long silence");
        slices.clear();
        assert_eq!(slices.totals(at(100_000)), [0, 0]);
    }
}
