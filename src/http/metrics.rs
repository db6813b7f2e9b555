//! Metrics of the system, the server and the process, for Prometheus. Names and labels are part of the
//! interface; no label names a session or a tenant.

use std::sync::atomic::AtomicU64;

use axum::{
    extract::State,
    http::header::CONTENT_TYPE,
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
use tokio::runtime::Handle;
use utoipa_axum::routes;

use super::{Admin, Host, Problem, Route, RouteGroup};
use crate::actor::{ProcessUsage, ProviderState, QueueDepths};

type Gauges = Family<Vec<(&'static str, String)>, Gauge<u64, AtomicU64>>;

const OPEN_METRICS: &str = "application/openmetrics-text; version=1.0.0; charset=utf-8";

pub(super) fn route() -> Route {
    Route::without_post(RouteGroup::Operators, routes!(metrics))
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
    let tasks = ConstGauge::new(Handle::current().metrics().num_alive_tasks() as u64);
    registry.register("tasks", "Tasks of the runtime", tasks);
    let connections = ConstGauge::new(host.shared.connections.len() as u64);
    registry.register("http_connections", "Open connections", connections);
    let held = ConstGauge::new(host.oracle.tenants().live_bytes() as u64);
    let help = "Estimated memory of live sessions and requests in flight";
    registry.register("live_bytes", help, held);
    let requests = ConstGauge::new(host.shared.overload.requests.in_use() as u64);
    let help = "Requests in progress, including streams";
    registry.register("http_requests_in_work", help, requests);
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
