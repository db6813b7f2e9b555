//! How the token counts of the provider calibrate the estimates of a session, in integers.

use serde::{Deserialize, Serialize};

const ONE: u64 = 10_000;
const BOUNDS: (u64, u64) = (ONE / 4, ONE * 4);
const WEIGHT: u64 = 4;
/// The frame of a message distorts the ratio of a smaller estimate.
const TELLING: u64 = 32;

/// Counted tokens per estimated token, in ten-thousandths; `None` before the first count.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub(super) struct Calibration(Option<u64>);

impl Calibration {
    pub(super) fn learn(&mut self, estimated: u64, counted: u64) {
        if counted == 0 || estimated < TELLING {
            return;
        }
        let found = counted.saturating_mul(ONE) / estimated;
        let found = found.clamp(BOUNDS.0, BOUNDS.1);
        let mixed = |known: u64| (known * (WEIGHT - 1) + found) / WEIGHT;
        self.0 = Some(self.0.map_or(found, mixed));
    }

    pub(super) fn applied_to(self, estimate: u64) -> u64 {
        self.0
            .map_or(estimate, |ratio| scaled(estimate, ratio, ONE))
    }

    pub(super) fn chars_of(self, tokens: u64) -> usize {
        let estimate = scaled(tokens, ONE, self.0.unwrap_or(ONE));
        usize::try_from(estimate.saturating_mul(4)).unwrap_or(usize::MAX)
    }
}

fn scaled(amount: u64, by: u64, of: u64) -> u64 {
    let scaled = u128::from(amount) * u128::from(by) / u128::from(of.max(1));
    u64::try_from(scaled).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn learnt(pairs: &[(u64, u64)]) -> Calibration {
        let mut calibration = Calibration::default();
        for (estimated, counted) in pairs {
            calibration.learn(*estimated, *counted);
        }
        calibration
    }

    #[test]
    fn token_estimate_is_calibrated_by_reported_usage() {
        for (name, pairs, estimate, tokens) in [
            ("nothing known", vec![], 1_000, 1_000),
            (
                "taken at its word first",
                vec![(1_000, 1_600)],
                1_000,
                1_600,
            ),
            (
                "then moved by a quarter",
                vec![(1_000, 1_600), (1_000, 2_000)],
                1_000,
                1_700,
            ),
            ("fewer than estimated", vec![(1_000, 800)], 1_000, 800),
            ("absurdly many", vec![(1_000, u64::MAX)], 1_000, 4_000),
            ("absurdly few", vec![(1_000_000, 1)], 1_000, 250),
            ("none reported", vec![(1_000, 0)], 1_000, 1_000),
            ("too little to tell", vec![(31, 310)], 1_000, 1_000),
            (
                "nothing is beyond it",
                vec![(1_000, 4_000)],
                u64::MAX,
                u64::MAX,
            ),
        ] {
            assert_eq!(learnt(&pairs).applied_to(estimate), tokens, "{name}");
        }
    }

    #[test]
    fn chars_of_inverts_the_token_estimate() {
        assert_eq!(Calibration::default().chars_of(100), 400);
        assert_eq!(learnt(&[(1_000, 1_600)]).chars_of(160), 400);
        assert_eq!(Calibration::default().chars_of(u64::MAX), usize::MAX);
    }
}
