//! How many calls may be repetitions of failed ones: a provider in trouble is not to be asked thrice as
//! much as one that is well. Pure.

use std::time::Duration;

use super::{settings::RetryShare, slices::Slices};

const MINUTE: Duration = Duration::from_secs(60);
const FIRST: usize = 0;
const AGAIN: usize = 1;

/// The budget of one provider.
#[derive(Debug)]
pub(super) struct RetryBudget {
    share: RetryShare,
    calls: Slices<2>,
}

impl RetryBudget {
    pub(super) fn new(share: RetryShare) -> Self {
        let calls = Slices::over(MINUTE);
        Self { share, calls }
    }

    /// A first try.
    pub(super) fn call(&mut self, now: Duration) {
        self.calls.add(now, FIRST);
    }

    /// Whether a repetition may be made; counted if so.
    pub(super) fn retry(&mut self, now: Duration) -> bool {
        let [first, again] = self.calls.totals(now);
        let most = first * u64::from(self.share.percent) / 100 + u64::from(self.share.reserve);
        let allowed = again < most;
        if allowed {
            self.calls.add(now, AGAIN);
        }
        allowed
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_fifth_of_the_calls_of_a_minute_and_a_few_may_be_repetitions() {
        for (name, calls, repetitions) in [
            ("without calls, the reserve", 0, 10),
            ("a few calls", 4, 10),
            ("a hundred calls", 100, 30),
        ] {
            let mut budget = RetryBudget::new(RetryShare::default());
            (0..calls).for_each(|_| budget.call(Duration::ZERO));
            let made = (0..1_000).filter(|_| budget.retry(Duration::ZERO)).count();
            assert_eq!(made, repetitions, "{name}");
            let later = (0..1_000).filter(|_| budget.retry(MINUTE)).count();
            assert_eq!(later, 10, "{name}: a minute later");
            assert!(!budget.retry(MINUTE), "{name}");
        }
    }
}
