//! A journal that fails by plan.
//!
//! A failed call answers [`Error::Unavailable`] whether or not it was done, as after a lost
//! connection. The plan, its seeds and the number of earlier calls determine which calls fail,
//! never time or chance.

use std::sync::atomic::{AtomicU64, Ordering};

pub use super::intercept::Operation;
use super::intercept::{InterceptedCall, InterceptedJournal};
use crate::journal::{Error, Journal, JournalFuture};

/// How a call fails.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Failure {
    /// It does not reach the journal.
    NotExecuted,
    /// The journal does it, and the answer is lost.
    ExecutedWithoutReply,
}

/// Which calls fail, and how. The first matching rule decides.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Plan {
    lines: Vec<Line>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Line {
    /// `None` for all.
    operation: Option<Operation>,
    which: Which,
    failure: Failure,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Which {
    /// The call with this number.
    Number(u64),
    /// Every call whose number this divides.
    Every(u64),
    /// This share of all calls.
    Percent { seed: u64, percent: u64 },
}

impl Which {
    const fn includes(self, operation: Operation, number: u64) -> bool {
        match self {
            Self::Number(planned) => number == planned,
            Self::Every(step) => number.is_multiple_of(step),
            Self::Percent { seed, percent } => {
                let call = (number << 8) | operation as u64;
                mixed(seed ^ mixed(call)) % 100 < percent
            }
        }
    }
}

/// The finalizer of SplitMix64.
const fn mixed(number: u64) -> u64 {
    let number = number.wrapping_add(0x9e37_79b9_7f4a_7c15);
    let number = (number ^ (number >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let number = (number ^ (number >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    number ^ (number >> 31)
}

impl Plan {
    /// Creates a plan in which no call fails.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Fails the call with this number among its kind, from 1.
    #[must_use]
    pub fn fail(self, operation: Operation, number: u64, failure: Failure) -> Self {
        self.with(Line {
            operation: Some(operation),
            which: Which::Number(number),
            failure,
        })
    }

    /// Fails every `step`-th call of the kind.
    #[must_use]
    pub fn fail_every(self, operation: Operation, step: u64, failure: Failure) -> Self {
        self.with(Line {
            operation: Some(operation),
            which: Which::Every(step),
            failure,
        })
    }

    /// Fails about `percent` of a hundred calls of any kind, chosen by a seed.
    #[must_use]
    pub fn fail_percent(self, seed: u64, percent: u64, failure: Failure) -> Self {
        self.with(Line {
            operation: None,
            which: Which::Percent { seed, percent },
            failure,
        })
    }

    fn with(mut self, line: Line) -> Self {
        self.lines.push(line);
        self
    }

    fn failure(&self, operation: Operation, number: u64) -> Option<Failure> {
        let fits = |line: &&Line| {
            let of_kind = line.operation.is_none_or(|planned| planned == operation);
            of_kind && line.which.includes(operation, number)
        };
        self.lines.iter().find(fits).map(|line| line.failure)
    }
}

/// A journal whose calls fail by plan.
#[derive(Debug)]
pub struct FaultyJournal<J> {
    inner: J,
    plan: Plan,
    counts: [AtomicU64; Operation::Search as usize + 1],
}

impl<J: Journal> FaultyJournal<J> {
    /// Wraps a journal.
    pub fn new(inner: J, plan: Plan) -> Self {
        Self {
            inner,
            plan,
            counts: Default::default(),
        }
    }

    /// Calls of this kind so far, including failed ones.
    pub fn calls(&self, operation: Operation) -> u64 {
        self.counts[operation as usize].load(Ordering::Relaxed)
    }
}

impl<J: Journal> InterceptedJournal for FaultyJournal<J> {
    fn inner(&self) -> &dyn Journal {
        &self.inner
    }

    fn intercept<'a, T: Send + 'a>(
        &'a self,
        call: InterceptedCall,
        done: impl FnOnce() -> JournalFuture<'a, T> + Send + 'a,
    ) -> JournalFuture<'a, T> {
        Box::pin(async move {
            let operation = call.operation;
            let number = self.counts[operation as usize].fetch_add(1, Ordering::Relaxed) + 1;
            let lost = || {
                let what = format!("{operation:?} number {number} fails by plan");
                Error::Unavailable(what.to_lowercase())
            };
            match self.plan.failure(operation, number) {
                None => done().await,
                Some(Failure::NotExecuted) => Err(lost()),
                Some(Failure::ExecutedWithoutReply) => done().await.and_then(|_| Err(lost())),
            }
        })
    }
}

#[cfg(test)]
mod tests;
