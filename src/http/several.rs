//! A counter of what is in flight.

use std::sync::{
    Arc,
    atomic::{AtomicUsize, Ordering},
};

/// How many there are. Clones count together.
#[derive(Debug, Clone, Default)]
pub(super) struct Several(Arc<AtomicUsize>);

/// One of them, until it is dropped.
#[derive(Debug)]
#[must_use = "it counts as long as it is held"]
pub struct OneMore {
    of: Several,
    before: usize,
}

impl Several {
    pub(super) fn one_more(&self) -> OneMore {
        let before = self.0.fetch_add(1, Ordering::Relaxed);
        let of = self.clone();
        OneMore { of, before }
    }

    pub(super) fn now(&self) -> usize {
        self.0.load(Ordering::Relaxed)
    }
}

impl OneMore {
    /// How many there were before.
    pub(super) const fn before(&self) -> usize {
        self.before
    }
}

impl Drop for OneMore {
    fn drop(&mut self) {
        self.of.0.fetch_sub(1, Ordering::Relaxed);
    }
}
