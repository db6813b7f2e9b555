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
    time::Duration,
};

use deadpool_postgres::{
    Client, Manager, ManagerConfig, Object, Pool, RecyclingMethod, Runtime, Timeouts,
};
use parking_lot::Mutex;
use tokio::{
    task::JoinSet,
    time::{Instant, sleep, timeout},
};
use tokio_util::sync::CancellationToken;

use super::{
    Append, Claim, Entry, Erasure, Error, Hit, Journal, JournalFuture, Known, Node, NodeFigures,
    Nodes, Only, Problem, SessionStatus, Sids, Snapshot, Stats,
    copy::Usages,
    row::{Batch, NEW},
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

use client::{ANSWER, Connector, INSIST, PAUSE, doubts, settle, take};
use error::{Failed, Recovery};
use node::{MaybeBusy, Membership, Timing};
use settings::Target;
use writer::{BatchCounts, Link, Queue, Starting};

/// Oldest server, as `server_version_num`.
const MIN_VERSION: i32 = 140_000;
/// Deadline of a free connection.
const CONNECTION: Duration = Duration::from_secs(5);
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
        let mut starting = Starting {
            tasks: &mut tasks,
            batches: &batches,
        };
        let first = &links[0];
        let appends = links.iter().map(|link| starting.queue(link)).collect();
        let inner = Arc::new(Inner {
            appends,
            begins: starting.queue(first),
            claims: starting.queue(first),
            releases: starting.queue(first),
            saves: starting.queue(first),
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
    #[cfg(feature = "testkit")]
    pub async fn execute(settings: &Settings, sql: &str) -> Result<(), OpenError> {
        let client = pool(settings, 1)?.get().await.map_err(Failed::from)?;
        client.batch_execute(sql).await.map_err(Failed::from)?;
        Ok(())
    }

    /// Runs SQL that counts something, for tests.
    ///
    /// # Errors
    /// Returns an [`OpenError`] with the database's message.
    #[cfg(feature = "testkit")]
    pub async fn count(settings: &Settings, sql: &str) -> Result<u64, OpenError> {
        let client = pool(settings, 1)?.get().await.map_err(Failed::from)?;
        let row = client.query_one(sql, &[]).await.map_err(Failed::from)?;
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

fn pool(settings: &Settings, size: usize) -> Result<Pool, OpenError> {
    let Target { config, tls } = Target::of(settings)?;
    let recycling = ManagerConfig {
        recycling_method: RecyclingMethod::Fast,
    };
    let manager = Manager::from_connect(config, Connector(tls), recycling);
    let pool = Pool::builder(manager)
        .max_size(size)
        .runtime(Runtime::Tokio1)
        .timeouts(Timeouts {
            wait: Some(CONNECTION),
            create: Some(CONNECTION),
            recycle: Some(CONNECTION),
        });
    pool.build()
        .map_err(|error| OpenError::Database(error.to_string()))
}

/// Takes a connection, and checks the version and the settings of the server.
async fn connect(pool: &Pool) -> Result<Client, OpenError> {
    let client = pool.get().await.map_err(Failed::from)?;
    let sql =
        "SELECT current_setting('server_version_num')::int, current_setting('server_version'),
        current_setting('server_encoding'), current_setting('synchronous_commit'),
        current_setting('fsync'), current_setting('oracle.keeps_settings', true) IS NOT NULL";
    let row = client.query_one(sql, &[]).await.map_err(Failed::from)?;
    let setting = |index: usize| row.get::<_, String>(index);
    if !is_supported(row.get(0)) {
        return Err(OpenError::OldServer(setting(1)));
    }
    if !row.get::<_, bool>(5) {
        return Err(OpenError::Pooler("it ignores `options`".to_owned()));
    }
    let refused = |name, found, want| Err(OpenError::Setting { name, found, want });
    if setting(2) != "UTF8" {
        return refused("server_encoding", setting(2), "`UTF8`");
    }
    if setting(3) == "off" {
        return refused("synchronous_commit", setting(3), "`on`");
    }
    if setting(4) == "off" {
        tracing::warn!("the database has `fsync = off`: it loses records when its machine dies");
    }
    Ok(client)
}

/// A connection to an existing journal, for statements that may take long.
async fn inspecting(settings: &Settings) -> Result<Client, OpenError> {
    let client = connect(&pool(settings, 1)?).await?;
    match schema::layout(&**client).await? {
        schema::LAYOUT => {}
        0 => return Err(OpenError::Absent),
        older => return Err(OpenError::Older(older)),
    }
    let patient = client.batch_execute("SET statement_timeout = 0").await;
    patient.map_err(Failed::from)?;
    Ok(client)
}

const fn is_supported(version: i32) -> bool {
    version >= MIN_VERSION
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
            *sids = query::reserve_sids(&self.pool, SID_BLOCK).await?;
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
            let after = after.as_ref();
            Ok(query::list(self.pool(), &tenant, after, limit).await?)
        })
    }

    fn newest(&self, tenant: TenantId, limit: usize) -> JournalFuture<'_, Vec<Known>> {
        Box::pin(async move { Ok(query::newest(self.pool(), &tenant, limit).await?) })
    }

    fn tenants(&self, after: Option<TenantId>, limit: usize) -> JournalFuture<'_, Vec<TenantId>> {
        Box::pin(async move { Ok(query::tenants(self.pool(), after.as_ref(), limit).await?) })
    }

    fn unfinished(
        &self,
        of: Option<TenantId>,
        sids: Sids,
        limit: usize,
    ) -> JournalFuture<'_, Vec<Known>> {
        Box::pin(async move {
            let pool = self.pool();
            let found = match of {
                Some(tenant) => query::unfinished_of(pool, &tenant, &sids, limit).await,
                None => {
                    let own = self.inner.maybe_busy.lock().all();
                    let node = self.inner.node.id();
                    query::unfinished(pool, (&own, node), &sids, limit).await
                }
            };
            Ok(found?)
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
        Box::pin(async move { Ok(query::usage(self.pool(), &payer, since).await?) })
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
        let node = self.inner.node.id();
        Box::pin(async move { Ok(query::owner(self.pool(), &key, node).await?) })
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
        Box::pin(async move { Ok(query::usages(self.pool()).await?) })
    }

    fn set_usages(&self, usages: Vec<(String, DayUsage)>) -> JournalFuture<'_, ()> {
        Box::pin(async move { Ok(store::set_usages(self.pool(), &usages).await?) })
    }
}

#[cfg(test)]
mod tests;
