//! What every request meets first: it gets a name, a line in the log, and an answer even if its handler
//! panics.

use std::{any::Any, panic::AssertUnwindSafe};

use axum::{
    extract::{Request, State},
    http::{HeaderName, HeaderValue, Method, Uri},
    middleware::Next,
    response::{IntoResponse, Response},
};
use futures_util::FutureExt as _;
use tokio::time::Instant;
use uuid::Uuid;

use super::{Host, Problem, connection::Peer};
use crate::model::Principal;

/// By which a request is found again in the log; given, or made here.
pub(super) const REQUEST_ID: HeaderName = HeaderName::from_static("x-request-id");
/// Longer ones are not ours to carry around.
const LONGEST_ID: usize = 128;

/// The name of a request, for handlers that tell of it.
#[derive(Debug, Clone)]
pub(super) struct RequestId(HeaderValue);

impl RequestId {
    fn of(request: &Request) -> Self {
        let given = request.headers().get(REQUEST_ID);
        let good = |value: &&HeaderValue| {
            let text = value.as_bytes();
            (1..=LONGEST_ID).contains(&text.len()) && text.iter().all(u8::is_ascii_graphic)
        };
        let id = given.filter(good).cloned();
        Self(id.unwrap_or_else(|| {
            let made = Uuid::now_v7().to_string();
            HeaderValue::try_from(made).unwrap_or(HeaderValue::from_static("none"))
        }))
    }

    pub(super) fn as_str(&self) -> &str {
        self.0.to_str().unwrap_or_default()
    }
}

/// See the module.
pub(super) async fn meet(State(host): State<Host>, mut request: Request, next: Next) -> Response {
    let began = Instant::now();
    let id = RequestId::of(&request);
    let (method, uri) = (request.method().clone(), request.uri().clone());
    let from = request.extensions().get::<Peer>().cloned();
    request.extensions_mut().insert(id.clone());
    let answered = AssertUnwindSafe(next.run(request)).catch_unwind().await;
    let mut response = answered.unwrap_or_else(|panic| broken(&id, &*panic));
    response.headers_mut().insert(REQUEST_ID, id.0.clone());
    host.overload().answered(response.status());
    log(&id, from.as_ref(), (&method, &uri), &response, began);
    response
}

fn log(
    id: &RequestId,
    from: Option<&Peer>,
    (method, uri): (&Method, &Uri),
    response: &Response,
    began: Instant,
) {
    tracing::info!(
        target: "oracle::access",
        request = id.as_str(),
        from = from.map(|peer| tracing::field::display(peer.address)),
        by = response.extensions().get::<Principal>().map(|principal| &*principal.name),
        %method,
        // Without the query, which may hold what is nobody's business.
        path = uri.path(),
        status = response.status().as_u16(),
        millis = u64::try_from(began.elapsed().as_millis()).unwrap_or(u64::MAX),
    );
}

fn broken(id: &RequestId, panic: &(dyn Any + Send)) -> Response {
    let text = panic.downcast_ref::<String>().map(String::as_str);
    let text = text.or_else(|| panic.downcast_ref::<&str>().copied());
    let what = text.unwrap_or("no text");
    tracing::error!(
        request = id.as_str(),
        what,
        "the handler of a request panicked"
    );
    Problem::bug(id.as_str()).into_response()
}
