//! Why a request was not carried out, in the shape of OpenAI's error objects.

use std::{borrow::Cow, time::Duration};

use axum::{
    Json,
    http::{HeaderValue, StatusCode, header},
    response::{IntoResponse, Response},
};
use serde::Serialize;
use utoipa::ToSchema;

mod access;
mod limits;
mod refused;

pub(super) use limits::no_such_method;

/// Why a request was not carried out. Its `code` is stable; its text says what is wrong and what to do.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Problem {
    status: StatusCode,
    code: Cow<'static, str>,
    message: Cow<'static, str>,
    param: Option<Cow<'static, str>>,
    retry_after: Option<Duration>,
}

/// A [`Problem`] on the wire.
#[derive(Debug, Serialize, ToSchema)]
pub struct ProblemBody {
    /// What is wrong.
    error: ErrorObject,
}

impl ProblemBody {
    /// For people.
    #[must_use]
    pub fn message(&self) -> &str {
        &self.error.message
    }
}

/// See [`ProblemBody`].
#[derive(Debug, Serialize, ToSchema)]
struct ErrorObject {
    /// For people: what is wrong and what to do.
    message: String,
    /// The kind of problem, such as `invalid_request_error`.
    #[serde(rename = "type")]
    kind: &'static str,
    /// Which field or header is wrong, if it is one.
    param: Option<String>,
    /// Stable name of the problem.
    code: String,
}

impl Problem {
    /// With a stable code.
    #[must_use]
    pub fn new(
        status: StatusCode,
        code: impl Into<Cow<'static, str>>,
        message: impl Into<Cow<'static, str>>,
    ) -> Self {
        Self {
            status,
            code: code.into(),
            message: message.into(),
            param: None,
            retry_after: None,
        }
    }

    /// A field, header or parameter that is not in order.
    #[must_use]
    pub fn bad(param: impl Into<Cow<'static, str>>, message: impl Into<Cow<'static, str>>) -> Self {
        Self::new(StatusCode::BAD_REQUEST, "invalid_value", message).of(param)
    }

    /// Which field, header or parameter it is about.
    #[must_use]
    pub fn of(self, param: impl Into<Cow<'static, str>>) -> Self {
        Self {
            param: Some(param.into()),
            ..self
        }
    }

    /// When it is worth trying again.
    #[must_use]
    pub fn retry_after(self, after: Duration) -> Self {
        Self {
            retry_after: Some(after),
            ..self
        }
    }

    /// The status that it is answered with.
    #[must_use]
    pub const fn status(&self) -> StatusCode {
        self.status
    }

    /// As it stands in a body or a stream's last event.
    #[must_use]
    pub fn body(&self) -> ProblemBody {
        ProblemBody {
            error: ErrorObject {
                message: self.message.clone().into_owned(),
                kind: kind(self.status),
                param: self.param.clone().map(Cow::into_owned),
                code: self.code.clone().into_owned(),
            },
        }
    }
}

/// OpenAI's word for problems with this status.
fn kind(status: StatusCode) -> &'static str {
    match status {
        StatusCode::UNAUTHORIZED => "authentication_error",
        StatusCode::FORBIDDEN => "permission_error",
        StatusCode::TOO_MANY_REQUESTS => "rate_limit_error",
        status if status.is_server_error() => "server_error",
        _ => "invalid_request_error",
    }
}

impl IntoResponse for Problem {
    fn into_response(self) -> Response {
        let mut response = (self.status, Json(self.body())).into_response();
        if let Some(after) = self.retry_after {
            // Whole seconds, and never at once.
            let seconds = after.as_secs_f64().ceil().max(1.0) as u64;
            let headers = response.headers_mut();
            headers.insert(header::RETRY_AFTER, HeaderValue::from(seconds));
        }
        if self.status == StatusCode::UNAUTHORIZED {
            let bearer = HeaderValue::from_static("Bearer");
            response
                .headers_mut()
                .insert(header::WWW_AUTHENTICATE, bearer);
        }
        response
    }
}

/// For paths that nobody serves.
pub(super) async fn no_such_route(uri: axum::http::Uri) -> Problem {
    let path = uri.path();
    let what = format!("there is nothing at `{path}`: `/api/openapi.json` describes what there is");
    Problem::new(StatusCode::NOT_FOUND, "no_such_route", what)
}
