//! The nodes: processes that share the database.
//!
//! A node has a random id and a row with its heartbeat, by the database's clock. It owns sessions
//! until its row says that it is dead. Death is a recorded decision and not a matter of time alone:
//! only a node that has seen the database without a gap for a whole lease records it, because a
//! database that stood still makes every heartbeat look late. A node that was declared dead
//! registers under another id; the epochs of its sessions rise when others take them.
//!
//! The unfinished sessions of dead nodes are adopted, a few at a time, so that the survivors share
//! them. A sub-agent's session belongs to the node of its parent, as long as that runs.

use std::{
    collections::BTreeSet,
    mem,
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicI64, AtomicU64, Ordering},
    },
    time::Duration,
};

use deadpool_postgres::ClientWrapper;
use parking_lot::Mutex;
use rustix::time::{ClockId, clock_gettime};
use tokio::time::{sleep, timeout};
use uuid::Uuid;

use super::{
    Inner,
    client::{Run, Value, connect},
    error::Failed,
    store::{ORPHANED, fold_charges},
};
use crate::journal::{Error, Node};

/// Timing of nodes; all of a cluster have the same.
#[derive(Debug, Clone, Copy)]
pub(super) struct Timing {
    pub(super) beat: Duration,
    pub(super) lease: Duration,
    /// Between two looks for sessions to adopt.
    pub(super) look: Duration,
}

impl Default for Timing {
    fn default() -> Self {
        Self {
            beat: Duration::from_secs(2),
            lease: Duration::from_secs(10),
            look: Duration::from_secs(1),
        }
    }
}

/// Sessions that are adopted at once.
const ADOPTION_BATCH: i64 = 32;
/// Between two looks while there is more to do, or another node drains.
const SHORT_PAUSE: Duration = Duration::from_millis(100);
/// How long this node looks that often because another one drains.
const DRAIN: Duration = Duration::from_secs(60);
/// Idle sessions of a dead node that are released at once, and charges that are added up.
const CLEANUP_BATCH: i64 = 1_000;

/// Between two looks for the busy sessions, besides one after each reconnection. A write that lands
/// later is found by the next look.
const RENEWAL: Duration = Duration::from_secs(30);

/// What a node knows of its own heartbeats, by a clock that counts the time asleep.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Beats {
    /// When the last one that was answered had been sent.
    last: Duration,
    /// Since when there was no gap.
    since: Duration,
}

impl Beats {
    fn answered(&mut self, sent: Duration, timing: &Timing) {
        if sent.saturating_sub(self.last) > timing.beat * 2 {
            self.since = sent;
        }
        self.last = sent;
    }

    /// Whether this node may declare others dead.
    fn may_declare_dead(&self, now: Duration, timing: &Timing) -> bool {
        now.saturating_sub(self.last) < timing.beat * 2
            && now.saturating_sub(self.since) >= timing.lease
    }
}

fn now() -> Duration {
    #[cfg(target_os = "linux")]
    const CLOCK: ClockId = ClockId::Boottime;
    #[cfg(not(target_os = "linux"))]
    const CLOCK: ClockId = ClockId::Monotonic;
    Duration::try_from(clock_gettime(CLOCK)).unwrap_or_default()
}

/// This process as a node.
#[derive(Debug)]
pub(super) struct Membership {
    pub(super) timing: Timing,
    id: AtomicI64,
    url: Option<String>,
    is_draining: AtomicBool,
    queries: AtomicU64,
    beats: Mutex<Beats>,
    others: Mutex<Arc<[Node]>>,
    adopted: AtomicU64,
    losses: AtomicU64,
}

impl Membership {
    pub(super) fn new(timing: Timing, url: Option<String>) -> Self {
        let now = now();
        Self {
            timing,
            id: AtomicI64::new(ORPHANED),
            url,
            is_draining: AtomicBool::new(false),
            queries: AtomicU64::new(0),
            beats: Mutex::new(Beats {
                last: now,
                since: now,
            }),
            others: Mutex::new(Arc::from([])),
            adopted: AtomicU64::new(0),
            losses: AtomicU64::new(0),
        }
    }

    pub(super) fn id(&self) -> i64 {
        self.id.load(Ordering::Relaxed)
    }

    pub(super) fn report(&self, is_draining: bool, queries: u64) {
        self.is_draining.store(is_draining, Ordering::Relaxed);
        self.queries.store(queries, Ordering::Relaxed);
    }

    pub(super) fn others(&self) -> Arc<[Node]> {
        Arc::clone(&self.others.lock())
    }

    /// Sessions that this node has adopted.
    pub(super) fn adopted(&self) -> u64 {
        self.adopted.load(Ordering::Relaxed)
    }

    /// How often this node was declared dead.
    pub(super) fn losses(&self) -> u64 {
        self.losses.load(Ordering::Relaxed)
    }

    /// Time since the last heartbeat that was answered.
    pub(super) fn lease_age(&self) -> Duration {
        now().saturating_sub(self.beats.lock().last)
    }

    fn is_new(&self) -> bool {
        self.losses() > 0 && now().saturating_sub(self.beats.lock().since) < self.timing.beat
    }

    /// Refuses to act when most of the lease is over, because others may soon own the sessions.
    pub(super) fn check(&self) -> Result<(), Error> {
        let age = self.lease_age();
        if age < self.timing.lease * 4 / 5 {
            return Ok(());
        }
        let why = format!(
            "this node has not reached the database for {} s",
            age.as_secs()
        );
        Err(Error::Unavailable(why))
    }

    /// Registers at the start of a process. Nothing else can listen at its address: a node that did
    /// has ended.
    pub(super) async fn enter(&self, client: &impl Run) -> Result<(), Failed> {
        let sql = "UPDATE node SET is_dead = true WHERE url = $1 AND NOT is_dead";
        client.rows(sql, &[&self.url]).await?;
        self.register(client).await?;
        self.refresh_others(client).await
    }

    async fn register(&self, client: &impl Run) -> Result<(), Failed> {
        let random = Uuid::now_v7().as_u64_pair().1;
        let id = (random >> 1).cast_signed();
        let sent = now();
        let sql = "INSERT INTO node (id, url) VALUES ($1, $2)";
        client.rows(sql, &[&id, &self.url]).await?;
        self.id.store(id, Ordering::Relaxed);
        *self.beats.lock() = Beats {
            last: sent,
            since: sent,
        };
        Ok(())
    }

    /// Sends a heartbeat. Returns whether this node is alive.
    async fn beat(&self, client: &impl Run) -> Result<bool, Failed> {
        let sent = now();
        let sql = "UPDATE node SET beat = clock_timestamp(), is_draining = $2, queries = $3
            WHERE id = $1 AND NOT is_dead RETURNING id";
        let is_draining = self.is_draining.load(Ordering::Relaxed);
        let queries = self.queries.load(Ordering::Relaxed).cast_signed();
        let values: [Value<'_>; 3] = [&self.id(), &is_draining, &queries];
        let is_alive = client.row(sql, &values).await?.is_some();
        if is_alive {
            self.beats.lock().answered(sent, &self.timing);
        }
        Ok(is_alive)
    }

    async fn refresh_others(&self, client: &impl Run) -> Result<(), Failed> {
        let sql = "SELECT id, url, is_draining, queries FROM node
            WHERE NOT is_dead AND id <> $1 AND (url IS NULL OR url IS DISTINCT FROM $2) ORDER BY id";
        let mut others = Vec::new();
        for row in client.rows(sql, &[&self.id(), &self.url]).await? {
            others.push(Node {
                id: row.try_get(0)?,
                url: row.try_get(1)?,
                is_draining: row.try_get(2)?,
                queries: row.try_get::<_, i64>(3)?.cast_unsigned(),
            });
        }
        *self.others.lock() = others.into();
        Ok(())
    }

    /// Declares nodes dead whose heartbeats are older than a lease.
    async fn declare_dead(&self, client: &impl Run) -> Result<(), Failed> {
        if !self.beats.lock().may_declare_dead(now(), &self.timing) {
            return Ok(());
        }
        let sql = "UPDATE node d SET is_dead = true WHERE NOT d.is_dead AND d.id <> $1
            AND d.beat < clock_timestamp() - $2::int8 * interval '1 ms'
            AND EXISTS (SELECT FROM node m WHERE m.id = $1 AND NOT m.is_dead
                AND m.beat > clock_timestamp() - $3::int8 * interval '1 ms')
            RETURNING d.id, d.url";
        let (lease, late) = (millis(self.timing.lease), millis(self.timing.beat * 2));
        for dead in client.rows(sql, &[&self.id(), &lease, &late]).await? {
            let (id, url): (i64, Option<String>) = (dead.try_get(0)?, dead.try_get(1)?);
            tracing::warn!(
                id,
                url,
                "a node has died: its unfinished sessions are adopted"
            );
        }
        Ok(())
    }

    /// Adopts unfinished sessions of dead nodes, each with its unfinished sub-agents. One whose parent
    /// is busy belongs to the parent's node. `OFFSET 0` and `+ 0` keep the planner from reading all
    /// sub-agents, or all sessions of a node.
    async fn adopt(&self, client: &impl Run) -> Result<Vec<i64>, Failed> {
        let sql = format!(
            "WITH RECURSIVE dead AS MATERIALIZED (
                SELECT ARRAY(SELECT id FROM node WHERE is_dead) || {ORPHANED}::int8 AS ids
            ),
            pick AS (
                SELECT s.sid FROM session s
                WHERE s.owner = ANY((SELECT ids FROM dead)::int8[]) AND s.busy = 1
                    AND NOT EXISTS (SELECT FROM session p WHERE p.sid = s.parent_sid
                        AND p.busy = 1 AND p.owner IS DISTINCT FROM $1)
                    AND EXISTS (SELECT FROM node WHERE id = $1 AND NOT is_dead)
                ORDER BY s.owner, s.sid LIMIT $2 FOR UPDATE OF s SKIP LOCKED
            ),
            family AS (
                SELECT sid FROM pick
                UNION
                SELECT c.sid FROM family f CROSS JOIN LATERAL (
                    SELECT sid FROM session WHERE parent_sid = f.sid OFFSET 0
                ) c
            )
            UPDATE session s SET owner = $1, epoch = s.epoch + 1 FROM family f
            WHERE s.sid = f.sid AND s.busy = 1
                AND s.owner + 0 = ANY((SELECT ids FROM dead)::int8[])
            RETURNING s.sid"
        );
        let mut busy = Vec::new();
        for row in client.rows(&sql, &[&self.id(), &ADOPTION_BATCH]).await? {
            busy.push(row.try_get(0)?);
        }
        self.adopted.fetch_add(busy.len() as u64, Ordering::Relaxed);
        Ok(busy)
    }

    /// The sessions of this node that run a query.
    async fn busy(&self, client: &impl Run) -> Result<Vec<i64>, Failed> {
        let sql = "SELECT sid FROM session WHERE owner = $1 AND busy = 1";
        let rows = client.rows(sql, &[&self.id()]).await?;
        rows.iter().map(|row| Ok(row.try_get(0)?)).collect()
    }

    /// Releases idle sessions of dead nodes, and fences them: such a node may not know yet that it
    /// is dead. Forgets dead nodes that own nothing any more.
    async fn clean_up(&self, client: &impl Run) -> Result<(), Failed> {
        let sql = "WITH pick AS (
                SELECT s.sid FROM session s
                WHERE s.owner = ANY(ARRAY(SELECT id FROM node WHERE is_dead)) AND s.busy <> 1
                ORDER BY s.owner, s.sid LIMIT $1 FOR UPDATE OF s SKIP LOCKED
            )
            UPDATE session s SET owner = NULL, epoch = s.epoch + 1 FROM pick p WHERE s.sid = p.sid";
        client.rows(sql, &[&CLEANUP_BATCH]).await?;
        let sql = "DELETE FROM node d WHERE is_dead
            AND beat < clock_timestamp() - interval '1 hour'
            AND NOT EXISTS (SELECT FROM session s WHERE s.owner = d.id)";
        client.rows(sql, &[]).await?;
        Ok(())
    }

    /// Leaves the cluster: others may adopt at once what this node still owns.
    pub(super) async fn leave(&self, client: &impl Run) -> Result<(), Failed> {
        let sql = "UPDATE node SET is_dead = true WHERE id = $1";
        client.rows(sql, &[&self.id()]).await?;
        Ok(())
    }
}

fn millis(time: Duration) -> i64 {
    i64::try_from(time.as_millis()).unwrap_or(i64::MAX)
}

/// The sessions of this node that may run a query. An answer may have been lost, so they are read
/// from time to time; what was known before then counts until the next time.
#[derive(Debug, Default)]
pub(super) struct MaybeBusy {
    known: BTreeSet<i64>,
    before: BTreeSet<i64>,
}

impl MaybeBusy {
    pub(super) fn insert(&mut self, sid: i64) {
        self.known.insert(sid);
    }

    pub(super) fn remove(&mut self, sid: i64) {
        self.known.remove(&sid);
        self.before.remove(&sid);
    }

    pub(super) fn all(&self) -> Arc<[i64]> {
        self.known.union(&self.before).copied().collect()
    }

    fn renew(&mut self, busy: Vec<i64>) {
        self.before = mem::replace(&mut self.known, busy.into_iter().collect());
    }
}

/// Keeps this node alive, and adopts the sessions of dead ones.
pub(super) async fn run(inner: Arc<Inner>) {
    let timing = inner.node.timing;
    let (mut client, mut pause, mut renewed) = (None, timing.look, now());
    let mut draining_since = None;
    loop {
        sleep(pause).await;
        if inner.ending.is_cancelled() {
            return;
        }
        let is_due = client.is_none() || now().saturating_sub(renewed) > RENEWAL;
        pause = match timeout(timing.lease / 2, tick(&inner, &mut client, is_due)).await {
            Ok(Ok(is_more)) => {
                renewed = if is_due { now() } else { renewed };
                // A node that drains releases its sessions one after the other.
                draining_since = match inner.node.others().iter().any(|node| node.is_draining) {
                    true => draining_since.or(Some(now())),
                    false => None,
                };
                let drains =
                    draining_since.is_some_and(|since| now().saturating_sub(since) < DRAIN);
                match is_more || drains {
                    true => SHORT_PAUSE.min(timing.look),
                    false => timing.look,
                }
            }
            Ok(Err(error)) => {
                tracing::warn!(%error, "this node cannot reach the database");
                client = None;
                timing.look
            }
            Err(_) => {
                tracing::warn!("the database does not answer this node");
                client = None;
                timing.look
            }
        };
    }
}

/// Returns whether there may be more to do. `renews` reads which sessions are busy.
async fn tick(
    inner: &Inner,
    client: &mut Option<ClientWrapper>,
    renews: bool,
) -> Result<bool, Failed> {
    let connected = match client.take().filter(|client| !client.is_closed()) {
        Some(client) => client,
        None => connect(&inner.own).await?,
    };
    let client = client.insert(connected);
    let node = &inner.node;
    // At the tick that is nearest to when it is due.
    if node.lease_age() + node.timing.look / 2 >= node.timing.beat {
        if !node.beat(client).await? {
            // It may have ended just now.
            if inner.ending.is_cancelled() {
                return Ok(false);
            }
            tracing::warn!("this node was declared dead: it continues under another id");
            node.register(client).await?;
            node.losses.fetch_add(1, Ordering::Relaxed);
            return Ok(false);
        }
        node.refresh_others(client).await?;
    }
    node.declare_dead(client).await?;
    if renews {
        let busy = node.busy(client).await?;
        inner.maybe_busy.lock().renew(busy);
    }
    // The sessions that this node has just lost are given up first.
    if node.is_new() {
        return Ok(false);
    }
    let adopts = inner.adopts && !node.is_draining.load(Ordering::Relaxed);
    let adopted = match adopts {
        true => node.adopt(client).await?,
        false => Vec::new(),
    };
    if !adopted.is_empty() {
        let mut maybe_busy = inner.maybe_busy.lock();
        adopted.iter().for_each(|&sid| maybe_busy.insert(sid));
        return Ok(true);
    }
    node.clean_up(client).await?;
    Ok(fold_charges(client, CLEANUP_BATCH).await? == CLEANUP_BATCH)
}

#[cfg(test)]
mod tests {
    use super::*;

    const fn at(seconds: u64) -> Duration {
        Duration::from_secs(seconds)
    }

    #[test]
    fn only_a_node_without_a_gap_for_a_lease_may_declare_dead() {
        let timing = Timing::default();
        let started = Beats {
            last: at(0),
            since: at(0),
        };
        for (name, sent, now, may) in [
            ("too young", &[2, 4, 6, 8][..], 9, false),
            ("a lease old", &[2, 4, 6, 8], 10, true),
            ("its last heartbeat is late", &[2, 4, 6, 8, 10], 14, false),
            ("a gap", &[2, 4, 6, 11, 13, 15, 17, 19], 20, false),
            (
                "a lease after the gap",
                &[2, 4, 6, 11, 13, 15, 17, 19, 21],
                21,
                true,
            ),
            ("a gap that is just short enough", &[4, 8], 11, true),
        ] {
            let mut beats = started;
            for &sent in sent {
                beats.answered(at(sent), &timing);
            }
            assert_eq!(beats.may_declare_dead(at(now), &timing), may, "{name}");
        }
    }
}
