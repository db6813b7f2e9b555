//! A refusal, before it has the form of a dialect.

use super::fault::{Fault, FaultKind};

/// Why a request is not answered.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Problem {
    pub(super) status: u16,
    pub(super) cause: Cause,
    pub(super) message: String,
    /// When it may be asked again.
    pub(super) after: After,
    /// What `x-should-retry` says.
    pub(super) should_retry: Option<&'static str>,
}

/// What dialects tell apart beside the status.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Cause {
    /// The status says it.
    Status,
    /// The conversation does not fit.
    Context,
    /// The money is spent.
    Quota,
}

/// How the time until a retry is told.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum After {
    Untold,
    Seconds(u64),
    /// So many seconds from now, as a date.
    Date(u64),
    Millis(u64),
    /// Milliseconds, told in both ways.
    Both(u64),
}

impl Problem {
    pub(super) fn new(status: u16, message: impl Into<String>) -> Self {
        Self {
            status,
            cause: Cause::Status,
            message: message.into(),
            after: After::Untold,
            should_retry: None,
        }
    }

    /// What a fault of this kind refuses with; `None` where it does not refuse.
    pub(super) fn of_fault(fault: Fault) -> Option<Self> {
        let status = fault.status()?;
        let message = format!("mock fault {fault}: {}", fault.kind.what());
        let mut problem = Self::new(status, message);
        match fault.kind {
            FaultKind::Context => problem.cause = Cause::Context,
            FaultKind::Quota => problem.cause = Cause::Quota,
            FaultKind::RetrySeconds => problem.after = After::Seconds(fault.number_or(1)),
            FaultKind::RetryDate => problem.after = After::Date(fault.number_or(2)),
            FaultKind::RetryMs => problem.after = After::Millis(fault.number_or(250)),
            FaultKind::ShouldRetry => problem.should_retry = Some("true"),
            FaultKind::ShouldNotRetry => problem.should_retry = Some("false"),
            _ => {}
        }
        Some(problem)
    }

    /// What a script's fault is as a refusal: the status whose fault has this code.
    pub(super) fn of_code(
        code: &str,
        detail: &str,
        permanent: bool,
        after_ms: Option<u64>,
    ) -> Self {
        let (status, cause) = match code {
            "unauthorized" => (401, Cause::Status),
            "forbidden" => (403, Cause::Status),
            "model_not_found" => (404, Cause::Status),
            "request_timeout" => (408, Cause::Status),
            "conflict" => (409, Cause::Status),
            "too_large" => (413, Cause::Status),
            "rate_limited" => (429, Cause::Status),
            "quota" => (429, Cause::Quota),
            "context" => (400, Cause::Context),
            "overloaded" => (529, Cause::Status),
            "bad_request" => (400, Cause::Status),
            _ if permanent => (400, Cause::Status),
            _ => (500, Cause::Status),
        };
        let mut problem = Self::new(status, format!("{code}: {detail}"));
        problem.cause = cause;
        problem.after = after_ms.map_or(After::Untold, After::Millis);
        problem
    }
}
