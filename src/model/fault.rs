//! Faults of models and tools, as data.

use std::time::Duration;

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
    #[must_use]
    pub fn after(self) -> Option<Duration> {
        match self {
            Self::Retryable { after_ms }
            | Self::Unavailable { after_ms }
            | Self::Overloaded { after_ms } => after_ms.map(Duration::from_millis),
            Self::Permanent | Self::Cancelled | Self::Bug => None,
        }
    }
}

/// A fault: class, stable code and text.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, thiserror::Error)]
#[error("{detail}")]
pub struct Fault {
    /// How to react.
    #[serde(flatten)]
    pub class: FaultClass,
    /// Stable code, such as `stall`.
    pub code: String,
    /// Explanation for people.
    pub detail: String,
}

impl Fault {
    fn new(class: FaultClass, code: impl Into<String>, detail: impl Into<String>) -> Self {
        Self {
            class,
            code: code.into(),
            detail: detail.into(),
        }
    }

    /// A permanent fault.
    pub fn permanent(code: impl Into<String>, detail: impl Into<String>) -> Self {
        Self::new(FaultClass::Permanent, code, detail)
    }

    /// A retryable fault.
    pub fn retryable(code: impl Into<String>, detail: impl Into<String>) -> Self {
        Self::new(FaultClass::Retryable { after_ms: None }, code, detail)
    }

    /// A fault of an unavailable server.
    pub fn unavailable(code: impl Into<String>, detail: impl Into<String>) -> Self {
        Self::new(FaultClass::Unavailable { after_ms: None }, code, detail)
    }

    /// Whether the server is unavailable, rather than limiting the rate.
    #[must_use]
    pub fn is_outage(&self) -> bool {
        matches!(self.class, FaultClass::Unavailable { .. }) && self.code != "rate_limited"
    }

    /// Whether the provider may have charged for the request, because its reply broke off, was late
    /// or was unreadable.
    #[must_use]
    pub fn may_have_cost(&self) -> bool {
        matches!(
            self.code.as_str(),
            "cut"
                | "stall"
                | "total_timeout"
                | "headers_timeout"
                | "hung_up"
                | "bad_stream"
                | "too_much"
                | "empty_reply"
                | "gateway"
                | "cancelled"
        )
    }
}
