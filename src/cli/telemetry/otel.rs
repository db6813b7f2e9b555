//! Export of spans to an OpenTelemetry collector, named by the conventions for GenAI.
//!
//! The SDK reads the `OTEL_*` variables itself. Spans wait in a bounded queue and are sent by a
//! thread of their own, so a slow or unreachable collector delays nothing.

use std::env;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use opentelemetry::trace::{SpanKind, Status, TracerProvider as _};
use opentelemetry::{Array, Key, KeyValue, StringValue, Value, global};
use opentelemetry_sdk::trace::{SdkTracerProvider, SpanData, SpanExporter};
use opentelemetry_sdk::{Resource, error::OTelSdkResult, propagation::TraceContextPropagator};
use tracing::{Level, Subscriber};
use tracing_subscriber::{Layer as _, filter::Targets, registry::LookupSpan};
use tracing_subscriber::{layer::SubscriberExt as _, util::SubscriberInitExt as _};

use crate::actor::trace::CONTENT;

/// How long the end of the process waits for the last spans.
const FLUSH: Duration = Duration::from_secs(3);

/// The running export. Dropping it flushes.
#[derive(Debug)]
pub(super) struct Export(SdkTracerProvider);

impl Drop for Export {
    fn drop(&mut self) {
        // The exporter has logged why.
        let _ = self.0.shutdown_with_timeout(FLUSH);
    }
}

/// Makes `subscriber` the process's own, with an export if an endpoint is configured.
pub(super) fn start<S>(subscriber: S) -> Option<Export>
where
    S: Subscriber + for<'a> LookupSpan<'a> + Send + Sync,
{
    let exporter = is_wanted().then(|| {
        // The exporter's HTTP client takes the process's own.
        let _ = rustls::crypto::ring::default_provider().install_default();
        opentelemetry_otlp::SpanExporter::builder()
            .with_http()
            .build()
    });
    let (exporter, error) = match exporter.transpose() {
        Ok(exporter) => (exporter, None),
        Err(error) => (None, Some(error)),
    };
    let provider = exporter.map(|exporter| {
        global::set_text_map_propagator(TraceContextPropagator::new());
        let exporter = Conventional(exporter, AtomicBool::new(false));
        let provider = SdkTracerProvider::builder().with_batch_exporter(exporter);
        provider.with_resource(resource()).build()
    });
    let layer = provider.as_ref().map(|provider| {
        let mut targets = Targets::new().with_target("oracle_", Level::WARN);
        if is("OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT", "true") {
            targets = targets.with_target(CONTENT, Level::TRACE);
        }
        tracing_opentelemetry::layer()
            .with_tracer(provider.tracer("oracle"))
            .with_location(false)
            .with_threads(false)
            .with_target(false)
            .with_tracked_inactivity(false)
            .with_context_activation(false)
            .with_filter(targets)
    });
    let _ = subscriber.with(layer).try_init();
    if let Some(error) = error {
        tracing::warn!(%error, "traces are not exported: check the OTEL_* variables");
    }
    provider.map(Export)
}

fn is(variable: &str, wanted: &str) -> bool {
    env::var(variable).is_ok_and(|value| value.eq_ignore_ascii_case(wanted))
}

fn is_wanted() -> bool {
    let endpoint = |variable| env::var(variable).is_ok_and(|value| !value.trim().is_empty());
    (endpoint("OTEL_EXPORTER_OTLP_ENDPOINT") || endpoint("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT"))
        && !is("OTEL_SDK_DISABLED", "true")
        && !is("OTEL_TRACES_EXPORTER", "none")
}

fn resource() -> Resource {
    let version = KeyValue::new("service.version", env!("CARGO_PKG_VERSION"));
    let resource = Resource::builder().with_attribute(version);
    let named = Resource::builder().build().get(&Key::new("service.name"));
    match named.is_some_and(|name| !name.as_str().starts_with("unknown_service")) {
        true => resource.build(),
        false => resource.with_service_name("oracle").build(),
    }
}

/// Exports spans under the names of the conventions, and logs when the export begins to fail.
#[derive(Debug)]
struct Conventional(opentelemetry_otlp::SpanExporter, AtomicBool);

impl SpanExporter for Conventional {
    async fn export(&self, mut batch: Vec<SpanData>) -> OTelSdkResult {
        batch.iter_mut().for_each(rename);
        let exported = self.0.export(batch).await;
        let failed_before = self.1.swap(exported.is_err(), Ordering::Relaxed);
        if let (Err(error), false) = (&exported, failed_before) {
            tracing::warn!(%error, "traces are not exported: check the collector");
        }
        exported
    }

    fn set_resource(&mut self, resource: &Resource) {
        self.0.set_resource(resource);
    }
}

/// Renames a span and its attributes.
fn rename(span: &mut SpanData) {
    let (operation, object, kind) = match &*span.name {
        "request" => (None, "route", SpanKind::Server),
        "query" => (Some("invoke_agent"), "profile", SpanKind::Internal),
        "turn" => (None, "", SpanKind::Internal),
        "model_call" => (Some("chat"), "model", SpanKind::Client),
        "tool_call" => (Some("execute_tool"), "tool", SpanKind::Internal),
        _ => return,
    };
    let value = |key: &str| {
        let mut attributes = span.attributes.iter();
        let found = attributes.find(|attribute| attribute.key.as_str() == key);
        found.map_or_else(String::new, |attribute| attribute.value.to_string())
    };
    let verb = operation.map_or_else(|| value("method"), str::to_owned);
    let name = format!("{verb} {}", value(object));
    let error = value("error");
    if !error.is_empty() {
        span.status = Status::error(error);
    }
    if !object.is_empty() {
        span.name = name.trim_end().to_owned().into();
    }
    span.span_kind = kind;
    for KeyValue { key, value, .. } in &mut span.attributes {
        let name = match key.as_str() {
            "session" => "gen_ai.conversation.id",
            "profile" => "gen_ai.agent.name",
            "provider" => "gen_ai.provider.name",
            "model" => "gen_ai.request.model",
            "response_model" => "gen_ai.response.model",
            "finish_reason" => "gen_ai.response.finish_reasons",
            "input_tokens" => "gen_ai.usage.input_tokens",
            "output_tokens" => "gen_ai.usage.output_tokens",
            "tool" => "gen_ai.tool.name",
            "call" => "gen_ai.tool.call.id",
            "error" => "error.type",
            "method" => "http.request.method",
            "route" => "http.route",
            "status" => "http.response.status_code",
            _ => continue,
        };
        if name == "gen_ai.response.finish_reasons" {
            *value = Value::Array(Array::String(vec![StringValue::from(value.to_string())]));
        }
        *key = Key::from_static_str(name);
    }
    let operation = operation.map(|name| KeyValue::new("gen_ai.operation.name", name));
    span.attributes.extend(operation);
}
