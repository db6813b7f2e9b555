//! Admission: how many requests are in flight, and how much memory their bodies take. A request without room is
//! rejected at once, with a retry hint.

use std::{
    sync::{
        Arc,
        atomic::{AtomicU64, AtomicUsize, Ordering},
    },
    time::Duration,
};

use axum::{
    body::Body,
    extract::{Request, State},
    http::{StatusCode, header},
    middleware::Next,
    response::{IntoResponse, Response},
};
use bytes::Bytes;
use http_body_util::BodyExt as _;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use super::{Host, Problem, Settings, front::Held};

/// Memory of all bodies, in largest bodies.
const LARGEST_BODIES: usize = 64;
/// Unit of that memory, in bytes.
const PIECE: usize = 1_024;
/// Classes of status; the last is that of clients that disconnected.
const CLASSES: [&str; 6] = ["1xx", "2xx", "3xx", "4xx", "5xx", "left"];
/// Longer bodies are not shed early.
const SMALL: u64 = 64 << 10;
/// How long an unread body may take to arrive.
const PATIENCE: Duration = Duration::from_secs(5);

pub(super) struct Overload {
    requests: Arc<Semaphore>,
    most: usize,
    /// In pieces.
    bodies: Arc<Semaphore>,
    connections: AtomicUsize,
    /// By class of status.
    answers: [AtomicU64; CLASSES.len()],
}

impl Overload {
    pub(super) fn new(settings: &Settings) -> Self {
        let bodies = settings.max_body.saturating_mul(LARGEST_BODIES) / PIECE;
        Self {
            requests: Arc::new(Semaphore::new(settings.max_requests)),
            most: settings.max_requests,
            bodies: Arc::new(Semaphore::new(bodies.clamp(1, Semaphore::MAX_PERMITS))),
            connections: AtomicUsize::new(0),
            answers: Default::default(),
        }
    }

    pub(super) fn in_work(&self) -> usize {
        self.most.saturating_sub(self.requests.available_permits())
    }

    pub(super) fn connected(&self, connections: usize) {
        self.connections.store(connections, Ordering::Relaxed);
    }

    pub(super) fn connections(&self) -> usize {
        self.connections.load(Ordering::Relaxed)
    }

    pub(super) fn answered(&self, status: StatusCode) {
        let class = usize::from(status.as_u16() / 100).checked_sub(1);
        if let Some(count) = class.and_then(|class| self.answers.get(class)) {
            count.fetch_add(1, Ordering::Relaxed);
        }
    }

    pub(super) fn left(&self) {
        if let Some(count) = self.answers.last() {
            count.fetch_add(1, Ordering::Relaxed);
        }
    }

    pub(super) fn answers(&self) -> Vec<(&'static str, u64)> {
        let counts = self
            .answers
            .iter()
            .map(|count| count.load(Ordering::Relaxed));
        CLASSES.into_iter().zip(counts).collect()
    }
}

/// Admits a request, which keeps its permit until its response is sent.
pub(super) async fn admit(State(host): State<Host>, request: Request, next: Next) -> Response {
    let overload = host.overload();
    let Ok(place) = Arc::clone(&overload.requests).try_acquire_owned() else {
        let problem = Problem::overloaded(format!(
            "{} requests are worked on, and `server.max_requests` allows no more: try again",
            overload.most
        ));
        return problem.into_response();
    };
    let response = next.run(request).await;
    response.map(|body| Body::new(Held::new(body, place)))
}

/// Sheds a message for which there is no room before door, body and JSON, which cost more than the refusal. It tells
/// no more than `/readyz` does.
pub(super) async fn shed(State(host): State<Host>, request: Request, next: Next) -> Response {
    // A page may read a response only if the door says so.
    let is_page = request.headers().contains_key(header::ORIGIN);
    let length = http_body::Body::size_hint(request.body()).upper();
    if is_page || length.is_none_or(|length| length > SMALL) {
        return next.run(request).await;
    }
    match host.has_room_for_a_query() {
        Ok(()) => next.run(request).await,
        Err(problem) => refuse(request.into_body(), problem).await,
    }
}

/// Refuses whatever is not essential, where connections are at their cap.
pub(super) async fn no_connection(request: Request) -> Response {
    let what = "there are as many connections as `server.max_connections` allows: try again";
    refuse(request.into_body(), Problem::overloaded(what)).await
}

/// A connection closed with an unread body could lose the response.
async fn refuse(mut body: Body, problem: Problem) -> Response {
    let taken = async { while let Some(Ok(_)) = body.frame().await {} };
    let _ = tokio::time::timeout(PATIENCE, taken).await;
    problem.into_response()
}

/// Reads the body within its limits of size, time and memory, so that handlers have it whole.
pub(super) async fn take_body(State(host): State<Host>, request: Request, next: Next) -> Response {
    let (parts, body) = request.into_parts();
    let within = host.settings.body_timeout;
    let whole = tokio::time::timeout(within, whole(&host, body)).await;
    match whole {
        Ok(Ok(bytes)) => next.run(Request::from_parts(parts, bytes.into())).await,
        Ok(Err(problem)) => problem.into_response(),
        Err(_) => Problem::slow_body(within).into_response(),
    }
}

type Room = Option<OwnedSemaphorePermit>;

/// A body with its permits.
struct Kept {
    bytes: Bytes,
    _room: Room,
}

impl AsRef<[u8]> for Kept {
    fn as_ref(&self) -> &[u8] {
        &self.bytes
    }
}

async fn whole(host: &Host, mut body: Body) -> Result<Bytes, Problem> {
    use http_body::Body as _;
    let most = host.settings.max_body;
    let too_large = || Problem::body_too_large(most);
    let told = body.size_hint();
    if usize::try_from(told.lower()).unwrap_or(usize::MAX) > most {
        return Err(too_large());
    }
    let (mut room, mut bytes) = (None, Vec::new());
    while let Some(frame) = body.frame().await {
        let frame = frame.map_err(|_| Problem::broken_body())?;
        let Ok(data) = frame.into_data() else {
            continue; // Trailers say nothing here.
        };
        if data.len() > most - bytes.len() {
            return Err(too_large());
        }
        // Mostly one frame is all there is, and needs no copy.
        let is_whole = bytes.is_empty() && body.is_end_stream();
        take_room(host.overload(), &mut room, bytes.len() + data.len())?;
        if is_whole {
            return Ok(kept(data, room));
        }
        bytes.extend_from_slice(&data);
    }
    Ok(kept(bytes.into(), room))
}

fn kept(bytes: Bytes, room: Room) -> Bytes {
    Bytes::from_owner(Kept { bytes, _room: room })
}

fn take_room(overload: &Overload, room: &mut Room, bytes: usize) -> Result<(), Problem> {
    let has = room.as_ref().map_or(0, OwnedSemaphorePermit::num_permits);
    let more = u32::try_from(bytes.div_ceil(PIECE).saturating_sub(has)).unwrap_or(u32::MAX);
    if more == 0 {
        return Ok(());
    }
    let bodies = Arc::clone(&overload.bodies);
    let Ok(permit) = bodies.try_acquire_many_owned(more) else {
        let what = "the bodies of all requests together take too much memory: try again";
        return Err(Problem::overloaded(what));
    };
    match room {
        Some(room) => room.merge(permit),
        None => *room = Some(permit),
    }
    Ok(())
}
