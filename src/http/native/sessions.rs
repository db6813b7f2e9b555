//! `/api/sessions`: sessions, and the messages that they get.

use axum::{
    Json as Answer,
    extract::State,
    http::{HeaderMap, HeaderName, StatusCode, header},
    response::{IntoResponse, Response},
};
use serde::{Deserialize, Serialize};
use utoipa::{IntoParams, ToSchema};
use uuid::Uuid;

use super::{InSession, OwnSession, SessionObject, limit};
use crate::{
    actor::{AskError, SessionFilter, SessionState, SessionSummary, StateFilter},
    http::{
        Caller, Host, Problem,
        control::field_of,
        extract::{self, Json, Query},
        problem::ProblemBody,
    },
    journal::Only,
    model::{
        BusyPolicy, Import, LimitsRequest, PartialLimits, ProfileName, Seq, SessionName,
        Submission, Timestamp, access::Role, command::MAX_KEY,
    },
};
use oracle_control::{Accepted, check_profile, check_session, limits};

const IDEMPOTENCY_KEY: HeaderName = HeaderName::from_static("idempotency-key");

/// A session to create.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct NewSession {
    /// Its name; a new UUID if omitted.
    name: Option<SessionName>,
    /// Its profile; the default profile if omitted.
    profile: Option<ProfileName>,
    /// Earlier messages and instructions to import.
    import: Option<Import>,
}

/// Creates a session.
///
/// A message to a missing session creates one too; this route can also set its profile and import
/// messages.
#[utoipa::path(post, path = "/api/sessions", tag = "sessions",
    request_body = NewSession,
    responses(
        (status = 201, description = "The session was created; `location` has its path.", body = SessionObject,
            headers(("location" = String))),
        (status = 409, description = "A session of this name exists.", body = ProblemBody),
    )
)]
pub(super) async fn create(
    State(host): State<Host>,
    caller: Caller,
    Json(wanted): Json<NewSession>,
) -> Result<Response, Problem> {
    if host.is_draining() {
        return Err(Problem::ends());
    }
    let name = match wanted.name {
        Some(name) => check_free(&name, "name").map(|()| name)?,
        None => SessionName::from_uuid(Uuid::now_v7()),
    };
    let profile = profile(&host, &caller, wanted.profile)?;
    let oracle = host.oracle.acting(caller.by());
    let key = caller.session(name);
    let room = host.reserve_session(&key).await?;
    let made = oracle.create(key, profile, wanted.import).await;
    room.settle(&made);
    let made = made.map_err(|error| Problem::from_ask_error(error, "import"))?;
    let at = format!("/api/sessions/{}", made.key().name);
    let view = SessionObject::from(made.view().await?);
    Ok((StatusCode::CREATED, [(header::LOCATION, at)], Answer(view)).into_response())
}

/// Refuses names that no caller may write to.
fn check_free(name: &SessionName, param: &'static str) -> Result<(), Problem> {
    AskError::check_free(name).map_err(|error| Problem::from(error).of(param))
}

fn profile(
    host: &Host,
    caller: &Caller,
    wanted: Option<ProfileName>,
) -> Result<ProfileName, Problem> {
    let wanted = wanted.unwrap_or_else(ProfileName::oracle);
    check_profile(&caller.0, &wanted).map_err(|error| Problem::from(error).of("profile"))?;
    let names: Vec<ProfileName> = host.oracle.profiles().all().map(|(name, _)| name).collect();
    if names.contains(&wanted) {
        return Ok(wanted);
    }
    let names: Vec<&str> = names.iter().map(ProfileName::as_str).collect();
    let there = names.join("`, `");
    let what = format!("unknown profile `{wanted}`; use one of `{there}`");
    Err(Problem::bad("profile", what))
}

/// Selects a page of sessions.
#[derive(Debug, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub(super) struct SessionsParams {
    /// Only sessions in this state; `running` and `waiting` are several.
    #[param(inline)]
    state: Option<StateFilter>,
    /// Only sessions whose names have this prefix.
    prefix: Option<String>,
    /// Only sessions with a record since this time.
    #[param(inline)]
    updated_since: Option<Timestamp>,
    /// The `next` of the previous page.
    #[param(inline)]
    after: Option<SessionName>,
    /// Page size.
    #[param(minimum = 1, maximum = 1000, default = 100)]
    limit: Option<u16>,
}

/// A page of sessions.
#[derive(Debug, Serialize, ToSchema)]
pub(super) struct SessionPage {
    /// The sessions, ordered by name.
    sessions: Vec<ListedObject>,
    /// The `after` of the next page; null on the last page. A page may be short and not the last.
    next: Option<SessionName>,
}

/// A session in a list.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = ListedSession)]
struct ListedObject {
    /// Its name.
    session: SessionName,
    /// Its state.
    state: SessionState,
    /// The number of its last event.
    last: Seq,
    /// When its last event was recorded.
    updated: Option<Timestamp>,
}

/// Lists sessions, ordered by name.
#[utoipa::path(get, path = "/api/sessions", tag = "sessions",
    params(SessionsParams),
    responses((status = 200, body = SessionPage))
)]
pub(super) async fn list(
    State(host): State<Host>,
    caller: Caller,
    Query(wanted): Query<SessionsParams>,
) -> Result<Answer<SessionPage>, Problem> {
    let limit = limit(wanted.limit, 100, 1_000)?;
    let filter = SessionFilter {
        state: wanted.state,
        prefix: wanted.prefix,
        updated_since: wanted.updated_since,
        // Clients cannot open sessions in memory.
        lasting: true,
    };
    let (oracle, tenant) = (&host.oracle, &caller.0.tenant);
    let listed = oracle.list(tenant, &filter, wanted.after, limit).await?;
    let object = |session: SessionSummary| ListedObject {
        session: session.key.name,
        state: session.state,
        last: session.last,
        updated: session.updated,
    };
    Ok(Answer(SessionPage {
        sessions: listed.sessions.into_iter().map(object).collect(),
        next: listed.next,
    }))
}

/// Returns a session's state, without reactivating it.
#[utoipa::path(get, path = "/api/sessions/{id}", tag = "sessions",
    params(InSession),
    responses((status = 200, body = SessionObject))
)]
pub(super) async fn show(
    OwnSession(session): OwnSession,
) -> Result<Answer<SessionObject>, Problem> {
    Ok(Answer(session.view().await?.into()))
}

/// Options of a deletion.
#[derive(Debug, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub(super) struct Deleting {
    /// Also while a query is running: `1` or `0`.
    #[serde(default, deserialize_with = "extract::flag")]
    #[param(default = false)]
    force: bool,
}

/// A deleted session.
#[derive(Debug, Serialize, ToSchema)]
pub(super) struct DeletedSession {
    /// Its name.
    session: SessionName,
    /// Number of events that it had.
    events: Seq,
    /// Number of deleted sub-agent sessions.
    sub_agents: usize,
}

/// Deletes a session and its sub-agents' sessions permanently.
#[utoipa::path(delete, path = "/api/sessions/{id}", tag = "sessions",
    params(InSession, Deleting),
    responses(
        (status = 200, description = "The session was deleted.", body = DeletedSession),
        (status = 409, description = "A query is running.", body = ProblemBody),
    )
)]
pub(super) async fn delete(
    State(host): State<Host>,
    caller: Caller,
    OwnSession(session): OwnSession,
    Query(Deleting { force }): Query<Deleting>,
) -> Result<Answer<DeletedSession>, Problem> {
    let from = if force { Only::Always } else { Only::WhenIdle };
    let oracle = host.oracle.acting(caller.by());
    check_session(&caller.0, &session).await?;
    let deleted = oracle.delete(session.key(), from).await?;
    Ok(Answer(DeletedSession {
        session: session.key().name.clone(),
        events: deleted.known.last,
        sub_agents: deleted.sub_agents.len(),
    }))
}

/// A new message.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct NewMessage {
    /// The text; at most 1 MiB, and not blank.
    #[schema(min_length = 1, max_length = 1_048_576)]
    text: String,
    /// The policy for a busy session.
    #[serde(default)]
    busy: BusyPolicy,
    /// Budgets of the new query. Without the role `admin` they apply where they are stricter than
    /// the profile's. Refused if the message steers a running query.
    #[serde(default, deserialize_with = "limits::optional_object")]
    limits: Option<PartialLimits>,
}

/// Submits a message to a session, which is created if it does not exist.
///
/// The message is durable before the response and will be answered even if the server restarts;
/// follow the session's events for the answer. A steering message joins the running query.
#[utoipa::path(post, path = "/api/sessions/{id}/messages", tag = "sessions",
    params(
        InSession,
        ("Idempotency-Key" = Option<String>, Header, pattern = "^[!-~]{1,256}$",
            description = "Deduplicates retries of a request: up to 256 visible ASCII characters."),
    ),
    request_body = NewMessage,
    responses(
        (status = 202, description = "The message is durable.", body = Accepted),
        (status = 409, description = "The session is busy, closed or quarantined.", body = ProblemBody),
        (status = 422, description = "The idempotency key was used for another message.", body = ProblemBody),
    )
)]
pub(super) async fn submit(
    State(host): State<Host>,
    caller: Caller,
    OwnSession(session): OwnSession,
    headers: HeaderMap,
    Json(message): Json<NewMessage>,
) -> Result<(StatusCode, Answer<Accepted>), Problem> {
    check_free(&session.key().name, "id")?;
    check_session(&caller.0, &session).await?;
    if let Some(Err(why)) = message.limits.as_ref().map(limits::check) {
        let field = field_of(why.code).unwrap_or("limits");
        return Err(Problem::bad(field, why.message));
    }
    let request = match caller.0.role {
        Role::Admin => LimitsRequest::Operator,
        Role::User => LimitsRequest::User,
    };
    let submission = Submission {
        busy: message.busy,
        idempotency_key: key(&headers)?,
        limits: message.limits.map(request),
        ..Submission::new(message.text)
    };
    let room = host.reserve_message(session.key()).await?;
    let submitted = session.accept(submission).await;
    room.settle(&submitted);
    let submitted = submitted.map_err(|error| Problem::from_ask_error(error, "text"))?;
    let query = submitted.query;
    let seq = match submitted.seq {
        Some(seq) => Some(seq),
        // The message is durable, so a failed lookup must not make the client send it again.
        None => {
            let account = session.account(query).await.ok().flatten();
            account.map(|account| account.seq)
        }
    };
    let session = session.key().name.clone();
    let accepted = Accepted {
        session,
        query,
        seq,
    };
    Ok((StatusCode::ACCEPTED, Answer(accepted)))
}

fn key(headers: &HeaderMap) -> Result<Option<String>, Problem> {
    let Some(key) = extract::only(headers, &IDEMPOTENCY_KEY)? else {
        return Ok(None);
    };
    let good = |text: &&str| {
        (1..=MAX_KEY).contains(&text.len()) && text.bytes().all(|byte| byte.is_ascii_graphic())
    };
    let text = key.to_str().ok().filter(good).ok_or_else(|| {
        let what = format!(
            "`idempotency-key` must be 1 to {MAX_KEY} visible ASCII characters without spaces"
        );
        Problem::bad("idempotency-key", what)
    })?;
    Ok(Some(text.to_owned()))
}
