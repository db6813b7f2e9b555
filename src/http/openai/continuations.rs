//! Queries that wait for the results of their caller's tools, in sessions that the caller did not
//! name. The next request finds them by the ids of their calls.
//!
//! An entry owns its session: one in memory, and its query, end with the entry; a durable one waits
//! on in the journal.

use std::{
    collections::{HashMap, VecDeque},
    mem,
    sync::{Arc, Weak},
    time::Duration,
};

use parking_lot::Mutex;
use tokio_util::task::AbortOnDropHandle;

use crate::{
    actor::{Ephemeral, SessionHandle},
    http::DrainSignal,
    model::{CallId, ProfileName, TenantId},
};

/// How long a query waits for results.
const LIFETIME: Duration = Duration::from_secs(15 * 60);
/// Most queries that wait; for a new one the oldest ends of the tenant that has most.
const MAX_WAITING: usize = 1_000;

/// The session that answers a request.
pub(super) struct Session {
    pub handle: SessionHandle,
    /// Cancels and removes its session on drop.
    pub memory: Option<Ephemeral>,
    /// By which it is found while its query waits for results, unless the caller named it.
    pub found_by: Option<Key>,
}

/// The queries that wait. Clones share them.
#[derive(Clone, Default)]
pub(crate) struct Continuations(Arc<Mutex<VecDeque<Entry>>>);

struct Entry {
    key: Key,
    session: Session,
    _expiry: AbortOnDropHandle<()>,
}

/// Only the key that asked the question continues it.
#[derive(Clone, PartialEq, Eq)]
pub(super) struct Key {
    pub tenant: TenantId,
    pub caller: Arc<str>,
    pub profile: ProfileName,
    /// In order.
    pub calls: Vec<CallId>,
}

impl Key {
    pub(super) fn of(self, calls: impl Iterator<Item = CallId>) -> Self {
        let mut calls: Vec<CallId> = calls.collect();
        calls.sort();
        Self { calls, ..self }
    }
}

impl Continuations {
    /// Keeps a session whose query waits, until its results arrive, it expires or the server ends.
    pub(super) fn keep(&self, key: Key, session: Session, drain: &DrainSignal) {
        let Self(entries) = self;
        let expiry = expiry(Arc::downgrade(entries), key.clone(), drain.clone());
        let entry = Entry {
            key,
            session,
            #[expect(clippy::disallowed_methods, reason = "ends with the entry")]
            _expiry: AbortOnDropHandle::new(tokio::spawn(expiry)),
        };
        let mut entries = entries.lock();
        entries.push_back(entry);
        let oldest = (entries.len() > MAX_WAITING).then(|| {
            let at = oldest_of_the_largest_tenant(&entries);
            entries.remove(at)
        });
        mem::drop(entries);
        // Ends a session, so not under the lock.
        mem::drop(oldest);
    }

    /// Takes the session whose query waits for exactly these calls.
    pub(super) fn take(&self, key: &Key) -> Option<Session> {
        let mut entries = self.0.lock();
        let at = entries.iter().position(|entry| entry.key == *key)?;
        let taken = entries.remove(at);
        mem::drop(entries);
        taken.map(|entry| entry.session)
    }
}

/// A tenant with many queries that wait ends none of another's.
fn oldest_of_the_largest_tenant(entries: &VecDeque<Entry>) -> usize {
    let mut counts: HashMap<&TenantId, usize> = HashMap::new();
    for entry in entries {
        *counts.entry(&entry.key.tenant).or_default() += 1;
    }
    let largest = counts.into_iter().max_by_key(|(_, count)| *count);
    let is_theirs = |entry: &Entry| largest.is_some_and(|(tenant, _)| entry.key.tenant == *tenant);
    entries.iter().position(is_theirs).unwrap_or_default()
}

async fn expiry(entries: Weak<Mutex<VecDeque<Entry>>>, key: Key, drain: DrainSignal) {
    tokio::select! {
        () = tokio::time::sleep(LIFETIME) => {}
        () = drain.over() => {}
    }
    if let Some(entries) = entries.upgrade() {
        Continuations(entries).take(&key);
    }
}
