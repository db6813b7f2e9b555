//! Responses that stream server-sent events.

use std::{convert::Infallible, time::Duration};

use axum::{
    Extension,
    http::{HeaderName, header::CONTENT_TYPE},
    response::{
        IntoResponse as _, Response, Sse,
        sse::{Event, KeepAlive},
    },
};
use bytes::Bytes;
use futures_util::{Stream, StreamExt as _};
use serde::Serialize;

/// Interval of keep-alives on an idle stream.
const KEEP_ALIVE: Duration = Duration::from_secs(15);

/// The last event of a stream whose key is revoked, from the response's extensions. A stream
/// without one continues.
#[derive(Debug, Clone)]
pub(super) struct RevocationEvent(pub Bytes);

impl RevocationEvent {
    pub(super) fn new(name: Option<&str>, data: &impl Serialize) -> Self {
        let name = name.map_or_else(String::new, |name| format!("event: {name}\n"));
        let data = serde_json::to_string(data).unwrap_or_default();
        Self(format!("{name}data: {data}\n\n").into())
    }
}

pub(super) fn is_stream(response: &Response) -> bool {
    let kind = response.headers().get(CONTENT_TYPE);
    kind.is_some_and(|kind| kind.as_bytes().starts_with(b"text/event-stream"))
}

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
