//! Routes, and the sending of answers.
//!
//! **Invariant:** no wait is longer than [`HOLD`], and none outlives the server.

use std::{
    collections::VecDeque,
    sync::Arc,
    time::{Duration, SystemTime},
};

use axum::{
    Router,
    body::Body,
    extract::{DefaultBodyLimit, FromRequest as _, Request, State},
    http::{HeaderMap, HeaderName, HeaderValue, StatusCode, header::CONTENT_TYPE},
    response::{IntoResponse as _, Response},
    routing::{get, post},
};
use bytes::Bytes;
use futures_util::stream;
use parking_lot::Mutex;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use super::{
    damage::Step,
    decide::{Answer, MockRequest, Sent},
    dialect::row,
    fault::Problem,
    limits::Limits,
    log::{InFlight, Log},
    settings::Settings,
    strict::Cache,
    voice::ReplySource,
};
use crate::llm::Dialect;

const MOST: usize = 64 << 20;
/// Upper bound of every wait.
pub(super) const HOLD: Duration = Duration::from_secs(600);
/// The listed model if settings name none.
const MODEL: &str = "mock-model";

#[derive(Debug)]
pub(super) struct Server {
    pub(super) settings: Settings,
    pub(super) voice: ReplySource,
    pub(super) limits: Mutex<Limits>,
    pub(super) cache: Mutex<Cache>,
    pub(super) log: Arc<Log>,
    pub(super) stop: CancellationToken,
}

impl Server {
    pub(super) fn new(settings: Settings, stop: CancellationToken) -> Arc<Self> {
        Arc::new(Self {
            voice: ReplySource::new(&settings),
            limits: Mutex::new(Limits::new(&settings, Instant::now())),
            cache: Mutex::default(),
            log: Arc::new(Log::keeping(settings.keep)),
            settings,
            stop,
        })
    }

    pub(super) fn has_key(&self, headers: &HeaderMap) -> bool {
        let value = |name| headers.get(name).map(HeaderValue::as_bytes);
        let bearer = value("authorization").and_then(|value| value.strip_prefix(b"Bearer "));
        let key = self.settings.key.as_deref().map(str::as_bytes);
        key.is_none() || key == value("x-api-key") || key == bearer
    }
}

type SharedState = State<Arc<Server>>;

pub(super) fn router(server: Arc<Server>) -> Router {
    let replies = Dialect::ALL.iter().fold(Router::new(), |router, &dialect| {
        let reply =
            async move |State(server): SharedState, request| answer(server, dialect, request).await;
        router.route(row(dialect).facts().path, post(reply))
    });
    replies
        .route("/v1/models", get(models))
        .route("/requests", get(requests))
        .route("/stats", get(stats))
        .route("/reset", post(reset))
        .fallback(async || {
            let problem = Problem::new(404, "no such route");
            json(404, &row(Dialect::OpenAi).error(&problem))
        })
        .with_state(server)
}

async fn models(State(server): SharedState, headers: HeaderMap) -> Response {
    let dialect = match headers.contains_key("anthropic-version") {
        true => row(Dialect::Anthropic),
        false => row(Dialect::OpenAi),
    };
    if !server.has_key(&headers) {
        let problem = Problem::new(401, "incorrect API key provided");
        return json(401, &dialect.error(&problem));
    }
    let any = [MODEL.to_owned()];
    let names: &[String] = match &*server.settings.models {
        [] => &any,
        names => names,
    };
    json(200, &dialect.models(names))
}

async fn stats(State(server): SharedState) -> Response {
    json(200, &serde_json::json!(server.log.stats()))
}

async fn reset(State(server): SharedState) -> Response {
    server.log.reset();
    json(200, &serde_json::json!({}))
}

async fn requests(State(server): SharedState) -> Response {
    let lines = server.log.requests().into_iter();
    let text: String = lines
        .map(|line| serde_json::json!(line).to_string() + "\n")
        .collect();
    respond(200, "application/x-ndjson", text.into())
}

fn json(status: u16, body: &serde_json::Value) -> Response {
    respond(status, "application/json", body.to_string().into())
}

fn respond(status: u16, kind: &'static str, body: Body) -> Response {
    let status = StatusCode::from_u16(status).unwrap_or_default();
    (status, [(CONTENT_TYPE, kind)], body).into_response()
}

async fn answer(server: Arc<Server>, dialect: Dialect, request: Request) -> Response {
    let arrived = server.log.arrived();
    let headers = request.headers().clone();
    let (body, nothing) = (body_of(request).await, Bytes::new());
    let call = MockRequest {
        dialect: row(dialect),
        number: arrived.number,
        in_flight: arrived.now,
        headers: &headers,
        body: body.as_ref().unwrap_or(&nothing),
        now: Instant::now(),
        date: now(),
    };
    let mut answer = match &body {
        Ok(_) => call.decide(&server),
        Err(problem) => call.refusal(problem),
    };
    server.log.decided(&call, &answer);
    if wait(answer.wait, &server.stop).await.is_err() {
        answer.body = Sent::Steps(vec![Step::Cut]);
    }
    into_response(answer, arrived, server.stop.clone())
}

async fn body_of(mut request: Request) -> Result<Bytes, Problem> {
    DefaultBodyLimit::max(MOST).apply(&mut request);
    let body = tokio::time::timeout(HOLD, Bytes::from_request(request, &())).await;
    let late = Problem::new(408, "the request body did not arrive in time");
    let body = body.map_err(|_| late)?;
    body.map_err(|error| match error.status() {
        StatusCode::PAYLOAD_TOO_LARGE => Problem::new(413, "the request is too large"),
        _ => Problem::new(400, "the request body is incomplete"),
    })
}

#[expect(
    clippy::disallowed_methods,
    reason = "a server's date is that of its machine"
)]
fn now() -> SystemTime {
    SystemTime::now()
}

fn into_response(answer: Answer, arrived: InFlight, stop: CancellationToken) -> Response {
    let id = format!("req_mock_{}", arrived.number);
    let body = match answer.body {
        Sent::Whole(body) => body.into(),
        Sent::Steps(steps) => sent(steps, arrived, stop),
    };
    let mut response = respond(answer.status, answer.kind, body);
    let ids = ["x-request-id", "request-id"].map(|name| (name.to_owned(), id.clone()));
    for (name, value) in answer.headers.into_iter().chain(ids) {
        if let (Ok(name), Ok(value)) = (name.parse::<HeaderName>(), HeaderValue::try_from(value)) {
            response.headers_mut().insert(name, value);
        }
    }
    response
}

#[derive(Debug, thiserror::Error)]
#[error("connection broken on purpose")]
struct Disconnected;

fn sent(steps: Vec<Step>, arrived: InFlight, stop: CancellationToken) -> Body {
    // The body owns the guard that counts the request as in flight.
    let state = (VecDeque::from(steps), arrived, stop);
    Body::from_stream(stream::unfold(state, async |(mut steps, arrived, stop)| {
        loop {
            let sent = match steps.pop_front()? {
                Step::Send(bytes) => Ok(bytes),
                Step::Flush => {
                    tokio::task::yield_now().await;
                    continue;
                }
                Step::Pause(time) => match wait(time, &stop).await {
                    Ok(()) => continue,
                    Err(stopped) => Err(stopped),
                },
                Step::Repeat(bytes, time) => {
                    steps.push_front(Step::Repeat(bytes.clone(), time));
                    wait(time, &stop).await.map(|()| bytes)
                }
                Step::Stall => wait(HOLD, &stop).await.and(Err(Disconnected)),
                Step::Cut => Err(Disconnected),
            };
            return Some((sent, (steps, arrived, stop)));
        }
    }))
}

async fn wait(time: Duration, stop: &CancellationToken) -> Result<(), Disconnected> {
    if time.is_zero() {
        return Ok(());
    }
    tokio::select! {
        () = tokio::time::sleep(time.min(HOLD)) => Ok(()),
        () = stop.cancelled() => Err(Disconnected),
    }
}

/// Serves until stopped, then finishes in-flight answers.
pub(super) async fn serve(listener: tokio::net::TcpListener, server: Arc<Server>) {
    use axum::serve::ListenerExt as _;

    let stop = server.stop.clone().cancelled_owned();
    let listener = listener.tap_io(|tcp| {
        let _ = tcp.set_nodelay(true);
    });
    let served = axum::serve(listener, router(server))
        .with_graceful_shutdown(stop)
        .await;
    if let Err(error) = served {
        tracing::error!(%error, "the mock model cannot serve requests any more");
    }
}

#[cfg(test)]
mod tests;
