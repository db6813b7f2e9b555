//! Sessions in memory, for requests that leave nothing behind.
//!
//! An [`Ephemeral`] session and its sub-agents have a journal in memory, which is gone when the handle is dropped.
//! They are listed and controlled like others while they live, because the system's journal is a [`Split`]: reserved
//! names and ids lead to memory. Only the usage of their model calls is durable: an estimate before a call and its
//! usage after it, in the reserved session `usage`.

use std::{
    ops::Deref,
    sync::{
        Arc, OnceLock,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};

use dashmap::DashMap;
use futures_util::{
    FutureExt,
    future::{self, BoxFuture},
};
use uuid::Uuid;

use super::{
    bus::BusHandle,
    clock::Clock,
    handle::{Oracle, Router, SessionHandle},
    shard::ShardMsg,
    system_log::SystemLog,
    task::Task,
};
use crate::{
    journal::{Append, Claim, Entry, Error, Hit, Journal, Known, Memory, Only, Snapshot},
    kernel::CallToken,
    model::{
        Epoch, Fault, NanoUsd, ProfileName, Seq, SessionKey, SessionName, Sid, TenantId, Usage,
        record::{LlmFact, ModelUsage},
    },
};

/// Ids from here on are of sessions in memory.
const FIRST: u64 = 1 << 62;
/// How many sessions a request may have: ids of one request lie this far from those of the next.
const SESSIONS: u64 = 1 << 16;

/// A session in memory, to be used like any other; it and its sub-agents are gone when this is dropped, and a query
/// that still runs is dropped with them.
pub struct Ephemeral {
    session: SessionHandle,
    router: Router,
}

impl Deref for Ephemeral {
    type Target = SessionHandle;

    fn deref(&self) -> &SessionHandle {
        &self.session
    }
}

impl Drop for Ephemeral {
    fn drop(&mut self) {
        self.router.discard(self.session.key());
    }
}

impl Oracle {
    /// A session in memory, of a tenant and by a profile. Its name is drawn at random.
    #[must_use]
    pub fn ephemeral(&self, tenant: TenantId, profile: ProfileName) -> Ephemeral {
        let name = SessionName::ephemeral(Uuid::now_v7());
        let key = SessionKey { tenant, name };
        self.router.ephemerals.begin(&key);
        Ephemeral {
            session: self.brief_session(key, profile),
            router: self.router.clone(),
        }
    }
}

impl Router {
    /// Ends an ephemeral session with all that is below it.
    fn discard(&self, root: &SessionKey) {
        let Some(store) = self.ephemerals.end(root) else {
            return;
        };
        let all = store.memory.list(root.tenant.clone(), None, usize::MAX);
        let all = all.now_or_never().and_then(Result::ok).unwrap_or_default();
        for Known { key, .. } in all {
            if let Some(shard) = self.shards.at(self.shards.index_of(&key)) {
                let _ = shard.cast(ShardMsg::Leave { key, anyway: true });
            }
        }
    }
}

/// The journals in memory of the ephemeral sessions that live.
#[derive(Debug, Default)]
pub(super) struct Ephemerals {
    next: AtomicU64,
    by_root: DashMap<SessionKey, Arc<Store>>,
    by_number: DashMap<u64, Arc<Store>>,
}

#[derive(Debug)]
struct Store {
    number: u64,
    memory: Memory,
}

impl Store {
    const fn outside(&self, sid: Sid) -> Sid {
        Sid(FIRST + self.number * SESSIONS + sid.0)
    }

    fn known(&self, known: Known) -> Known {
        let sid = self.outside(known.sid);
        Known { sid, ..known }
    }
}

impl Ephemerals {
    pub(super) fn begin(&self, root: &SessionKey) {
        let number = self.next.fetch_add(1, Ordering::Relaxed);
        let memory = Memory::new();
        let store = Arc::new(Store { number, memory });
        self.by_number.insert(number, Arc::clone(&store));
        self.by_root.insert(root.clone(), store);
    }

    fn end(&self, root: &SessionKey) -> Option<Arc<Store>> {
        let (_, store) = self.by_root.remove(root)?;
        self.by_number.remove(&store.number);
        Some(store)
    }

    /// Where a session is; an error where it was, and is gone.
    fn of_key(&self, key: &SessionKey) -> Option<Result<Arc<Store>, Error>> {
        let root = SessionKey {
            tenant: key.tenant.clone(),
            name: key.name.ephemeral_root()?,
        };
        let store = self.by_root.get(&root).map(|store| Arc::clone(&store));
        Some(store.ok_or(Error::Unknown { sid: Sid(FIRST) }))
    }

    /// The same by an id, with the id within the store.
    fn of_sid(&self, sid: Sid) -> Option<Result<(Arc<Store>, Sid), Error>> {
        let within = sid.0.checked_sub(FIRST)?;
        let store = self.by_number.get(&(within / SESSIONS));
        let store = store.map(|store| (Arc::clone(&store), Sid(within % SESSIONS)));
        Some(store.ok_or(Error::Unknown { sid }))
    }

    fn all(&self) -> Vec<Arc<Store>> {
        let mut all: Vec<_> = self
            .by_number
            .iter()
            .map(|entry| Arc::clone(&entry))
            .collect();
        all.sort_unstable_by_key(|store| store.number);
        all
    }
}

/// The system's journal: the durable one, and those of ephemeral sessions.
pub(super) struct Split {
    pub durable: Arc<dyn Journal>,
    pub ephemerals: Arc<Ephemerals>,
}

fn refused<'a, T: Send + 'a>(error: Error) -> BoxFuture<'a, Result<T, Error>> {
    future::ready(Err(error)).boxed()
}

impl Journal for Split {
    fn claim_if(&self, key: SessionKey, only: Only) -> BoxFuture<'_, Result<Claim, Error>> {
        match self.ephemerals.of_key(&key) {
            None => self.durable.claim_if(key, only),
            Some(Err(error)) => refused(error),
            Some(Ok(store)) => async move {
                let claim = store.memory.claim_if(key, only).await?;
                let sid = store.outside(claim.sid);
                Ok(Claim { sid, ..claim })
            }
            .boxed(),
        }
    }

    fn release(&self, sid: Sid, epoch: Epoch) -> BoxFuture<'_, Result<(), Error>> {
        match self.ephemerals.of_sid(sid) {
            None => self.durable.release(sid, epoch),
            Some(_) => future::ready(Ok(())).boxed(),
        }
    }

    fn append(&self, append: Append) -> BoxFuture<'_, Result<Seq, Error>> {
        match self.ephemerals.of_sid(append.sid) {
            None => self.durable.append(append),
            Some(Err(error)) => refused(error),
            Some(Ok((store, sid))) => {
                async move { store.memory.append(Append { sid, ..append }).await }.boxed()
            }
        }
    }

    fn read(&self, sid: Sid, after: Seq, limit: usize) -> BoxFuture<'_, Result<Vec<Entry>, Error>> {
        match self.ephemerals.of_sid(sid) {
            None => self.durable.read(sid, after, limit),
            Some(Err(error)) => refused(error),
            Some(Ok((store, sid))) => {
                async move { store.memory.read(sid, after, limit).await }.boxed()
            }
        }
    }

    fn find(&self, key: SessionKey) -> BoxFuture<'_, Result<Option<Known>, Error>> {
        match self.ephemerals.of_key(&key) {
            None => self.durable.find(key),
            Some(Err(_)) => future::ready(Ok(None)).boxed(),
            Some(Ok(store)) => async move {
                let known = store.memory.find(key).await?;
                Ok(known.map(|known| store.known(known)))
            }
            .boxed(),
        }
    }

    fn list(
        &self,
        tenant: TenantId,
        after: Option<SessionName>,
        limit: usize,
    ) -> BoxFuture<'_, Result<Vec<Known>, Error>> {
        async move {
            let mut all = self
                .durable
                .list(tenant.clone(), after.clone(), limit)
                .await?;
            for store in self.ephemerals.all() {
                let list = store.memory.list(tenant.clone(), after.clone(), limit);
                all.extend(list.await?.into_iter().map(|known| store.known(known)));
            }
            all.sort_by(|one, other| one.key.name.cmp(&other.key.name));
            all.truncate(limit);
            Ok(all)
        }
        .boxed()
    }

    fn tenants(
        &self,
        after: Option<TenantId>,
        limit: usize,
    ) -> BoxFuture<'_, Result<Vec<TenantId>, Error>> {
        self.durable.tenants(after, limit)
    }

    fn unfinished(&self, after: Sid, limit: usize) -> BoxFuture<'_, Result<Vec<Known>, Error>> {
        async move {
            let mut all = match after.0 < FIRST {
                true => self.durable.unfinished(after, limit).await?,
                false => Vec::new(),
            };
            for store in self.ephemerals.all() {
                if all.len() >= limit {
                    break;
                }
                let unfinished = store.memory.unfinished(Sid(0), limit).await?;
                let unfinished = unfinished.into_iter().map(|known| store.known(known));
                all.extend(unfinished.filter(|known| known.sid > after));
            }
            all.truncate(limit);
            Ok(all)
        }
        .boxed()
    }

    fn save(&self, sid: Sid, epoch: Epoch, snapshot: Snapshot) -> BoxFuture<'_, Result<(), Error>> {
        match self.ephemerals.of_sid(sid) {
            None => self.durable.save(sid, epoch, snapshot),
            Some(Err(error)) => refused(error),
            Some(Ok((store, sid))) => {
                async move { store.memory.save(sid, epoch, snapshot).await }.boxed()
            }
        }
    }

    fn snapshot(&self, sid: Sid) -> BoxFuture<'_, Result<Option<Snapshot>, Error>> {
        match self.ephemerals.of_sid(sid) {
            None => self.durable.snapshot(sid),
            Some(Err(error)) => refused(error),
            Some(Ok((store, sid))) => async move { store.memory.snapshot(sid).await }.boxed(),
        }
    }

    fn delete(&self, sid: Sid, only: Only) -> BoxFuture<'_, Result<Vec<Known>, Error>> {
        match self.ephemerals.of_sid(sid) {
            None => self.durable.delete(sid, only),
            Some(Err(error)) => refused(error),
            Some(Ok((store, sid))) => async move {
                let gone = store.memory.delete(sid, only).await?;
                Ok(gone.into_iter().map(|known| store.known(known)).collect())
            }
            .boxed(),
        }
    }

    fn search(
        &self,
        tenant: TenantId,
        words: String,
        limit: usize,
    ) -> BoxFuture<'_, Result<Vec<Hit>, Error>> {
        self.durable.search(tenant, words, limit)
    }
}

/// Writes down what model calls of ephemeral sessions use. Its writer starts with the first of them.
pub(super) struct UsageLog {
    pub journal: Arc<dyn Journal>,
    pub bus: BusHandle,
    pub clock: Clock,
    pub deadline: Duration,
    pub writer: OnceLock<(SystemLog, Task)>,
}

impl UsageLog {
    fn log(&self) -> &SystemLog {
        let (log, _) = self.writer.get_or_init(|| {
            let key = SessionKey::local(SessionName::usage());
            let (log, unwritten) = SystemLog::open(key, self.clock.clone());
            let journal = Arc::clone(&self.journal);
            (
                log,
                unwritten.write(journal, self.bus.clone(), self.deadline),
            )
        });
        log
    }

    /// Waits until all that was noted is durable, or given up.
    pub(super) async fn written(&self) {
        if let Some((log, _)) = self.writer.get() {
            log.written().await;
        }
    }

    /// Makes durable about what a call is going to use, before it is made; none for sessions that record it
    /// themselves.
    pub(super) async fn begin(&self, call: Metered) -> Result<Option<Metered>, Fault> {
        if call.session.name.ephemeral_root().is_none() {
            return Ok(None);
        }
        let estimate = Usage {
            input_tokens: call.tokens,
            ..Usage::default()
        };
        let noted = self.log().record(LlmFact::Estimated(call.usage(estimate)));
        noted.await.map_err(|error| {
            Fault::retryable(
                "journal",
                format!("what the call uses is not recorded: {error}"),
            )
        })?;
        Ok(Some(call))
    }

    /// Notes what a call has used.
    pub(super) async fn end(&self, call: Option<Metered>, usage: Usage) {
        if let Some(call) = call {
            self.log().send(LlmFact::Used(call.usage(usage))).await;
        }
    }
}

/// A call whose usage is noted.
pub(super) struct Metered {
    pub session: SessionKey,
    pub token: CallToken,
    pub model: Arc<str>,
    pub tokens: u64,
    pub price: Option<crate::model::Price>,
}

impl Metered {
    fn usage(&self, usage: Usage) -> ModelUsage {
        let cost = match self.price {
            Some(price) if usage.cost == NanoUsd(0) => price.of(&usage),
            Some(_) | None => usage.cost,
        };
        ModelUsage {
            session: self.session.clone(),
            query: self.token.query,
            turn: self.token.turn,
            attempt: self.token.attempt,
            model: self.model.to_string(),
            usage: Usage { cost, ..usage },
        }
    }
}
