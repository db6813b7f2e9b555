//! Responses that stream server-sent events.

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

use super::auth::RevocationEvent;

/// Interval of keep-alives on an idle stream.
const KEEP_ALIVE: Duration = Duration::from_secs(15);

/// Creates a response that streams these events; the revocation comes last if the caller's key is
/// revoked.
pub(super) fn response(
    events: impl Stream<Item = Event> + Send + 'static,
    revocation: RevocationEvent,
) -> Response {
    let keep_alive = KeepAlive::new().interval(KEEP_ALIVE).text("keep-alive");
    let events = Sse::new(events.map(Ok::<_, Infallible>)).keep_alive(keep_alive);
    // Makes proxies forward each event immediately.
    let at_once = [(HeaderName::from_static("x-accel-buffering"), "no")];
    (at_once, Extension(revocation), events).into_response()
}

pub(super) fn named(name: &str, data: &impl Serialize) -> Event {
    with(Event::default().event(name), data)
}

/// Adds data to an event; our own objects always serialize.
pub(super) fn with(event: Event, data: &impl Serialize) -> Event {
    event.json_data(data).unwrap_or_default()
}
