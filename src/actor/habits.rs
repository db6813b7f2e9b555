//! Which models give no signals, as far as this process has seen (spec 8, row 18).

use std::{
    collections::HashMap,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use crate::kernel::Policy;

/// Queries in a row in which a model was asked for a missing signal and gave none; then it is not asked any
/// more.
const MAX_MISSES: u32 = 3;

/// Shared by all sessions. Holds an entry per configured model at most.
#[derive(Debug, Default)]
pub(super) struct Habits(Mutex<HashMap<Arc<str>, u32>>);

impl Habits {
    /// Whether the first model of a policy gives no signals.
    pub(super) fn is_unsignalled(&self, policy: &Policy) -> bool {
        let misses = self.lock();
        let first = policy.models.first();
        let misses = first.and_then(|model| misses.get(&model.name));
        misses.is_some_and(|misses| *misses >= MAX_MISSES)
    }

    /// A model gave a signal.
    pub(super) fn signalled(&self, model: &str) {
        self.lock().remove(model);
    }

    /// A model was asked for a missing signal and gave none.
    pub(super) fn gave_none(&self, model: &Arc<str>) {
        *self.lock().entry(Arc::clone(model)).or_default() += 1;
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<Arc<str>, u32>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
