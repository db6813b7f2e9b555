//! `/api/sessions`: made, listed, shown and deleted.

use axum::{
    Json as Answer,
    extract::State,
    http::{StatusCode, header},
    response::{IntoResponse, Response},
};
use serde::{Deserialize, Serialize};
use utoipa::{IntoParams, ToSchema};
use uuid::Uuid;

use super::{
    InSession, not_reserved, session,
    shapes::{SessionObject, limit},
    tenant,
};
use crate::{
    actor::{Listed, SessionFilter, SessionState},
    http::{
        Caller, Host, Problem,
        extract::{self, Json, Path, Query},
        problem::ProblemBody,
    },
    journal::Only,
    model::{Import, ProfileName, Seq, SessionName, Timestamp},
};

/// A session that is wanted.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct NewSession {
    /// Its name; without one it gets a UUID.
    name: Option<SessionName>,
    /// The profile that it lives by; without one the default one.
    profile: Option<ProfileName>,
    /// What was said elsewhere before.
    import: Option<Import>,
}

/// Makes a session.
///
/// A message to a name that is not there makes one too; this one can say how it begins.
#[utoipa::path(post, path = "/api/sessions", tag = "sessions",
    request_body = NewSession,
    responses(
        (status = 201, description = "It is there; `location` says where.", body = SessionObject,
            headers(("location" = String))),
        (status = 400, description = "A field is not in order.", body = ProblemBody),
        (status = 403, description = "The name is Oracle's own.", body = ProblemBody),
        (status = 409, description = "There is one of this name.", body = ProblemBody),
        (status = 413, description = "It brings along too much.", body = ProblemBody),
    )
)]
pub(super) async fn create(
    State(host): State<Host>,
    caller: Caller,
    Json(wanted): Json<NewSession>,
) -> Result<Response, Problem> {
    if host.takes_nothing_new() {
        return Err(Problem::ends());
    }
    let name = match wanted.name {
        Some(name) => not_reserved(name, "name")?,
        None => SessionName::from_uuid(Uuid::now_v7()),
    };
    let profile = profile(&host, wanted.profile)?;
    let oracle = host.oracle.acting(caller.by());
    let key = caller.session(name);
    let room = host.room_for_a_session(&key).await?;
    let made = oracle.create(key, profile, wanted.import).await;
    room.settle(&made);
    let made = made.map_err(|error| Problem::of_asking(error, "import", "import"))?;
    let at = format!("/api/sessions/{}", made.key().name);
    let view = SessionObject::from(made.view().await?);
    Ok((StatusCode::CREATED, [(header::LOCATION, at)], Answer(view)).into_response())
}

fn profile(host: &Host, wanted: Option<ProfileName>) -> Result<ProfileName, Problem> {
    let Some(wanted) = wanted else {
        return Ok(ProfileName::oracle());
    };
    let profiles = host.oracle.profiles();
    let names: Vec<ProfileName> = profiles.all().map(|(name, _)| name).collect();
    if names.contains(&wanted) {
        return Ok(wanted);
    }
    let names: Vec<&str> = names.iter().map(ProfileName::as_str).collect();
    let there = names.join("`, `");
    let what = format!("there is no profile `{wanted}`; there are `{there}`");
    Err(Problem::bad("profile", what))
}

/// Which sessions are wanted.
#[derive(Debug, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub(super) struct Wanted {
    /// Only those that stand like this.
    #[param(inline)]
    state: Option<SessionState>,
    /// Only those whose names begin like this.
    prefix: Option<String>,
    /// Only those that recorded something since.
    #[param(inline)]
    updated_since: Option<Timestamp>,
    /// Only those after this, which is `next` of the page before.
    #[param(inline)]
    after: Option<SessionName>,
    /// Most of them.
    #[param(minimum = 1, maximum = 1000, default = 100)]
    limit: Option<u16>,
}

/// A page of a list of sessions.
#[derive(Debug, Serialize, ToSchema)]
pub(super) struct SessionPage {
    /// In the order of their names.
    sessions: Vec<ListedObject>,
    /// Give it as `after` for more; null if there is no more. A page may be short and not the last.
    next: Option<SessionName>,
}

/// A session in a list.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = ListedSession)]
struct ListedObject {
    /// Its name.
    session: SessionName,
    /// How it stands.
    state: SessionState,
    /// The number of its last event.
    last: Seq,
    /// When that was recorded.
    updated: Option<Timestamp>,
}

impl From<Listed> for ListedObject {
    fn from(listed: Listed) -> Self {
        Self {
            session: listed.key.name,
            state: listed.state,
            last: listed.last,
            updated: listed.updated,
        }
    }
}

/// Lists sessions, in the order of their names.
#[utoipa::path(get, path = "/api/sessions", tag = "sessions",
    params(Wanted),
    responses(
        (status = 200, body = SessionPage),
        (status = 400, description = "A parameter is not in order.", body = ProblemBody),
    )
)]
pub(super) async fn list(
    State(host): State<Host>,
    caller: Caller,
    Query(wanted): Query<Wanted>,
) -> Result<Answer<SessionPage>, Problem> {
    let limit = limit(wanted.limit, 100, 1_000)?;
    let filter = SessionFilter {
        state: wanted.state,
        prefix: wanted.prefix,
        updated_since: wanted.updated_since,
        // Nobody can look at the others.
        lasting: true,
    };
    let listed = host
        .oracle
        .list(tenant(&caller), &filter, wanted.after, limit);
    let listed = listed.await?;
    Ok(Answer(SessionPage {
        sessions: listed.sessions.into_iter().map(Into::into).collect(),
        next: listed.next,
    }))
}

/// Shows how a session stands. It does not wake for that.
#[utoipa::path(get, path = "/api/sessions/{id}", tag = "sessions",
    params(InSession),
    responses(
        (status = 200, body = SessionObject),
        (status = 400, description = "That is no name.", body = ProblemBody),
        (status = 403, description = "The name is Oracle's own.", body = ProblemBody),
        (status = 404, description = "There is no such session.", body = ProblemBody),
    )
)]
pub(super) async fn show(
    State(host): State<Host>,
    caller: Caller,
    Path(InSession { id }): Path<InSession>,
) -> Result<Answer<SessionObject>, Problem> {
    let view = session(&host, &caller, id)?.view().await?;
    Ok(Answer(view.into()))
}

/// How a session is deleted.
#[derive(Debug, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub(super) struct Deleting {
    /// Also in the middle of a query.
    #[serde(default, deserialize_with = "extract::flag")]
    #[param(default = false)]
    force: bool,
}

/// What was deleted.
#[derive(Debug, Serialize, ToSchema)]
pub(super) struct DeletedSession {
    /// Its name.
    session: SessionName,
    /// How many events it had.
    events: Seq,
    /// How many sessions of sub-agents went with it.
    sub_agents: usize,
}

/// Deletes a session and those of its sub-agents for good.
#[utoipa::path(delete, path = "/api/sessions/{id}", tag = "sessions",
    params(InSession, Deleting),
    responses(
        (status = 200, description = "It is gone.", body = DeletedSession),
        (status = 400, description = "That is no name.", body = ProblemBody),
        (status = 403, description = "The name is Oracle's own.", body = ProblemBody),
        (status = 404, description = "There is no such session.", body = ProblemBody),
        (status = 409, description = "It is in the middle of a query.", body = ProblemBody),
    )
)]
pub(super) async fn delete(
    State(host): State<Host>,
    caller: Caller,
    Path(InSession { id }): Path<InSession>,
    Query(Deleting { force }): Query<Deleting>,
) -> Result<Answer<DeletedSession>, Problem> {
    let key = caller.session(not_reserved(id, "id")?);
    let from = if force { Only::Always } else { Only::AtRest };
    let oracle = host.oracle.acting(caller.by());
    let deleted = oracle.delete(&key, from).await?;
    Ok(Answer(DeletedSession {
        session: key.name,
        events: deleted.known.last,
        sub_agents: deleted.sub_agents.len(),
    }))
}
