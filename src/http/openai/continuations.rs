//! Queries that wait for the results of their caller's tools, in sessions that the caller did not
//! name. The next request finds them by the ids of their calls.
//!
//! An entry owns its session: a session in memory, and its query, end with the entry.

use std::{
    collections::VecDeque,
    mem,
    sync::{Arc, Weak},
    time::Duration,
};

use parking_lot::Mutex;
use tokio_util::task::AbortOnDropHandle;

use super::answering::Session;
use crate::{
    http::DrainSignal,
    model::{CallId, Principal, TenantId},
};

/// How long a query waits for results.
const LIFETIME: Duration = Duration::from_secs(15 * 60);
/// Most queries that wait; the oldest ends for a new one.
const MAX_WAITING: usize = 1_000;

/// The queries that wait. Clones share them.
#[derive(Clone, Default)]
pub(in crate::http) struct Continuations(Arc<Mutex<VecDeque<Entry>>>);

struct Entry {
    key: Key,
    session: Session,
    _expiry: AbortOnDropHandle<()>,
}

/// Only the key that asked the question continues it.
#[derive(Clone, PartialEq, Eq)]
pub(super) struct Key {
    tenant: TenantId,
    caller: Arc<str>,
    /// In order.
    calls: Vec<CallId>,
}

impl Key {
    pub(super) fn new(caller: &Principal, calls: impl IntoIterator<Item = CallId>) -> Self {
        let mut calls: Vec<CallId> = calls.into_iter().collect();
        calls.sort();
        Self {
            tenant: caller.tenant.clone(),
            caller: Arc::clone(&caller.name),
            calls,
        }
    }
}

impl Continuations {
    /// Keeps a session whose query waits, until its results arrive, it expires or the server ends.
    pub(super) fn keep(&self, key: Key, session: Session, drain: DrainSignal) {
        let expiry = expiry(Arc::downgrade(&self.0), key.clone(), drain);
        let entry = Entry {
            key,
            session,
            #[expect(clippy::disallowed_methods, reason = "ends with the entry")]
            _expiry: AbortOnDropHandle::new(tokio::spawn(expiry)),
        };
        let mut entries = self.0.lock();
        entries.push_back(entry);
        let oldest = (entries.len() > MAX_WAITING).then(|| entries.pop_front());
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

async fn expiry(entries: Weak<Mutex<VecDeque<Entry>>>, key: Key, drain: DrainSignal) {
    tokio::select! {
        () = tokio::time::sleep(LIFETIME) => {}
        () = drain.over() => {}
    }
    if let Some(entries) = entries.upgrade() {
        Continuations(entries).take(&key);
    }
}
