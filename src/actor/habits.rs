//! Models that give no signals, as far as this process has seen.

use std::{collections::HashMap, sync::Arc};

use parking_lot::Mutex;

use crate::kernel::Policy;

/// A model that gave no signal in so many queries in a row, although it was reminded, is not reminded again.
const MAX_MISSES: u32 = 3;

/// Shared by all sessions. Holds an entry per configured model at most.
#[derive(Debug, Default)]
pub(super) struct Habits(Mutex<HashMap<Arc<str>, u32>>);

impl Habits {
    pub(super) fn is_unsignalled(&self, policy: &Policy) -> bool {
        let misses = self.0.lock();
        let first = policy.models.first();
        let misses = first.and_then(|model| misses.get(&model.name));
        misses.is_some_and(|misses| *misses >= MAX_MISSES)
    }

    pub(super) fn signalled(&self, model: &str) {
        self.0.lock().remove(model);
    }

    /// A model was reminded of a missing signal and gave none.
    pub(super) fn gave_none(&self, model: &Arc<str>) {
        *self.0.lock().entry(Arc::clone(model)).or_default() += 1;
    }
}
