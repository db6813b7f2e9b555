//! What an operator does to the system as a whole (spec 10). Recorded in the log of `system`.

use std::sync::atomic::Ordering;

use super::{AskError, Oracle, Router};
use crate::{kernel::Refusal, model::record::ControlFact};

impl Oracle {
    /// Takes no new messages from now on; what runs goes on. There is no way back but a new start: what
    /// was to be recovered at this one may have been left for the next.
    pub fn drain(&self) {
        if !self.router.draining.swap(true, Ordering::Relaxed) {
            self.log.note(ControlFact::Drained(self.by.clone().into()));
        }
    }

    /// Asks whoever holds the [`System`](crate::actor::System) to shut it down in order, and takes no
    /// new messages from now on.
    pub fn shut_down(&self) {
        if !self.told_to_end.is_cancelled() {
            self.log.note(ControlFact::ShutDown(self.by.clone().into()));
        }
        self.stop_taking();
        self.told_to_end.cancel();
    }

    /// Takes no new messages from now on, because its process is about to end: nobody's verb, so
    /// nothing is recorded.
    pub fn stop_taking(&self) {
        self.router.draining.store(true, Ordering::Relaxed);
    }

    /// Whether it takes no new messages any more.
    #[must_use]
    pub fn is_draining(&self) -> bool {
        self.router.is_draining()
    }

    /// Returns when the deletions that were begun are at their ends, and what is to be noted of people's
    /// doings is written.
    pub(in crate::actor) async fn settled(&self) {
        self.deletions.ended().await;
        self.usage.written().await;
        self.log.written().await;
    }

    /// Whether the system has ended, however it came to that: nothing more will come from it.
    #[must_use]
    pub fn has_ended(&self) -> bool {
        self.router.ended.is_cancelled()
    }

    /// Returns when somebody has asked for the system's end ([`Self::shut_down`]): for whoever holds it.
    pub async fn told_to_end(&self) {
        self.told_to_end.cancelled().await;
    }
}

impl Router {
    /// Whether something that begins a query is taken.
    ///
    /// # Errors
    /// When the system drains, or has ended.
    pub(super) fn takes_new(&self) -> Result<(), AskError> {
        match (self.is_draining(), self.ended.is_cancelled()) {
            (false, _) => Ok(()),
            (true, false) => Err(Refusal::Draining.into()),
            (true, true) => Err(AskError::Stopped),
        }
    }
}
