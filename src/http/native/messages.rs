//! `/api/sessions/{id}/messages`.

use axum::{
    Json as Answer,
    extract::State,
    http::{HeaderMap, HeaderName, StatusCode},
};
use serde::Deserialize;
use utoipa::ToSchema;

use super::shapes::{InSession, OwnSession, check_free};
use crate::{
    control::{Accepted, check_session, limits},
    http::{
        Caller, Host, Problem,
        control::field_of,
        extract::{self, Json},
        problem::ProblemBody,
    },
    model::{BusyPolicy, LimitsRequest, PartialLimits, Submission, access::Role, command::MAX_KEY},
};

const IDEMPOTENCY_KEY: HeaderName = HeaderName::from_static("idempotency-key");

/// A new message.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct NewMessage {
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
    let checked = message.limits.as_ref().map_or(Ok(()), limits::check);
    checked.map_err(|why| {
        let field = field_of(why.code).unwrap_or("limits");
        Problem::bad(field, why.message)
    })?;
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
    let mut seq = submitted.seq;
    // The message is durable, so a failed lookup must not make the client send it again.
    if seq.is_none() {
        let account = session.account(query).await.ok().flatten();
        seq = account.map(|account| account.seq);
    }
    let accepted = Accepted {
        session: session.key().name.clone(),
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
    match key.to_str().ok().filter(good) {
        Some(text) => Ok(Some(text.to_owned())),
        None => {
            let what = format!(
                "`idempotency-key` must be 1 to {MAX_KEY} visible ASCII characters without spaces"
            );
            Err(Problem::bad("idempotency-key", what))
        }
    }
}
