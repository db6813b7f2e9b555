//! A count of what goes on at the moment.

use std::sync::{
    Arc,
    atomic::{AtomicUsize, Ordering},
};

/// How many there are. Clones count together.
#[derive(Debug, Clone, Default)]
pub(super) struct Several(Arc<AtomicUsize>);

/// One of them, as long as it is held.
#[derive(Debug)]
pub(super) struct OneMore(Several);

impl Several {
    pub(super) fn one_more(&self) -> OneMore {
        self.0.fetch_add(1, Ordering::Relaxed);
        OneMore(self.clone())
    }

    pub(super) fn now(&self) -> usize {
        self.0.load(Ordering::Relaxed)
    }
}

impl Drop for OneMore {
    fn drop(&mut self) {
        self.0.0.fetch_sub(1, Ordering::Relaxed);
    }
}
