//! `/api/sessions/{id}/events`, as a page or as a live stream.
//!
//! The connection pulls the stream: the next event is built when the previous one has been taken.
//! Events that a slow reader misses on the bus are read from the journal.

use std::time::Duration;

use axum::{
    Json as Answer,
    extract::State,
    http::{HeaderMap, HeaderName, StatusCode, header},
    response::{IntoResponse as _, Response, sse},
};
use futures_util::{StreamExt as _, TryStreamExt as _, stream};
use serde::{Deserialize, Serialize};
use serde_json::json;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;
use utoipa::{IntoParams, ToSchema};

use super::{InSession, OwnSession, limit};
use crate::{
    actor::{AskError, EventStream, Frames, Progress, RecordPage, SessionHandle},
    http::{
        Host, Problem,
        extract::{self, Path, Query},
        sse::{named, response, with},
    },
    model::{Event, Seq, SessionName, Severity},
};
use oracle_control::{EventSelector, verb::commas};

const LAST_EVENT_ID: HeaderName = HeaderName::from_static("last-event-id");
const RETRY: Duration = Duration::from_secs(2);
const PAUSE: Duration = Duration::from_secs(1);
/// How long a failing journal is retried.
const PATIENCE: Duration = Duration::from_secs(30);
const PAGE: usize = 512;
/// Maximum events scanned for a page: with a selective filter, a page may be short and not the
/// last.
const LOOKED_THROUGH: u64 = 8_192;

/// Selects events.
#[derive(Debug, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub(super) struct EventsParams {
    /// Only events after this number. The header `Last-Event-ID` takes precedence.
    after: Option<u64>,
    /// Page size; ignored for a stream.
    #[param(minimum = 1, maximum = 500, default = 100)]
    limit: Option<u16>,
    /// Only types with one of these prefixes, separated by commas.
    #[serde(default, rename = "type", deserialize_with = "commas::deserialize")]
    #[param(style = Form, explode = false)]
    kinds: Vec<String>,
    /// Minimum severity.
    #[param(inline)]
    severity: Option<Severity>,
    /// Whether a stream includes text as the model generates it: `1` or `0`.
    #[serde(default, deserialize_with = "extract::flag")]
    #[param(default = false)]
    frames: bool,
}

/// A page of events.
#[derive(Debug, Serialize, ToSchema)]
pub(super) struct EventsPage {
    /// The events, in order.
    events: Vec<Event>,
    /// The `after` of the next page; null if there are no more events yet. A page may be short and
    /// not the last.
    next: Option<Seq>,
    /// The number of the log's last event.
    last: Seq,
}

/// Returns a page of a session's events, or a live stream if `accept` has `text/event-stream`.
///
/// In a stream, each event has its number as `id`, its type as `event` and itself as `data`.
/// With `frames`, `frame` has text as the model generates it (`{query, turn, attempt, offset,
/// text}`), and `progress` how far a tool call is (`{query, call, name, done, total, message}`). `gap`
/// (`{"from"}`) announces that events from this number on cannot be read right now and follow
/// later. `end` has the reason why the stream ends, as an error object. A client that reconnects
/// with `Last-Event-ID` receives every event once.
#[utoipa::path(get, path = "/api/sessions/{id}/events", tag = "events",
    params(
        InSession,
        EventsParams,
        ("Last-Event-ID" = Option<u64>, Header, description = "The number of the last event received."),
    ),
    responses(
        (status = 200, description = "A page, or a stream.", content(
            (EventsPage = "application/json"), (Event = "text/event-stream")
        )),
    )
)]
pub(super) async fn list(
    State(host): State<Host>,
    OwnSession(session): OwnSession,
    Query(wanted): Query<EventsParams>,
    headers: HeaderMap,
) -> Result<Response, Problem> {
    let limit = limit(wanted.limit, 100, 500)?;
    let (after, param) = after(&headers, wanted.after)?;
    let selector = EventSelector {
        types: wanted.kinds,
        severity: wanted.severity,
    };
    selector
        .check()
        .map_err(|why| Problem::from(why).of("type"))?;
    if !wants_stream(&headers) {
        return Ok(Answer(page(&session, after, &selector, limit).await?).into_response());
    }
    if host.end_of_access().is_cancelled() {
        return Err(Problem::ends());
    }
    let frames = match wanted.frames {
        true => Frames::Yes,
        false => Frames::No,
    };
    let follow = session.follow(after, frames).await?;
    if after > follow.end() {
        let last = follow.end();
        let what = format!("`{param}` exceeds the number of the session's last event, {last}");
        return Err(Problem::bad(param, what));
    }
    let body = EventBody {
        follow,
        selector,
        end: host.end_of_access().clone(),
        failing: None,
    };
    let retry = sse::Event::default().retry(RETRY);
    let events = stream::unfold(Some(body), async |body| Some(body?.next().await));
    Ok(response(stream::once(async { retry }).chain(events)))
}

/// Returns the number after which to begin, and the parameter or header that gave it.
fn after(headers: &HeaderMap, parameter: Option<u64>) -> Result<(Seq, &'static str), Problem> {
    let Some(last) = headers.get(LAST_EVENT_ID) else {
        return Ok((Seq(parameter.unwrap_or(0)), "after"));
    };
    let number = last.to_str().ok().and_then(|text| text.parse().ok());
    let wrong = || Problem::bad("last-event-id", "`last-event-id` must be an event number");
    Ok((Seq(number.ok_or_else(wrong)?), "last-event-id"))
}

fn wants_stream(headers: &HeaderMap) -> bool {
    let accepted = headers.get_all(header::ACCEPT).iter();
    let mut kinds = accepted
        .filter_map(|value| value.to_str().ok())
        .flat_map(|value| value.split(','));
    kinds.any(|kind| {
        let kind = kind.split(';').next().unwrap_or("").trim();
        kind.eq_ignore_ascii_case("text/event-stream")
    })
}

async fn page(
    session: &SessionHandle,
    after: Seq,
    selector: &EventSelector,
    limit: usize,
) -> Result<EventsPage, Problem> {
    // A filter may match few events, so larger pages are read.
    let all = *selector == EventSelector::default();
    let at_a_time = if all { limit } else { PAGE };
    let (mut events, mut read_to) = (Vec::new(), after);
    loop {
        let RecordPage { entries, last } = session.page(read_to, at_a_time).await?;
        let page_is_empty = entries.is_empty();
        for entry in entries {
            if events.len() == limit {
                break;
            }
            read_to = entry.seq;
            if selector.selects(&entry.record.fact) {
                events.push(entry.event(&session.key().name));
            }
        }
        let is_all = read_to >= last || page_is_empty;
        let looked_through = read_to.0.saturating_sub(after.0);
        if is_all || events.len() == limit || looked_through >= LOOKED_THROUGH {
            let next = (!is_all).then_some(read_to);
            return Ok(EventsPage { events, next, last });
        }
    }
}

/// The path parameters of an event.
#[derive(Debug, Deserialize, IntoParams)]
#[into_params(parameter_in = Path)]
pub(super) struct OneEvent {
    /// The session's name.
    #[serde(rename = "id")]
    #[param(inline)]
    _id: SessionName,
    /// The event's number.
    seq: u64,
}

/// Returns an event with its full texts.
#[utoipa::path(get, path = "/api/sessions/{id}/events/{seq}/body", tag = "events",
    params(OneEvent),
    responses((status = 200, body = Event))
)]
pub(super) async fn body(
    OwnSession(session): OwnSession,
    Path(OneEvent { seq, .. }): Path<OneEvent>,
) -> Result<Answer<Event>, Problem> {
    let name = &session.key().name;
    let page = session.page(Seq(seq.saturating_sub(1)), 1).await?;
    let found = page.entries.iter().find(|entry| entry.seq == Seq(seq));
    let entry = found.ok_or_else(|| {
        let what = format!("session `{name}` has no event {seq}");
        Problem::new(StatusCode::NOT_FOUND, "no_event", what).of("seq")
    })?;
    let event = Event::with_whole_texts(name, entry.seq, &entry.record);
    Ok(Answer(event))
}

struct EventBody {
    follow: EventStream,
    selector: EventSelector,
    end: CancellationToken,
    failing: Option<Instant>,
}

impl EventBody {
    /// Returns the next event, and what is left unless it was the last one.
    async fn next(mut self) -> (sse::Event, Option<Self>) {
        loop {
            let end = self.end.clone();
            let happened = tokio::select! {
                biased;
                () = end.cancelled() => Err(Problem::ends()),
                happened = self.next_progress() => self.event(happened),
            };
            match happened {
                Ok(Some(event)) => return (event, Some(self)),
                Ok(None) => {}
                Err(why) => return (named("end", &why.body()), None),
            }
        }
    }

    async fn next_progress(&mut self) -> Result<Progress, AskError> {
        if self.failing.is_some() {
            tokio::time::sleep(PAUSE).await;
        }
        self.follow.try_next().await?.ok_or(AskError::Stopped)
    }

    fn event(
        &mut self,
        happened: Result<Progress, AskError>,
    ) -> Result<Option<sse::Event>, Problem> {
        match (happened, self.failing) {
            (Ok(Progress::Record(record)), _) => {
                self.failing = None;
                Ok(self.selector.selects(&record.fact).then(|| {
                    let event = record.event();
                    let id = sse::Event::default().id(event.seq.to_string());
                    with(id.event(&event.kind), &event)
                }))
            }
            (Ok(Progress::Frame(frame)), _) => Ok(Some(named("frame", &*frame))),
            (Ok(Progress::Call(call)), _) => Ok(Some(named("progress", &*call))),
            (Err(AskError::Journal(_)), None) => {
                self.failing = Some(Instant::now());
                let from = self.follow.position().next();
                Ok(Some(named("gap", &json!({ "from": from }))))
            }
            (Err(AskError::Journal(_)), Some(since)) if since.elapsed() < PATIENCE => Ok(None),
            (Ok(_), _) => Ok(None),
            (Err(error), _) => Err(error.into()),
        }
    }
}
