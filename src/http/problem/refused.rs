//! What a session or the system refuses, as HTTP tells it: one table.

use std::time::Duration;

use axum::http::StatusCode;

use super::Problem;
use crate::{
    actor::AskError,
    control::{Code, Refused},
    kernel::Refusal,
};

impl From<AskError> for Problem {
    fn from(error: AskError) -> Self {
        Refused::from(error).into()
    }
}

impl Problem {
    /// What a session refuses, with the field or header that is not as it should be. A route has the question and
    /// what was said elsewhere in these fields.
    pub(in crate::http) fn of_asking(
        error: AskError,
        question: &'static str,
        import: &'static str,
    ) -> Self {
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
        let again = refused.retry_after().or_else(|| again(refused.code));
        let problem = Self::new(status(refused.code), refused.code.as_str(), refused.message);
        match again {
            Some(after) => problem.retry_after(after),
            None => problem,
        }
    }
}

/// Clients of HTTP expect to be told, where a status says that it passes.
fn again(code: Code) -> Option<Duration> {
    let passes = matches!(
        status(code),
        StatusCode::TOO_MANY_REQUESTS | StatusCode::SERVICE_UNAVAILABLE
    );
    passes.then_some(Duration::from_secs(1))
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
        Code::Overloaded | Code::Unavailable | Code::Journal | Code::Elsewhere | Code::Draining => {
            StatusCode::SERVICE_UNAVAILABLE
        }
        // It does not go with what the session is at.
        _ => StatusCode::CONFLICT,
    }
}
