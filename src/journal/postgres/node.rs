//! The nodes: processes that share the database.
//!
//! A node has a random id and a row with its heartbeat. It owns sessions until its row says that it is
//! dead. Death is a recorded decision and not a matter of time alone: only a node that has seen the
//! same heartbeat for a whole lease by its own clock records it, and only if it has reached the
//! database without a gap meanwhile, because a database that stood still makes every heartbeat look
//! late. Heartbeats are times by the database's clock, which may be set; they are compared only for
//! equality. A node that was declared dead registers under another id; the epochs of its sessions rise
//! when others take them.
//!
//! The unfinished sessions of dead nodes are adopted, a few at a time, so that the survivors share
//! them. A sub-agent's session belongs to the node of its parent, as long as that runs.

use std::{
    collections::{BTreeMap, BTreeSet},
    mem,
    ops::Range,
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
    deletion::erase,
    error::Failed,
    store::{ORPHANED, fold_charges},
};
use crate::journal::{Error, Node};

/// A node and its last heartbeat, as a number.
type Seen = (i64, i64);

const BEAT: &str = "(extract(epoch FROM beat) * 1000000)::int8";

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

/// What a node knows of heartbeats, by a clock that counts the time asleep.
#[derive(Debug, Default)]
struct Beats {
    /// When the last one of its own that was answered had been sent.
    last: Duration,
    /// Since when there was no gap.
    since: Duration,
    /// The last heartbeat of each other node, and since when this one has seen it.
    others: BTreeMap<i64, (i64, Duration)>,
}

impl Beats {
    const fn begun(now: Duration) -> Self {
        Self {
            last: now,
            since: now,
            others: BTreeMap::new(),
        }
    }

    fn answered(&mut self, sent: Duration, timing: &Timing) {
        if sent.saturating_sub(self.last) > timing.beat * 2 {
            self.since = sent;
        }
        self.last = sent;
    }

    /// Notes the heartbeats of the other nodes, and when they were asked for and answered. Returns
    /// those that have been the same for a whole lease without a gap.
    fn see(&mut self, found: &[Seen], asked: Range<Duration>, timing: &Timing) -> Vec<Seen> {
        let before = mem::take(&mut self.others);
        let is_late = asked.end.saturating_sub(self.last) >= timing.beat * 2;
        let mut dead = Vec::new();
        for &(id, beat) in found {
            let known = before.get(&id).filter(|known| known.0 == beat);
            let since = known.map_or(asked.end, |known| known.1);
            self.others.insert(id, (beat, since));
            let seen = asked.start.saturating_sub(since.max(self.since));
            if seen >= timing.lease && !is_late {
                dead.push((id, beat));
            }
        }
        dead
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
#[derive(Debug, Default)]
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
    /// Whether another live node has had the same URL.
    has_twin: AtomicBool,
}

impl Membership {
    pub(super) fn new(timing: Timing, url: Option<String>) -> Self {
        Self {
            timing,
            id: AtomicI64::new(ORPHANED),
            url,
            beats: Mutex::new(Beats::begun(now())),
            ..Self::default()
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

    #[cfg(test)]
    pub(super) fn has_twin(&self) -> bool {
        self.has_twin.load(Ordering::Relaxed)
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
        self.look(client).await.map(drop)
    }

    async fn register(&self, client: &impl Run) -> Result<(), Failed> {
        let random = Uuid::now_v7().as_u64_pair().1;
        let id = (random >> 1).cast_signed();
        let sent = now();
        let sql = "INSERT INTO node (id, url) VALUES ($1, $2)";
        client.rows(sql, &[&id, &self.url]).await?;
        self.id.store(id, Ordering::Relaxed);
        *self.beats.lock() = Beats::begun(sent);
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

    /// Looks at the other nodes. Returns those that have died, with their last heartbeats.
    async fn look(&self, client: &impl Run) -> Result<Vec<Seen>, Failed> {
        let sql = format!(
            "SELECT id, url, is_draining, queries, {BEAT} FROM node
            WHERE NOT is_dead AND id <> $1 ORDER BY id"
        );
        let (mut others, mut beats): (Vec<Node>, Vec<Seen>) = (Vec::new(), Vec::new());
        let asked = now();
        for row in client.rows(&sql, &[&self.id()]).await? {
            let id = row.try_get(0)?;
            beats.push((id, row.try_get(4)?));
            others.push(Node {
                id,
                url: row.try_get(1)?,
                is_draining: row.try_get(2)?,
                queries: row.try_get::<_, i64>(3)?.cast_unsigned(),
            });
        }
        let is_twin = |node: &Node| node.url.is_some() && node.url == self.url;
        if others.iter().any(is_twin) && !self.has_twin.swap(true, Ordering::Relaxed) {
            let url = &self.url;
            tracing::error!(
                url,
                "another live node has the same `cluster.url`: give each node its own"
            );
        }
        others.retain(|node| !is_twin(node));
        *self.others.lock() = others.into();
        Ok(self.beats.lock().see(&beats, asked..now(), &self.timing))
    }

    /// Declares nodes dead, unless they have sent another heartbeat just now.
    async fn declare_dead(&self, client: &impl Run, nodes: Vec<Seen>) -> Result<(), Failed> {
        if nodes.is_empty() {
            return Ok(());
        }
        let (ids, beats): (Vec<i64>, Vec<i64>) = nodes.into_iter().unzip();
        let sql = format!(
            "UPDATE node d SET is_dead = true FROM unnest($2::int8[], $3::int8[]) AS l (id, seen)
            WHERE d.id = l.id AND {BEAT} = l.seen AND NOT d.is_dead
                AND EXISTS (SELECT FROM node m WHERE m.id = $1 AND NOT m.is_dead)
            RETURNING d.id, d.url"
        );
        for dead in client.rows(&sql, &[&self.id(), &ids, &beats]).await? {
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
    let (mut draining_since, mut is_away) = (None, false);
    loop {
        sleep(pause).await;
        if inner.ending.is_cancelled() {
            return;
        }
        let is_due = client.is_none() || now().saturating_sub(renewed) > RENEWAL;
        let limit = timing.lease / 2;
        let ticked = timeout(limit, tick(&inner, &mut client, is_due)).await;
        pause = match ticked.unwrap_or_else(|_| Err(Failed::unanswered(limit))) {
            Ok(is_more) => {
                is_away = false;
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
            Err(error) => {
                // Once in an outage.
                if !mem::replace(&mut is_away, true) {
                    tracing::warn!(%error, "this node cannot reach the database");
                }
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
    let is_due = node.lease_age() + node.timing.look / 2 >= node.timing.beat;
    if is_due && !node.beat(client).await? {
        // It may have ended just now.
        if inner.ending.is_cancelled() {
            return Ok(false);
        }
        tracing::warn!("this node was declared dead: it continues under another id");
        node.register(client).await?;
        node.losses.fetch_add(1, Ordering::Relaxed);
        return Ok(false);
    }
    let dead = node.look(client).await?;
    node.declare_dead(client, dead).await?;
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
    let erases = erase(client, None).await?;
    Ok(fold_charges(client, CLEANUP_BATCH).await? == CLEANUP_BATCH || erases)
}

#[cfg(test)]
mod tests {
    use super::*;

    const fn at(seconds: u64) -> Duration {
        Duration::from_secs(seconds)
    }

    /// When a watcher finds another node dead, which has this heartbeat at each second.
    fn dies(beat: impl Fn(u64) -> i64, away: Range<u64>) -> Option<u64> {
        let (timing, mut beats) = (Timing::default(), Beats::begun(at(0)));
        (1..60).find(|&second| {
            if away.contains(&second) {
                return false;
            }
            let now = at(second);
            if second % 2 == 0 {
                beats.answered(now, &timing);
            }
            let dead = beats.see(&[(7, beat(second))], now..now, &timing);
            !dead.is_empty()
        })
    }

    #[test]
    fn node_is_dead_when_its_heartbeat_was_the_same_for_a_lease_of_the_watchers_clock() {
        let step = |at: u64, by: i64| move |now: u64| now as i64 / 2 + by * i64::from(now >= at);
        let then_still =
            |end: u64, by: i64| move |now: u64| now.min(end) as i64 + by * i64::from(now >= end);
        let none = 0..0;
        assert_eq!(dies(step(60, 0), none.clone()), None, "alive");
        assert_eq!(
            dies(step(20, 3_600), none.clone()),
            None,
            "the clock is set forward"
        );
        assert_eq!(
            dies(step(20, -3_600), none.clone()),
            None,
            "the clock is set back"
        );
        assert_eq!(
            dies(|_| 1, none.clone()),
            Some(11),
            "dead from the beginning"
        );
        assert_eq!(dies(then_still(20, 0), none.clone()), Some(30), "killed");
        assert_eq!(
            dies(then_still(20, -3_600), none.clone()),
            Some(30),
            "killed, and the clock set back"
        );
        assert_eq!(
            dies(then_still(20, 3_600), none),
            Some(30),
            "killed, and the clock set forward"
        );
        assert_eq!(
            dies(then_still(20, 0), 25..28),
            Some(30),
            "a gap that is short enough"
        );
        assert_eq!(
            dies(then_still(20, 0), 23..40),
            Some(50),
            "a lease after the watcher's gap"
        );
        assert_eq!(
            dies(then_still(20, 0), 29..60),
            None,
            "the watcher is cut off"
        );
    }

    #[test]
    fn slow_answers_and_late_own_heartbeats_prove_no_death() {
        let timing = Timing::default();
        let look = |asked: Range<u64>, own: u64| {
            let mut beats = Beats::begun(at(0));
            beats.see(&[(7, 1)], at(0)..at(3), &timing);
            beats.last = at(own);
            let dead = beats.see(&[(7, 1)], at(asked.start)..at(asked.end), &timing);
            !dead.is_empty()
        };
        assert!(look(13..14, 12), "a lease after the first answer");
        assert!(!look(12..14, 12), "it may have been answered before that");
        assert!(!look(13..14, 10), "the own heartbeat is late");
    }
}
