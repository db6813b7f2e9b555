//! The journal in PostgreSQL, for several machines. An answered append is durable, as far as the
//! server's `synchronous_commit` goes.
//!
//! A process with the journal open is a node of a cluster (`node.rs`): it owns the sessions that it
//! claims, by its heartbeats. The statement that appends checks the fence. Writes are committed in
//! groups (`writer.rs`). If the server cannot be reached, writes and reads are tried again for some
//! time: a restart of the database shows only as a pause.
//!
//! - Records are rows with checksums, as in SQLite, encoded by the caller.
//! - Deleted rows stay in the server's files until it vacuums them, and in its backups.

use std::{
    fmt,
    sync::{Arc, atomic::Ordering},
};

use deadpool_postgres::{Object, Pool};
use parking_lot::Mutex;
use tokio::{
    task::JoinSet,
    time::{Instant, sleep, timeout},
};
use tokio_postgres::Row;
use tokio_util::sync::CancellationToken;

use super::{
    Append, Claim, Entry, Erasure, Error, Hit, Journal, JournalFuture, Known, Node, NodeFigures,
    Nodes, Only, Problem, SessionStatus, Sids, Snapshot, Stats,
    copy::Usages,
    row::{Batch, NEW, bound},
    search::SearchQuery,
};
use crate::model::{
    Day, DayUsage, Epoch, Owner, Payer, Record, Seq, SessionKey, SessionName, Sid, TenantId,
};

mod client;
mod deletion;
mod error;
mod node;
mod query;
mod schema;
mod settings;
mod store;
mod verify;
mod writer;

pub use error::OpenError;
pub use settings::Settings;

use client::{ANSWER, INSIST, PAUSE, Run as _, Value, doubts, settle, take};
use error::{Failed, Recovery};
use node::{MaybeBusy, Membership, Timing};
use query::KNOWN;
use settings::{connect, inspecting, pool};
use writer::{BatchCounts, Link, Queue};

/// Session numbers that are reserved at once.
const SID_BLOCK: i64 = 64;

/// A journal in PostgreSQL. Clones share it.
#[derive(Clone)]
pub struct Postgres {
    inner: Arc<Inner>,
    _tasks: Arc<JoinSet<()>>,
}

struct Inner {
    /// Connections that read, and one for deletions.
    pool: Pool,
    /// From which writers and heartbeats take connections of their own, however many reads wait.
    own: Pool,
    node: Membership,
    batches: Arc<BatchCounts>,
    appends: Vec<Queue<store::AppendWrite>>,
    begins: Queue<store::BeginWrite>,
    claims: Queue<store::ClaimWrite>,
    releases: Queue<store::ReleaseWrite>,
    saves: Queue<store::SnapshotWrite>,
    /// Sessions of this node that may run a query. Kept in memory, because every append would have to
    /// maintain an index over the status.
    maybe_busy: Mutex<MaybeBusy>,
    adopts: bool,
    ending: CancellationToken,
    /// Numbers for new sessions.
    sids: tokio::sync::Mutex<Vec<i64>>,
}

impl Postgres {
    /// Opens the journal of a database as a new node, and creates its tables in an empty schema.
    ///
    /// # Errors
    /// Returns an [`OpenError`] with the remedy.
    pub async fn open(settings: &Settings) -> Result<Self, OpenError> {
        Self::open_timed(settings, Timing::default()).await
    }

    async fn open_timed(settings: &Settings, timing: Timing) -> Result<Self, OpenError> {
        let own = pool(settings, 2)?;
        let pool = pool(settings, settings.readers.max(1) + 1)?;
        let mut client = connect(&own).await?;
        match schema::layout(&**client).await? {
            0 => {
                schema::migrate(&mut client).await?;
            }
            schema::LAYOUT => {}
            older => return Err(OpenError::Older(older)),
        }
        let node = Membership::new(timing, settings.node_url.clone());
        node.enter(&*client).await?;
        drop(client);
        let mut tasks = JoinSet::new();
        let links: Vec<_> = (0..settings.writers.max(1))
            .map(|_| Link::of(&own))
            .collect();
        let batches = Arc::new(BatchCounts::default());
        let start = |link| Queue::start(link, &batches, &mut tasks);
        let appends = links.iter().map(start).collect();
        let first = &links[0];
        let inner = Arc::new(Inner {
            appends,
            begins: Queue::start(first, &batches, &mut tasks),
            claims: Queue::start(first, &batches, &mut tasks),
            releases: Queue::start(first, &batches, &mut tasks),
            saves: Queue::start(first, &batches, &mut tasks),
            pool,
            own,
            node,
            batches: Arc::clone(&batches),
            maybe_busy: Mutex::default(),
            adopts: settings.adopts,
            ending: CancellationToken::new(),
            sids: tokio::sync::Mutex::default(),
        });
        tasks.spawn(node::run(Arc::clone(&inner)));
        let _tasks = Arc::new(tasks);
        Ok(Self { inner, _tasks })
    }

    /// Applies the steps of the layout that a database lacks. Returns the layout before and after.
    ///
    /// # Errors
    /// Returns an [`OpenError`] with the remedy.
    pub async fn migrate(settings: &Settings) -> Result<(i32, i32), OpenError> {
        let mut client = connect(&pool(settings, 1)?).await?;
        let before = schema::migrate(&mut client).await?;
        Ok((before, schema::LAYOUT))
    }

    /// Runs SQL in a database, for tests.
    ///
    /// # Errors
    /// Returns an [`OpenError`] with the database's message.
    #[cfg(any(test, feature = "testkit"))]
    pub async fn execute(settings: &Settings, sql: &str) -> Result<(), OpenError> {
        let client = pool(settings, 1)?.get().await.map_err(Failed::from)?;
        client.batch_execute(sql).await?;
        Ok(())
    }

    /// Runs SQL that counts something, for tests.
    ///
    /// # Errors
    /// Returns an [`OpenError`] with the database's message.
    #[cfg(any(test, feature = "testkit"))]
    pub async fn count(settings: &Settings, sql: &str) -> Result<u64, OpenError> {
        let client = pool(settings, 1)?.get().await.map_err(Failed::from)?;
        let row = client.query_one(sql, &[]).await?;
        Ok(query::number(&row, 0)?)
    }

    /// Verifies checksums, sequence numbers, the states of sessions, snapshots and the search
    /// index. Returns at most 1,000 problems.
    ///
    /// # Errors
    /// Returns an [`OpenError`] if the database cannot be read.
    pub async fn verify(settings: &Settings) -> Result<Vec<Problem>, OpenError> {
        let client = inspecting(settings).await?;
        Ok(verify::verify(&client).await?)
    }

    /// Counts sessions, records and bytes.
    ///
    /// # Errors
    /// Returns an [`OpenError`] if the database cannot be read.
    pub async fn stats(settings: &Settings) -> Result<Stats, OpenError> {
        let client = inspecting(settings).await?;
        Ok(verify::stats(&client).await?)
    }

    fn pool(&self) -> &Pool {
        &self.inner.pool
    }

    async fn sessions(&self, sql: &str, values: &[Value<'_>]) -> Result<Vec<Known>, Error> {
        let rows = self.pool().rows(sql, values).await?;
        let known = rows.iter().filter_map(|row| query::known(row).transpose());
        Ok(known.collect::<Result<_, Failed>>()?)
    }

    /// Ends this node: what it still owns may be adopted by others at once.
    pub async fn close(self) {
        let Inner {
            own, node, ending, ..
        } = &*self.inner;
        ending.cancel();
        if let Err(error) = node.leave(own).await {
            tracing::warn!(%error, "other nodes will notice the end of this one only by its lease");
        }
    }
}

impl fmt::Debug for Postgres {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Postgres").field(&self.inner.node).finish()
    }
}

impl Inner {
    /// The owner that a claim names; none for Oracle's own logs.
    fn owner(&self, key: &SessionKey) -> Option<i64> {
        (!key.name.is_reserved()).then(|| self.node.id())
    }

    async fn claim(&self, key: SessionKey, if_empty: bool) -> Result<Claim, Error> {
        self.node.check()?;
        let write = || store::ClaimWrite {
            owner: self.owner(&key),
            node: self.node.id(),
            key: key.clone(),
            if_empty,
        };
        let since = Instant::now();
        let claim = loop {
            match self.claims.ask(write()).await? {
                Some(claim) => break claim,
                None if since.elapsed() < INSIST => sleep(PAUSE).await,
                None => {
                    let why = "the session keeps changing its owner".to_owned();
                    return Err(Error::Unavailable(why));
                }
            }
        };
        // The previous owner may have left a query unfinished.
        self.maybe_busy.lock().insert(claim.sid.0.cast_signed());
        Ok(claim)
    }

    /// The parent's number, if this append opens a sub-agent's session.
    async fn parent(
        &self,
        key: Option<&SessionKey>,
        sid: Sid,
        batch: &Batch,
    ) -> Result<Option<i64>, Error> {
        let Some((name, parent)) = &batch.parent else {
            return Ok(None);
        };
        let key = match key {
            Some(key) => key.clone(),
            None => {
                let key = query::key_of(&self.pool, sid).await?;
                key.ok_or(Error::Unknown { sid })?
            }
        };
        if key.name != *name {
            return Ok(None);
        }
        let parent = key.with_name(parent.clone());
        let found = query::find(&self.pool, &parent).await?;
        let found = found.ok_or(Error::Unknown { sid })?;
        Ok(Some(found.sid.0.cast_signed()))
    }

    async fn append(&self, append: store::AppendWrite) -> Result<Seq, Error> {
        self.node.check()?;
        let number = append.sid.0.cast_signed();
        let busy = append.batch.leaves == SessionStatus::Busy;
        if busy {
            self.maybe_busy.lock().insert(number);
        }
        let writer = append.sid.0 as usize % self.appends.len();
        let (end, has_landed) = self.appends[writer].ask(append).await?;
        if has_landed && !busy {
            self.maybe_busy.lock().remove(number);
        }
        Ok(end)
    }

    async fn next_sid(&self) -> Result<Sid, Error> {
        let mut sids = self.sids.lock().await;
        if sids.is_empty() {
            let sql = "SELECT nextval('session_sid') FROM generate_series(1, $1::int8)";
            let rows = self.pool.rows(sql, &[&SID_BLOCK]).await?;
            let lowest_last = rows.iter().rev().map(|row| Ok(row.try_get(0)?));
            *sids = lowest_last.collect::<Result<_, Failed>>()?;
        }
        let sid = sids.pop().unwrap_or_default();
        Ok(Sid(sid.cast_unsigned()))
    }
}

impl Journal for Postgres {
    fn claim(&self, key: SessionKey) -> JournalFuture<'_, Claim> {
        Box::pin(self.inner.claim(key, false))
    }

    fn begin(
        &self,
        key: SessionKey,
        records: Vec<Arc<Record>>,
        leaves: SessionStatus,
    ) -> JournalFuture<'_, Claim> {
        Box::pin(async move {
            let inner = &self.inner;
            inner.node.check()?;
            let sid = inner.next_sid().await?;
            let append = |by: Claim| {
                Ok::<_, Error>(store::AppendWrite {
                    sid: by.sid,
                    epoch: by.epoch,
                    batch: Batch::of(Append::new(by, records.clone(), leaves))?,
                    parent: None,
                })
            };
            let mut first = append(Claim {
                sid,
                epoch: Epoch(1),
                last: Seq(0),
            })?;
            first.parent = inner.parent(Some(&key), NEW, &first.batch).await?;
            let parent = first.parent;
            let begin = store::BeginWrite {
                owner: inner.owner(&key),
                key: key.clone(),
                append: first,
            };
            if leaves == SessionStatus::Busy {
                inner.maybe_busy.lock().insert(sid.0.cast_signed());
            }
            if let Some(claim) = inner.begins.ask(begin).await? {
                return Ok(claim);
            }
            // The name is taken, perhaps by a session without records.
            inner.maybe_busy.lock().remove(sid.0.cast_signed());
            let claim = inner.claim(key, true).await?;
            let append = store::AppendWrite {
                parent,
                ..append(claim)?
            };
            let last = inner.append(append).await?;
            Ok(Claim { last, ..claim })
        })
    }

    fn losses(&self) -> u64 {
        self.inner.node.losses()
    }

    fn release(&self, sid: Sid, epoch: Epoch) -> JournalFuture<'_, ()> {
        self.inner.releases.ask(store::ReleaseWrite { sid, epoch })
    }

    fn append(&self, append: Append) -> JournalFuture<'_, Seq> {
        Box::pin(async move {
            let (sid, epoch) = (append.sid, append.epoch);
            let batch = Batch::made(append).await?;
            let parent = self.inner.parent(None, sid, &batch).await?;
            let append = store::AppendWrite {
                sid,
                epoch,
                batch,
                parent,
            };
            self.inner.append(append).await
        })
    }

    fn read(&self, sid: Sid, after: Seq, limit: usize) -> JournalFuture<'_, Vec<Entry>> {
        Box::pin(async move {
            let records = query::records(self.pool(), sid, after, limit).await?;
            Ok(records.into_iter().map(|(entry, _)| entry).collect())
        })
    }

    fn find(&self, key: SessionKey) -> JournalFuture<'_, Option<Known>> {
        Box::pin(async move { Ok(query::find(self.pool(), &key).await?) })
    }

    fn list(
        &self,
        tenant: TenantId,
        after: Option<SessionName>,
        limit: usize,
    ) -> JournalFuture<'_, Vec<Known>> {
        Box::pin(async move {
            let sql = format!(
                "SELECT {KNOWN} FROM session s WHERE tenant = $1 AND name > $2
                ORDER BY name LIMIT $3"
            );
            let after = after.as_ref().map_or("", SessionName::as_str);
            let values: [Value<'_>; 3] = [&tenant.as_str(), &after, &bound(limit as u64)];
            self.sessions(&sql, &values).await
        })
    }

    fn newest(&self, tenant: TenantId, limit: usize) -> JournalFuture<'_, Vec<Known>> {
        Box::pin(async move {
            // Sorts only those that are recent enough by `recent`, which has an index.
            let sql = format!(
                "SELECT {KNOWN} FROM session s
                WHERE tenant = $1 AND name <> ALL($2) AND recent >= coalesce((
                    SELECT recent FROM session WHERE tenant = $1 ORDER BY recent DESC LIMIT 1
                    OFFSET $3::int8 + cardinality($2)), {})
                ORDER BY at DESC NULLS LAST, sid DESC LIMIT $3",
                -i64::MAX
            );
            // A sum with it must not overflow.
            let limit = bound(limit as u64).min(i64::from(i32::MAX));
            let reserved = SessionName::reserved();
            let reserved: Vec<&str> = reserved.iter().map(SessionName::as_str).collect();
            let values: [Value<'_>; 3] = [&tenant.as_str(), &reserved, &limit];
            self.sessions(&sql, &values).await
        })
    }

    fn tenants(&self, after: Option<TenantId>, limit: usize) -> JournalFuture<'_, Vec<TenantId>> {
        Box::pin(async move {
            // Steps through the index, because `DISTINCT` would read all sessions.
            let sql = "
                WITH RECURSIVE t AS (
                    (SELECT tenant FROM session WHERE tenant > $1 ORDER BY tenant LIMIT 1)
                    UNION ALL
                    SELECT (SELECT s.tenant FROM session s WHERE s.tenant > t.tenant
                        ORDER BY tenant LIMIT 1)
                    FROM t WHERE t.tenant IS NOT NULL
                )
                SELECT tenant FROM t WHERE tenant IS NOT NULL LIMIT $2";
            let after = after.as_ref().map_or("", TenantId::as_str);
            let rows = self
                .pool()
                .rows(sql, &[&after, &bound(limit as u64)])
                .await?;
            let mut tenants = Vec::new();
            for row in &rows {
                tenants.extend(TenantId::new(row.try_get(0).map_err(Failed::from)?).ok());
            }
            Ok(tenants)
        })
    }

    fn unfinished(
        &self,
        of: Option<TenantId>,
        sids: Sids,
        limit: usize,
    ) -> JournalFuture<'_, Vec<Known>> {
        Box::pin(async move {
            let (first, last) = (bound(sids.start().0), bound(sids.end().0));
            let most = bound(limit as u64);
            if let Some(tenant) = of {
                // Those of dead nodes too. By the index of the owners: few sessions have one.
                let sql = format!(
                    "SELECT {KNOWN} FROM session s WHERE busy = 1 AND sid + 0 BETWEEN $1 AND $2
                        AND owner IS NOT NULL AND tenant = $4 ORDER BY sid + 0 LIMIT $3"
                );
                let values: [Value<'_>; 4] = [&first, &last, &most, &tenant.as_str()];
                return self.sessions(&sql, &values).await;
            }
            let sql = format!(
                "SELECT {KNOWN} FROM session s WHERE busy = 1 AND sid BETWEEN $1 AND $2
                    AND sid = ANY($4) AND NOT EXISTS (SELECT FROM node n
                        WHERE n.id = s.owner AND NOT n.is_dead AND n.id <> $5)
                ORDER BY sid LIMIT $3"
            );
            let own = self.inner.maybe_busy.lock().all();
            let (own, node) = (&*own, self.inner.node.id());
            self.sessions(&sql, &[&first, &last, &most, &own, &node])
                .await
        })
    }

    fn save(&self, sid: Sid, epoch: Epoch, snapshot: Snapshot) -> JournalFuture<'_, ()> {
        self.inner.saves.ask(store::SnapshotWrite {
            sid,
            epoch,
            snapshot,
        })
    }

    fn snapshot(&self, sid: Sid) -> JournalFuture<'_, Option<Snapshot>> {
        Box::pin(async move { Ok(query::snapshot(self.pool(), sid).await?) })
    }

    fn usage(&self, payer: Payer, since: Day) -> JournalFuture<'_, Vec<DayUsage>> {
        Box::pin(async move {
            let sql = format!(
                "SELECT day, least(sum(tokens), {MOST})::int8, least(sum(nano_usd), {MOST})::int8
                FROM (
                    SELECT * FROM usage WHERE payer = $1 AND day >= $2
                    UNION ALL SELECT * FROM charge WHERE payer = $1 AND day >= $2
                ) c GROUP BY day ORDER BY day",
                MOST = i64::MAX
            );
            let values: [Value<'_>; 2] = [&payer.to_string(), &since.0];
            let rows = self.pool().rows(&sql, &values).await?;
            Ok(rows.iter().map(day_usage).collect::<Result<_, Failed>>()?)
        })
    }

    fn delete(&self, sid: Sid, only: Only) -> JournalFuture<'_, Vec<Known>> {
        Box::pin(async move {
            let (gone, erased) = self.forget(sid, only).await?;
            erased.await?;
            Ok(gone)
        })
    }

    fn forget(&self, sid: Sid, only: Only) -> JournalFuture<'_, (Vec<Known>, Erasure)> {
        Box::pin(async move {
            let mut client = take(self.pool()).await?;
            let (since, doubts) = (Instant::now(), doubts());
            let (gone, family) = loop {
                match deletion::delete(&mut client, self.inner.node.id(), sid, only).await {
                    // Others lock the same sessions in another order.
                    Err(failed)
                        if matches!(failed.recovery(), Recovery::Retry | Recovery::Isolate)
                            && since.elapsed() < INSIST => {}
                    gone => break gone?,
                }
            };
            for Known { sid, .. } in &gone {
                self.inner.maybe_busy.lock().remove(sid.0.cast_signed());
            }
            let settled = timeout(ANSWER, settle(doubts, &*client)).await;
            let settled = settled.unwrap_or_else(|_| Err(Failed::unanswered(ANSWER)));
            if settled.as_ref().is_err_and(Failed::loses_connection) {
                drop(Object::take(client));
            }
            settled?;
            let pool = self.pool().clone();
            // What is left then, nodes erase in the background.
            let erasure = async move {
                let (since, client) = (Instant::now(), take(&pool).await);
                while let Ok(client) = &client
                    && since.elapsed() < INSIST
                    && let Ok(true) = deletion::erase(&**client, Some(&family)).await
                {
                }
                Ok(())
            };
            Ok((gone, Box::pin(erasure) as Erasure))
        })
    }

    fn search(&self, tenant: TenantId, words: String, limit: usize) -> JournalFuture<'_, Vec<Hit>> {
        Box::pin(async move {
            let Some(wanted) = SearchQuery::of(&words) else {
                return Ok(Vec::new());
            };
            Ok(query::search(self.pool(), &tenant, &wanted, limit).await?)
        })
    }
}

impl Nodes for Postgres {
    fn owner(&self, key: SessionKey) -> JournalFuture<'_, Option<Owner>> {
        Box::pin(async move {
            let sql = "SELECT n.url FROM session s JOIN node n ON n.id = s.owner
                WHERE s.tenant = $1 AND s.name = $2 AND NOT n.is_dead AND n.id <> $3";
            let (tenant, name) = (key.tenant.as_str(), key.name.as_str());
            let values: [Value<'_>; 3] = [&tenant, &name, &self.inner.node.id()];
            let found = self.pool().row(sql, &values).await?;
            Ok(found.map(|row| store::owner(&row, 0)).transpose()?)
        })
    }

    fn others(&self) -> Arc<[Node]> {
        self.inner.node.others()
    }

    fn figures(&self) -> NodeFigures {
        let Inner { node, batches, .. } = &*self.inner;
        NodeFigures {
            lease_age: node.lease_age(),
            adopted: node.adopted(),
            batches: batches.batches.load(Ordering::Relaxed),
            batched: batches.requests.load(Ordering::Relaxed),
        }
    }

    fn report(&self, is_draining: bool, queries: u64) {
        self.inner.node.report(is_draining, queries);
    }
}

impl Usages for Postgres {
    fn usages(&self) -> JournalFuture<'_, Vec<(String, DayUsage)>> {
        Box::pin(async move {
            let sql = format!(
                "SELECT day, least(sum(tokens), {MOST})::int8, least(sum(nano_usd), {MOST})::int8,
                    payer
                FROM (SELECT * FROM usage UNION ALL SELECT * FROM charge) c
                WHERE payer NOT LIKE 'stored/%'
                GROUP BY payer, day ORDER BY payer COLLATE \"C\", day",
                MOST = i64::MAX
            );
            let rows = self.pool().rows(&sql, &[]).await?;
            let of_payer = |row: &Row| Ok((row.try_get(3)?, day_usage(row)?));
            Ok(rows.iter().map(of_payer).collect::<Result<_, Failed>>()?)
        })
    }

    fn set_usages(&self, usages: Vec<(String, DayUsage)>) -> JournalFuture<'_, ()> {
        Box::pin(async move { Ok(store::set_usages(self.pool(), &usages).await?) })
    }
}

fn day_usage(row: &Row) -> Result<DayUsage, Failed> {
    Ok(DayUsage {
        day: Day(row.try_get(0)?),
        tokens: row.try_get(1)?,
        nano_usd: row.try_get(2)?,
    })
}

#[cfg(test)]
mod tests;
