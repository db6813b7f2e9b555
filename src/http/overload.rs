//! Admission: bounds the requests in flight and the memory of their bodies. A request beyond a
//! bound is rejected at once, with a retry hint.

use std::time::Duration;

use axum::{
    body::Body,
    extract::{Request, State},
    http::{HeaderValue, header},
    middleware::Next,
    response::{IntoResponse, Response},
};
use bytes::Bytes;
use http_body_util::BodyExt as _;

use super::{Caller, Host, Problem, body::with_guard};
use crate::{
    access::{NoShare, SessionLoad, SessionUsage, Share},
    model::{Principal, json},
};

mod bounds;

pub(super) use bounds::Overload;

/// Requests with longer bodies are not shed early.
const SMALL: u64 = 64 << 10;
/// Maximum time for an unread body to arrive.
const PATIENCE: Duration = Duration::from_secs(5);

/// Admits a request, which keeps its permit until its response is sent.
pub(super) async fn admit(
    State(host): State<Host>,
    Caller(caller): Caller,
    request: Request,
    next: Next,
) -> Response {
    let share = match host.shared.overload.requests.take(&caller) {
        Ok(share) => share,
        Err(why) => {
            let who = match why {
                NoShare::Full => "",
                NoShare::Held => "your key or your tenant holds its share: ",
            };
            let most = host.settings.max_requests;
            return Problem::overloaded(format!(
                "{who}the limit of {most} concurrent requests (`server.max_requests`) is reached: \
                 try again"
            ))
            .into_response();
        }
    };
    next.run(request).await.map(|body| with_guard(body, share))
}

/// Sheds a message before authentication, body and JSON, which cost more than the refusal. The
/// refusal reveals no more than `/readyz`.
pub(super) async fn shed(State(host): State<Host>, request: Request, next: Next) -> Response {
    // Authentication decides whether a page may read a response.
    let is_page = request.headers().contains_key(header::ORIGIN);
    let length = http_body::Body::size_hint(request.body()).upper();
    if is_page || length.is_none_or(|length| length > SMALL) {
        return next.run(request).await;
    }
    match host.check_capacity(0) {
        Ok(()) => next.run(request).await,
        // Another node of the cluster takes it.
        Err(_) if host.is_draining() && host.cluster().is_some() => next.run(request).await,
        Err(problem) => refuse(request.into_body(), problem).await,
    }
}

#[derive(Debug, Clone, Copy)]
struct BeyondCap;

/// Serves one request of a connection beyond the cap.
pub(super) async fn serve_beyond_cap(mut request: Request, next: Next) -> Response {
    request.extensions_mut().insert(BeyondCap);
    let mut response = next.run(request).await;
    let close = HeaderValue::from_static("close");
    response.headers_mut().insert(header::CONNECTION, close);
    response
}

/// Refuses a request beyond the cap, except to the essential routes: health, metrics and control.
pub(super) async fn refuse_beyond_cap(request: Request, next: Next) -> Response {
    if request.extensions().get::<BeyondCap>().is_none() {
        return next.run(request).await;
    }
    let what = "too many connections: `server.max_connections`, or for your address \
                `server.max_connections_per_address`, is reached: try again";
    refuse(request.into_body(), Problem::overloaded(what)).await
}

/// Reads the body first: closing a connection with an unread body could lose the response.
async fn refuse(mut body: Body, problem: Problem) -> Response {
    let taken = async { while let Some(Ok(_)) = body.frame().await {} };
    let _ = tokio::time::timeout(PATIENCE, taken).await;
    problem.into_response()
}

/// Reads the body within its limits of size, time and memory, so that handlers have it whole.
pub(super) async fn buffer_body(
    State(host): State<Host>,
    Caller(caller): Caller,
    request: Request,
    next: Next,
) -> Response {
    let (parts, body) = request.into_parts();
    let within = host.settings.body_timeout;
    let whole = tokio::time::timeout(within, whole(&host, &caller, body)).await;
    match whole {
        // Refused after the body was read, so that the client reads the response.
        Ok(Ok(_)) if parts.headers.contains_key(header::CONTENT_ENCODING) => {
            let what = "encoded bodies are not supported: send the body without `content-encoding`";
            Problem::unsupported_media(what, "content-encoding").into_response()
        }
        Ok(Ok(bytes)) => {
            // What is made of it is not counted until its session has it.
            let mut held = SessionUsage::new(host.oracle.tenants().account(&caller.tenant));
            held.set(SessionLoad {
                bytes: bytes.len(),
                ..SessionLoad::default()
            });
            next.run(Request::from_parts(parts, bytes.into())).await
        }
        Ok(Err(problem)) => problem.into_response(),
        Err(_) => Problem::slow_body(within).into_response(),
    }
}

struct BufferedBody {
    bytes: Vec<u8>,
    _room: Share,
}

impl AsRef<[u8]> for BufferedBody {
    fn as_ref(&self) -> &[u8] {
        &self.bytes
    }
}

async fn whole(host: &Host, caller: &Principal, mut body: Body) -> Result<Bytes, Problem> {
    let most = host.settings.max_body;
    let too_large = || Problem::body_too_large(most);
    let announced = http_body::Body::size_hint(&body).lower();
    if usize::try_from(announced).unwrap_or(usize::MAX) > most {
        return Err(too_large());
    }
    let (mut room, mut bytes) = (host.shared.overload.bodies.share(caller), Vec::new());
    while let Some(frame) = body.frame().await {
        let frame = frame.map_err(|error| Problem::broken_body(&error))?;
        let Ok(data) = frame.into_data() else {
            continue; // Trailers say nothing here.
        };
        if data.len() > most - bytes.len() {
            return Err(too_large());
        }
        room.grow(data.len()).map_err(|why| {
            let whose = match why {
                NoShare::Full => "all current requests",
                NoShare::Held => "the current requests of your key or your tenant",
            };
            Problem::overloaded(format!(
                "the bodies of {whose} use too much memory: try again"
            ))
        })?;
        bytes.extend_from_slice(&data);
    }
    json::check(&bytes).map_err(|error| Problem::bad("body", error.to_string()))?;
    Ok(Bytes::from_owner(BufferedBody { bytes, _room: room }))
}
