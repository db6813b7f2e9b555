//! Faults of models and tools, as data.

use std::{fmt, sync::Arc, time::Duration};

use serde::{Deserialize, Serialize};

/// How to react to a fault.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "class", rename_all = "snake_case")]
pub enum FaultClass {
    /// Retry, after `after_ms` if given.
    Retryable {
        /// Minimum wait in milliseconds.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        after_ms: Option<u64>,
    },
    /// The server is unavailable or limits the rate. Time, not attempts, limits retries of the last
    /// model in a chain.
    Unavailable {
        /// Minimum wait in milliseconds.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        after_ms: Option<u64>,
    },
    /// No capacity; rejected before anything was sent.
    Overloaded {
        /// Minimum wait in milliseconds.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        after_ms: Option<u64>,
    },
    /// A retry would fail too.
    Permanent,
    /// The call was cancelled.
    Cancelled,
    /// A defect of Oracle.
    Bug,
}

impl FaultClass {
    /// The minimum wait, if given.
    pub fn after(self) -> Option<Duration> {
        match self {
            Self::Retryable { after_ms }
            | Self::Unavailable { after_ms }
            | Self::Overloaded { after_ms } => after_ms.map(Duration::from_millis),
            Self::Permanent | Self::Cancelled | Self::Bug => None,
        }
    }
}

/// Declares [`FaultCode`]: variants and their stable strings.
macro_rules! fault_codes {
    ($( $(#[$doc:meta])* $variant:ident = $code:literal, )+) => {
        /// The stable code of a [`Fault`], by which callers decide what to do.
        #[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
        #[non_exhaustive]
        pub enum FaultCode {
            $( $(#[$doc])* #[serde(rename = $code)] $variant, )+
            /// A code of a host's own backend or tool, or of another version of Oracle.
            #[serde(untagged)]
            Other(Arc<str>),
        }

        impl FaultCode {
            /// The code in JSON, in the journal and in messages.
            pub fn as_str(&self) -> &str {
                match self {
                    $( Self::$variant => $code, )+
                    Self::Other(code) => code,
                }
            }
        }

        impl From<&str> for FaultCode {
            fn from(code: &str) -> Self {
                match code {
                    $( $code => Self::$variant, )+
                    other => Self::Other(other.into()),
                }
            }
        }
    };
}

fault_codes! {
    /// No connection to the server.
    Connect = "connect",
    /// The host name cannot be resolved.
    Dns = "dns",
    /// No secure connection to the server.
    Tls = "tls",
    /// The connection ended before a response.
    HungUp = "hung_up",
    /// The response did not begin in time.
    HeadersTimeout = "headers_timeout",
    /// The server rejected the request.
    BadRequest = "bad_request",
    /// The API key is missing or invalid.
    Unauthorized = "unauthorized",
    /// The API key has no permission.
    Forbidden = "forbidden",
    /// The server does not have the model.
    ModelNotFound = "model_not_found",
    /// The server timed the request out.
    RequestTimeout = "request_timeout",
    /// The server reported a conflict.
    Conflict = "conflict",
    /// The request is too large.
    TooLarge = "too_large",
    /// The provider limits the rate.
    RateLimited = "rate_limited",
    /// An error within the server.
    ServerError = "server_error",
    /// The server has no capacity.
    Overloaded = "overloaded",
    /// The conversation does not fit the model.
    Context = "context",
    /// The account has no credit, or its quota of a day or longer is used up.
    Quota = "quota",
    /// The server refused thinking, signatures or reasoning items of earlier turns.
    ThinkingRefused = "thinking_refused",
    /// The server does not serve the model, or anything, on this route of its API.
    WrongRoute = "wrong_route",
    /// The model or the server takes no tools.
    ToolsUnsupported = "tools_unsupported",
    /// The reply broke off.
    Cut = "cut",
    /// The reply cannot be read.
    BadStream = "bad_stream",
    /// The reply is too long.
    TooMuch = "too_much",
    /// The response has no reply.
    EmptyReply = "empty_reply",
    /// Progress stopped.
    Stall = "stall",
    /// The model repeated itself without end.
    Repetition = "repetition",
    /// The reply has calls and no signal that ends the query, in a turn without tools.
    CalledInVain = "called_in_vain",
    /// The reply was not complete in time.
    TotalTimeout = "total_timeout",
    /// The gateway's queue is full.
    QueueFull = "queue_full",
    /// The call waited too long at the gateway.
    QueueTimeout = "queue_timeout",
    /// The circuit breaker is open.
    CircuitOpen = "circuit_open",
    /// The provider is not configured.
    Unavailable = "unavailable",
    /// The query of the call does not run.
    NotLive = "not_live",
    /// The gateway was restarted.
    Gateway = "gateway",
    /// No model is configured.
    NoModel = "no_model",
    /// The call was cancelled.
    Cancelled = "cancelled",
    /// The model refused.
    Refusal = "refusal",
    /// The provider's content filter stopped the reply.
    ContentFilter = "content_filter",
    /// The summary has no text.
    EmptySummary = "empty_summary",
    /// The model gave no answer.
    EmptyAnswer = "empty_answer",
    /// The answer is not in the format that the caller asks for.
    AnswerFormat = "answer_format",
    /// The query exceeded its budget by the supervisor's count.
    BudgetViolated = "budget_violated",
    /// The session crashed too often.
    Crash = "crash",
    /// The process died too often.
    ProcessDeath = "process_death",
    /// The sub-agent failed.
    Child = "child",
    /// The classifier failed.
    Classifier = "classifier",
    /// The prompt cannot be composed.
    Prompt = "prompt",
    /// The journal did not accept a record.
    Journal = "journal",
    /// The journal cannot be read at the moment.
    JournalUnavailable = "journal_unavailable",
    /// The journal is damaged.
    JournalBroken = "journal_broken",
    /// The journal refused the operation.
    JournalRefused = "journal_refused",
    /// The tool reported an error to the model.
    ToolError = "tool_error",
    /// The tool did not answer in time.
    ToolTimeout = "tool_timeout",
    /// The tool is no longer there.
    ToolUnavailable = "tool_unavailable",
    /// A tool panicked.
    ToolPanicked = "tool_panicked",
    /// The script has no reply left.
    ScriptExhausted = "script exhausted",
}

impl fmt::Display for FaultCode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// A fault: class, stable code and text.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, thiserror::Error)]
#[error("{detail}")]
pub struct Fault {
    /// How to react.
    #[serde(flatten)]
    pub class: FaultClass,
    /// What happened.
    pub code: FaultCode,
    /// Explanation for people.
    pub detail: String,
}

impl Fault {
    fn new(class: FaultClass, code: impl Into<FaultCode>, detail: impl Into<String>) -> Self {
        Self {
            class,
            code: code.into(),
            detail: detail.into(),
        }
    }

    /// A permanent fault.
    pub fn permanent(code: impl Into<FaultCode>, detail: impl Into<String>) -> Self {
        Self::new(FaultClass::Permanent, code, detail)
    }

    /// A retryable fault.
    pub fn retryable(code: impl Into<FaultCode>, detail: impl Into<String>) -> Self {
        Self::new(FaultClass::Retryable { after_ms: None }, code, detail)
    }

    /// A fault of an unavailable server.
    pub fn unavailable(code: impl Into<FaultCode>, detail: impl Into<String>) -> Self {
        Self::new(FaultClass::Unavailable { after_ms: None }, code, detail)
    }

    /// Whether the server is unavailable, rather than limiting the rate or the quota.
    pub fn is_outage(&self) -> bool {
        matches!(self.class, FaultClass::Unavailable { .. })
            && !matches!(self.code, FaultCode::RateLimited | FaultCode::Quota)
    }

    /// Whether the provider may have charged for the request, because its reply broke off, was late
    /// or was unreadable.
    pub fn may_have_cost(&self) -> bool {
        use FaultCode as Code;
        matches!(
            self.code,
            Code::Cut
                | Code::Stall
                | Code::Repetition
                | Code::TotalTimeout
                | Code::HeadersTimeout
                | Code::HungUp
                | Code::BadStream
                | Code::TooMuch
                | Code::EmptyReply
                | Code::Gateway
                | Code::Cancelled
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn known_and_unknown_codes_keep_their_text_in_json() {
        for (json, code) in [
            (r#""rate_limited""#, FaultCode::RateLimited),
            (r#""http_401""#, FaultCode::Other("http_401".into())),
        ] {
            assert_eq!(serde_json::from_str::<FaultCode>(json).unwrap(), code);
            assert_eq!(serde_json::to_string(&code).unwrap(), json);
        }
    }
}
