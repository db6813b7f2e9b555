//! Why a request was not carried out, in the shape of OpenAI's error objects.

use std::{borrow::Cow, error::Error, time::Duration};

use axum::{
    Json,
    http::{HeaderValue, Method, StatusCode, Uri, header},
    response::{IntoResponse, Response},
};
use serde::Serialize;
use utoipa::ToSchema;

use crate::{
    access::{Over, TooMany},
    actor::AskError,
    control::{Code, Refused},
    kernel::Refusal,
    llm::cause,
};

/// When a status that passes is worth another try, where nothing else is known.
const SOON: Duration = Duration::from_secs(1);
/// When a server that ends may have been started again.
const LATER: Duration = Duration::from_secs(5);
/// When keys that cannot be read may have been mended.
const MENDED: Duration = Duration::from_secs(10);

const TOO_MANY_ATTEMPTS: &str = "too_many_attempts";

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
        let passes = matches!(
            self.status,
            StatusCode::TOO_MANY_REQUESTS | StatusCode::SERVICE_UNAVAILABLE
        );
        let after = self.retry_after.or_else(|| passes.then_some(SOON));
        // Whole seconds, and never at once.
        let after = after.map(|after| after.as_secs_f64().ceil().max(1.0) as u64);
        let after = after.map(|seconds| [(header::RETRY_AFTER, HeaderValue::from(seconds))]);
        let no_key = self.status == StatusCode::UNAUTHORIZED;
        let scheme = no_key.then_some([(header::WWW_AUTHENTICATE, "Bearer")]);
        (self.status, after, scheme, Json(self.body())).into_response()
    }
}

/// For paths that nobody serves.
pub(super) async fn no_such_route(uri: Uri) -> Problem {
    let path = uri.path();
    let what = format!("there is nothing at `{path}`: `/api/openapi.json` describes what there is");
    Problem::new(StatusCode::NOT_FOUND, "no_such_route", what)
}

/// For methods that a path does not have.
pub(super) async fn no_such_method(method: Method, uri: Uri) -> Problem {
    let path = uri.path();
    let what = format!(
        "`{path}` does not take {method}: the header `allow` says what it takes, and \
         `/api/openapi.json` describes it"
    );
    Problem::new(StatusCode::METHOD_NOT_ALLOWED, "no_such_method", what)
}

impl Problem {
    /// The system has no room.
    #[must_use]
    pub fn overloaded(what: impl Into<Cow<'static, str>>) -> Self {
        Self::new(StatusCode::SERVICE_UNAVAILABLE, "overloaded", what)
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

    pub(super) fn body_too_large(most: usize) -> Self {
        let what = format!(
            "the body of a request may have {most} bytes: send less, or have `server.max_body` raised"
        );
        Self::new(StatusCode::PAYLOAD_TOO_LARGE, "body_too_large", what)
    }

    pub(super) fn slow_body(within: Duration) -> Self {
        let what = format!("the body of the request did not arrive within {within:?}");
        Self::new(StatusCode::REQUEST_TIMEOUT, "slow_body", what)
    }

    pub(super) fn broken_body(error: &(dyn Error + 'static)) -> Self {
        let why = cause(error);
        let what = format!("the body of the request broke off, or is not in order: {why}");
        Self::new(StatusCode::BAD_REQUEST, "broken_body", what)
    }

    /// No key was given, or none that is known.
    #[must_use]
    pub fn no_key() -> Self {
        let what = "no valid key was given: send `Authorization: Bearer KEY` with a key from `oracle keys create`";
        Self::new(StatusCode::UNAUTHORIZED, "invalid_api_key", what)
    }

    /// The key does not open this.
    #[must_use]
    pub fn admin_only() -> Self {
        let what = "this needs a key of the role `admin`";
        Self::new(StatusCode::FORBIDDEN, "admin_only", what)
    }

    /// Nobody needs a key, and who asks is not who sends.
    pub(super) fn open_behind_a_proxy(header: &'static str) -> Self {
        let what = format!(
            "the server has no keys, so it answers nobody but its own machine, and by `{header}` a proxy asks \
             for somebody else: make keys by `oracle keys create` before it is put behind a proxy"
        );
        Self::new(StatusCode::FORBIDDEN, "no_keys_behind_proxy", what).of(header)
    }

    pub(super) fn too_many_attempts(TooMany { retry_after }: TooMany) -> Self {
        let what = "too many wrong keys were sent from this address: wait, and send a right one";
        Self::new(StatusCode::TOO_MANY_REQUESTS, TOO_MANY_ATTEMPTS, what).retry_after(retry_after)
    }

    pub(super) fn is_too_many_attempts(&self) -> bool {
        self.code == TOO_MANY_ATTEMPTS
    }

    pub(super) fn keys_unknowable() -> Self {
        let what = "the server cannot read its keys, so it lets nobody in: its log says why";
        Self::new(StatusCode::SERVICE_UNAVAILABLE, "keys_unreadable", what).retry_after(MENDED)
    }

    pub(super) fn wrong_host(host: &str) -> Self {
        let what = format!(
            "the server does not go by the name `{host}`: ask for it by its address, or have the name \
             added to `server.allowed_hosts`"
        );
        Self::new(StatusCode::MISDIRECTED_REQUEST, "host_not_allowed", what).of("host")
    }

    pub(super) fn no_host() -> Self {
        let what = "the request has no good `host` header, which it needs";
        Self::new(StatusCode::BAD_REQUEST, "no_host", what).of("host")
    }

    pub(super) fn wrong_origin() -> Self {
        let what = "the web page that asks is not one that may: have its origin added to \
                    `server.allowed_origins`";
        Self::new(StatusCode::FORBIDDEN, "origin_not_allowed", what).of("origin")
    }
}

impl From<Over> for Problem {
    fn from(over: Over) -> Self {
        let problem = Self::new(StatusCode::TOO_MANY_REQUESTS, over.code(), over.to_string());
        problem.retry_after(over.retry_after())
    }
}

impl From<AskError> for Problem {
    fn from(error: AskError) -> Self {
        Refused::from(error).into()
    }
}

impl Problem {
    /// What a session refuses, with the field or header that is not as it should be. A route has the question and
    /// what was said elsewhere in these fields.
    pub(super) fn of_asking(error: AskError, question: &'static str, import: &'static str) -> Self {
        let field = match &error {
            AskError::EmptyQuestion | AskError::QuestionTooLong { .. } => Some(question),
            AskError::Key { .. } | AskError::Refused(Refusal::KeyReused { .. }) => {
                Some("idempotency-key")
            }
            AskError::Refused(Refusal::ImportTooLarge { .. } | Refusal::NotNew) => Some(import),
            AskError::Refused(Refusal::LimitsOfASteer) => Some("limits"),
            _ => None,
        };
        let problem = Self::from(error);
        match field {
            Some(field) => problem.of(field),
            None => problem,
        }
    }
}

impl From<Refused> for Problem {
    fn from(refused: Refused) -> Self {
        let retry_after = refused.retry_after();
        Self {
            retry_after,
            ..Self::new(status(refused.code), refused.code.as_str(), refused.message)
        }
    }
}

const fn status(code: Code) -> StatusCode {
    match code {
        Code::InvalidValue
        | Code::InvalidName
        | Code::EmptyQuestion
        | Code::TurnsOutOfRange
        | Code::TokensOutOfRange
        | Code::CostOutOfRange => StatusCode::BAD_REQUEST,
        Code::AdminOnly | Code::Reserved => StatusCode::FORBIDDEN,
        Code::NoSession | Code::UnknownTool => StatusCode::NOT_FOUND,
        Code::Deleted => StatusCode::GONE,
        Code::TooLong | Code::QuestionTooLong | Code::ImportTooLarge => {
            StatusCode::PAYLOAD_TOO_LARGE
        }
        Code::KeyReused => StatusCode::UNPROCESSABLE_ENTITY,
        Code::InboxFull => StatusCode::TOO_MANY_REQUESTS,
        Code::Overloaded | Code::Unavailable | Code::Journal | Code::Draining => {
            StatusCode::SERVICE_UNAVAILABLE
        }
        // It does not go with what the session is at.
        _ => StatusCode::CONFLICT,
    }
}
