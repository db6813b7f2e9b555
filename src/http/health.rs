//! Liveness, readiness, and metrics of the system, the server and the process for Prometheus, whose
//! names and labels are part of the interface. None of them reveals sessions or tenants.

use std::{collections::BTreeMap, sync::atomic::AtomicU64, time::Duration};

use axum::{
    Json,
    extract::State,
    http::{StatusCode, header::CONTENT_TYPE},
    response::{IntoResponse, Response},
};
use prometheus_client::{
    encoding::text,
    metrics::{
        family::Family,
        gauge::{ConstGauge, Gauge},
    },
    registry::Registry,
};
use serde::Serialize;
use tokio::runtime::Handle;
use utoipa::ToSchema;
use utoipa_axum::routes;

use super::{Admin, Host, Problem, Route, RouteGroup};
use crate::{
    actor::{CircuitState, ModelState, ProcessUsage, ProviderState, QueueDepths},
    model::{SessionKey, SessionName},
};

type Gauges = Family<Vec<(&'static str, String)>, Gauge<u64, AtomicU64>>;

const OPEN_METRICS: &str = "application/openmetrics-text; version=1.0.0; charset=utf-8";

const PATIENCE: Duration = Duration::from_secs(2);
/// For how long a reply shows that its provider is available.
const RECENT: Duration = Duration::from_secs(30);

pub(super) fn routes() -> Vec<Route> {
    vec![
        Route::without_post(RouteGroup::Open, routes!(healthz)),
        Route::without_post(RouteGroup::Open, routes!(readyz)),
        Route::without_post(RouteGroup::Operators, routes!(metrics)),
    ]
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
    let asked = || states.iter().filter(|state| !state.models.is_empty());
    let is_away = |state: &ProviderState| {
        let answers = state.answered_at.is_some_and(|at| now.since(at) < RECENT);
        !answers && (open(state.circuit) || state.models.iter().all(|model| open(model.circuit)))
    };
    let none_answers = asked().next().is_some() && asked().all(is_away);
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

/// Returns metrics since the start of the process, in the OpenMetrics text format.
#[utoipa::path(get, path = "/metrics", tag = "health", responses(
    (status = 200, body = str, content_type = "application/openmetrics-text"),
))]
async fn metrics(State(host): State<Host>, _: Admin) -> Response {
    let mut all = Registry::default();
    all.register_collector(Box::new(ProcessUsage::default()));
    let registry = all.sub_registry_with_prefix("oracle");
    registry.register_collector(Box::new(host.oracle.collector()));
    depths(registry, &host.oracle.depths());
    gateways(registry, &host.oracle.providers());
    let profiles = host.oracle.profiles();
    let models = profiles
        .all()
        .flat_map(|(_, profile)| profile.policy.models.iter());
    let rows = models.filter_map(|model| {
        let end = model.retirement.as_ref()?;
        let successor = end.successor.as_deref().unwrap_or_default();
        let time = end.day.start().as_millis().cast_unsigned() / 1_000;
        Some(([("model", &*model.name), ("successor", successor)], time))
    });
    let help = "When the provider of a model in use switches it off";
    gauges(registry, ("model_retirement_seconds", help), rows);
    let mut gauge = |name: &str, help: &str, value: usize| {
        registry.register(name, help, ConstGauge::new(value as u64));
    };
    let tasks = Handle::current().metrics().num_alive_tasks();
    gauge("tasks", "Tasks of the runtime", tasks);
    gauge(
        "http_connections",
        "Open connections",
        host.shared.connections.len(),
    );
    let help = "Estimated memory of live sessions and requests in flight";
    gauge("live_bytes", help, host.oracle.tenants().live_bytes());
    let help = "Requests in progress, including streams";
    gauge(
        "http_requests_in_work",
        help,
        host.shared.overload.requests.in_use(),
    );
    let help = "Responses by status class, and requests whose client disconnected before the \
                response";
    registry.register("http_answers", help, host.shared.overload.answers.clone());
    if let Some(cluster) = host.cluster() {
        cluster.metrics(registry);
    }
    let mut text = String::new();
    match text::encode(&mut text, &all) {
        Ok(()) => ([(CONTENT_TYPE, OPEN_METRICS)], text).into_response(),
        Err(error) => {
            tracing::error!(request = "metrics", %error, "cannot encode the metrics");
            Problem::bug("metrics").into_response()
        }
    }
}

fn gauges<'a, const N: usize>(
    registry: &mut Registry,
    (name, help): (&str, &str),
    rows: impl IntoIterator<Item = ([(&'static str, &'a str); N], u64)>,
) {
    let gauges = Gauges::default();
    for (labels, value) in rows {
        let labels = labels.map(|(name, value)| (name, value.to_owned()));
        gauges.get_or_create(&labels.into()).set(value);
    }
    registry.register(name, help, gauges);
}

fn depths(registry: &mut Registry, all: &QueueDepths) {
    let mailboxes = Gauges::default();
    for (actor, waiting) in [
        ("shard", &all.shards),
        ("bus", &all.buses),
        ("classifier", &all.classifiers),
        ("composer", &all.composers),
    ] {
        for (number, waiting) in waiting.iter().enumerate() {
            let labels = vec![("actor", actor.to_owned()), ("number", number.to_string())];
            mailboxes.get_or_create(&labels).set(*waiting as u64);
        }
    }
    let help = "Messages queued for actors that all sessions share";
    registry.register("mailbox_waiting", help, mailboxes);
    let help = "Messages queued for the gateway of a provider";
    let rows = all.gateways.iter();
    let rows = rows.map(|(provider, waiting)| ([("provider", &**provider)], *waiting as u64));
    gauges(registry, ("gateway_mailbox_waiting", help), rows);
}

fn gateways(registry: &mut Registry, providers: &[ProviderState]) {
    let (mut calls, mut capacity, mut circuits) = (Vec::new(), Vec::new(), Vec::new());
    let (mut held, mut most, mut limits) = (Vec::new(), Vec::new(), Vec::new());
    for one in providers {
        let provider = ("provider", &*one.provider);
        let running = ("running", one.running, one.concurrency);
        for (state, now, may) in [running, ("waiting", one.waiting, one.queue)] {
            calls.push(([provider, ("state", state)], now as u64));
            capacity.push(([provider, ("state", state)], may as u64));
        }
        let both = (one.requests_per_minute, one.tokens_per_minute);
        let own = ("", one.circuit, both);
        let models = one.models.iter().map(|of| {
            let both = (of.requests_per_minute, of.tokens_per_minute);
            (&*of.model, of.circuit, both)
        });
        for (name, circuit, (requests, tokens)) in [own].into_iter().chain(models) {
            let model = ("model", name);
            for state in ["closed", "open", "half_open"] {
                let is = u64::from(state == circuit.as_str());
                circuits.push(([provider, model, ("state", state)], is));
            }
            for (of, limit) in [("requests", requests), ("tokens", tokens)] {
                limits.extend(limit.map(|limit| ([provider, model, ("of", of)], limit)));
            }
        }
        for of in &one.models {
            let model = [("model", &*of.model)];
            held.push((model, u64::from(of.held_until.is_some())));
            most.extend(of.concurrency.map(|limit| (model, limit as u64)));
        }
    }
    let help = "Model calls in a provider's gateway, running or waiting";
    gauges(registry, ("gateway_calls", help), calls);
    let help = "Maximum model calls in a provider's gateway, running or waiting";
    gauges(registry, ("gateway_capacity", help), capacity);
    let help = "State of a circuit breaker: 1 for the current state, 0 for the others; with an \
                empty model, that of the whole provider";
    gauges(registry, ("gateway_circuit", help), circuits);
    let help = "Whether a rate limit (429) holds back all calls of a model";
    gauges(registry, ("gateway_held", help), held);
    let help = "Maximum concurrent calls of a model, as learned from its 429 responses";
    gauges(registry, ("gateway_concurrency_limit", help), most);
    let help = "Limits per minute: of a provider by configuration, of a model as the provider reports \
         them";
    gauges(registry, ("gateway_limit_per_minute", help), limits);
}
