//! Responses that stream server-sent events.

use std::{convert::Infallible, time::Duration};

use axum::{
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

/// Writes an event that ends a stream from outside of its handler.
pub(super) fn last_event(name: Option<&str>, data: &impl Serialize) -> Bytes {
    let name = name.map_or_else(String::new, |name| format!("event: {name}\n"));
    let data = serde_json::to_string(data).unwrap_or_default();
    format!("{name}data: {data}\n\n").into()
}

pub(super) fn is_stream(response: &Response) -> bool {
    let kind = response.headers().get(CONTENT_TYPE);
    kind.is_some_and(|kind| kind.as_bytes().starts_with(b"text/event-stream"))
}

/// Creates a response that streams these events.
pub(super) fn response(events: impl Stream<Item = Event> + Send + 'static) -> Response {
    let keep_alive = KeepAlive::new().interval(KEEP_ALIVE).text("keep-alive");
    let events = Sse::new(events.map(Ok::<_, Infallible>)).keep_alive(keep_alive);
    // Makes proxies forward each event immediately.
    let at_once = [(HeaderName::from_static("x-accel-buffering"), "no")];
    (at_once, events).into_response()
}

pub(super) fn named(name: &str, data: &impl Serialize) -> Event {
    with(Event::default().event(name), data)
}

/// Adds data to an event; our own objects always serialize.
pub(super) fn with(event: Event, data: &impl Serialize) -> Event {
    event.json_data(data).unwrap_or_default()
}
