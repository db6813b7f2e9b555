//! The problems of the server itself: of its limits, of its end, and of its own mistakes.

use std::{borrow::Cow, time::Duration};

use axum::http::{Method, StatusCode, Uri};

use super::Problem;

/// When a server that is full may have room again.
const SOON: Duration = Duration::from_secs(1);
/// When a server that ends may have been started again.
const LATER: Duration = Duration::from_secs(5);

impl Problem {
    /// The system has no room.
    #[must_use]
    pub fn overloaded(what: impl Into<Cow<'static, str>>) -> Self {
        Self::new(StatusCode::SERVICE_UNAVAILABLE, "overloaded", what).retry_after(SOON)
    }

    /// The server ends, or drains.
    #[must_use]
    pub fn ends() -> Self {
        let what = "the server drains or ends, and takes nothing new: try again when it is back";
        Self::new(StatusCode::SERVICE_UNAVAILABLE, "draining", what).retry_after(LATER)
    }

    /// The handler of a request panicked.
    #[must_use]
    pub fn bug(request: &str) -> Self {
        let what = format!("a mistake of the server's own: its log has it under request {request}");
        Self::new(StatusCode::INTERNAL_SERVER_ERROR, "internal", what)
    }

    pub(in crate::http) fn body_too_large(most: usize) -> Self {
        let what = format!(
            "the body of a request may have {most} bytes: send less, or have `server.max_body` raised"
        );
        Self::new(StatusCode::PAYLOAD_TOO_LARGE, "body_too_large", what)
    }

    pub(in crate::http) fn slow_body(within: Duration) -> Self {
        let what = format!("the body of the request did not arrive within {within:?}");
        Self::new(StatusCode::REQUEST_TIMEOUT, "slow_body", what)
    }

    pub(in crate::http) fn broken_body() -> Self {
        let what = "the body of the request broke off, or is not in order";
        Self::new(StatusCode::BAD_REQUEST, "broken_body", what)
    }
}

/// For methods that a path does not have.
pub(in crate::http) async fn no_such_method(method: Method, uri: Uri) -> Problem {
    let path = uri.path();
    let what = format!(
        "`{path}` does not take {method}: the header `allow` says what it takes, and \
         `/api/openapi.json` describes it"
    );
    Problem::new(StatusCode::METHOD_NOT_ALLOWED, "no_such_method", what)
}
