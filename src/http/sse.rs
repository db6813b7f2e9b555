//! Streams of server-sent events, as responses.

use std::{convert::Infallible, time::Duration};

use axum::{
    Extension,
    http::HeaderName,
    response::{
        IntoResponse as _, Response, Sse,
        sse::{Event, KeepAlive},
    },
};
use futures_util::{Stream, StreamExt as _};
use serde::Serialize;

use super::door::Farewell;

/// A stream that has nothing to say says so this often.
const KEEP_ALIVE: Duration = Duration::from_secs(15);

/// A response that tells these events as it is read; the farewell is the last where the caller's key is revoked.
pub(super) fn response(
    events: impl Stream<Item = Event> + Send + 'static,
    farewell: Farewell,
) -> Response {
    let keep_alive = KeepAlive::new().interval(KEEP_ALIVE).text("keep-alive");
    let events = Sse::new(events.map(Ok::<_, Infallible>)).keep_alive(keep_alive);
    // So that proxies hand on each event when it comes.
    let at_once = [(HeaderName::from_static("x-accel-buffering"), "no")];
    (at_once, Extension(farewell), events).into_response()
}

/// An event of this name.
pub(super) fn named(name: &str, data: &impl Serialize) -> Event {
    with(Event::default().event(name), data)
}

/// With data, which is an object of our own and has nothing that JSON cannot say.
pub(super) fn with(event: Event, data: &impl Serialize) -> Event {
    event.json_data(data).unwrap_or_default()
}
