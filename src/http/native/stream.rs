//! A session's events as server-sent events.
//!
//! Pulled by the connection: the next event is put together when the one before has been taken, so a slow
//! reader costs what a few events take and no more. What it misses on the bus is read from the journal.

use std::{convert::Infallible, time::Duration};

use axum::{
    Extension,
    body::{Body, Bytes},
    http::{HeaderName, HeaderValue, header},
    response::{IntoResponse, Response},
};
use futures_util::stream;
use serde::Serialize;
use serde_json::json;
use tokio::time::Instant;

use super::events::Sieve;
use crate::{
    actor::{AskError, EventStream, Progress},
    http::{Drain, KEEP_ALIVE, Problem, door::Farewell},
};

/// How soon a client may come back, in milliseconds.
const RETRY: u32 = 2_000;
/// Pause before a journal that could not be read is read again.
const PAUSE: Duration = Duration::from_secs(1);
/// For how long it is tried.
const PATIENCE: Duration = Duration::from_secs(30);

/// A stream of events in the making.
pub(super) struct Telling {
    follow: EventStream,
    sieve: Sieve,
    drain: Drain,
    at: At,
    /// When something has to be said at the latest.
    due: Instant,
}

/// How far a stream has come.
enum At {
    /// Nothing was said yet.
    Beginning,
    /// Events are told as they come.
    Telling,
    /// Since then the journal cannot be read.
    Failing(Instant),
    /// All is said.
    Ended,
}

impl Telling {
    pub(super) fn new(follow: EventStream, sieve: Sieve, drain: Drain) -> Self {
        Self {
            follow,
            sieve,
            drain,
            at: At::Beginning,
            due: Instant::now() + KEEP_ALIVE,
        }
    }

    /// What is to be said next; none after the end.
    async fn next(&mut self) -> Option<Bytes> {
        let said = match self.at {
            At::Ended => return None,
            At::Beginning => {
                self.at = At::Telling;
                format!("retry: {RETRY}\n\n").into()
            }
            At::Telling | At::Failing(_) => self.something().await,
        };
        self.due = Instant::now() + KEEP_ALIVE;
        Some(said)
    }

    async fn something(&mut self) -> Bytes {
        loop {
            let drain = self.drain.clone();
            let happened = tokio::select! {
                biased;
                () = drain.begun() => return self.end(&Problem::ends()),
                happened = tokio::time::timeout_at(self.due, self.happens()) => happened,
            };
            match happened {
                Err(_) => return Bytes::from_static(b": keep-alive\n\n"),
                Ok(Ok(Progress::Record(record))) => {
                    self.at = At::Telling;
                    let event = record.event();
                    if self.sieve.lets_through(&event) {
                        let id = format!("id: {}\n", event.seq);
                        return named(&id, &event.kind, &event);
                    }
                }
                Ok(Ok(Progress::Frame(frame))) => return named("", "frame", &*frame),
                Ok(Err(AskError::Journal(error))) => match self.at {
                    At::Failing(since) if since.elapsed() >= PATIENCE => {
                        return self.end(&AskError::Journal(error).into());
                    }
                    At::Failing(_) => {}
                    At::Beginning | At::Telling | At::Ended => {
                        self.at = At::Failing(Instant::now());
                        let from = self.follow.seen().next();
                        return named("", "gap", &json!({ "from": from }));
                    }
                },
                Ok(Err(error)) => return self.end(&error.into()),
            }
        }
    }

    async fn happens(&mut self) -> Result<Progress, AskError> {
        if let At::Failing(_) = self.at {
            tokio::time::sleep(PAUSE).await;
        }
        self.follow.next().await
    }

    fn end(&mut self, why: &Problem) -> Bytes {
        self.at = At::Ended;
        named("", "end", &why.body())
    }
}

fn named(id: &str, name: &str, data: &impl Serialize) -> Bytes {
    // Our own objects have nothing that JSON cannot say, and JSON has no line breaks.
    let data = serde_json::to_string(data).unwrap_or_default();
    format!("{id}event: {name}\ndata: {data}\n\n").into()
}

/// The stream as a response.
pub(super) fn response(telling: Telling) -> Response {
    let pieces = stream::unfold(telling, |mut telling| async {
        let next = telling.next().await?;
        Some((Ok::<_, Infallible>(next), telling))
    });
    let farewell = Farewell(|why| named("", "end", &why.body()));
    let headers = [
        (header::CONTENT_TYPE, "text/event-stream"),
        (header::CACHE_CONTROL, "no-cache"),
        // So that proxies hand on each event when it comes.
        (HeaderName::from_static("x-accel-buffering"), "no"),
    ];
    let headers = headers.map(|(name, value)| (name, HeaderValue::from_static(value)));
    (headers, Extension(farewell), Body::from_stream(pieces)).into_response()
}
