//! Whether the server lives, and whether it can do its work.
//!
//! Neither tells of sessions or tenants, and both are answered however full the server is.

use std::collections::BTreeMap;

use axum::{Json, extract::State, http::StatusCode};
use serde::Serialize;
use utoipa::ToSchema;
use utoipa_axum::{router::OpenApiRouter, routes};

use super::Host;
use crate::actor::CircuitState;

mod journal;

pub(super) use journal::JournalCheck;

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
    /// The circuit of each provider: `closed`, `open` or `half_open`.
    providers: BTreeMap<String, &'static str>,
}

/// Whether the server takes new messages and can answer them: the journal can be written, a provider of
/// those that were asked answers, and the server takes anything new.
#[utoipa::path(get, path = "/readyz", tag = "health", security(()), responses(
    (status = 200, body = Readiness),
    (status = 503, body = Readiness)
))]
async fn readyz(State(host): State<Host>) -> (StatusCode, Json<Readiness>) {
    let journal = host.journal_check().journal(&host).await;
    let draining = host.takes_nothing_new();
    let states = host.oracle.providers();
    let now = host.oracle.clock().now();
    // One that has cooled down lets the next call through; it is shown as open until somebody calls.
    let open = |circuit| matches!(circuit, CircuitState::Open { until } if now < until);
    // Those that nobody has asked say nothing of whether an answer can be had.
    let mut asked = states
        .iter()
        .filter(|state| !state.models.is_empty())
        .peekable();
    let none_answers = asked.peek().is_some()
        && asked.all(|state| {
            open(state.circuit) || state.models.iter().all(|model| open(model.circuit))
        });
    let providers = states.iter();
    let providers = providers.map(|state| (state.provider.clone(), state.circuit.as_str()));
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
