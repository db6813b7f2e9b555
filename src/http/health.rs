//! Liveness and readiness. Neither tells of sessions or tenants.

use std::{collections::BTreeMap, time::Duration};

use axum::{Json, extract::State, http::StatusCode};
use serde::Serialize;
use utoipa::ToSchema;
use utoipa_axum::{router::OpenApiRouter, routes};

use super::Host;
use crate::{
    actor::{CircuitState, ModelState, ProviderState},
    model::{SessionKey, SessionName},
};

const PATIENCE: Duration = Duration::from_secs(2);

pub(super) fn routes() -> OpenApiRouter<Host> {
    OpenApiRouter::new()
        .routes(routes!(healthz))
        .routes(routes!(readyz))
}

/// Whether the process answers at all.
#[utoipa::path(get, path = "/healthz", tag = "health", security(()), responses(
    (status = 200, description = "It does.", body = str)
))]
async fn healthz() -> &'static str {
    "ok\n"
}

/// What `/readyz` says.
#[derive(Debug, Serialize, ToSchema)]
struct Readiness {
    /// Whether the server takes new messages and can answer them.
    ready: bool,
    /// `ok`, or in a few words why nothing can be made durable; the log says more.
    journal: &'static str,
    /// Whether the server ends, or drains because somebody has told it to.
    draining: bool,
    /// Each provider: `available`, `rate_limited` or `unavailable`, with the models that are not available.
    providers: BTreeMap<String, Provider>,
}

/// A provider, as `/readyz` shows it.
#[derive(Debug, Serialize, ToSchema)]
struct Provider {
    /// `available`, `rate_limited` or `unavailable`.
    state: &'static str,
    /// Calls that wait.
    waiting: usize,
    /// Its models that are limited or away: circuit, hold and concurrency limit.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    #[schema(value_type = Vec<Object>)]
    models: Vec<ModelState>,
}

impl From<ProviderState> for Provider {
    fn from(provider: ProviderState) -> Self {
        let ProviderState {
            circuit,
            waiting,
            mut models,
            ..
        } = provider;
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
            waiting,
            models,
        }
    }
}

/// Whether the server takes new messages and can answer them: the journal can be used, a provider of
/// those that were asked answers, and the server takes anything new.
#[utoipa::path(get, path = "/readyz", tag = "health", security(()), responses(
    (status = 200, body = Readiness),
    (status = 503, body = Readiness)
))]
async fn readyz(State(host): State<Host>) -> (StatusCode, Json<Readiness>) {
    let journal = journal(&host).await;
    let draining = host.takes_nothing_new();
    let states = host.oracle.providers();
    let now = host.oracle.clock().now();
    // A circuit that has cooled down lets the next call through.
    let open = |circuit| matches!(circuit, CircuitState::Open { until } if now < until);
    // Providers that were not called say nothing.
    let mut asked = states
        .iter()
        .filter(|state| !state.models.is_empty())
        .peekable();
    let none_answers = asked.peek().is_some()
        && asked.all(|state| {
            open(state.circuit) || state.models.iter().all(|model| open(model.circuit))
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

/// Whether sessions could write to the journal, and whether it can be read. Nothing is written to find out: no key is
/// needed to ask.
async fn journal(host: &Host) -> Result<(), &'static str> {
    if host.oracle.figures().journal_fails() {
        return Err("cannot be written");
    }
    let read = host.journal.find(SessionKey::local(SessionName::system()));
    match tokio::time::timeout(PATIENCE, read).await {
        Ok(Ok(_)) => Ok(()),
        Ok(Err(_)) => Err("cannot be read"),
        Err(_) => Err("does not answer"),
    }
}
