//! Queries that ended without an answer, as errors.

use axum::{
    http::{HeaderName, HeaderValue, StatusCode},
    response::{IntoResponse, Response},
};

use crate::{http::Problem, model::Outcome};

/// By which OpenAI's libraries are told not to send a request again by themselves.
const SHOULD_RETRY: HeaderName = HeaderName::from_static("x-should-retry");

/// Why there is no answer; none where there is one.
pub(super) fn problem(outcome: &Outcome) -> Option<Problem> {
    match outcome {
        Outcome::Failed { code, detail } => {
            Some(Problem::new(status(code), code.clone(), detail.clone()))
        }
        Outcome::Cancelled => {
            let what = "the question was taken back before it was answered";
            Some(Problem::new(StatusCode::CONFLICT, "cancelled", what))
        }
        _ => None,
    }
}

/// Whose fault it is: the conversation's, ours, or (mostly) that of a model behind us.
fn status(code: &str) -> StatusCode {
    match code {
        "context" => StatusCode::BAD_REQUEST,
        "budget_violated" | "crash" | "stall" | "journal" => StatusCode::INTERNAL_SERVER_ERROR,
        _ => StatusCode::BAD_GATEWAY,
    }
}

/// The error in place of an answer. All that could be tried was tried: the library of a client must not start
/// all over by itself.
pub(super) fn respond(problem: Problem) -> Response {
    let mut response = problem.into_response();
    let no = HeaderValue::from_static("false");
    response.headers_mut().insert(SHOULD_RETRY, no);
    response
}
