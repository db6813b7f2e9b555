//! `/api/activity`: the sessions with the latest records, to search, filter and sort, for people who
//! watch thousands of them.
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

use axum::{Json, extract::State};
use futures_util::{StreamExt as _, stream};
use parking_lot::Mutex;
use serde::{Deserialize, Serialize};
use tokio::{
    sync::Mutex as AsyncMutex,
    time::{Instant, sleep, timeout},
};
use utoipa::{IntoParams, ToSchema};
use utoipa_axum::{router::OpenApiRouter, routes};

use super::{Caller, Host, Problem, extract::Query};
use crate::{
    actor::{AskError, SessionView},
    journal::Known,
    model::{
        ProfileName, QueryId, Seq, SessionKey, SessionName, SignalType, TenantId, Timestamp,
        access::Role, usage::NanoUsd,
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
/// Maximum rows of a response.
const MAX_PAGE: usize = 200;
/// How long a table is served without an update: ten times as long as its last update took, within
/// these bounds.
const MAX_AGE: RangeInclusive<Duration> = Duration::from_millis(500)..=Duration::from_secs(5);
/// How long an update, or a request for a table that another one updates, may take.
const DEADLINE: Duration = Duration::from_secs(5);
/// How often all sessions are listed, which drops deleted ones.
const LIST_INTERVAL: Duration = Duration::from_secs(60);
/// A table is dropped after this long without a request.
const IDLE: Duration = Duration::from_secs(300);
/// How much the clocks of nodes may differ.
const CLOCK_SKEW: Duration = Duration::from_secs(5);
/// Length of a question, in characters.
const QUESTION: usize = 200;

/// The order of the table. In all of them, the latest come first among equals.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
enum Order {
    /// What waits for a person, then what runs, then the rest.
    Urgency,
    /// The latest record first.
    Updated,
    /// The highest cost first.
    Cost,
    /// The most tokens first.
    Tokens,
    /// The oldest running query first.
    Age,
    /// By tenant and name.
    Name,
}

/// Selects sessions.
#[derive(Debug, Default, Deserialize, IntoParams)]
#[serde(deny_unknown_fields, default)]
#[into_params(parameter_in = Query)]
struct ActivityParams {
    /// Only sessions whose name or question has this text, in upper or lower case.
    search: String,
    /// Only sessions in this state.
    state: Option<String>,
    /// Only sessions with this profile.
    #[param(inline)]
    profile: Option<ProfileName>,
    /// Only sessions of this tenant; for the role `admin`.
    #[param(inline)]
    tenant: Option<TenantId>,
    /// Only sessions whose last query ended like this.
    outcome: Option<String>,
    /// Only sessions with this last signal.
    #[param(inline)]
    signal: Option<SignalType>,
    /// Only sessions that have cost at least this, in billionths of a US dollar.
    min_cost: u64,
    /// Only sessions whose query has been running for at least this many seconds.
    min_age: u64,
    /// Their order.
    #[param(inline)]
    sort: Option<Order>,
    /// How many sessions to leave out.
    #[param(default = 0)]
    offset: usize,
    /// Page size.
    #[param(minimum = 1, maximum = 200, default = 100)]
    limit: Option<usize>,
}

/// Sessions with the latest records.
#[derive(Debug, Serialize, ToSchema)]
struct ActivityPage {
    /// Number of the sessions that the table has.
    total: usize,
    /// Number of those that are selected.
    matching: usize,
    /// Number of sessions in each state, of those that the table has.
    states: HashMap<String, usize>,
    /// The selected sessions on this page.
    sessions: Vec<ActiveSession>,
}

/// A session in the table.
#[derive(Debug, Clone, Serialize, ToSchema)]
struct ActiveSession {
    /// Its tenant.
    tenant: TenantId,
    /// Its name.
    session: SessionName,
    /// Its profile.
    profile: Option<ProfileName>,
    /// `idle`, `closed`, `quarantined`, `unreadable`, `paused`, `approval` if a call waits for one, or
    /// the step of the running query, such as `calling` or `grant`.
    state: String,
    /// The running question, or the last one: its first 200 characters.
    question: Option<String>,
    /// The running query.
    query: Option<QueryId>,
    /// Its completed turns.
    turns: u32,
    /// Its budget of turns.
    max_turns: Option<u32>,
    /// The last signal of the running query, or of the last one.
    signal: Option<SignalType>,
    /// The outcome of the last query that has ended.
    outcome: Option<String>,
    /// The reason for that outcome, or for the state `quarantined` or `unreadable`.
    reason: Option<String>,
    /// Tokens of all queries.
    tokens: u64,
    /// Cost of all queries; null if a price is unknown.
    cost: Option<NanoUsd>,
    /// When the running query was accepted.
    since: Option<Timestamp>,
    /// When the last record was written.
    updated: Option<Timestamp>,
    /// Number of calls that wait for approval.
    calls: usize,
}

impl ActiveSession {
    /// A session whose state is not known.
    fn unread(known: &Known) -> Self {
        Self {
            tenant: known.key.tenant.clone(),
            session: known.key.name.clone(),
            profile: None,
            state: String::new(),
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
        let state = match view.state {
            _ if !view.calls.is_empty() => "approval".to_owned(),
            _ if view.paused => "paused".to_owned(),
            state => state,
        };
        let question = view.question.as_ref();
        Self {
            tenant: view.key.tenant,
            session: view.key.name,
            profile: view.profile,
            state,
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

    /// From 0 for what needs a person.
    fn urgency(&self) -> u8 {
        match &*self.state {
            "approval" | "grant" => 0,
            "paused" | "quarantined" | "unreadable" => 1,
            _ if self.query.is_some() => 2,
            "closed" => 4,
            _ => 3,
        }
    }

    fn matches(&self, wanted: &ActivityParams, search: &str, now: Timestamp) -> bool {
        let has = |text: &str| text.to_lowercase().contains(search);
        let is_its_state = |state: &String| *state == self.state;
        let age = self.since.map(|since| now.since(since));
        (search.is_empty()
            || has(self.session.as_str())
            || self.question.as_deref().is_some_and(has))
            && wanted.state.as_ref().is_none_or(is_its_state)
            && (wanted.profile.is_none() || wanted.profile == self.profile)
            && (wanted.outcome.is_none() || wanted.outcome == self.outcome)
            && (wanted.signal.is_none() || wanted.signal == self.signal)
            && self.cost.unwrap_or_default().0 >= wanted.min_cost
            && age.unwrap_or_default() >= Duration::from_secs(wanted.min_age)
    }
}

fn sort(sessions: &mut [&ActiveSession], by: Order) {
    sessions.sort_by_cached_key(|&it| {
        let first = match by {
            Order::Urgency => u64::from(it.urgency()),
            Order::Cost => u64::MAX - it.cost.unwrap_or_default().0,
            Order::Tokens => u64::MAX - it.tokens,
            Order::Age => it
                .since
                .map_or(u64::MAX, |since| since.as_millis().cast_unsigned()),
            Order::Updated | Order::Name => 0,
        };
        let latest = Reverse(it.updated.filter(|_| by != Order::Name));
        (first, latest, &it.tenant, &it.session)
    });
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
    fn fail(&mut self, state: &str, reason: String) {
        let unread = || ActiveSession::unread(&self.known);
        let session = self.session.get_or_insert_with(unread);
        session.state = state.to_owned();
        session.reason = Some(reason);
        (self.read, self.failed) = (None, Some(Instant::now()));
    }
}

/// The tables of a server: one of all sessions, and one for each tenant that asks. A request that
/// finds its table old brings it up to date.
#[derive(Debug, Default)]
pub(super) struct ActivityTables(Mutex<HashMap<Option<TenantId>, Arc<AsyncMutex<Table>>>>);

impl ActivityTables {
    fn of(&self, tenant: Option<&TenantId>) -> Arc<AsyncMutex<Table>> {
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
struct Table {
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
    async fn update(&mut self, host: &Host, tenant: Option<&TenantId>) -> Result<(), Problem> {
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
                row.fail("quarantined", reason);
            }
        }
        self.seen = Some(now);
        self.updated = Some(Instant::now());
        self.max_age = (begun.elapsed() * 10).clamp(*MAX_AGE.start(), *MAX_AGE.end());
        Ok(())
    }

    /// Reads the states of sessions with new records, the latest first.
    async fn read(&mut self, host: &Host) {
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
        let mut views = pin!(views.take_until(sleep(READ_TIMEOUT)));
        while let Some((key, view)) = views.next().await {
            let Some(row) = self.rows.get_mut(&key) else {
                continue;
            };
            match view {
                Ok(view) => {
                    row.read = Some(view.last.max(row.known.last));
                    row.failed = None;
                    row.session = Some(ActiveSession::of(view, row.known.at));
                }
                Err(AskError::NoSession(_)) => drop(self.rows.remove(&key)),
                Err(error) => row.fail("unreadable", error.to_string()),
            }
        }
    }

    fn sessions(&self) -> Vec<&ActiveSession> {
        let sessions = self.rows.values();
        sessions.filter_map(|row| row.session.as_ref()).collect()
    }
}

/// Lists the sessions of a tenant with records since a time, and from [`CLOCK_SKEW`] before it.
async fn latest(
    host: &Host,
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

/// Routes that the page polls. Those of admins do not count against their tenant's limits.
pub(super) fn routes() -> OpenApiRouter<Host> {
    OpenApiRouter::new()
        .routes(routes!(list))
        .routes(routes!(caller))
}

/// Returns the sessions with the latest records, at most 20,000, as a table for people.
///
/// With a key of the role `user`, those of its tenant. A table of many sessions is complete after some
/// requests, because each reads 2,000 states.
#[utoipa::path(get, path = "/api/activity", tag = "sessions", params(ActivityParams), responses(
    (status = 200, body = ActivityPage),
))]
async fn list(
    State(host): State<Host>,
    Caller(caller): Caller,
    Query(wanted): Query<ActivityParams>,
) -> Result<Json<ActivityPage>, Problem> {
    let limit = wanted.limit.unwrap_or(100);
    if !(1..=MAX_PAGE).contains(&limit) {
        let what = format!("`limit` must be from 1 to {MAX_PAGE}");
        return Err(Problem::bad("limit", what));
    }
    let tenant = match (caller.role, &wanted.tenant) {
        (Role::Admin, tenant) => tenant.as_ref(),
        (Role::User, Some(tenant)) if *tenant != caller.tenant => return Err(Problem::admin_only()),
        (Role::User, _) => Some(&caller.tenant),
    };
    let table = host.shared.activity.of(tenant);
    let busy = |_| Problem::overloaded("the table of sessions is being read: try again");
    let mut table = timeout(DEADLINE, table.lock()).await.map_err(busy)?;
    match timeout(DEADLINE, table.update(&host, tenant)).await {
        Ok(updated) => updated?,
        // The rows that it has are served, and a later request tries again.
        Err(_) => (table.updated, table.max_age) = (Some(Instant::now()), *MAX_AGE.end()),
    }
    let mut sessions = table.sessions();
    let mut states: HashMap<String, usize> = HashMap::new();
    for session in &sessions {
        *states.entry(session.state.clone()).or_default() += 1;
    }
    let total = sessions.len();
    let (search, now) = (wanted.search.to_lowercase(), host.oracle.clock().now());
    sessions.retain(|session| session.matches(&wanted, &search, now));
    sort(&mut sessions, wanted.sort.unwrap_or(Order::Urgency));
    let matching = sessions.len();
    let page = sessions.into_iter().skip(wanted.offset).take(limit);
    Ok(Json(ActivityPage {
        total,
        matching,
        states,
        sessions: page.cloned().collect(),
    }))
}

/// The caller, and the version of the server.
#[derive(Debug, Serialize, ToSchema)]
struct CallerInfo {
    /// The name of the key; `local` without keys.
    name: String,
    /// The tenant of the key.
    tenant: TenantId,
    /// `user` or `admin`.
    role: &'static str,
    /// The profiles that the key may use; all if empty.
    profiles: Vec<ProfileName>,
    /// Whether the server needs no keys.
    keyless: bool,
    /// The version of the server.
    version: &'static str,
}

/// Returns who the caller is.
#[utoipa::path(get, path = "/api/caller", tag = "api", responses(
    (status = 200, body = CallerInfo),
))]
async fn caller(State(host): State<Host>, Caller(caller): Caller) -> Json<CallerInfo> {
    Json(CallerInfo {
        name: caller.name.to_string(),
        tenant: caller.tenant,
        role: caller.role.as_str(),
        profiles: caller.profiles.to_vec(),
        keyless: !host.keys.is_guarded(),
        version: env!("CARGO_PKG_VERSION"),
    })
}
