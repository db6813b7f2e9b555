//! Load shedding: a message for which the system has no room is refused before anything is done for it.
//!
//! Its handler would refuse it too, but the way there (door, body, JSON) costs more than the refusal, and where
//! four times too much comes most of what comes is refused. Whoever asks learns no more than `/readyz` tells.

use std::time::Duration;

use axum::{
    body::Body,
    extract::Request,
    http::{Method, header},
    response::{IntoResponse, Response},
};
use http_body::Body as _;
use http_body_util::BodyExt as _;

use super::{Host, Problem};

/// Longer bodies go the usual way.
const SMALL: u64 = 64 << 10;
/// How long a body may take to arrive that nobody reads.
const PATIENCE: Duration = Duration::from_secs(5);

/// The refusal of a request that asks for a query, if there is no room for one.
pub(super) fn refusal(host: &Host, request: &Request) -> Option<Problem> {
    let is_message = request.method() == Method::POST && asks(request.uri().path());
    // A page may read an answer only if the door says so.
    let is_page = request.headers().contains_key(header::ORIGIN);
    let length = request.body().size_hint().upper();
    let is_small = length.is_some_and(|length| length <= SMALL);
    if !is_message || is_page || !is_small {
        return None;
    }
    host.has_room_for_a_query().err()
}

fn asks(path: &str) -> bool {
    let in_session = |path: &str| path.ends_with("/messages");
    path == "/v1/chat/completions" || path.strip_prefix("/api/sessions/").is_some_and(in_session)
}

/// Answers with it, once the body is there: a connection that is closed with something unread could lose it.
pub(super) async fn refuse(mut body: Body, problem: Problem) -> Response {
    let taken = async { while let Some(Ok(_)) = body.frame().await {} };
    // Whoever is late has the answer all the same.
    let _ = tokio::time::timeout(PATIENCE, taken).await;
    problem.into_response()
}
