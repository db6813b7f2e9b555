//! Liveness and readiness. Neither reveals sessions or tenants.

use std::{collections::BTreeMap, time::Duration};

use axum::{Json, extract::State, http::StatusCode};
use serde::Serialize;
use utoipa::ToSchema;
use utoipa_axum::routes;

use super::{Host, Route, RouteGroup};
use crate::{
    actor::{CircuitState, ModelState, ProviderState},
    model::{SessionKey, SessionName},
};

const PATIENCE: Duration = Duration::from_secs(2);
/// For how long a reply shows that its provider is available.
const RECENT: Duration = Duration::from_secs(30);

pub(super) fn routes() -> Vec<Route> {
    [routes!(healthz), routes!(readyz)]
        .map(|methods| Route::without_post(RouteGroup::Open, methods))
        .into()
}

/// Reports whether the process is alive.
#[utoipa::path(get, path = "/healthz", tag = "health", security(()), responses(
    (status = 200, description = "The process is alive.", body = str)
))]
async fn healthz() -> &'static str {
    "ok\n"
}

/// The server's readiness.
#[derive(Debug, Serialize, ToSchema)]
struct Readiness {
    /// Whether the server accepts new messages and can answer them.
    ready: bool,
    /// `ok`, or why the journal is unusable; the log has details.
    journal: &'static str,
    /// Whether the server is draining or shutting down.
    draining: bool,
    /// The providers, by name.
    providers: BTreeMap<String, Provider>,
}

/// A provider's state.
#[derive(Debug, Serialize, ToSchema)]
struct Provider {
    /// `available`, `rate_limited` or `unavailable`.
    state: &'static str,
    /// Number of queued calls.
    waiting: usize,
    /// Its models that are limited or unavailable: circuit, hold and concurrency limit.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    #[schema(value_type = Vec<Object>)]
    models: Vec<ModelState>,
}

impl From<ProviderState> for Provider {
    fn from(provider: ProviderState) -> Self {
        let (circuit, mut models) = (provider.circuit, provider.models);
        let limited =
            |model: &ModelState| model.held_until.is_some() || model.concurrency.is_some();
        let away = |circuit| circuit != CircuitState::Closed;
        models.retain(|model| limited(model) || away(model.circuit));
        let state = match models.is_empty() {
            _ if away(circuit) || models.iter().any(|model| away(model.circuit)) => "unavailable",
            true => "available",
            false => "rate_limited",
        };
        Self {
            state,
            waiting: provider.waiting,
            models,
        }
    }
}

/// Reports whether the server accepts new messages and can answer them.
///
/// It is ready if the journal is usable, not all providers called so far are unavailable, and it is
/// not draining. A provider that replied within the last 30 seconds is available, whatever its
/// circuits.
#[utoipa::path(get, path = "/readyz", tag = "health", security(()), responses(
    (status = 200, body = Readiness),
    (status = 503, body = Readiness)
))]
async fn readyz(State(host): State<Host>) -> (StatusCode, Json<Readiness>) {
    let journal = journal(&host).await;
    let draining = host.is_draining();
    let states = host.oracle.providers();
    let now = host.oracle.clock().now();
    // A circuit that has cooled down lets the next call through.
    let open = |circuit| matches!(circuit, CircuitState::Open { until } if now < until);
    // Providers without calls have no models here.
    let mut asked = states
        .iter()
        .filter(|state| !state.models.is_empty())
        .peekable();
    let none_answers = asked.peek().is_some()
        && asked.all(|state| {
            let answers = state.answered_at.is_some_and(|at| now.since(at) < RECENT);
            !answers
                && (open(state.circuit) || state.models.iter().all(|model| open(model.circuit)))
        });
    let providers = states.into_iter();
    let providers = providers.map(|state| (state.provider.clone(), Provider::from(state)));
    let readiness = Readiness {
        ready: journal.is_ok() && !draining && !none_answers,
        journal: journal.err().unwrap_or("ok"),
        draining,
        providers: providers.collect(),
    };
    let status = match readiness.ready {
        true => StatusCode::OK,
        false => StatusCode::SERVICE_UNAVAILABLE,
    };
    (status, Json(readiness))
}

/// Checks the journal's recent writes and one read. It writes nothing, because this route needs no
/// key.
async fn journal(host: &Host) -> Result<(), &'static str> {
    if host.oracle.metrics().journal_fails() {
        return Err("not writable");
    }
    if host.cluster().is_some_and(|cluster| !cluster.has_lease()) {
        return Err("not reachable: the lease of this node has run out");
    }
    let read = host.journal.find(SessionKey::local(SessionName::system()));
    match tokio::time::timeout(PATIENCE, read).await {
        Ok(Ok(_)) => Ok(()),
        Ok(Err(_)) => Err("not readable"),
        Err(_) => Err("not responding"),
    }
}
