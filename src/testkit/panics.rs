//! Panics on demand: the way to crash a session, a model or a tool from within.

use std::sync::{
    Arc,
    atomic::{AtomicU32, Ordering},
};

use crate::kernel::{DecisionTable, TurnEnd, TurnPolicy, Verdict};

/// How many panics are still due. Clones count down together.
#[derive(Debug, Clone, Default)]
pub struct Panics(Arc<AtomicU32>);

impl Panics {
    /// The next `times` occasions panic.
    #[must_use]
    pub fn times(times: u32) -> Self {
        Self(Arc::new(AtomicU32::new(times)))
    }

    /// Sets how many are due from now on.
    pub fn set(&self, times: u32) {
        self.0.store(times, Ordering::Relaxed);
    }

    /// How many are still due.
    #[must_use]
    pub fn left(&self) -> u32 {
        self.0.load(Ordering::Relaxed)
    }

    /// An occasion.
    ///
    /// # Panics
    /// If one is due: that is what it is for.
    pub fn maybe(&self) {
        let due = self
            .0
            .fetch_update(Ordering::Relaxed, Ordering::Relaxed, |left| {
                left.checked_sub(1)
            });
        assert!(due.is_err(), "a panic that the test asked for");
    }
}

/// The table of spec 8 behind [`Panics`]: it is asked while the session handles a message, so that a
/// panic in it crashes the session.
#[derive(Debug, Clone, Default)]
pub struct Shaky(pub Panics);

impl TurnPolicy for Shaky {
    fn verdict(&self, turn: &TurnEnd<'_>) -> Verdict {
        self.0.maybe();
        DecisionTable.verdict(turn)
    }
}
