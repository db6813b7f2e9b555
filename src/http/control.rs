//! The control channel over HTTP, for the role `admin` only: `POST /api/control` executes a verb,
//! `GET /api/control/watch` streams records.

use std::future::pending;

use axum::{
    Json,
    extract::State,
    http::{HeaderMap, request::Parts},
    response::{Response, sse::Event},
};
use bytes::Bytes;
use futures_util::{StreamExt as _, stream};
use utoipa_axum::routes;

use super::{
    Admin, Begins, Host, Problem, Route, RouteGroup,
    cluster::OtherNodes,
    extract::{self, Query},
    problem::ProblemBody,
    sse,
};
use crate::model::By;
use oracle_control::{Answer, Code, Controller, Follow, Refused, Verb, Watching, WireUpdate};

pub(super) fn routes() -> Vec<Route> {
    let revocation = || {
        let why = Problem::no_key().body().message().to_owned();
        sse::last_event(Some("end"), &WireUpdate::End { why })
    };
    vec![
        Route::post(RouteGroup::Operators, Begins::Nothing, routes!(carry_out)),
        Route::without_post(RouteGroup::Operators, routes!(watch)).revocation(revocation),
    ]
}

/// Executes a verb of the control channel.
///
/// Its changes are durable before the response, and are recorded with the key's name.
#[utoipa::path(post, path = "/api/control", tag = "control", request_body = Verb, responses(
    (status = 200, body = Answer),
    (status = 409, description = "The session's state does not allow the verb.", body = ProblemBody),
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

fn refused(why: Refused) -> Problem {
    match field_of(why.code) {
        Some(field) => Problem::from(why).of(field),
        None => why.into(),
    }
}

/// The field that a refusal is about.
pub(super) const fn field_of(code: Code) -> Option<&'static str> {
    Some(match code {
        Code::EmptyQuestion | Code::QuestionTooLong => "text",
        Code::ReasonTooLong => "reason",
        Code::NoLimit => "limits",
        Code::UnknownType => "types",
        Code::TurnsOutOfRange => "limits.max_turns",
        Code::TokensOutOfRange => "limits.max_tokens",
        Code::CostOutOfRange | Code::CostUnknown => "limits.max_cost",
        Code::UnknownTool | Code::AttachedAlready => "tool",
        Code::NotWaiting => "call",
        Code::OtherCall => "token",
        Code::NoSuchTurn => "turn",
        Code::AlreadyOpen => "into",
        Code::NoSession | Code::Reserved | Code::Deleted => "session",
        // All other fields were checked during parsing.
        Code::InvalidValue => "after",
        _ => return None,
    })
}

/// Streams new records of sessions as server-sent events.
///
/// The event type is the record's type. The data is a JSON object whose `seen` is `event` (with
/// `tenant` and `event`), `gap` (events of a session are missing from a number on), `lost` (events
/// of any session may be missing) or `end`.
#[utoipa::path(get, path = "/api/control/watch", tag = "control", params(Watching), responses(
    (status = 200, content_type = "text/event-stream", body = str),
))]
async fn watch(
    State(host): State<Host>,
    Admin(who): Admin,
    Query(wanted): Query<Watching>,
    parts: Parts,
) -> Result<Response, Problem> {
    let is_of_all = wanted.session.is_none();
    let controller = Controller::new(host.oracle.clone());
    let follow = controller.watch(&who, wanted).await.map_err(refused)?;
    tracing::debug!(by = %By::from(&who), "a client watches events");
    let others = is_of_all.then(|| OtherNodes::watch(&host, parts, who));
    let watched = Some((follow, others.flatten(), host));
    let shown = stream::unfold(watched, |watched| async {
        let (mut follow, mut others, host) = watched?;
        let seen = next(&mut follow, others.as_mut(), &host).await;
        let is_end = matches!(seen, WireUpdate::End { .. });
        Some((event(&seen), (!is_end).then_some((follow, others, host))))
    });
    Ok(sse::response(shown))
}

async fn next(follow: &mut Follow, others: Option<&mut OtherNodes>, host: &Host) -> WireUpdate {
    let ends = |why: &str| WireUpdate::End {
        why: why.to_owned(),
    };
    let of_others = async {
        match others {
            Some(others) => others.next().await,
            None => pending().await,
        }
    };
    tokio::select! {
        update = of_others => update,
        update = follow.next() => update.map_or_else(|| ends("the stream has ended"), WireUpdate::from),
        () = host.drain().over() => ends("the server is shutting down"),
    }
}

fn event(seen: &WireUpdate) -> Event {
    let kind = match seen {
        WireUpdate::Event { event, .. } => event.kind.as_str(),
        WireUpdate::Gap { .. } => "gap",
        WireUpdate::Lost {} => "lost",
        WireUpdate::End { .. } => "end",
    };
    sse::named(kind, seen)
}
