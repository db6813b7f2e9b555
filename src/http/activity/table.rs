//! The tables of sessions with the latest records.
//!
//! The journal tells which sessions have new records, also those of other nodes. It is read only for a
//! request, so without requests a table costs nothing.

use std::{
    cmp::Reverse,
    collections::{HashMap, HashSet},
    ops::RangeInclusive,
    pin::pin,
    sync::Arc,
    time::Duration,
};

use futures_util::{StreamExt as _, stream};
use parking_lot::Mutex;
use serde::Serialize;
use tokio::{sync::Mutex as AsyncMutex, time::Instant};
use utoipa::ToSchema;

use crate::{
    actor::{AskError, SessionView},
    http::{HostParts, Problem},
    journal::Known,
    model::{
        ProfileName, QueryId, Seq, SessionKey, SessionName, SessionState, SignalType, TenantId,
        Timestamp, usage::NanoUsd,
    },
};

/// Sessions of a table: those with the latest records.
const MAX_SESSIONS: usize = 20_000;
const MAX_TENANTS: usize = 1_000;
/// States that an update reads at most, how many concurrently, and for how long.
const MAX_READS: usize = 2_000;
const CONCURRENT_READS: usize = 16;
const READ_TIMEOUT: Duration = Duration::from_secs(2);
/// When a session that could not be read is read again.
const RETRY: Duration = Duration::from_secs(10);
/// Sessions that are listed at first for new records; four times as many each further time.
const FIRST_LIMIT: usize = 250;
/// How long a table is served without an update: ten times as long as its last update took, within
/// these bounds.
const MAX_AGE: RangeInclusive<Duration> = Duration::from_millis(500)..=Duration::from_secs(5);
/// How often all sessions are listed, which drops deleted ones.
const LIST_INTERVAL: Duration = Duration::from_secs(60);
/// A table is dropped after this long without a request.
const IDLE: Duration = Duration::from_secs(300);
/// How much the clocks of nodes may differ.
const CLOCK_SKEW: Duration = Duration::from_secs(5);
/// Length of a question, in characters.
const QUESTION: usize = 200;

/// A session in the table.
#[derive(Debug, Clone, Serialize, ToSchema)]
pub(super) struct ActiveSession {
    /// Its tenant.
    pub tenant: TenantId,
    /// Its name.
    pub session: SessionName,
    /// Its profile.
    pub profile: Option<ProfileName>,
    /// What it is doing.
    pub state: SessionState,
    /// The running question, or the last one: its first 200 characters.
    pub question: Option<String>,
    /// The running query.
    pub query: Option<QueryId>,
    /// Its completed turns.
    pub turns: u32,
    /// Its budget of turns.
    pub max_turns: Option<u32>,
    /// The last signal of the running query, or of the last one.
    pub signal: Option<SignalType>,
    /// The outcome of the last query that has ended.
    pub outcome: Option<String>,
    /// The reason for that outcome, or for the state `quarantined` or `unreadable`.
    pub reason: Option<String>,
    /// Tokens of all queries.
    pub tokens: u64,
    /// Cost of all queries; null if a price is unknown.
    pub cost: Option<NanoUsd>,
    /// When the running query was accepted.
    pub since: Option<Timestamp>,
    /// When the last record was written.
    pub updated: Option<Timestamp>,
    /// Number of calls that wait for approval.
    pub calls: usize,
}

impl ActiveSession {
    /// A session that was not read.
    fn unread(known: &Known, state: SessionState) -> Self {
        Self {
            tenant: known.key.tenant.clone(),
            session: known.key.name.clone(),
            profile: None,
            state,
            question: None,
            query: None,
            turns: 0,
            max_turns: None,
            signal: None,
            outcome: None,
            reason: None,
            tokens: 0,
            cost: None,
            since: None,
            updated: known.at,
            calls: 0,
        }
    }

    fn of(view: SessionView, updated: Option<Timestamp>) -> Self {
        let question = view.question.as_ref();
        Self {
            tenant: view.key.tenant,
            session: view.key.name,
            profile: view.profile,
            state: view.state,
            question: question.map(|text| text.chars().take(QUESTION).collect()),
            query: view.query,
            turns: view.turns,
            max_turns: view.limits.map(|limits| limits.max_turns),
            signal: view.signal,
            outcome: view.outcome,
            reason: view.quarantine.or(view.reason),
            tokens: view.total.total_tokens(),
            cost: view.total.known_cost(),
            since: view.since,
            updated,
            calls: view.calls.len(),
        }
    }
}

/// A session of a table.
#[derive(Debug)]
struct Row {
    known: Known,
    /// After which record its state was read.
    read: Option<Seq>,
    failed: Option<Instant>,
    session: Option<ActiveSession>,
}

impl Row {
    const fn of(known: Known) -> Self {
        Self {
            known,
            read: None,
            failed: None,
            session: None,
        }
    }

    fn is_stale(&self) -> bool {
        self.read.is_none_or(|read| read < self.known.last)
            && self.failed.is_none_or(|at| at.elapsed() >= RETRY)
    }

    /// Takes note that the state cannot be read.
    fn fail(&mut self, state: SessionState, reason: String) {
        let unread = || ActiveSession::unread(&self.known, state);
        let session = self.session.get_or_insert_with(unread);
        session.state = state;
        session.reason = Some(reason);
        (self.read, self.failed) = (None, Some(Instant::now()));
    }
}

/// The tables of a server: one of all sessions, and one for each tenant that asks. A request that
/// finds its table old brings it up to date.
#[derive(Debug, Default)]
pub(crate) struct ActivityTables(Mutex<HashMap<Option<TenantId>, Arc<AsyncMutex<Table>>>>);

impl ActivityTables {
    pub(super) fn of(&self, tenant: Option<&TenantId>) -> Arc<AsyncMutex<Table>> {
        let mut tables = self.0.lock();
        tables.retain(|_, table| {
            let table = table.try_lock();
            table.map_or(true, |table| {
                table.updated.is_none_or(|at| at.elapsed() < IDLE)
            })
        });
        Arc::clone(tables.entry(tenant.cloned()).or_default())
    }
}

#[derive(Debug, Default)]
pub(super) struct Table {
    rows: HashMap<SessionKey, Row>,
    updated: Option<Instant>,
    /// How long the last update is good for.
    max_age: Duration,
    /// The time of which all records have been seen.
    seen: Option<Timestamp>,
    /// When all sessions were listed.
    listed: Option<Instant>,
}

impl Table {
    pub(super) async fn update(
        &mut self,
        host: &HostParts,
        tenant: Option<&TenantId>,
    ) -> Result<(), Problem> {
        let (begun, now) = (Instant::now(), host.oracle.clock().now());
        if self.updated.is_some_and(|at| at.elapsed() < self.max_age) {
            return Ok(());
        }
        let relists = self.listed.is_none_or(|at| at.elapsed() >= LIST_INTERVAL);
        let since = self.seen.filter(|_| !relists);
        let tenants = match tenant {
            Some(tenant) => vec![tenant.clone()],
            None => host.journal.tenants(None, MAX_TENANTS).await?,
        };
        let lists = stream::iter(tenants).map(|tenant| latest(host, tenant, since));
        let mut lists = pin!(lists.buffer_unordered(CONCURRENT_READS));
        let mut found = Vec::new();
        while let Some(list) = lists.next().await {
            found.extend(list?);
            if found.len() > MAX_SESSIONS {
                found.sort_unstable_by_key(|known| Reverse(known.at));
                found.truncate(MAX_SESSIONS);
            }
        }
        if relists {
            let kept: HashSet<_> = found.iter().map(|known| &known.key).collect();
            self.rows.retain(|key, _| kept.contains(key));
            self.listed = Some(begun);
        }
        for known in found {
            match self.rows.get_mut(&known.key) {
                // Another session may have the name of a deleted one.
                Some(row) if row.known.sid == known.sid => {
                    if let Some(session) = &mut row.session {
                        session.updated = known.at;
                    }
                    row.known = known;
                }
                _ => drop(self.rows.insert(known.key.clone(), Row::of(known))),
            }
        }
        self.read(host).await;
        for (key, reason) in host.oracle.quarantined() {
            if let Some(row) = self.rows.get_mut(&key) {
                row.fail(SessionState::Quarantined, reason);
            }
        }
        self.seen = Some(now);
        self.updated = Some(Instant::now());
        self.max_age = (begun.elapsed() * 10).clamp(*MAX_AGE.start(), *MAX_AGE.end());
        Ok(())
    }

    /// Reads the states of sessions with new records, the latest first.
    async fn read(&mut self, host: &HostParts) {
        let stale = self.rows.iter().filter(|(_, row)| row.is_stale());
        let mut stale: Vec<_> = stale
            .map(|(key, row)| (row.known.at, key.clone()))
            .collect();
        stale.sort_unstable();
        let views = stale.into_iter().rev().take(MAX_READS);
        let views = views.map(async |(_, key)| {
            let view = host.oracle.session_by_key(key.clone()).view().await;
            (key, view)
        });
        let views = stream::iter(views).buffer_unordered(CONCURRENT_READS);
        let mut views = pin!(views.take_until(tokio::time::sleep(READ_TIMEOUT)));
        while let Some((key, view)) = views.next().await {
            let Some(row) = self.rows.get_mut(&key) else {
                continue;
            };
            match view {
                Ok(SessionView {
                    state: state @ SessionState::Unreadable,
                    quarantine: Some(reason),
                    ..
                }) => row.fail(state, reason),
                Ok(view) => {
                    row.read = Some(view.last.max(row.known.last));
                    row.failed = None;
                    row.session = Some(ActiveSession::of(view, row.known.at));
                }
                Err(AskError::NoSession(_)) => drop(self.rows.remove(&key)),
                Err(error) => row.fail(SessionState::Unreadable, error.to_string()),
            }
        }
    }

    /// Serves the rows that it has until a later request tries again.
    pub(super) fn put_off(&mut self) {
        (self.updated, self.max_age) = (Some(Instant::now()), *MAX_AGE.end());
    }

    pub(super) fn sessions(&self) -> Vec<&ActiveSession> {
        let sessions = self.rows.values();
        sessions.filter_map(|row| row.session.as_ref()).collect()
    }
}

/// Lists the sessions of a tenant with records since a time, and from [`CLOCK_SKEW`] before it.
async fn latest(
    host: &HostParts,
    tenant: TenantId,
    since: Option<Timestamp>,
) -> Result<Vec<Known>, Problem> {
    let mut limit = match since {
        Some(_) => FIRST_LIMIT,
        None => MAX_SESSIONS,
    };
    loop {
        let mut known = host.journal.newest(tenant.clone(), limit).await?;
        let is_later = |known: &Known| {
            let at = known.at.map(|at| at.plus(CLOCK_SKEW));
            since.is_none_or(|since| at >= Some(since))
        };
        if limit >= MAX_SESSIONS || known.len() < limit || !known.last().is_some_and(is_later) {
            known.retain(is_later);
            return Ok(known);
        }
        limit *= 4;
    }
}
