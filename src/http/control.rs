//! The control channel over HTTP: `POST /api/control` carries out a verb, `GET /api/control/watch` shows
//! what is recorded. For the role `admin` alone.

use axum::{
    Json,
    extract::State,
    http::HeaderMap,
    response::{Response, sse::Event},
};
use bytes::Bytes;
use futures_util::stream;
use utoipa_axum::{router::OpenApiRouter, routes};

use super::{
    Admin, Host, Problem,
    door::Farewell,
    extract::{self, Query},
    problem::ProblemBody,
    sse,
};
use crate::{
    control::{Answer, Code, Controller, Follow, Refused, Seen, Verb, Watching},
    model::By,
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
))]
async fn carry_out(
    State(host): State<Host>,
    Admin(who): Admin,
    headers: HeaderMap,
    body: Bytes,
) -> Result<Json<Answer>, Problem> {
    let verb = extract::verb(&headers, &body)?;
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

/// Shows what sessions record from now on, as server-sent events.
///
/// Each has the type of what was recorded, and a JSON object with `seen`: `event` (with `tenant` and
/// `event`), `gap` (events of a session are missing, from a number on), `lost` (events of any session may be
/// missing) or `end`.
#[utoipa::path(get, path = "/api/control/watch", tag = "control", params(Watching), responses(
    (status = 200, content_type = "text/event-stream", body = str),
    (status = 400, description = "A parameter is not in order.", body = ProblemBody),
    (status = 403, description = "The key is not of the role `admin`.", body = ProblemBody),
    (status = 404, description = "There is no such session.", body = ProblemBody),
))]
async fn watch(
    State(host): State<Host>,
    Admin(who): Admin,
    Query(wanted): Query<Watching>,
) -> Result<Response, Problem> {
    let controller = Controller::new(host.oracle.clone());
    let follow = controller.watch(&who, wanted).await.map_err(refused)?;
    tracing::debug!(by = %By::from(&who), "somebody watches");
    let shown = stream::unfold(Some((follow, host)), |showing| async {
        let (mut follow, host) = showing?;
        let seen = next(&mut follow, &host).await;
        let is_end = matches!(seen, Seen::End { .. });
        Some((event(&seen), (!is_end).then_some((follow, host))))
    });
    let why = Problem::no_key().body().message().to_owned();
    let farewell = Farewell::new(Some("end"), &Seen::End { why });
    Ok(sse::response(shown, farewell))
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
    sse::named(kind, seen)
}
