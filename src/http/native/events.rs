//! `/api/sessions/{id}/events`: as a page, or as a stream that goes on.

use axum::{
    Json as Answer,
    extract::State,
    http::{HeaderMap, HeaderName, StatusCode, header},
    response::{IntoResponse, Response},
};
use serde::{Deserialize, Serialize};
use utoipa::{IntoParams, ToSchema};

use super::{
    InSession, schemas, session,
    shapes::{EventObject, limit},
    stream::{self, Telling},
};
use crate::{
    actor::{EventPage, Frames, SessionHandle},
    http::{
        Caller, Host, Problem,
        extract::{Path, Query},
        problem::ProblemBody,
    },
    model::{Event, Seq, SessionName, Severity},
};

const LAST_EVENT_ID: HeaderName = HeaderName::from_static("last-event-id");
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
    #[serde(default, rename = "type")]
    #[param(style = Form, explode = false, schema_with = schemas::kinds)]
    kinds: Vec<String>,
    /// Only those that matter at least this much.
    #[param(inline)]
    severity: Option<Severity>,
    /// In a stream, text as it arrives: `1` or `0`.
    #[serde(default)]
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
    events: Vec<EventObject>,
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
            (EventsPage = "application/json"), (EventObject = "text/event-stream")
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
    Ok(stream::response(telling))
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
        let EventPage { events: some, last } = session.event_page(read_to, at_a_time).await?;
        let page_is_empty = some.is_empty();
        for event in some {
            if events.len() == limit {
                break;
            }
            read_to = event.seq;
            if sieve.lets_through(&event) {
                events.push(EventObject::from(event));
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
        (status = 200, body = EventObject),
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
) -> Result<Answer<EventObject>, Problem> {
    let session = session(&host, &caller, id)?;
    let event = session.whole_event(Seq(seq)).await?;
    let event = event.ok_or_else(|| {
        let name = &session.key().name;
        let what = format!("the log of `{name}` has no event {seq}");
        Problem::new(StatusCode::NOT_FOUND, "no_event", what).of("seq")
    })?;
    Ok(Answer(event.into()))
}
