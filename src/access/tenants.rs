//! What a tenant may have of the system: requests and tokens a minute, sessions, queries that run,
//! messages that wait.
//!
//! The server asks before it does something for a tenant; sessions tell what they use and how much waits
//! for them. Where no limit is set, nothing is counted.
//!
//! **Invariant:** what is let in counts from that moment on (by a guard), so that many who ask at once get
//! no more than one after the other.

use std::{
    collections::BTreeMap,
    sync::{Arc, Mutex, MutexGuard, PoisonError, RwLock},
    time::Duration,
};

use dashmap::DashMap;
use serde::{Deserialize, Serialize};
use tokio::{sync::watch, time::Instant};

use crate::model::TenantId;

mod books;
mod guards;

use books::{Books, Decided};
pub use books::{Over, Room};
pub use guards::{AtWork, Counted, Inbox, NewSession, Pending, SessionCount};

/// Limits of one tenant; what is not set has none.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Limits {
    /// Requests in a minute.
    pub requests_per_minute: Option<u64>,
    /// Requests at a time, streams among them.
    #[serde(rename = "max_requests")]
    pub requests: Option<usize>,
    /// Queries that run at a time.
    #[serde(rename = "max_queries")]
    pub queries: Option<usize>,
    /// Tokens in a minute, sent to models and received.
    pub tokens_per_minute: Option<u64>,
    /// Sessions that are kept, those of sub-agents among them.
    #[serde(rename = "max_sessions")]
    pub sessions: Option<usize>,
    /// Messages that wait.
    #[serde(rename = "max_queued")]
    pub queued: Option<usize>,
}

impl Limits {
    /// These, and where they say nothing, those.
    #[must_use]
    pub fn or(self, other: Self) -> Self {
        Self {
            requests_per_minute: self.requests_per_minute.or(other.requests_per_minute),
            requests: self.requests.or(other.requests),
            queries: self.queries.or(other.queries),
            tokens_per_minute: self.tokens_per_minute.or(other.tokens_per_minute),
            sessions: self.sessions.or(other.sessions),
            queued: self.queued.or(other.queued),
        }
    }
}

/// Limits of all tenants; the section `[tenants]` of the configuration.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct TenantLimits {
    /// Of each tenant that has none of its own.
    #[serde(flatten)]
    pub all: Limits,
    /// Those of single ones; what they do not say is as for all.
    pub named: BTreeMap<TenantId, Limits>,
}

impl TenantLimits {
    fn of(&self, tenant: &TenantId) -> Limits {
        let own = self.named.get(tenant).copied().unwrap_or_default();
        own.or(self.all)
    }
}

/// See the module. Cheap to clone.
#[derive(Debug, Clone)]
pub struct Tenants(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    // A lock, because a reload changes them; held for a few sums, and while an account is opened, so that none
    // is missed by a change.
    limits: RwLock<TenantLimits>,
    began: Instant,
    /// As many as there are tenants with keys.
    accounts: DashMap<TenantId, Account>,
}

impl Tenants {
    /// With these limits.
    #[must_use]
    pub fn new(limits: TenantLimits) -> Self {
        Self(Arc::new(Inner {
            limits: RwLock::new(limits),
            began: Instant::now(),
            accounts: DashMap::new(),
        }))
    }

    /// From now on these are the limits. What tenants have used by then stays used where the limit stays the
    /// same.
    pub fn limit(&self, limits: TenantLimits) {
        let inner = &self.0;
        let mut there = inner.limits.write().unwrap_or_else(PoisonError::into_inner);
        for account in &inner.accounts {
            account.value().books().limit(limits.of(account.key()));
        }
        *there = limits;
    }

    /// What is known of a tenant; none where it has no limits.
    #[must_use]
    pub fn account(&self, tenant: &TenantId) -> Option<Account> {
        let inner = &self.0;
        let limits = inner.limits.read().unwrap_or_else(PoisonError::into_inner);
        let limits_of = limits.of(tenant);
        if limits_of == Limits::default() {
            return None;
        }
        if let Some(account) = inner.accounts.get(tenant) {
            return Some(account.clone());
        }
        let account = inner.accounts.entry(tenant.clone());
        let account = account.or_insert_with(|| Account {
            began: inner.began,
            books: Arc::new(Mutex::new(Books::new(limits_of))),
            counting: Arc::default(),
        });
        Some(account.clone())
    }
}

/// A tenant and what it has. Cheap to clone.
#[derive(Debug, Clone)]
pub struct Account {
    began: Instant,
    // A lock, because sessions and requests of a tenant are many; held for a few sums.
    books: Arc<Mutex<Books>>,
    // A lock, so that of many who find that sessions are to be counted one counts; held for a few sums. What
    // is in it ends with the count that goes on.
    counting: Arc<Mutex<Option<Counted>>>,
}

impl Account {
    /// It sends a request, which counts among those that are worked on until the guard is dropped.
    ///
    /// # Errors
    /// When it may send none now.
    pub fn request(&self) -> Result<AtWork, Over> {
        let now = self.now();
        self.books().request(now)?;
        Ok(AtWork::new(self.clone()))
    }

    /// It hands in a message, which counts among those that wait until the guard is dropped.
    ///
    /// # Errors
    /// When its tokens of this minute are used, or too many run or wait.
    pub fn message(&self) -> Result<Pending, Over> {
        let now = self.now();
        self.books().message(now)?;
        Ok(Pending::new(self.clone()))
    }

    /// Models have been sent and have given so many tokens for it.
    pub fn used(&self, tokens: u64) {
        let now = self.now();
        self.books().used(now, tokens);
    }

    /// Whether its sessions have a limit.
    #[must_use]
    pub fn counts_sessions(&self) -> bool {
        self.books().counts_sessions()
    }

    /// Whether there is room for one more session.
    #[must_use]
    pub fn room_for_session(&self) -> Room {
        let now = self.now();
        let mut counting = self.counting();
        let decided = self.books().room_for_session(now);
        let most = match self.room(decided) {
            Ok(room) => return room,
            Err(most) => most,
        };
        if let Some(counted) = counting.as_ref().filter(|counted| counted.goes_on()) {
            let counted = counted.clone();
            return Room::Count {
                most,
                count: None,
                counted,
            };
        }
        self.books().counts(now);
        let (goes_on, over) = watch::channel(());
        let counted = Counted::new(over);
        *counting = Some(counted.clone());
        let count = Some(SessionCount::new(self.clone(), goes_on));
        Room::Count {
            most,
            count,
            counted,
        }
    }

    /// The same by the last count, while the next one goes on; none where there was none yet.
    #[must_use]
    pub fn room_meanwhile(&self) -> Option<Room> {
        let decided = self.books().room_meanwhile();
        decided.and_then(|decided| self.room(decided).ok())
    }

    /// What was decided, with a guard; or how many are allowed, where they are to be counted.
    fn room(&self, decided: Decided) -> Result<Room, usize> {
        match decided {
            Decided::Unlimited => Ok(Room::Free(NewSession::unlimited())),
            Decided::Taken => Ok(Room::Free(NewSession::new(self.clone()))),
            Decided::Full(over) => Ok(Room::Full(over)),
            Decided::Count { most } => Err(most),
        }
    }

    fn counting(&self) -> MutexGuard<'_, Option<Counted>> {
        self.counting.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn now(&self) -> Duration {
        self.began.elapsed()
    }

    fn books(&self) -> MutexGuard<'_, Books> {
        self.books.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
