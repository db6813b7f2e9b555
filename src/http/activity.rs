//! `/api/activity`: the sessions with the latest records, to search, filter and sort, for people who
//! watch thousands of them.

use std::{cmp::Reverse, collections::HashMap, time::Duration};

use axum::{Json, extract::State};
use serde::{Deserialize, Serialize};
use tokio::time::timeout;
use utoipa::{IntoParams, ToSchema};
use utoipa_axum::routes;

use super::{Caller, Host, Problem, Route, RouteGroup, extract::Query};
use crate::model::{ProfileName, SignalType, StateFilter, TenantId, Timestamp, access::Role};

mod table;

use table::ActiveSession;
pub(super) use table::ActivityTables;

/// Maximum rows of a response.
const MAX_PAGE: usize = 200;
/// How long an update, or a request for a table that another one updates, may take.
const DEADLINE: Duration = Duration::from_secs(5);

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
    /// Only sessions in this state; `running` and `waiting` are several.
    #[param(inline)]
    state: Option<StateFilter>,
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
    states: HashMap<&'static str, usize>,
    /// The selected sessions on this page.
    sessions: Vec<ActiveSession>,
}

impl ActiveSession {
    fn matches(&self, wanted: &ActivityParams, search: &str, now: Timestamp) -> bool {
        let has = |text: &str| text.to_lowercase().contains(search);
        let age = self.since.map(|since| now.since(since));
        (search.is_empty()
            || has(self.session.as_str())
            || self.question.as_deref().is_some_and(has))
            && wanted.state.is_none_or(|wanted| wanted.selects(self.state))
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
            Order::Urgency => u64::from(it.state.urgency(it.calls)),
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

/// Routes that the page polls. Those of admins do not count against their tenant's limits.
pub(super) fn routes() -> Vec<Route> {
    [routes!(list), routes!(caller)]
        .map(|methods| Route::without_post(RouteGroup::Operators, methods))
        .into()
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
        Err(_) => table.put_off(),
    }
    let mut sessions = table.sessions();
    let mut states: HashMap<&str, usize> = HashMap::new();
    for session in &sessions {
        *states.entry(session.state.as_str()).or_default() += 1;
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
