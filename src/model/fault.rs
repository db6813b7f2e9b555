//! What can go wrong on the way to a model or a tool, as data (spec 12).

use std::time::Duration;

use serde::{Deserialize, Serialize};

/// What whoever meets a fault should do about it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "class", rename_all = "snake_case")]
pub enum FaultClass {
    /// Try again, not before `after_ms` where the other side said so.
    Retryable {
        /// Milliseconds to wait at least.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        after_ms: Option<u64>,
    },
    /// The server is away, or refuses for the rate: it worked on nothing, and no try is used up.
    Unavailable {
        /// Milliseconds to wait at least.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        after_ms: Option<u64>,
    },
    /// No room now; refused before anything was sent.
    Overloaded {
        /// Milliseconds to wait at least.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        after_ms: Option<u64>,
    },
    /// The same again will fail again.
    Permanent,
    /// Somebody took it back.
    Cancelled,
    /// Our own fault; a report would be welcome.
    Bug,
}

impl FaultClass {
    /// How long to wait at least, where the fault says so.
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

/// A fault: what to do about it, a stable code, and words for people.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, thiserror::Error)]
#[error("{detail}")]
pub struct Fault {
    /// What to do about it.
    #[serde(flatten)]
    pub class: FaultClass,
    /// Stable code, such as `stall` or `script exhausted`.
    pub code: String,
    /// What happened.
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

    /// A fault that will come again.
    pub fn permanent(code: impl Into<String>, detail: impl Into<String>) -> Self {
        Self::new(FaultClass::Permanent, code, detail)
    }

    /// A fault that may pass.
    pub fn retryable(code: impl Into<String>, detail: impl Into<String>) -> Self {
        Self::new(FaultClass::Retryable { after_ms: None }, code, detail)
    }

    /// A server that is away.
    pub fn unavailable(code: impl Into<String>, detail: impl Into<String>) -> Self {
        Self::new(FaultClass::Unavailable { after_ms: None }, code, detail)
    }

    /// Whether the server is away, and not only busy or limiting the rate.
    #[must_use]
    pub fn is_outage(&self) -> bool {
        matches!(self.class, FaultClass::Unavailable { .. }) && self.code != "rate_limited"
    }

    /// Whether the model may have worked on the request, so that the provider may have counted it: the reply
    /// broke off, came too late or could not be read.
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
