//! `/api/sessions/{id}/events`: as a page, or as a stream that goes on.
//!
//! A stream is pulled by the connection: the next event is made when the one before has been taken. What a slow reader
//! misses on the bus is read from the journal.

use std::{convert::Infallible, time::Duration};

use axum::{
    Extension, Json as Answer,
    body::{Body, Bytes},
    extract::State,
    http::{HeaderMap, HeaderName, HeaderValue, StatusCode, header},
    response::{IntoResponse, Response},
};
use futures_util::stream;
use serde::{Deserialize, Serialize};
use serde_json::json;
use tokio::time::Instant;
use utoipa::{IntoParams, ToSchema};

use super::{InSession, schemas, session, shapes::limit};
use crate::{
    actor::{AskError, EventStream, Frames, LogPage, Progress, SessionHandle},
    http::{
        Caller, Drain, Host, KEEP_ALIVE, Problem,
        door::Farewell,
        extract::{self, Path, Query},
        problem::ProblemBody,
    },
    model::{Event, Seq, SessionName, Severity},
};

const LAST_EVENT_ID: HeaderName = HeaderName::from_static("last-event-id");
/// When a client may reconnect, in milliseconds.
const RETRY: u32 = 2_000;
/// Pause before the journal is read again.
const PAUSE: Duration = Duration::from_secs(1);
/// How long that is tried.
const PATIENCE: Duration = Duration::from_secs(30);
/// Events that are read at a time where not all are wanted.
const PAGE: usize = 512;
/// Most events that are looked through for a page: where few fit, it may be short and not the last.
const LOOKED_THROUGH: u64 = 8_192;

/// Which events are wanted.
#[derive(Debug, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub(super) struct Wanted {
    /// Only those after this number. A stream that is taken up again says it by `Last-Event-ID`, which
    /// counts more.
    after: Option<u64>,
    /// Most events of a page; a stream has no end.
    #[param(minimum = 1, maximum = 500, default = 100)]
    limit: Option<u16>,
    /// Only types that begin with one of these; several with commas between them.
    #[serde(default, rename = "type", deserialize_with = "extract::list")]
    #[param(style = Form, explode = false, schema_with = schemas::kinds)]
    kinds: Vec<String>,
    /// Only those that matter at least this much.
    #[param(inline)]
    severity: Option<Severity>,
    /// In a stream, text as it arrives: `1` or `0`.
    #[serde(default, deserialize_with = "extract::flag")]
    #[param(default = false)]
    frames: bool,
}

/// Which events are told.
#[derive(Debug, Clone, Default)]
pub(super) struct Sieve {
    kinds: Vec<String>,
    severity: Option<Severity>,
}

impl Sieve {
    const fn lets_all_through(&self) -> bool {
        self.kinds.is_empty() && self.severity.is_none()
    }

    pub(super) fn lets_through(&self, event: &Event) -> bool {
        let wanted = |kind: &String| event.kind.starts_with(kind.as_str());
        (self.kinds.is_empty() || self.kinds.iter().any(wanted))
            && self.severity.is_none_or(|least| event.severity >= least)
    }
}

/// A page of events.
#[derive(Debug, Serialize, ToSchema)]
pub(super) struct EventsPage {
    /// In order.
    events: Vec<Event>,
    /// Give it as `after` for more; null if there is no more by now. A page may be short and not the last.
    next: Option<u64>,
    /// The number of the log's last event.
    last: u64,
}

/// Tells the events of a session: as a stream that goes on where `accept` has `text/event-stream`, else a
/// page.
///
/// In a stream each event has its number as `id`, its type as `event` and itself as `data`; `frame` has text
/// as it arrives (`{query, turn, attempt, offset, text}`); `gap` (`{"from"}`) says that events from this number
/// on cannot be read right now, and they follow later; `end` says why the stream ends, as an error object. Who
/// comes back with `Last-Event-ID` sees every event once.
#[utoipa::path(get, path = "/api/sessions/{id}/events", tag = "events",
    params(
        InSession,
        Wanted,
        ("Last-Event-ID" = Option<u64>, Header, description = "The number of the last event seen."),
    ),
    responses(
        (status = 200, description = "A page, or a stream.", content(
            (EventsPage = "application/json"), (Event = "text/event-stream")
        )),
        (status = 400, description = "A parameter is not in order.", body = ProblemBody),
        (status = 403, description = "The name is Oracle's own.", body = ProblemBody),
        (status = 404, description = "There is no such session.", body = ProblemBody),
        (status = "4XX", body = ProblemBody),
        (status = "5XX", body = ProblemBody),
    )
)]
pub(super) async fn tell(
    State(host): State<Host>,
    caller: Caller,
    Path(InSession { id }): Path<InSession>,
    Query(wanted): Query<Wanted>,
    headers: HeaderMap,
) -> Result<Response, Problem> {
    let session = session(&host, &caller, id)?;
    if wanted.kinds.iter().any(String::is_empty) {
        return Err(Problem::bad("type", "`type` has an empty part"));
    }
    let limit = limit(wanted.limit, 100, 500)?;
    let after = after(&headers, wanted.after)?;
    let sieve = Sieve {
        kinds: wanted.kinds,
        severity: wanted.severity,
    };
    if !wants_stream(&headers) {
        let page = page(&session, after.seq, &sieve, limit).await?;
        return Ok(Answer(page).into_response());
    }
    if host.drain().has_begun() {
        return Err(Problem::ends());
    }
    let frames = if wanted.frames {
        Frames::Yes
    } else {
        Frames::No
    };
    let follow = session.follow(after.seq, frames).await?;
    if after.seq > follow.end() {
        let (Seq(last), name) = (follow.end(), after.param);
        let what =
            format!("`{name}` is beyond the session's last event, which has the number {last}");
        return Err(Problem::bad(name, what));
    }
    let telling = Telling::new(follow, sieve, host.drain().clone());
    Ok(response(telling))
}

/// After which event.
struct After {
    seq: Seq,
    /// Who says so.
    param: &'static str,
}

fn after(headers: &HeaderMap, parameter: Option<u64>) -> Result<After, Problem> {
    let Some(last) = headers.get(LAST_EVENT_ID) else {
        let (seq, param) = (Seq(parameter.unwrap_or(0)), "after");
        return Ok(After { seq, param });
    };
    let number = last.to_str().ok().and_then(|text| text.parse().ok());
    let Some(number) = number else {
        let what = "`last-event-id` has to be the number of an event";
        return Err(Problem::bad("last-event-id", what));
    };
    let (seq, param) = (Seq(number), "last-event-id");
    Ok(After { seq, param })
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
    sieve: &Sieve,
    limit: usize,
) -> Result<EventsPage, Problem> {
    // Where few are wanted, many are looked through for them.
    let at_a_time = if sieve.lets_all_through() {
        limit
    } else {
        PAGE
    };
    let (mut events, mut read_to) = (Vec::new(), after);
    loop {
        let LogPage { entries, last } = session.page(read_to, at_a_time).await?;
        let page_is_empty = entries.is_empty();
        for entry in entries {
            if events.len() == limit {
                break;
            }
            read_to = entry.seq;
            let event = entry.event(&session.key().name);
            if sieve.lets_through(&event) {
                events.push(event);
            }
        }
        let is_all = read_to >= last || page_is_empty;
        let looked_through = read_to.0.saturating_sub(after.0);
        if is_all || events.len() == limit || looked_through >= LOOKED_THROUGH {
            let next = (!is_all).then_some(read_to.0);
            return Ok(EventsPage {
                events,
                next,
                last: last.0,
            });
        }
    }
}

/// One event of a session.
#[derive(Debug, Deserialize, IntoParams)]
#[into_params(parameter_in = Path)]
pub(super) struct OneEvent {
    /// The session's name.
    #[param(inline)]
    id: SessionName,
    /// The event's number.
    seq: u64,
}

/// One event with its texts as they are, however long.
#[utoipa::path(get, path = "/api/sessions/{id}/events/{seq}/body", tag = "events",
    params(OneEvent),
    responses(
        (status = 200, body = Event),
        (status = 400, description = "That is no name, or no number.", body = ProblemBody),
        (status = 403, description = "The name is Oracle's own.", body = ProblemBody),
        (status = 404, description = "There is no such session, or no such event.", body = ProblemBody),
        (status = "4XX", body = ProblemBody),
        (status = "5XX", body = ProblemBody),
    )
)]
pub(super) async fn body(
    State(host): State<Host>,
    caller: Caller,
    Path(OneEvent { id, seq }): Path<OneEvent>,
) -> Result<Answer<Event>, Problem> {
    let session = session(&host, &caller, id)?;
    let name = &session.key().name;
    let page = session.page(Seq(seq.saturating_sub(1)), 1).await?;
    match page.entries.first() {
        Some(entry) if entry.seq == Seq(seq) => {
            Ok(Answer(Event::with_whole_texts(name, entry.seq, &entry.record)))
        }
        _ => {
            let what = format!("the log of `{name}` has no event {seq}");
            Err(Problem::new(StatusCode::NOT_FOUND, "no_event", what).of("seq"))
        }
    }
}

/// A stream of events in the making.
struct Telling {
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
    fn new(follow: EventStream, sieve: Sieve, drain: Drain) -> Self {
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
fn response(telling: Telling) -> Response {
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
