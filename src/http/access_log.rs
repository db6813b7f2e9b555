//! Request ids, the access log, and panics.
//!
//! Log lines have the target `oracle::access` and stable fields. `what` is `answered`, or `left` if
//! the client disconnected; a stream has a second line when it has `ended`.

use std::{any::Any, net::SocketAddr, panic::AssertUnwindSafe};

use axum::{
    extract::{ConnectInfo, MatchedPath, Request, State},
    http::{HeaderName, HeaderValue, Method, StatusCode, Uri},
    middleware::Next,
    response::{IntoResponse, Response},
};
use futures_util::FutureExt as _;
use tokio::time::Instant;
use tracing::{Span, field::Empty};
use uuid::Uuid;

use super::{Host, Problem, body::with_guard, connection::Peer, sse::is_stream};
use crate::{actor::trace::within_request, model::Principal};

/// Correlates a request with the log; given by the client or generated.
pub(super) const REQUEST_ID: HeaderName = HeaderName::from_static("x-request-id");
const LONGEST_ID: usize = 128;

#[derive(Debug, Clone)]
pub(super) struct RequestId(HeaderValue);

impl RequestId {
    fn of(request: &Request) -> Self {
        let given = request.headers().get(REQUEST_ID);
        let good = |value: &&HeaderValue| {
            let text = value.as_bytes();
            (1..=LONGEST_ID).contains(&text.len()) && text.iter().all(u8::is_ascii_graphic)
        };
        Self(given.filter(good).cloned().unwrap_or_else(|| {
            let made = Uuid::now_v7().to_string();
            HeaderValue::try_from(made).unwrap_or(HeaderValue::from_static("none"))
        }))
    }

    pub(super) fn as_str(&self) -> &str {
        self.0.to_str().unwrap_or_default()
    }
}

/// Marks a response without a log line, because it is one of too many.
#[derive(Debug, Clone, Copy)]
pub(super) struct NotLogged;

pub(super) async fn log_request(
    State(host): State<Host>,
    mut request: Request,
    next: Next,
) -> Response {
    let id = RequestId::of(&request);
    let extensions = request.extensions_mut();
    // Set by a host's own server.
    if extensions.get::<Peer>().is_none()
        && let Some(ConnectInfo(address)) = extensions.get::<ConnectInfo<SocketAddr>>().copied()
    {
        extensions.insert(Peer::At(address));
    }
    let span = span(&id, &request);
    let line = AccessLogLine {
        span: span.clone(),
        id: id.clone(),
        method: request.method().clone(),
        uri: request.uri().clone(),
        from: request.extensions().get::<Peer>().copied(),
        began: Instant::now(),
        host,
        waits_for: Wait::Answer,
    };
    request.extensions_mut().insert(id.clone());
    let answer = AssertUnwindSafe(next.run(request)).catch_unwind();
    let answered = within_request(id.as_str().into(), span, answer).await;
    let mut response = answered.unwrap_or_else(|panic| line.span.in_scope(|| broken(&id, &*panic)));
    response.headers_mut().insert(REQUEST_ID, id.0);
    line.answered(response)
}

/// The span of a request, which ends with its response.
fn span(id: &RequestId, request: &Request) -> Span {
    let route = request.extensions().get::<MatchedPath>();
    let span = tracing::warn_span!(
        parent: None, "request", request_id = id.as_str(), method = %request.method(),
        route = route.map(MatchedPath::as_str), status = Empty,
    );
    #[cfg(feature = "otel")]
    {
        use tracing_opentelemetry::OpenTelemetrySpanExt as _;
        // Continues the client's trace. Without an exporter, no propagator is set.
        let headers = opentelemetry_http::HeaderExtractor(request.headers());
        let caller =
            opentelemetry::global::get_text_map_propagator(|known| known.extract(&headers));
        let _ = span.set_parent(caller);
    }
    span
}

/// A request's log line, written on drop if the client disconnects.
struct AccessLogLine {
    span: Span,
    host: Host,
    id: RequestId,
    method: Method,
    uri: Uri,
    from: Option<Peer>,
    began: Instant,
    waits_for: Wait,
}

enum Wait {
    Answer,
    End,
    Nothing,
}

impl AccessLogLine {
    fn answered(mut self, response: Response) -> Response {
        self.host.shared.overload.answered(Some(response.status()));
        let by = response.extensions().get::<Principal>();
        let by = by.map(|principal| &*principal.name);
        if response.extensions().get::<NotLogged>().is_none() {
            self.write(by, Some(response.status()), "answered");
        }
        if is_stream(&response) {
            self.waits_for = Wait::End;
            return response.map(|body| with_guard(body, self));
        }
        self.waits_for = Wait::Nothing;
        response
    }

    fn write(&self, by: Option<&str>, status: Option<StatusCode>, what: &str) {
        let status = status.map(|status| i64::from(status.as_u16()));
        self.span.record("status", status);
        tracing::info!(
            target: "oracle::access",
            parent: &self.span,
            request = self.id.as_str(),
            from = self.from.map(tracing::field::display),
            by,
            method = %self.method,
            // Without the query string, which may be private.
            path = self.uri.path(),
            status,
            what,
            millis = u64::try_from(self.began.elapsed().as_millis()).unwrap_or(u64::MAX),
        );
    }
}

impl Drop for AccessLogLine {
    fn drop(&mut self) {
        match self.waits_for {
            Wait::Answer => {
                self.host.shared.overload.answered(None);
                self.write(None, None, "left");
            }
            Wait::End => self.write(None, None, "ended"),
            Wait::Nothing => {}
        }
    }
}

fn broken(id: &RequestId, panic: &(dyn Any + Send)) -> Response {
    let text = panic.downcast_ref::<String>().map(String::as_str);
    let text = text.or_else(|| panic.downcast_ref::<&str>().copied());
    let what = text.unwrap_or("no text");
    let request = id.as_str();
    tracing::error!(request, what, "the handler of a request panicked");
    Problem::bug(request).into_response()
}
