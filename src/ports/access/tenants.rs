//! Limits of a tenant: requests and tokens per minute, concurrent requests and queries, pending
//! messages, sessions, memory; and the budgets of tenants and keys, which sessions apply.
//!
//! The server asks before it does anything for a tenant; sessions report running queries, pending
//! messages and the tokens that their models used.
//!
//! **Invariant:** everything that is admitted counts from that moment on, by a guard, so that
//! concurrent requests get no more than the same requests in sequence.

use std::{
    collections::{BTreeMap, HashMap},
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering::Relaxed},
    },
    time::Duration,
};

use dashmap::DashMap;
use parking_lot::{Mutex, MutexGuard, RwLock};
use serde::{Deserialize, Serialize};
use tokio::{sync::OwnedMutexGuard, time::Instant};

use super::{Bucket, Budgets, KeyName};
use crate::model::{By, Payer, TenantId};

/// Maximum age of a count that refuses a session: one may have been deleted since.
const RECOUNT: Duration = Duration::from_secs(1);
/// Maximum age of any count: sub-agents open sessions without reporting them here.
const MAX_COUNT_AGE: Duration = Duration::from_secs(60);
/// Time until a recount after an opening without a known outcome.
const RECOUNT_AFTER_UNKNOWN: Duration = Duration::from_secs(30);
const PRUNE_FROM: usize = 1_024;
/// Bytes of one tenant's live sessions, unless its limits say otherwise.
const LIVE_BYTES: usize = 256 << 20;
/// A tenant that holds this share of all bytes is refused more when they are full.
const MUCH: usize = 32;
/// Bytes that a tenant stores, unless its limits say otherwise.
const STORED_BYTES: u64 = 10 << 30;
/// Age of a count of stored bytes that is within the limit.
const STORED_AGE: Duration = Duration::from_secs(5);
/// Retry hint for limits that do not depend on time.
const RETRY_HINT: Duration = Duration::from_secs(1);

/// Limits of one tenant; a limit that is not set does not apply.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Limits {
    /// Requests per minute.
    pub requests_per_minute: Option<u64>,
    /// Concurrent requests, including streams.
    #[serde(rename = "max_requests")]
    pub requests: Option<usize>,
    /// Concurrent queries.
    #[serde(rename = "max_queries")]
    pub queries: Option<usize>,
    /// Tokens per minute, sent to models and received from them.
    pub tokens_per_minute: Option<u64>,
    /// Stored sessions, including those of sub-agents.
    #[serde(rename = "max_sessions")]
    pub sessions: Option<usize>,
    /// Pending messages.
    #[serde(rename = "max_queued")]
    pub queued: Option<usize>,
    /// Bytes of live sessions and of requests in flight; 256 MiB if not set.
    #[serde(rename = "max_live_bytes")]
    pub live_bytes: Option<usize>,
    /// Stored bytes, of all records; 10 GiB if not set.
    #[serde(rename = "max_stored_bytes")]
    pub stored_bytes: Option<u64>,
    /// Budgets per day and month.
    #[serde(flatten)]
    pub budgets: Budgets,
}

impl Limits {
    /// These limits, with those of `other` where one is not set.
    #[must_use]
    pub fn or(self, other: Self) -> Self {
        Self {
            requests_per_minute: self.requests_per_minute.or(other.requests_per_minute),
            requests: self.requests.or(other.requests),
            queries: self.queries.or(other.queries),
            tokens_per_minute: self.tokens_per_minute.or(other.tokens_per_minute),
            sessions: self.sessions.or(other.sessions),
            queued: self.queued.or(other.queued),
            live_bytes: self.live_bytes.or(other.live_bytes),
            stored_bytes: self.stored_bytes.or(other.stored_bytes),
            budgets: self.budgets.or(other.budgets),
        }
    }

    /// One node's share of the limits, at least 1 of each. Stored sessions and budgets are counted
    /// in the journal, so all nodes see the same numbers; memory is each node's own.
    fn divided(self, nodes: usize) -> Self {
        let rate = |limit: Option<u64>| limit.map(|limit| (limit / nodes as u64).max(1));
        let many = |limit: Option<usize>| limit.map(|limit| (limit / nodes).max(1));
        Self {
            requests_per_minute: rate(self.requests_per_minute),
            requests: many(self.requests),
            queries: many(self.queries),
            tokens_per_minute: rate(self.tokens_per_minute),
            queued: many(self.queued),
            ..self
        }
    }
}

/// Limits of all tenants; the section `[tenants]` of the configuration.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct TenantLimits {
    /// Limits of each tenant that has none of its own.
    #[serde(flatten)]
    pub all: Limits,
    /// Limits of single tenants; a limit that is not set comes from `all`.
    pub named: BTreeMap<TenantId, Limits>,
    /// Budgets of the keys of a name, in addition to those of their tenant.
    pub keys: BTreeMap<KeyName, Budgets>,
}

impl TenantLimits {
    fn of(&self, tenant: &TenantId) -> Limits {
        let own = self.named.get(tenant).copied().unwrap_or_default();
        own.or(self.all)
    }

    /// All budgets.
    pub fn budgets(&self) -> impl Iterator<Item = &Budgets> {
        let tenants = self.named.values().chain([&self.all]);
        tenants
            .map(|limits| &limits.budgets)
            .chain(self.keys.values())
    }

    fn budgets_of(&self, payer: &Payer) -> Option<Budgets> {
        let budgets = match payer {
            Payer::Tenant(tenant) => self.of(tenant).budgets,
            Payer::Key(key) => {
                let mut keys = self.keys.iter();
                *keys.find(|(name, _)| name.as_str() == key.as_str())?.1
            }
            Payer::Stored(_) => return None,
        };
        (budgets != Budgets::default()).then_some(budgets)
    }
}

/// A tenant has reached one of its limits.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum LimitReached {
    /// Too many requests in a minute.
    #[error("your tenant has reached its limit of {limit} requests per minute: try again later")]
    Requests {
        /// The limit.
        limit: u64,
        /// Time until the next request is admitted.
        retry_after: Duration,
    },
    /// Too many concurrent requests.
    #[error(
        "your tenant has reached its limit of {limit} concurrent requests, including streams: try \
         again when one has ended"
    )]
    AtOnce {
        /// The limit.
        limit: usize,
    },
    /// Too many concurrent queries.
    #[error(
        "your tenant has reached its limit of {limit} concurrent queries: try again when one has \
         ended"
    )]
    Queries {
        /// The limit.
        limit: usize,
    },
    /// Too many tokens in a minute.
    #[error("your tenant has reached its limit of {limit} tokens per minute: try again later")]
    Tokens {
        /// The limit.
        limit: u64,
        /// Time until the next message is admitted.
        retry_after: Duration,
    },
    /// Too many sessions.
    #[error("your tenant has reached its limit of {limit} sessions: delete one first")]
    Sessions {
        /// The limit.
        limit: usize,
    },
    /// Too many pending messages.
    #[error(
        "your tenant has reached its limit of {limit} pending messages: try again when some are \
         answered"
    )]
    Queued {
        /// The limit.
        limit: usize,
    },
    /// Too many stored bytes.
    #[error("your tenant stores as much as it may ({limit} bytes): delete sessions first")]
    Stored {
        /// The limit.
        limit: u64,
    },
}

impl LimitReached {
    /// A stable code for API clients.
    pub const fn code(self) -> &'static str {
        match self {
            Self::Requests { .. } | Self::Tokens { .. } => "rate_limited",
            Self::AtOnce { .. } => "too_many_requests",
            Self::Queries { .. } => "too_many_queries",
            Self::Sessions { .. } => "too_many_sessions",
            Self::Queued { .. } => "too_many_queued",
            Self::Stored { .. } => "too_much_stored",
        }
    }

    /// Time after which a retry may succeed.
    pub const fn retry_after(self) -> Duration {
        match self {
            Self::Requests { retry_after, .. } | Self::Tokens { retry_after, .. } => retry_after,
            _ => RETRY_HINT,
        }
    }
}

/// The accounts of all tenants. Cheap to clone.
#[derive(Debug, Clone)]
pub struct Tenants(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    // Held while an account is created, so that a change of limits reaches every account.
    limits: RwLock<TenantLimits>,
    /// Nodes that share the limits.
    nodes: AtomicUsize,
    /// About how many bytes live sessions and requests in flight take, and their limit.
    all_live: (Arc<AtomicUsize>, usize),
    began: Instant,
    accounts: DashMap<TenantId, Account>,
    /// Number of accounts at which unused ones are forgotten.
    prune_at: AtomicUsize,
}

impl Tenants {
    /// No accounts yet, with these limits and memory for all.
    pub fn new(limits: TenantLimits, max_live: usize) -> Self {
        Self(Arc::new(Inner {
            limits: RwLock::new(limits),
            nodes: AtomicUsize::new(1),
            all_live: (Arc::default(), max_live),
            began: Instant::now(),
            accounts: DashMap::new(),
            prune_at: AtomicUsize::new(PRUNE_FROM),
        }))
    }

    /// Replaces the limits; usage is kept where its limit stays the same.
    pub fn limit(&self, limits: TenantLimits) {
        let mut current = self.0.limits.write();
        *current = limits;
        self.apply(&current);
    }

    /// Divides the limits by the number of nodes that share them. Usage is kept where its limit
    /// stays the same.
    pub fn divide(&self, nodes: usize) {
        let limits = self.0.limits.write();
        self.0.nodes.store(nodes.max(1), Relaxed);
        self.apply(&limits);
    }

    fn apply(&self, limits: &TenantLimits) {
        for account in &self.0.accounts {
            let limits = self.of(limits, account.key());
            account.usage().limit(limits);
        }
    }

    fn of(&self, limits: &TenantLimits, tenant: &TenantId) -> Limits {
        limits.of(tenant).divided(self.0.nodes.load(Relaxed))
    }

    /// The budgets that apply to a caller's queries in sessions of a tenant.
    pub fn budgets(&self, tenant: &TenantId, by: &By) -> Vec<(Payer, Budgets)> {
        let limits = self.0.limits.read();
        let payers = Payer::of(tenant, by);
        let applying = payers.filter_map(|payer| Some((limits.budgets_of(&payer)?, payer)));
        applying.map(|(budgets, payer)| (payer, budgets)).collect()
    }

    /// About how many bytes live sessions and requests in flight take.
    pub fn live_bytes(&self) -> usize {
        self.0.all_live.0.load(Relaxed)
    }

    /// The account of a tenant.
    pub fn account(&self, tenant: &TenantId) -> Account {
        if let Some(account) = self.0.accounts.get(tenant) {
            return account.clone();
        }
        self.prune();
        let all = self.0.limits.read();
        let account = self.0.accounts.entry(tenant.clone());
        let account = account.or_insert_with(|| Account {
            began: self.0.began,
            all_live: self.0.all_live.clone(),
            usage: Arc::new(Mutex::new(Usage::new(self.of(&all, tenant)))),
            counting: Arc::default(),
        });
        account.clone()
    }

    /// Bytes that the idle sessions of each of `shards` should give back: of all tenants, and of
    /// each that holds too much. A quarter of each limit stays free, so that new work rarely waits.
    pub fn excess(&self, shards: usize) -> (usize, HashMap<TenantId, usize>) {
        let over =
            |(held, limit): (usize, usize)| held.saturating_sub(limit - limit / 4).div_ceil(shards);
        let accounts = self.0.accounts.iter();
        let each = accounts.map(|account| (account.key().clone(), over(account.usage().live())));
        let each = each.filter(|(_, excess)| *excess > 0).collect();
        (over((self.live_bytes(), self.0.all_live.1)), each)
    }

    /// Forgets accounts that hold nothing once they may outnumber the others.
    fn prune(&self) {
        let accounts = &self.0.accounts;
        if accounts.len() >= self.0.prune_at.load(Relaxed) {
            accounts.retain(|_, account| {
                let is_limited = account.usage().limits != Limits::default();
                is_limited || Arc::strong_count(&account.usage) > 1
            });
            let next = PRUNE_FROM.max(2 * accounts.len());
            self.0.prune_at.store(next, Relaxed);
        }
    }
}

/// Usage of one tenant. Cheap to clone.
#[derive(Debug, Clone)]
pub struct Account {
    began: Instant,
    /// Those of all tenants.
    all_live: (Arc<AtomicUsize>, usize),
    usage: Arc<Mutex<Usage>>,
    counting: Arc<tokio::sync::Mutex<()>>,
}

impl Account {
    /// Admits a request, which counts as long as the guard is held.
    ///
    /// # Errors
    /// When a limit on requests is reached.
    pub fn request(&self) -> Result<RequestPermit, LimitReached> {
        self.usage().request(self.now())?;
        Ok(RequestPermit(self.clone()))
    }

    /// Admits a message, which counts as pending as long as the guard is held.
    ///
    /// # Errors
    /// When a limit on tokens, queries or pending messages is reached.
    pub fn message(&self) -> Result<SubmissionPermit, LimitReached> {
        self.usage().message(self.now())?;
        Ok(SubmissionPermit(self.clone()))
    }

    /// Who holds more memory than allowed, and the section of that limit; `None` if there is some
    /// for new work.
    pub fn full(&self) -> Option<(&'static str, &'static str)> {
        let (theirs, (all, most)) = (self.usage().live(), &self.all_live);
        // Those who hold little go on where others hold all.
        let holds_much = theirs.0 > most / MUCH;
        match (theirs.0 > theirs.1, all.load(Relaxed) > *most) {
            (true, _) => Some(("your tenant", "tenants")),
            (_, true) if holds_much => Some(("all tenants", "session")),
            _ => None,
        }
    }

    /// Running queries and pending messages.
    pub fn load(&self) -> usize {
        let usage = self.usage();
        usage.running + usage.pending + usage.submitting
    }

    /// The limit on stored sessions.
    pub fn session_limit(&self) -> Option<usize> {
        self.usage().limits.sessions
    }

    /// Decides on more records by the stored bytes, as counted now or before; `None` if that is too
    /// long ago.
    pub fn storage(&self, counted: Option<u64>) -> Option<Result<(), LimitReached>> {
        let (now, mut usage) = (self.now(), self.usage());
        usage.stored = counted.map(|bytes| (now, bytes)).or(usage.stored);
        let limit = usage.limits.stored_bytes.unwrap_or(STORED_BYTES);
        let (at, bytes) = usage.stored?;
        let (age, decided) = match bytes < limit {
            true => (STORED_AGE, Ok(())),
            false => (RECOUNT, Err(LimitReached::Stored { limit })),
        };
        (now < at + age).then_some(decided)
    }

    /// Decides on one more session by the last count; `None` if that is too old and a new count is
    /// needed.
    #[must_use]
    pub fn session(&self) -> Option<Result<SessionReservation, LimitReached>> {
        let decided = self.usage().session(self.now())?;
        Some(decided.map(|()| SessionReservation(Some(self.clone()))))
    }

    /// Decides on one more session by the last count, however old; `None` if there was no count
    /// yet.
    #[must_use]
    pub fn session_by_last_count(&self) -> Option<Result<SessionReservation, LimitReached>> {
        let decided = self.usage().session_by_last_count()?;
        Some(decided.map(|()| SessionReservation(Some(self.clone()))))
    }

    /// Begins a count of the sessions, whose result goes to [`SessionCount::set`]; `None` while
    /// another one runs.
    #[must_use]
    pub fn count(&self) -> Option<SessionCount> {
        let lock = Arc::clone(&self.counting).try_lock_owned().ok()?;
        self.usage().opened_since_count = 0;
        Some(SessionCount {
            account: self.clone(),
            _lock: lock,
        })
    }

    /// Returns when no count is in progress, whatever its result.
    pub async fn counted(&self) {
        drop(self.counting.lock().await);
    }

    fn now(&self) -> Duration {
        self.began.elapsed()
    }

    fn usage(&self) -> MutexGuard<'_, Usage> {
        self.usage.lock()
    }
}

/// A count of a tenant's sessions, in progress until this is dropped.
#[derive(Debug)]
#[must_use = "no other count begins while this is held"]
pub struct SessionCount {
    account: Account,
    _lock: OwnedMutexGuard<()>,
}

impl SessionCount {
    /// Sets the number of stored sessions.
    pub fn set(self, sessions: usize) {
        self.account.usage().counted(self.account.now(), sessions);
    }
}

/// A request in progress.
#[derive(Debug)]
#[must_use = "it counts until it is dropped"]
pub struct RequestPermit(Account);

impl Drop for RequestPermit {
    fn drop(&mut self) {
        self.0.usage().requests_in_flight -= 1;
    }
}

/// A message that is being submitted.
#[derive(Debug)]
#[must_use = "it counts until it is dropped"]
pub struct SubmissionPermit(Account);

impl Drop for SubmissionPermit {
    fn drop(&mut self) {
        self.0.usage().submitting -= 1;
    }
}

/// A session that is being opened. Dropped without an outcome, it counts as opened until the next
/// count.
#[derive(Debug)]
#[must_use = "it counts until its outcome is known"]
pub struct SessionReservation(Option<Account>);

impl SessionReservation {
    /// Reports that the session exists.
    pub fn opened(mut self) {
        if let Some(account) = self.0.take() {
            account.usage().opened();
        }
    }

    /// Reports that the session was refused or never requested.
    pub fn not_opened(mut self) {
        if let Some(account) = self.0.take() {
            account.usage().opening -= 1;
        }
    }
}

impl Drop for SessionReservation {
    fn drop(&mut self) {
        if let Some(account) = &self.0 {
            let mut usage = account.usage();
            usage.opened();
            usage.recount_at = usage.recount_at.min(account.now() + RECOUNT_AFTER_UNKNOWN);
        }
    }
}

/// What a live session takes of its tenant's limits.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct SessionLoad {
    /// Whether a query runs.
    pub running: bool,
    /// How many messages are pending.
    pub pending: usize,
    /// About how many bytes it takes in memory.
    pub bytes: usize,
}

/// The load of one live session, or of a request that is not part of one yet, which counts until
/// this is dropped.
#[derive(Debug)]
pub struct SessionUsage {
    account: Account,
    load: SessionLoad,
}

impl SessionUsage {
    /// An idle session without pending messages.
    pub fn new(account: Account) -> Self {
        Self {
            account,
            load: SessionLoad::default(),
        }
    }

    /// Replaces the load.
    pub fn set(&mut self, load: SessionLoad) {
        if load == self.load {
            return;
        }
        let before = std::mem::replace(&mut self.load, load);
        let (mut usage, all) = (self.account.usage(), &self.account.all_live.0);
        usage.running = usage.running - usize::from(before.running) + usize::from(load.running);
        usage.pending = usage.pending - before.pending + load.pending;
        usage.live = usage.live - before.bytes + load.bytes;
        all.fetch_add(load.bytes, Relaxed);
        all.fetch_sub(before.bytes, Relaxed);
    }

    /// Charges tokens that models received or returned to the tenant.
    pub fn used(&self, tokens: u64) {
        if tokens > 0
            && let Some(bucket) = &mut self.account.usage().tokens
        {
            bucket.charge(self.account.now(), tokens);
        }
    }
}

impl Drop for SessionUsage {
    fn drop(&mut self) {
        self.set(SessionLoad::default());
    }
}

/// Pure: time is a value.
#[derive(Debug, Default)]
struct Usage {
    limits: Limits,
    requests: Option<Bucket>,
    requests_in_flight: usize,
    tokens: Option<Bucket>,
    /// Queries that run in live sessions.
    running: usize,
    pending: usize,
    submitting: usize,
    /// Bytes of live sessions and requests in flight.
    live: usize,
    /// Stored bytes, and when they were counted.
    stored: Option<(Duration, u64)>,
    /// Stored sessions, once they were counted.
    sessions: Option<usize>,
    counted_at: Duration,
    recount_at: Duration,
    opening: usize,
    /// Sessions that the count in progress may have missed.
    opened_since_count: usize,
}

impl Usage {
    fn new(limits: Limits) -> Self {
        let mut usage = Self::default();
        usage.limit(limits);
        usage
    }

    fn limit(&mut self, limits: Limits) {
        let before = std::mem::replace(&mut self.limits, limits);
        if before.requests_per_minute != limits.requests_per_minute {
            self.requests = limits.requests_per_minute.map(Bucket::new);
        }
        if before.tokens_per_minute != limits.tokens_per_minute {
            self.tokens = limits.tokens_per_minute.map(Bucket::new);
        }
        if before.sessions.is_none() {
            // Sessions that were opened meanwhile have not been counted.
            self.sessions = None;
        }
    }

    /// The bytes in memory, and their limit.
    fn live(&self) -> (usize, usize) {
        (self.live, self.limits.live_bytes.unwrap_or(LIVE_BYTES))
    }

    fn request(&mut self, now: Duration) -> Result<(), LimitReached> {
        if let Some(limit) = reached(self.limits.requests, self.requests_in_flight) {
            return Err(LimitReached::AtOnce { limit });
        }
        if let (Some(limit), Some(bucket)) = (self.limits.requests_per_minute, &mut self.requests) {
            let taken = bucket.take(now);
            taken.map_err(|retry_after| LimitReached::Requests { limit, retry_after })?;
        }
        self.requests_in_flight += 1;
        Ok(())
    }

    fn message(&mut self, now: Duration) -> Result<(), LimitReached> {
        if let (Some(limit), Some(bucket)) = (self.limits.tokens_per_minute, &self.tokens) {
            let room = bucket.check(now);
            room.map_err(|retry_after| LimitReached::Tokens { limit, retry_after })?;
        }
        if let Some(limit) = reached(self.limits.queries, self.running + self.submitting) {
            return Err(LimitReached::Queries { limit });
        }
        if let Some(limit) = reached(self.limits.queued, self.pending + self.submitting) {
            return Err(LimitReached::Queued { limit });
        }
        self.submitting += 1;
        Ok(())
    }

    fn session(&mut self, now: Duration) -> Option<Result<(), LimitReached>> {
        if now >= self.recount_at {
            return None;
        }
        let decided = self.session_by_last_count()?;
        (decided.is_ok() || now < self.counted_at + RECOUNT).then_some(decided)
    }

    fn session_by_last_count(&mut self) -> Option<Result<(), LimitReached>> {
        let limit = self.limits.sessions.unwrap_or(usize::MAX);
        if self.sessions? + self.opening >= limit {
            return Some(Err(LimitReached::Sessions { limit }));
        }
        self.opening += 1;
        Some(Ok(()))
    }

    fn counted(&mut self, now: Duration, sessions: usize) {
        // Counts some twice until the next count: rather too many than too few.
        self.sessions = Some(sessions + self.opened_since_count);
        (self.counted_at, self.recount_at) = (now, now + MAX_COUNT_AGE);
    }

    fn opened(&mut self) {
        self.opening -= 1;
        self.opened_since_count += 1;
        self.sessions = self.sessions.map(|sessions| sessions + 1);
    }
}

/// The limit, if there is one and `count` has reached it.
fn reached(limit: Option<usize>, count: usize) -> Option<usize> {
    limit.filter(|limit| count >= *limit)
}

#[cfg(test)]
mod tests;
