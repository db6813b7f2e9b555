//! The server: routes, waiting and sending.
//!
//! **Invariant:** no wait is longer than [`HOLD`], and none outlives the server. A stream of comments goes on
//! until its client leaves.

use std::{
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::{Duration, SystemTime},
};

use axum::{
    Router,
    body::Body,
    extract::{DefaultBodyLimit, FromRequest as _, Request, State},
    http::{HeaderMap, HeaderName, HeaderValue, StatusCode, header::CONTENT_TYPE},
    response::Response,
    routing::{get, post},
};
use bytes::Bytes;
use futures_util::stream;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use super::{
    anthropic,
    damage::Step,
    decide::{self, Answer, Call, Sent, Wait},
    limits::Limits,
    log::{InFlight, Kept, Log},
    openai,
    problem::Problem,
    settings::Settings,
    voice::Voice,
};
use crate::llm::Dialect;

/// Most bytes of a request.
const MOST: usize = 64 << 20;
/// The longest that anything waits.
const HOLD: Duration = Duration::from_secs(600);
/// What there is where no models are named.
const MODEL: &str = "mock-model";
const CHAT: &str = "/v1/chat/completions";
const MESSAGES: &str = "/v1/messages";

/// What requests share.
#[derive(Debug)]
pub(super) struct Server {
    pub(super) settings: Settings,
    pub(super) voice: Voice,
    pub(super) limits: Option<Shared>,
    pub(super) log: Arc<Log>,
    pub(super) stop: CancellationToken,
}

/// Limits; a lock, because requests come from many tasks. Held for a few additions.
#[derive(Debug)]
pub(super) struct Shared(Mutex<Limits>);

impl Shared {
    pub(super) fn lock(&self) -> MutexGuard<'_, Limits> {
        // Nothing in here can be left half done.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Server {
    pub(super) fn new(settings: Settings, stop: CancellationToken) -> Arc<Self> {
        let limits = Limits::new(&settings, Instant::now());
        Arc::new(Self {
            voice: Voice::new(&settings),
            limits: limits.map(|limits| Shared(Mutex::new(limits))),
            log: Arc::new(Log::keeping(settings.keep)),
            settings,
            stop,
        })
    }

    pub(super) fn has_key(&self, headers: &HeaderMap) -> bool {
        let key = self.settings.key.as_ref();
        key.is_none_or(|key| decide::has_key(headers, key))
    }
}

type Shares = State<Arc<Server>>;

/// The routes.
pub(super) fn router(server: Arc<Server>) -> Router {
    Router::new()
        .route(CHAT, post(chat))
        .route(MESSAGES, post(messages))
        .route("/v1/models", get(models))
        .route("/requests", get(requests))
        .route("/stats", get(stats))
        .route("/reset", post(reset))
        .fallback(async || {
            let problem = Problem::new(404, "there is no such route");
            json(404, openai::error(&problem))
        })
        .with_state(server)
}

async fn chat(State(server): Shares, request: Request) -> Response {
    answer(server, Dialect::OpenAi, CHAT, request).await
}

async fn messages(State(server): Shares, request: Request) -> Response {
    answer(server, Dialect::Anthropic, MESSAGES, request).await
}

async fn models(State(server): Shares, headers: HeaderMap) -> Response {
    let anthropic = headers.contains_key("anthropic-version");
    if !server.has_key(&headers) {
        let problem = Problem::new(401, "incorrect API key provided");
        let body = if anthropic {
            anthropic::error(&problem)
        } else {
            openai::error(&problem)
        };
        return json(401, body);
    }
    let any = [MODEL.to_owned()];
    let names: &[String] = match &*server.settings.models {
        [] => &any,
        names => names,
    };
    json(
        200,
        if anthropic {
            anthropic::models(names)
        } else {
            openai::models(names)
        },
    )
}

async fn requests(State(server): Shares) -> Response {
    let lines = server.log.requests();
    let lines = lines
        .iter()
        .filter_map(|line| serde_json::to_string(line).ok());
    let text: String = lines.flat_map(|line| [line, "\n".to_owned()]).collect();
    respond(200, "application/x-ndjson", text.into())
}

async fn stats(State(server): Shares) -> Response {
    json(200, serde_json::json!(server.log.stats()).to_string())
}

async fn reset(State(server): Shares) -> Response {
    server.log.reset();
    json(200, "{}".to_owned())
}

fn json(status: u16, body: String) -> Response {
    respond(status, "application/json", body.into())
}

fn respond(status: u16, kind: &'static str, body: Body) -> Response {
    let mut response = Response::new(body);
    *response.status_mut() = StatusCode::from_u16(status).unwrap_or_default();
    response
        .headers_mut()
        .insert(CONTENT_TYPE, HeaderValue::from_static(kind));
    response
}

/// Answers a request for a reply.
async fn answer(
    server: Arc<Server>,
    dialect: Dialect,
    path: &'static str,
    request: Request,
) -> Response {
    let arrived = server.log.arrived();
    let headers = request.headers().clone();
    let (body, problem) = match body_of(request).await {
        Ok(body) => (body, None),
        Err(problem) => (Bytes::new(), Some(problem)),
    };
    let call = Call {
        dialect,
        number: arrived.number,
        in_flight: arrived.now,
        headers: &headers,
        body: &body,
        now: Instant::now(),
        date: date(),
    };
    let mut answer = match &problem {
        None => call.decide(&server),
        Some(problem) => call.refusal(problem),
    };
    let kept = Kept {
        number: arrived.number,
        path,
        headers,
        body,
        status: if answer.never_begins() {
            0
        } else {
            answer.status
        },
        fault: answer.fault,
        breaches: std::mem::take(&mut answer.breaches),
    };
    server.log.decided(kept, answer.is_stream());
    let time = match answer.wait {
        Wait::For(time) => time,
        Wait::Stall => HOLD,
    };
    if wait(time, &server.stop).await.is_err() {
        answer.body = Sent::Steps(vec![Step::Cut]);
    }
    given(answer, arrived, server.stop.clone())
}

/// The whole body of a request.
async fn body_of(mut request: Request) -> Result<Bytes, Problem> {
    DefaultBodyLimit::max(MOST).apply(&mut request);
    let body = tokio::time::timeout(HOLD, Bytes::from_request(request, &())).await;
    let late = Problem::new(408, "the request took too long to come");
    let body = body.map_err(|_| late)?;
    body.map_err(|error| match error.status() {
        StatusCode::PAYLOAD_TOO_LARGE => Problem::new(413, "the request is too large"),
        _ => Problem::new(400, "the request broke off"),
    })
}

#[expect(
    clippy::disallowed_methods,
    reason = "a server's date is that of its machine"
)]
fn date() -> SystemTime {
    SystemTime::now()
}

fn given(answer: Answer, arrived: InFlight, stop: CancellationToken) -> Response {
    let id = format!("req_mock_{}", arrived.number);
    let body = match answer.body {
        Sent::Whole(body) => body.into(),
        Sent::Steps(steps) => sent(steps, arrived, stop),
    };
    let mut response = respond(answer.status, answer.kind, body);
    let names = answer
        .headers
        .iter()
        .map(|(name, value)| (&**name, &**value));
    for (name, value) in names.chain([("x-request-id", &*id), ("request-id", &*id)]) {
        if let (Ok(name), Ok(value)) = (name.parse::<HeaderName>(), HeaderValue::from_str(value)) {
            response.headers_mut().insert(name, value);
        }
    }
    response
}

/// The connection is to be broken off.
#[derive(Debug, thiserror::Error)]
#[error("broken off on purpose")]
struct BrokenOff;

/// A body that goes out step by step.
fn sent(steps: Vec<Step>, arrived: InFlight, stop: CancellationToken) -> Body {
    // What counts the request as being answered goes with its body.
    let state = (steps.into_iter(), None, arrived, stop);
    Body::from_stream(stream::unfold(
        state,
        async |(mut steps, mut repeated, arrived, stop)| {
            loop {
                let step = match repeated.take() {
                    Some(step) => Some(step),
                    None => steps.next(),
                };
                let sent: Result<Bytes, BrokenOff> = match step? {
                    Step::Send(bytes) => Ok(bytes),
                    Step::Flush => {
                        tokio::task::yield_now().await;
                        continue;
                    }
                    Step::Pause(time) => match wait(time, &stop).await {
                        Ok(()) => continue,
                        Err(Stopped) => Err(BrokenOff),
                    },
                    Step::Repeat(bytes, time) => match wait(time, &stop).await {
                        Ok(()) => {
                            repeated = Some(Step::Repeat(bytes.clone(), time));
                            Ok(bytes)
                        }
                        Err(Stopped) => Err(BrokenOff),
                    },
                    Step::Stall => {
                        // Whether it was stopped or held too long, it ends in the same way.
                        let _ = wait(HOLD, &stop).await;
                        Err(BrokenOff)
                    }
                    Step::Cut => Err(BrokenOff),
                };
                return Some((sent, (steps, repeated, arrived, stop)));
            }
        },
    ))
}

/// The server ends.
struct Stopped;

async fn wait(time: Duration, stop: &CancellationToken) -> Result<(), Stopped> {
    if time.is_zero() {
        return Ok(());
    }
    tokio::select! {
        () = tokio::time::sleep(time.min(HOLD)) => Ok(()),
        () = stop.cancelled() => Err(Stopped),
    }
}

/// Serves until it is stopped, and what was begun then comes to its end.
pub(super) async fn serve(listener: tokio::net::TcpListener, server: Arc<Server>) {
    use axum::serve::ListenerExt as _;

    let stop = server.stop.clone().cancelled_owned();
    let listener = listener.tap_io(|tcp| {
        // Slower without, and right all the same.
        let _ = tcp.set_nodelay(true);
    });
    let served = axum::serve(listener, router(server))
        .with_graceful_shutdown(stop)
        .await;
    if let Err(error) = served {
        tracing::error!(%error, "the mock model cannot serve any more");
    }
}

#[cfg(test)]
mod tests;
