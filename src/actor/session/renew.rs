//! Profiles change while sessions live: by a reload.

use super::state::SessionState;

impl SessionState {
    /// Goes by the profiles that hold now, unless a query runs: that one ends as it began.
    pub(super) fn renew(&mut self) {
        if self.session.query().is_some() {
            return;
        }
        let now = self.services.profiles.now();
        if std::sync::Arc::ptr_eq(&now, &self.profiles) {
            return;
        }
        self.profile = now.of(&self.opening);
        self.session.adopt(self.profile.policy.clone());
        self.profiles = now;
    }
}
