//! A journal that fails by plan.
//!
//! A failed call answers [`Error::Unavailable`] whether or not it was done, as after a lost
//! connection. The plan, its seeds and the number of earlier calls determine which calls fail,
//! never time or chance.

use std::sync::atomic::{AtomicU64, Ordering};

pub use super::intercept::Operation;
use super::intercept::{InterceptedCall, InterceptedJournal};
use crate::{
    journal::{Error, Journal, JournalFuture},
    model::splitmix,
};

/// How a call fails.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Failure {
    /// It does not reach the journal.
    NotExecuted,
    /// The journal does it, and the answer is lost.
    ExecutedWithoutReply,
}

type Plan = Box<dyn Fn(Operation, u64) -> Option<Failure> + Send + Sync>;

/// A plan in which one call fails.
pub fn fail(
    operation: Operation,
    number: u64,
    failure: Failure,
) -> impl Fn(Operation, u64) -> Option<Failure> {
    move |called, nth| ((called, nth) == (operation, number)).then_some(failure)
}

/// A plan in which this share of all calls fails.
pub fn fail_percent(
    seed: u64,
    percent: u64,
    failure: Failure,
) -> impl Fn(Operation, u64) -> Option<Failure> {
    move |called, nth| {
        let call = (nth << 8) | called as u64;
        (splitmix(seed ^ splitmix(call)) % 100 < percent).then_some(failure)
    }
}

/// A journal whose calls fail by a plan.
pub struct FaultyJournal<J> {
    inner: J,
    plan: Plan,
    counts: [AtomicU64; Operation::Search as usize + 1],
}

impl<J: Journal> FaultyJournal<J> {
    /// Wraps a journal. The plan decides by the kind of a call, and by its number among its kind,
    /// from 1, whether it fails.
    pub fn new(
        inner: J,
        plan: impl Fn(Operation, u64) -> Option<Failure> + Send + Sync + 'static,
    ) -> Self {
        Self {
            inner,
            plan: Box::new(plan),
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
            match (self.plan)(operation, number) {
                None => done().await,
                Some(Failure::NotExecuted) => Err(lost()),
                Some(Failure::ExecutedWithoutReply) => done().await.and_then(|_| Err(lost())),
            }
        })
    }
}

#[cfg(test)]
mod tests;
