//! Panics on demand.

use std::sync::{
    Arc,
    atomic::{AtomicU32, Ordering::Relaxed},
};

use crate::kernel::{DecisionTable, TurnDecision, TurnEnd, TurnPolicy};

/// A number of panics that are due. Clones share it.
#[derive(Debug, Clone, Default)]
pub struct Panics(Arc<AtomicU32>);

impl Panics {
    /// Makes the next `times` calls of [`Self::panic_if_due`] panic.
    pub fn times(times: u32) -> Self {
        Self(Arc::new(AtomicU32::new(times)))
    }

    /// Sets the number of panics that are due.
    pub fn set(&self, times: u32) {
        self.0.store(times, Relaxed);
    }

    /// Panics that are still due.
    pub fn left(&self) -> u32 {
        self.0.load(Relaxed)
    }

    /// Panics once for each panic that is due.
    ///
    /// # Panics
    ///
    /// If a panic is due.
    pub fn panic_if_due(&self) {
        let less = |left: u32| left.checked_sub(1);
        let due = self.0.fetch_update(Relaxed, Relaxed, less);
        assert!(due.is_err(), "a panic that the test asked for");
    }
}

/// The decision table with [`Panics`], which crash the session.
#[derive(Debug, Clone, Default)]
pub struct PanickingPolicy(pub Panics);

impl TurnPolicy for PanickingPolicy {
    fn decide(&self, turn: &TurnEnd<'_>) -> TurnDecision {
        self.0.panic_if_due();
        DecisionTable.decide(turn)
    }
}
