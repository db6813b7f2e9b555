//! Profiles and limits change while sessions live: by a reload.

use std::sync::Arc;

use super::state::SessionState;
use crate::access::Inbox;

impl SessionState {
    /// Goes by what holds now, unless a query runs: that one ends as it began.
    pub(super) fn renew(&mut self) {
        if self.session.query().is_some() {
            return;
        }
        let now = self.services.profiles.now();
        if Arc::ptr_eq(&now, &self.profiles) {
            return;
        }
        self.profile = now.of(&self.opening);
        self.session.adopt(Arc::clone(&self.profile.policy));
        self.profiles = now;
        if self.inbox.is_none() {
            let account = self.services.tenants.account(&self.key.tenant);
            self.inbox = account.map(Inbox::new);
        }
    }
}
