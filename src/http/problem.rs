//! Errors of requests, in the shape of OpenAI's error objects.

use std::{borrow::Cow, error::Error, time::Duration};

use axum::{
    Json,
    http::{HeaderName, HeaderValue, Method, StatusCode, Uri, header},
    response::{IntoResponse, Response},
};
use serde::Serialize;
use utoipa::ToSchema;

use crate::{access::LimitReached, actor::AskError, kernel::Refusal, llm::cause};
use oracle_control::{Code, Refused};

/// The URL of the node that owns the session of a refused request.
pub(super) const OWNER: HeaderName = HeaderName::from_static("x-oracle-owner");
/// Retry hint for a transient status without a better one.
const SOON: Duration = Duration::from_secs(1);
/// Retry hint while the server restarts.
const LATER: Duration = Duration::from_secs(5);
/// Retry hint while the keys cannot be read.
const MENDED: Duration = Duration::from_secs(10);

pub(super) const TOO_MANY_ATTEMPTS: &str = "too_many_attempts";

/// Why a request failed. Its `code` is stable; its text describes the problem and the remedy.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Problem {
    status: StatusCode,
    code: Cow<'static, str>,
    message: Cow<'static, str>,
    param: Option<Cow<'static, str>>,
    retry_after: Option<Duration>,
    /// The URL of the node that owns the session.
    owner: Option<String>,
}

/// An error response.
#[derive(Debug, Serialize, ToSchema)]
pub struct ProblemBody {
    /// The error.
    error: ErrorObject,
}

impl ProblemBody {
    /// Returns the text for people.
    pub fn message(&self) -> &str {
        &self.error.message
    }
}

/// An error, in OpenAI's format.
#[derive(Debug, Serialize, ToSchema)]
struct ErrorObject {
    /// The problem and its remedy, for people.
    message: String,
    /// The class of error, such as `invalid_request_error`.
    #[serde(rename = "type")]
    kind: &'static str,
    /// The wrong field, header or parameter, if there is one.
    param: Option<String>,
    /// The stable code of the error.
    code: String,
}

impl Problem {
    /// Creates a problem with a status and a stable code.
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
            owner: None,
        }
    }

    /// Creates a problem for an invalid field, header or parameter.
    pub fn bad(param: impl Into<Cow<'static, str>>, message: impl Into<Cow<'static, str>>) -> Self {
        Self::new(StatusCode::BAD_REQUEST, "invalid_value", message).of(param)
    }

    /// Sets the field, header or parameter at fault.
    #[must_use]
    pub fn of(mut self, param: impl Into<Cow<'static, str>>) -> Self {
        self.param = Some(param.into());
        self
    }

    /// Sets the retry hint.
    #[must_use]
    pub fn retry_after(mut self, after: Duration) -> Self {
        self.retry_after = Some(after);
        self
    }

    /// Returns the stable code.
    pub fn code(&self) -> &str {
        &self.code
    }

    /// Returns the status of the response.
    pub const fn status(&self) -> StatusCode {
        self.status
    }

    /// Returns the serializable form, for a body or a stream's last event.
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

    /// Names the field or header at fault; `content` is the route's field for a question or import.
    pub(super) fn from_ask_error(error: AskError, content: &'static str) -> Self {
        let field = match &error {
            AskError::EmptyQuestion
            | AskError::QuestionTooLong(_)
            | AskError::Refused(Refusal::ImportTooLarge { .. } | Refusal::NotNew) => content,
            AskError::Key(_) | AskError::Refused(Refusal::KeyReused(_)) => "idempotency-key",
            AskError::Refused(Refusal::LimitsOfASteer) => "limits",
            _ => return error.into(),
        };
        Self::from(error).of(field)
    }

    /// The system is overloaded.
    pub fn overloaded(what: impl Into<Cow<'static, str>>) -> Self {
        Self::new(StatusCode::SERVICE_UNAVAILABLE, "overloaded", what)
    }

    /// The server is draining or shutting down.
    pub fn ends() -> Self {
        let what = "the server is draining or shutting down and accepts no new requests: try \
                    again after its restart";
        Self::new(StatusCode::SERVICE_UNAVAILABLE, "draining", what).retry_after(LATER)
    }

    /// The handler of a request panicked.
    pub fn bug(request: &str) -> Self {
        let what = format!("internal error: see request {request} in the server's log");
        Self::new(StatusCode::INTERNAL_SERVER_ERROR, "internal", what)
    }

    pub(super) fn body_too_large(most: usize) -> Self {
        let what = format!(
            "the body exceeds the limit of {most} bytes: send less, or raise `server.max_body`"
        );
        Self::new(StatusCode::PAYLOAD_TOO_LARGE, "body_too_large", what)
    }

    pub(super) fn slow_body(within: Duration) -> Self {
        let what = format!("the request body did not arrive within {within:?}: send it faster");
        Self::new(StatusCode::REQUEST_TIMEOUT, "slow_body", what)
    }

    pub(super) fn broken_body(error: &(dyn Error + 'static)) -> Self {
        let why = cause(error);
        let what = format!("the request body is incomplete or malformed ({why}): send it again");
        Self::new(StatusCode::BAD_REQUEST, "broken_body", what)
    }

    /// The request has no valid key.
    pub fn no_key() -> Self {
        let what = "missing or invalid key: send `Authorization: Bearer KEY` with a key from \
                    `oracle keys create`";
        Self::new(StatusCode::UNAUTHORIZED, "invalid_api_key", what)
    }

    /// A request with the signature of a node is refused.
    pub(super) fn invalid_signature(why: impl Into<Cow<'static, str>>) -> Self {
        Self::new(StatusCode::UNAUTHORIZED, "invalid_signature", why)
    }

    /// The key lacks the role `admin`.
    pub fn admin_only() -> Self {
        let what = "this needs a key with the role `admin` (`oracle keys create --role admin`) or, \
                    while the server has no keys, the one in `admin.key` in its data directory: \
                    send it as `authorization: Bearer KEY`";
        Self::new(StatusCode::FORBIDDEN, "admin_only", what)
    }

    pub(super) fn unsupported_media(what: &'static str, header: &'static str) -> Self {
        let status = StatusCode::UNSUPPORTED_MEDIA_TYPE;
        Self::new(status, "unsupported_media_type", what).of(header)
    }

    /// The server needs no key, so requests through a proxy would be unauthenticated.
    pub(super) fn proxied_without_keys(header: &str) -> Self {
        let what = format!(
            "the server has no keys and therefore accepts only local requests, but `{header}` \
             shows that a proxy forwards this one: create keys with `oracle keys create` before \
             you put a proxy in front"
        );
        Self::new(StatusCode::FORBIDDEN, "no_keys_behind_proxy", what).of(header.to_owned())
    }

    pub(super) fn too_many_attempts(retry_after: Duration) -> Self {
        let what = "too many invalid keys from this address: wait, and send a valid one";
        Self::new(StatusCode::TOO_MANY_REQUESTS, TOO_MANY_ATTEMPTS, what).retry_after(retry_after)
    }

    pub(super) fn keys_unavailable() -> Self {
        let what = "the server cannot read its keys and therefore rejects all requests: see its \
                    log";
        Self::new(StatusCode::SERVICE_UNAVAILABLE, "keys_unreadable", what).retry_after(MENDED)
    }

    pub(super) fn wrong_host(host: &str) -> Self {
        let what = format!(
            "unknown host name `{host}`: use the server's address, or add the name to \
             `server.allowed_hosts`"
        );
        Self::new(StatusCode::MISDIRECTED_REQUEST, "host_not_allowed", what).of("host")
    }

    pub(super) fn no_host() -> Self {
        let what = "missing or invalid `host` header: send the server's address";
        Self::new(StatusCode::BAD_REQUEST, "no_host", what).of("host")
    }

    pub(super) fn wrong_origin() -> Self {
        let what = "the origin of this web page is not allowed: add it to \
                    `server.allowed_origins`";
        Self::new(StatusCode::FORBIDDEN, "origin_not_allowed", what).of("origin")
    }
}

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
        // In whole seconds, at least one.
        let after = after.map(|after| after.as_secs_f64().ceil().max(1.0) as u64);
        let after = after.map(|seconds| [(header::RETRY_AFTER, HeaderValue::from(seconds))]);
        let owner = self.owner.as_deref().and_then(|url| url.parse().ok());
        let owner = owner.map(|url: HeaderValue| [(OWNER, url)]);
        let no_key = self.status == StatusCode::UNAUTHORIZED;
        let scheme = no_key.then_some([(header::WWW_AUTHENTICATE, "Bearer")]);
        (self.status, after, owner, scheme, Json(self.body())).into_response()
    }
}

pub(super) async fn no_such_route(uri: Uri) -> Problem {
    let path = uri.path();
    let what = format!("no route matches `{path}`: `/api/openapi.json` lists the routes");
    Problem::new(StatusCode::NOT_FOUND, "no_such_route", what)
}

pub(super) async fn no_such_method(method: Method, uri: Uri) -> Problem {
    let path = uri.path();
    let what = format!(
        "`{path}` does not support {method}: the header `allow` lists the supported methods"
    );
    Problem::new(StatusCode::METHOD_NOT_ALLOWED, "no_such_method", what)
}

impl From<LimitReached> for Problem {
    fn from(over: LimitReached) -> Self {
        let problem = Self::new(StatusCode::TOO_MANY_REQUESTS, over.code(), over.to_string());
        problem.retry_after(over.retry_after())
    }
}

impl From<AskError> for Problem {
    fn from(error: AskError) -> Self {
        Refused::from(error).into()
    }
}

impl From<Refused> for Problem {
    fn from(refused: Refused) -> Self {
        let retry_after = refused.retry_after();
        Self {
            retry_after,
            owner: refused.owner,
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
        | Code::CostOutOfRange
        | Code::CostUnknown
        | Code::NoLimit
        | Code::UnknownType
        | Code::ReasonTooLong => StatusCode::BAD_REQUEST,
        Code::InvalidApiKey => StatusCode::UNAUTHORIZED,
        Code::AdminOnly | Code::ProfileNotAllowed | Code::Reserved => StatusCode::FORBIDDEN,
        Code::NoSession | Code::UnknownTool => StatusCode::NOT_FOUND,
        Code::Deleted => StatusCode::GONE,
        Code::TooLong | Code::QuestionTooLong | Code::ImportTooLarge => {
            StatusCode::PAYLOAD_TOO_LARGE
        }
        Code::KeyReused => StatusCode::UNPROCESSABLE_ENTITY,
        Code::InboxFull | Code::BudgetSpent => StatusCode::TOO_MANY_REQUESTS,
        Code::Overloaded | Code::Unavailable | Code::Journal | Code::Draining => {
            StatusCode::SERVICE_UNAVAILABLE
        }
        // The verb or message does not fit the session's state.
        _ => StatusCode::CONFLICT,
    }
}
