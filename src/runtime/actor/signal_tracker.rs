//! Models that emit no signals, as observed by this process.

use std::{collections::HashMap, sync::Arc};

use parking_lot::Mutex;

use crate::kernel::Policy;

/// A model is no longer reminded after it has ignored this many reminders in a row.
const MAX_MISSES: u32 = 3;

/// Misses by model, shared by all sessions; bounded by the number of configured models.
#[derive(Debug, Default)]
pub(super) struct SignalTracker(Mutex<HashMap<Arc<str>, u32>>);

impl SignalTracker {
    pub(super) fn ignores_reminders(&self, policy: &Policy) -> bool {
        let misses = self.0.lock();
        let first = policy.models.first();
        let misses = first.and_then(|model| misses.get(&model.name));
        misses.is_some_and(|misses| *misses >= MAX_MISSES)
    }

    pub(super) fn record_signal(&self, model: &str) {
        self.0.lock().remove(model);
    }

    /// Counts a reminder that the model answered without a signal.
    pub(super) fn record_miss(&self, model: &Arc<str>) {
        *self.0.lock().entry(Arc::clone(model)).or_default() += 1;
    }
}
