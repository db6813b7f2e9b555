//! The control channel over HTTP: `POST /api/control` carries out a verb, `GET /api/control/watch` shows
//! what is recorded. For the role `admin` alone.

use std::{convert::Infallible, time::Duration};

use axum::{
    Json as Told,
    extract::State,
    http::HeaderName,
    response::{
        IntoResponse, Sse,
        sse::{Event, KeepAlive},
    },
};
use futures_util::stream;
use serde::{Deserialize, Serialize};
use utoipa::{IntoParams, ToSchema};
use utoipa_axum::{router::OpenApiRouter, routes};

use super::{
    Admin, Host, Problem,
    extract::{Json, Query},
    problem::ProblemBody,
};
use crate::{
    control::{Answer, Code, Controller, Follow, Refused, Seen, Subject, Verb, Watching},
    model::{By, Seq, TenantId},
};

/// A stream that has nothing to say says so this often.
const KEEP_ALIVE: Duration = Duration::from_secs(15);

pub(super) fn routes() -> OpenApiRouter<Host> {
    OpenApiRouter::new()
        .routes(routes!(carry_out))
        .routes(routes!(watch))
}

/// What a verb is answered with.
#[derive(Serialize, ToSchema)]
struct Answered {
    /// `sessions`, `session`, `events`, `approvals`, `done`, `query`, `forked`, `reloaded` or `deleted`, with what
    /// belongs to it beside.
    #[schema(value_type = String)]
    #[serde(flatten)]
    answer: Answer,
}

/// Carries out a verb of the control channel.
///
/// What it changes is durable when it is answered, and recorded with the name of the key.
#[utoipa::path(post, path = "/api/control", tag = "control", request_body = Verb, responses(
    (status = 200, body = Answered),
    (status = 400, body = ProblemBody),
    (status = 401, body = ProblemBody),
    (status = 403, body = ProblemBody),
    (status = 404, body = ProblemBody),
    (status = 409, body = ProblemBody),
    (status = 413, body = ProblemBody),
    (status = 415, body = ProblemBody),
    (status = 503, body = ProblemBody)
))]
async fn carry_out(
    State(host): State<Host>,
    Admin(who): Admin,
    Json(verb): Json<Verb>,
) -> Result<Told<Answered>, Problem> {
    let controller = Controller::new(host.oracle.clone());
    let answer = controller.carry_out(&who, verb).await.map_err(refused)?;
    Ok(Told(Answered { answer }))
}

/// With the field that is not as it should be.
fn refused(why: Refused) -> Problem {
    let field = match why.code {
        Code::EmptyQuestion | Code::QuestionTooLong => "text",
        Code::TurnsOutOfRange => "limits.max_turns",
        Code::UnknownTool | Code::AttachedAlready => "tool",
        Code::NotWaiting => "call",
        Code::NoSuchTurn => "turn",
        Code::AlreadyOpen => "into",
        Code::NoSession | Code::Reserved | Code::Deleted => "session",
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
    session: Option<String>,
    /// Only of this tenant's sessions; of all if none is named.
    tenant: Option<String>,
    /// First what the session recorded after this number; only with `session`.
    after: Option<u64>,
    /// Only types that begin with one of these, with commas between them.
    types: Option<String>,
    /// Only what matters this much: `info`, `warning` or `error`.
    severity: Option<String>,
}

impl Wanted {
    fn read(self) -> Result<Watching, Problem> {
        let session = self.session.map(|name| name.parse::<Subject>()).transpose();
        let tenant = self.tenant.map(|name| name.parse::<TenantId>()).transpose();
        let severity = self.severity.map(|word| {
            let word = serde_json::Value::String(word);
            serde_json::from_value(word)
        });
        let types = self.types.unwrap_or_default();
        let types = types
            .split(',')
            .map(str::trim)
            .filter(|kind| !kind.is_empty());
        Ok(Watching {
            session: session.map_err(|error| Problem::bad("session", error.to_string()))?,
            tenant: tenant.map_err(|error| Problem::bad("tenant", error.to_string()))?,
            after: self.after.map(Seq),
            types: types.map(str::to_owned).collect(),
            severity: severity.transpose().map_err(|_| {
                Problem::bad("severity", "`severity` is `info`, `warning` or `error`")
            })?,
        })
    }
}

/// Shows what sessions record from now on, as server-sent events.
///
/// Each has the type of what was recorded, and a JSON object with `seen`: `event` (with `tenant` and
/// `event`), `gap` (events of a session are missing, from a number on), `lost` (events of any session may be
/// missing) or `end`.
#[utoipa::path(get, path = "/api/control/watch", tag = "control", params(Wanted), responses(
    (status = 200, content_type = "text/event-stream", body = str),
    (status = 400, body = ProblemBody),
    (status = 401, body = ProblemBody),
    (status = 403, body = ProblemBody),
    (status = 404, body = ProblemBody),
    (status = 503, body = ProblemBody)
))]
async fn watch(
    State(host): State<Host>,
    Admin(who): Admin,
    Query(wanted): Query<Wanted>,
) -> Result<impl IntoResponse, Problem> {
    let controller = Controller::new(host.oracle.clone());
    let follow = controller.watch(&who, wanted.read()?).await?;
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
    Ok((at_once, Sse::new(shown).keep_alive(keep_alive)))
}

async fn next(follow: &mut Follow, host: &Host) -> Seen {
    let ends = |why: &str| Seen::End {
        why: why.to_owned(),
    };
    tokio::select! {
        seen = follow.next() => seen.unwrap_or_else(|| ends("it is over")),
        () = host.drain().begun() => ends("the server ends"),
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
