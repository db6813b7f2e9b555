//! What counts for as long as it is held.

use tokio::sync::watch;

use super::Account;

/// A request that is worked on.
#[derive(Debug)]
#[must_use = "it counts until it is dropped"]
pub struct AtWork(Account);

impl AtWork {
    pub(super) const fn new(account: Account) -> Self {
        Self(account)
    }
}

impl Drop for AtWork {
    fn drop(&mut self) {
        self.0.books().answered();
    }
}

/// A message that is being handed in.
#[derive(Debug)]
#[must_use = "it counts until it is dropped"]
pub struct Pending(Account);

impl Pending {
    pub(super) const fn new(account: Account) -> Self {
        Self(account)
    }
}

impl Drop for Pending {
    fn drop(&mut self) {
        self.0.books().handed_in();
    }
}

/// A session that is being opened. Whoever drops it without a word has not heard what became of it: it counts
/// until that is sure.
#[derive(Debug)]
#[must_use = "it counts until it is said what became of it"]
pub struct NewSession(Option<Account>);

impl NewSession {
    pub(super) const fn new(account: Account) -> Self {
        Self(Some(account))
    }

    pub(super) const fn unlimited() -> Self {
        Self(None)
    }

    /// It is there.
    pub fn opened(mut self) {
        if let Some(account) = self.0.take() {
            account.books().opened();
        }
    }

    /// It was refused, or nobody asked for it.
    pub fn not_opened(mut self) {
        if let Some(account) = self.0.take() {
            account.books().not_opened();
        }
    }
}

impl Drop for NewSession {
    fn drop(&mut self) {
        if let Some(account) = &self.0 {
            let now = account.now();
            account.books().lost(now);
        }
    }
}

/// A count of a tenant's sessions. Where it is dropped without a word, the next who asks counts anew.
#[derive(Debug)]
#[must_use = "nobody else counts as long as it is held"]
pub struct SessionCount {
    account: Account,
    _goes_on: watch::Sender<()>,
}

impl SessionCount {
    pub(super) const fn new(account: Account, goes_on: watch::Sender<()>) -> Self {
        Self {
            account,
            _goes_on: goes_on,
        }
    }

    /// So many sessions are kept.
    pub fn found(self, sessions: usize) {
        let now = self.account.now();
        // Held for both, so that nobody sees that it is over and not what it found.
        let mut counting = self.account.counting();
        self.account.books().counted(now, sessions);
        *counting = None;
    }
}

/// For those who wait for a [`SessionCount`].
#[derive(Debug, Clone)]
pub struct Counted(watch::Receiver<()>);

impl Counted {
    pub(super) const fn new(goes_on: watch::Receiver<()>) -> Self {
        Self(goes_on)
    }

    /// Whether it is not over.
    pub(super) fn goes_on(&self) -> bool {
        self.0.has_changed().is_ok()
    }

    /// Returns when it is over, whatever came of it.
    pub async fn over(mut self) {
        // Nothing is ever sent.
        while self.0.changed().await.is_ok() {}
    }
}

/// What runs in one session and what waits for it, as long as it lives.
#[derive(Debug)]
pub struct Inbox {
    account: Account,
    running: bool,
    waiting: usize,
}

impl Inbox {
    /// Nothing runs, and nothing waits.
    #[must_use]
    pub const fn new(account: Account) -> Self {
        Self {
            account,
            running: false,
            waiting: 0,
        }
    }

    /// Whether a query runs now.
    pub fn runs(&mut self, running: bool) {
        if running != self.running {
            self.account.books().runs(running);
            self.running = running;
        }
    }

    /// So many wait now.
    pub fn holds(&mut self, waiting: usize) {
        if waiting != self.waiting {
            self.account.books().waits(self.waiting, waiting);
            self.waiting = waiting;
        }
    }

    /// Models have been sent and have given so many tokens for it.
    pub fn used(&self, tokens: u64) {
        if tokens > 0 {
            self.account.used(tokens);
        }
    }
}

impl Drop for Inbox {
    fn drop(&mut self) {
        self.runs(false);
        self.holds(0);
    }
}

#[cfg(test)]
mod tests {
    use super::super::{Limits, Over, Room, TenantLimits, Tenants};
    use super::*;
    use crate::model::TenantId;

    fn limited(limits: Limits) -> (Tenants, TenantId) {
        let shop = TenantId::new("shop").unwrap();
        let named = [(shop.clone(), limits)].into();
        let all = Limits::default();
        (Tenants::new(TenantLimits { all, named }), shop)
    }

    #[tokio::test]
    async fn what_is_held_counts_and_what_is_dropped_does_not() {
        let (tenants, shop) = limited(Limits {
            queued: Some(2),
            sessions: Some(1),
            ..Limits::default()
        });
        assert!(
            tenants.account(&TenantId::local()).is_none(),
            "it has no limits"
        );
        let account = tenants.account(&shop).unwrap();
        let mut inbox = Inbox::new(tenants.account(&shop).unwrap());
        inbox.holds(1);
        let pending = account.message().unwrap();
        assert_eq!(account.message().unwrap_err(), Over::Queued { limit: 2 });
        drop(pending);
        drop(inbox);
        let both = [(); 2].map(|()| account.message().unwrap());
        assert!(account.message().is_err());
        drop(both);

        for _ in 0..2 {
            let Room::Count { count, counted, .. } = account.room_for_session() else {
                panic!("nobody has counted");
            };
            let Room::Count { count: other, .. } = account.room_for_session() else {
                panic!("nobody has counted");
            };
            assert!(count.is_some() && other.is_none(), "one counts");
            assert!(account.room_meanwhile().is_none());
            drop(count);
            counted.over().await;
        }
        let Room::Count { count, counted, .. } = account.room_for_session() else {
            panic!("nobody has counted");
        };
        count.unwrap().found(0);
        counted.over().await;
        let Room::Free(place) = account.room_for_session() else {
            panic!("there is room");
        };
        assert!(matches!(account.room_for_session(), Room::Full(_)));
        place.not_opened();
        let Room::Free(place) = account.room_for_session() else {
            panic!("its place was given back");
        };
        drop(place);
        assert!(
            matches!(account.room_for_session(), Room::Full(_)),
            "it may be there"
        );
        assert!(matches!(account.room_for_session(), Room::Full(_)));
    }

    #[test]
    fn a_tenant_has_its_own_limits_and_else_those_of_all() {
        let own = Limits {
            queued: Some(5),
            ..Limits::default()
        };
        let all = Limits {
            queued: Some(1),
            sessions: Some(9),
            ..Limits::default()
        };
        let both = own.or(all);
        assert_eq!((both.queued, both.sessions), (Some(5), Some(9)));
    }
}
