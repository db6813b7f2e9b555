//! The control channel over HTTP: `POST /api/control` carries out a verb, `GET /api/control/watch` shows
//! what is recorded. For the role `admin` alone.

use std::convert::Infallible;

use axum::{
    Extension, Json,
    extract::State,
    http::{HeaderMap, HeaderName},
    response::{
        IntoResponse, Sse,
        sse::{Event, KeepAlive},
    },
};
use bytes::Bytes;
use futures_util::stream;
use serde::Deserialize;
use utoipa::IntoParams;
use utoipa_axum::{router::OpenApiRouter, routes};

use super::{
    Admin, Host, KEEP_ALIVE, Problem,
    door::Farewell,
    extract::{self, Query},
    problem::ProblemBody,
};
use crate::{
    control::{Answer, Code, Controller, Follow, Refused, Seen, Subject, Verb, Watching},
    model::{By, Seq, Severity, TenantId},
};

pub(super) fn routes() -> OpenApiRouter<Host> {
    OpenApiRouter::new()
        .routes(routes!(carry_out))
        .routes(routes!(watch))
}

/// Carries out a verb of the control channel.
///
/// What it changes is durable when it is answered, and recorded with the name of the key.
#[utoipa::path(post, path = "/api/control", tag = "control", request_body = Verb, responses(
    (status = 200, body = Answer),
    (status = 400, description = "A field is not in order.", body = ProblemBody),
    (status = 403, description = "The key is not of the role `admin`.", body = ProblemBody),
    (status = 404, description = "There is no such session, or no such tool.", body = ProblemBody),
    (status = 409, description = "The session does not stand so that it could be done.", body = ProblemBody),
    (status = "4XX", body = ProblemBody),
    (status = "5XX", body = ProblemBody),
))]
async fn carry_out(
    State(host): State<Host>,
    Admin(who): Admin,
    headers: HeaderMap,
    body: Bytes,
) -> Result<Json<Answer>, Problem> {
    let verb = extract::tagged(&headers, &body, "verb")?;
    drop(body);
    let controller = Controller::new(host.oracle.clone());
    let answer = controller.carry_out(&who, verb).await.map_err(refused)?;
    Ok(Json(answer))
}

/// With the field that is not as it should be.
fn refused(why: Refused) -> Problem {
    let field = match why.code {
        Code::EmptyQuestion | Code::QuestionTooLong => "text",
        Code::TurnsOutOfRange => "limits.max_turns",
        Code::TokensOutOfRange => "limits.max_tokens",
        Code::CostOutOfRange => "limits.max_cost",
        Code::UnknownTool | Code::AttachedAlready => "tool",
        Code::NotWaiting => "call",
        Code::NoSuchTurn => "turn",
        Code::AlreadyOpen => "into",
        Code::NoSession | Code::Reserved | Code::Deleted => "session",
        // Whatever else can be wrong was found when it was read.
        Code::InvalidValue => "after",
        _ => return why.into(),
    };
    Problem::from(why).of(field)
}

/// What is to be seen.
#[derive(Debug, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
struct Wanted {
    /// Only of this session, `NAME` or `TENANT/NAME`; of all if none is named.
    #[param(inline)]
    session: Option<Subject>,
    /// Only of this tenant's sessions; of all if none is named.
    #[param(inline)]
    tenant: Option<TenantId>,
    /// First what the session recorded after this number; only with `session`.
    after: Option<u64>,
    /// Only types that begin with one of these, with commas between them.
    #[serde(default, deserialize_with = "extract::list")]
    #[param(style = Form, explode = false)]
    types: Vec<String>,
    /// Only what matters this much.
    #[param(inline)]
    severity: Option<Severity>,
}

impl From<Wanted> for Watching {
    fn from(wanted: Wanted) -> Self {
        let types = wanted.types.iter().map(|kind| kind.trim());
        let types = types.filter(|kind| !kind.is_empty()).map(str::to_owned);
        Self {
            session: wanted.session,
            tenant: wanted.tenant,
            after: wanted.after.map(Seq),
            types: types.collect(),
            severity: wanted.severity,
        }
    }
}

/// Shows what sessions record from now on, as server-sent events.
///
/// Each has the type of what was recorded, and a JSON object with `seen`: `event` (with `tenant` and
/// `event`), `gap` (events of a session are missing, from a number on), `lost` (events of any session may be
/// missing) or `end`.
#[utoipa::path(get, path = "/api/control/watch", tag = "control", params(Wanted), responses(
    (status = 200, content_type = "text/event-stream", body = str),
    (status = 400, description = "A parameter is not in order.", body = ProblemBody),
    (status = 403, description = "The key is not of the role `admin`.", body = ProblemBody),
    (status = 404, description = "There is no such session.", body = ProblemBody),
    (status = "4XX", body = ProblemBody),
    (status = "5XX", body = ProblemBody),
))]
async fn watch(
    State(host): State<Host>,
    Admin(who): Admin,
    Query(wanted): Query<Wanted>,
) -> Result<impl IntoResponse, Problem> {
    let controller = Controller::new(host.oracle.clone());
    let follow = controller
        .watch(&who, wanted.into())
        .await
        .map_err(refused)?;
    tracing::debug!(by = %By::from(&who), "somebody watches");
    let shown = stream::unfold(Some((follow, host)), |showing| async {
        let (mut follow, host) = showing?;
        let seen = next(&mut follow, &host).await;
        let is_end = matches!(seen, Seen::End { .. });
        Some((
            Ok::<_, Infallible>(event(&seen)),
            (!is_end).then_some((follow, host)),
        ))
    });
    let keep_alive = KeepAlive::new().interval(KEEP_ALIVE).text("keep-alive");
    // So that proxies hand on each event when it comes.
    let at_once = [(HeaderName::from_static("x-accel-buffering"), "no")];
    let farewell = Extension(Farewell(farewell));
    Ok((at_once, farewell, Sse::new(shown).keep_alive(keep_alive)))
}

/// The last event, where the key opens nothing any more.
fn farewell(why: &Problem) -> Bytes {
    let why = why.body().message().to_owned();
    let end = Seen::End { why };
    // It has a form in JSON like all others.
    let data = serde_json::to_string(&end).unwrap_or_default();
    format!("event: end\ndata: {data}\n\n").into()
}

async fn next(follow: &mut Follow, host: &Host) -> Seen {
    let ends = |why: &str| Seen::End {
        why: why.to_owned(),
    };
    tokio::select! {
        seen = follow.next() => seen.unwrap_or_else(|| ends("it is over")),
        () = host.drain().over() => ends("the server ends"),
    }
}

fn event(seen: &Seen) -> Event {
    let kind = match seen {
        Seen::Event { event, .. } => event.kind.as_str(),
        Seen::Gap { .. } => "gap",
        Seen::Lost {} => "lost",
        Seen::End { .. } => "end",
    };
    let event = Event::default().event(kind);
    // What was read from the journal has a form in JSON.
    event.json_data(seen).unwrap_or_default()
}
