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
    /// Repetitions that are nobody's fault, or are paced anyway, and therefore count for nothing.
    excused: u64,
}

impl RetryBudget {
    /// `excused` calls may be repeated besides: those that a gateway before this one left behind.
    pub(super) fn new(share: RetryShare, excused: u64) -> Self {
        let calls = Slices::over(MINUTE);
        Self {
            share,
            calls,
            excused,
        }
    }

    /// A first try.
    pub(super) fn call(&mut self, now: Duration) {
        self.calls.add(now, FIRST);
    }

    /// A call ended so that its repetition counts for nothing.
    pub(super) fn excuse(&mut self) {
        self.excused += 1;
    }

    /// Whether a repetition may be made; counted if so.
    pub(super) fn retry(&mut self, now: Duration) -> bool {
        if let Some(left) = self.excused.checked_sub(1) {
            self.excused = left;
            return true;
        }
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
        for (name, calls, excused, repetitions) in [
            ("without calls, the reserve", 0, 0, 10),
            ("a few calls", 4, 0, 10),
            ("a hundred calls", 100, 0, 30),
            ("those that are excused come on top", 100, 7, 37),
        ] {
            let mut budget = RetryBudget::new(RetryShare::default(), excused);
            (0..calls).for_each(|_| budget.call(Duration::ZERO));
            let made = (0..1_000).filter(|_| budget.retry(Duration::ZERO)).count();
            assert_eq!(made, repetitions, "{name}");
            let later = (0..1_000).filter(|_| budget.retry(MINUTE)).count();
            assert_eq!(later, 10, "{name}: a minute later");
            budget.excuse();
            assert!(budget.retry(MINUTE) && !budget.retry(MINUTE), "{name}");
        }
    }
}
