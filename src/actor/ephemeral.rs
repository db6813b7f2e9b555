//! Sessions in memory, for requests that leave nothing behind.
//!
//! An [`Ephemeral`] session and its sub-agents live in a journal in memory until the handle is
//! dropped. They are listed and controlled like others, because the system's journal is a [`JournalRouter`]
//! that routes by reserved names and high session numbers. Only the usage of their model calls is
//! durable: an estimate before each call and the actual usage after it, in the reserved session
//! `usage`.

use std::{ops::Deref, sync::Arc};

use dashmap::DashSet;
use uuid::Uuid;

use super::{
    handle::{Oracle, SessionHandle, SessionRouter},
    shard::ShardMsg,
    system_log::SystemLog,
    task::Task,
};
use crate::{
    journal::{
        Append, Claim, Entry, Erasure, Error, Hit, Journal, JournalFuture, Known, Memory, Only,
        SessionStatus, Sids, Snapshot,
    },
    kernel::CallToken,
    model::{
        By, Charge, Day, DayUsage, Epoch, Fault, FaultCode, Payer, ProfileName, Record, Seq,
        SessionKey, SessionName, Sid, TenantId, Timestamp, Usage,
        record::{LlmFact, ModelUsage},
    },
};

/// Sessions in memory have higher numbers than this.
const FIRST: Sid = Sid(1 << 62);

/// A session in memory, used like any other. Dropping it removes the session, its sub-agents and
/// any query that still runs.
pub struct Ephemeral {
    session: SessionHandle,
    router: SessionRouter,
}

impl Deref for Ephemeral {
    type Target = SessionHandle;

    fn deref(&self) -> &SessionHandle {
        &self.session
    }
}

impl Drop for Ephemeral {
    fn drop(&mut self) {
        for key in self.router.ephemerals.end(self.session.key()) {
            // Even in the middle of a query.
            let (shards, anyway, gone) = (&self.router.shards, true, None);
            shards.cast(&key.clone(), ShardMsg::Leave { key, anyway, gone });
        }
    }
}

impl Oracle {
    /// Creates a session in memory, with a random name, for a tenant and a profile.
    pub fn ephemeral(&self, tenant: TenantId, profile: ProfileName) -> Ephemeral {
        let name = SessionName::ephemeral(Uuid::now_v7());
        let key = SessionKey { tenant, name };
        self.router().ephemerals.live.insert(key.clone());
        Ephemeral {
            session: self.session_by_key(key).profile(profile),
            router: self.router().clone(),
        }
    }
}

#[derive(Debug)]
pub(super) struct Ephemerals {
    live: DashSet<SessionKey>,
    memory: Memory,
}

impl Default for Ephemerals {
    fn default() -> Self {
        Self {
            live: DashSet::new(),
            memory: Memory::after(FIRST),
        }
    }
}

impl Ephemerals {
    /// Whether a key names an ephemeral session, or its sub-agent, whose handle was dropped.
    pub(super) fn is_over(&self, key: &SessionKey) -> bool {
        let tenant = key.tenant.clone();
        let root = key.name.ephemeral_root();
        root.is_some_and(|name| !self.live.contains(&SessionKey { tenant, name }))
    }

    /// Undoes a claim that raced with the end of its session, which removed only what existed then.
    fn reject_if_ended(&self, key: &SessionKey, claim: Claim) -> Result<Claim, Error> {
        if self.is_over(key) {
            self.memory.clear(key);
            return Err(Error::Unknown { sid: claim.sid });
        }
        Ok(claim)
    }

    fn end(&self, root: &SessionKey) -> Vec<SessionKey> {
        self.live.remove(root);
        self.memory.clear(root)
    }
}

/// The system's journal: the durable one joined with that of ephemeral sessions.
pub(super) struct JournalRouter {
    pub durable: Arc<dyn Journal>,
    pub ephemerals: Arc<Ephemerals>,
}

impl JournalRouter {
    fn of(&self, sid: Sid) -> &dyn Journal {
        match sid > FIRST {
            true => &self.ephemerals.memory,
            false => &*self.durable,
        }
    }

    fn named(&self, name: &SessionName) -> &dyn Journal {
        match name.is_ephemeral() {
            true => &self.ephemerals.memory,
            false => &*self.durable,
        }
    }
}

impl Journal for JournalRouter {
    fn claim(&self, key: SessionKey) -> JournalFuture<'_, Claim> {
        Box::pin(async move {
            let claim = self.named(&key.name).claim(key.clone()).await?;
            self.ephemerals.reject_if_ended(&key, claim)
        })
    }

    fn begin(
        &self,
        key: SessionKey,
        records: Vec<Arc<Record>>,
        leaves: SessionStatus,
    ) -> JournalFuture<'_, Claim> {
        Box::pin(async move {
            let journal = self.named(&key.name);
            let claim = journal.begin(key.clone(), records, leaves).await?;
            self.ephemerals.reject_if_ended(&key, claim)
        })
    }

    fn losses(&self) -> u64 {
        self.durable.losses()
    }

    fn release(&self, sid: Sid, epoch: Epoch) -> JournalFuture<'_, ()> {
        self.of(sid).release(sid, epoch)
    }

    fn append(&self, append: Append) -> JournalFuture<'_, Seq> {
        self.of(append.sid).append(append)
    }

    fn read(&self, sid: Sid, after: Seq, limit: usize) -> JournalFuture<'_, Vec<Entry>> {
        self.of(sid).read(sid, after, limit)
    }

    fn find(&self, key: SessionKey) -> JournalFuture<'_, Option<Known>> {
        self.named(&key.name).find(key)
    }

    fn list(
        &self,
        tenant: TenantId,
        after: Option<SessionName>,
        limit: usize,
    ) -> JournalFuture<'_, Vec<Known>> {
        Box::pin(async move {
            let (durable, memory) = (&self.durable, &self.ephemerals.memory);
            let mut all = memory.list(tenant.clone(), after.clone(), limit).await?;
            all.extend(durable.list(tenant, after, limit).await?);
            all.sort_by(|one, other| one.key.name.cmp(&other.key.name));
            all.truncate(limit);
            Ok(all)
        })
    }

    fn tenants(&self, after: Option<TenantId>, limit: usize) -> JournalFuture<'_, Vec<TenantId>> {
        self.durable.tenants(after, limit)
    }

    fn unfinished(
        &self,
        of: Option<TenantId>,
        sids: Sids,
        limit: usize,
    ) -> JournalFuture<'_, Vec<Known>> {
        Box::pin(async move {
            let (durable, memory) = (&self.durable, &self.ephemerals.memory);
            let mut all = match *sids.start() <= FIRST {
                true => durable.unfinished(of.clone(), sids.clone(), limit).await?,
                false => Vec::new(),
            };
            let room = limit - all.len();
            all.extend(memory.unfinished(of, sids, room).await?);
            Ok(all)
        })
    }

    fn save(&self, sid: Sid, epoch: Epoch, snapshot: Snapshot) -> JournalFuture<'_, ()> {
        self.of(sid).save(sid, epoch, snapshot)
    }

    fn snapshot(&self, sid: Sid) -> JournalFuture<'_, Option<Snapshot>> {
        self.of(sid).snapshot(sid)
    }

    fn usage(&self, payer: Payer, since: Day) -> JournalFuture<'_, Vec<DayUsage>> {
        self.durable.usage(payer, since)
    }

    fn delete(&self, sid: Sid, only: Only) -> JournalFuture<'_, Vec<Known>> {
        self.of(sid).delete(sid, only)
    }

    fn forget(&self, sid: Sid, only: Only) -> JournalFuture<'_, (Vec<Known>, Erasure)> {
        self.of(sid).forget(sid, only)
    }

    fn search(&self, tenant: TenantId, words: String, limit: usize) -> JournalFuture<'_, Vec<Hit>> {
        self.durable.search(tenant, words, limit)
    }
}

pub(super) struct UsageLog {
    pub log: SystemLog,
    /// Held so that the writer ends with the services of the system.
    pub _writer: Task,
}

impl UsageLog {
    /// Makes the estimated usage of a call durable before the call is made.
    pub(super) async fn begin(&self, call: &MeteredCall) -> Result<(), Fault> {
        let estimate = call.estimate();
        let charges = call.charges(&estimate.usage, &Usage::default());
        let noted = self.log.record(LlmFact::Estimated(estimate), charges);
        noted.await.map(drop).map_err(|error| {
            let detail = format!("cannot record the usage of the call: {error}");
            Fault::retryable(FaultCode::Journal, detail)
        })
    }

    pub(super) async fn end(&self, call: MeteredCall, usage: Usage) {
        let used = call.usage(usage);
        let charges = call.charges(&used.usage, &call.estimate().usage);
        if !call.is_limited {
            self.log.send(LlmFact::Used(used), charges).await;
        } else if let Err(error) = self.log.record(LlmFact::Used(used), charges).await {
            tracing::warn!(%error, "cannot record the usage of a call: its estimate counts");
        }
    }
}

pub(super) struct MeteredCall {
    pub session: SessionKey,
    /// Who pays for the call.
    pub by: By,
    /// The time that it counts for.
    pub at: Timestamp,
    pub token: CallToken,
    pub model: Arc<str>,
    pub tokens: u64,
    pub price: Option<crate::model::Price>,
    /// Whether a budget of the tenant or key applies, so that the usage has to be counted before the
    /// next turn.
    pub is_limited: bool,
}

impl MeteredCall {
    fn estimate(&self) -> ModelUsage {
        self.usage(Usage {
            input_tokens: self.tokens,
            ..Usage::default()
        })
    }

    fn charges(&self, usage: &Usage, counted: &Usage) -> Vec<Charge> {
        let usage = DayUsage::new(self.at, usage, counted);
        Charge::of(&self.session.tenant, &self.by, usage)
    }

    fn usage(&self, usage: Usage) -> ModelUsage {
        ModelUsage {
            session: self.session.clone(),
            query: self.token.query,
            turn: self.token.turn,
            attempt: self.token.attempt,
            model: self.model.to_string(),
            usage: usage.priced(self.price.as_ref()),
        }
    }
}
