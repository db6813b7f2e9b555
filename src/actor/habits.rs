//! Which models give no signals, as far as this process has seen (spec 8, row 18).

use std::{
    collections::HashMap,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use crate::kernel::Policy;

/// Queries in a row in which a model was asked for a missing signal and gave none; then it is not asked any
/// more.
const ENOUGH: u32 = 3;

/// Shared by all sessions. Holds an entry per configured model at most.
#[derive(Debug, Default)]
pub(super) struct Habits(Mutex<HashMap<Arc<str>, u32>>);

impl Habits {
    /// Whether the first model of a policy gives no signals.
    pub(super) fn is_unsignalled(&self, policy: &Policy) -> bool {
        let unsignalled = self.lock();
        let model = policy.models.first();
        model.is_some_and(|model| unsignalled.get(&model.name).is_some_and(|n| *n >= ENOUGH))
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
