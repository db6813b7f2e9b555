//! Whether the server lives, and whether it can do its work.
//!
//! Neither tells of sessions or tenants, and both are answered however full the server is.

use std::{collections::BTreeMap, time::Duration};

use axum::{Json, extract::State, http::StatusCode};
use serde::Serialize;
use tokio::{sync::Mutex, time::Instant};
use utoipa::ToSchema;
use utoipa_axum::{router::OpenApiRouter, routes};

use super::Host;
use crate::{
    actor::CircuitState,
    model::{SessionKey, SessionName},
};

/// How long the journal has to answer.
const PATIENCE: Duration = Duration::from_secs(2);
/// How long it is taken to be as it was last found: whoever asks often does not make work for it.
const FRESH: Duration = Duration::from_secs(2);

pub(super) fn routes() -> OpenApiRouter<Host> {
    OpenApiRouter::new()
        .routes(routes!(healthz))
        .routes(routes!(readyz))
}

/// Whether the process answers at all.
#[utoipa::path(get, path = "/healthz", tag = "health", responses((status = 200, body = str)))]
async fn healthz() -> &'static str {
    "ok\n"
}

/// What `/readyz` says.
#[derive(Debug, Serialize, ToSchema)]
struct Readiness {
    /// Whether the server takes new messages and can answer them.
    ready: bool,
    /// `ok`, or why nothing can be made durable.
    journal: String,
    /// Whether the server ends, or drains because somebody has told it to.
    draining: bool,
    /// The circuit of each provider: `closed`, `open` or `half_open`.
    providers: BTreeMap<String, &'static str>,
}

/// Whether the server takes new messages and can answer them: the journal can be written, a provider of
/// those that were asked answers, and the server takes anything new.
#[utoipa::path(get, path = "/readyz", tag = "health", responses(
    (status = 200, body = Readiness),
    (status = 503, body = Readiness)
))]
async fn readyz(State(host): State<Host>) -> (StatusCode, Json<Readiness>) {
    let journal = host.journal_check().journal(&host).await;
    let draining = host.takes_nothing_new();
    let states = host.oracle.providers();
    let open = |circuit| matches!(circuit, CircuitState::Open { .. });
    // Those that nobody has asked say nothing of whether an answer can be had.
    let mut asked = states
        .iter()
        .filter(|state| !state.models.is_empty())
        .peekable();
    let none_answers = asked.peek().is_some()
        && asked.all(|state| {
            open(state.circuit) || state.models.iter().all(|model| open(model.circuit))
        });
    let providers = states.iter().map(|state| {
        let circuit = match state.circuit {
            CircuitState::Closed => "closed",
            CircuitState::Open { .. } => "open",
            CircuitState::HalfOpen => "half_open",
        };
        (state.provider.clone(), circuit)
    });
    let readiness = Readiness {
        ready: journal.is_ok() && !draining && !none_answers,
        journal: journal.err().unwrap_or_else(|| "ok".to_owned()),
        draining,
        providers: providers.collect(),
    };
    let status = match readiness.ready {
        true => StatusCode::OK,
        false => StatusCode::SERVICE_UNAVAILABLE,
    };
    (status, Json(readiness))
}

/// How the journal was last found. One request at a time looks, the others wait for what it finds.
#[derive(Debug, Default)]
pub(super) struct JournalCheck(Mutex<Option<(Instant, Result<(), String>)>>);

impl JournalCheck {
    /// Whether the journal can be written.
    async fn journal(&self, host: &Host) -> Result<(), String> {
        let mut last = self.0.lock().await;
        if let Some((at, found)) = &*last
            && at.elapsed() < FRESH
        {
            return found.clone();
        }
        let found = match tokio::time::timeout(PATIENCE, look(host)).await {
            Ok(found) => found,
            Err(_) => Err(format!("it does not answer within {PATIENCE:?}")),
        };
        *last = Some((Instant::now(), found.clone()));
        found
    }
}

/// As long as sessions write there without fault, it is enough that it answers. After a fault something has
/// to be written: that the system's own session is claimed changes nothing, and its writer claims it again.
async fn look(host: &Host) -> Result<(), String> {
    let system = SessionKey::local(SessionName::system());
    let found = if host.oracle.figures().journal_fails {
        let claimed = host.journal.claim(system.clone()).await.map(drop);
        // Any process may have it.
        if let Some(letters) = host.journal.letters() {
            letters.let_go(&system);
        }
        claimed
    } else {
        host.journal.find(system).await.map(drop)
    };
    found.map_err(|error| error.to_string())
}
