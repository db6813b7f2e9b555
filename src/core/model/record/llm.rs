//! Faults of model calls, and the reactions to them.

use std::fmt;

use serde::{Deserialize, Serialize};

use super::facts;
use crate::model::{
    fault::{Fault, FaultCode},
    id::{Attempt, QueryId, SessionKey, Turn},
    time::Timestamp,
    usage::Usage,
};

/// `llm.retried`: the same model is called again after a back-off.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Retried {
    /// The failed attempt.
    pub attempt: Attempt,
    /// The model, as `provider/model`.
    #[serde(default)]
    pub model: String,
    /// The fault.
    pub fault: Fault,
    /// The end of the back-off.
    pub not_before: Timestamp,
    /// Usage of the failed attempt.
    #[serde(default, skip_serializing_if = "Usage::is_none")]
    pub usage: Usage,
}

/// `llm.failed_over`: the next model of the chain is called.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct FailedOver {
    /// The failed attempt.
    pub attempt: Attempt,
    /// The fault.
    pub fault: Fault,
    /// The failed model, as `provider/model`.
    pub from: String,
    /// The next model.
    pub to: String,
    /// Usage of the failed attempt.
    #[serde(default, skip_serializing_if = "Usage::is_none")]
    pub usage: Usage,
}

/// `llm.prefix_broken`: the provider refuses what it has sent itself, because the conversation before
/// it has changed. The call is repeated without it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct PrefixBroken {
    /// The refused attempt.
    pub attempt: Attempt,
    /// The model, as `provider/model`.
    pub model: String,
    /// The refusal.
    pub fault: Fault,
    /// How many messages of the conversation, from its beginning, lose their opaque parts for good.
    pub messages: usize,
}

/// `llm.failed`: a call ended without a reply. No other record has its usage, which may be an
/// estimate.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Failed {
    /// The attempt.
    pub attempt: Attempt,
    /// The model, as `provider/model`.
    pub model: String,
    /// The fault.
    pub fault: Fault,
    /// Its usage.
    pub usage: Usage,
}

/// `llm.estimated` and `llm.used`: usage of an ephemeral session's call, before and after it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ModelUsage {
    /// The session.
    pub session: SessionKey,
    /// The query.
    pub query: QueryId,
    /// The turn.
    pub turn: Turn,
    /// The attempt.
    pub attempt: Attempt,
    /// The model, as `provider/model`.
    pub model: String,
    /// The usage.
    pub usage: Usage,
}

/// `llm.circuit_opened`: a provider or model receives no calls of queries that have failed there, for a
/// while.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct CircuitOpened {
    /// The provider.
    pub provider: String,
    /// The model; `None` for the whole provider.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub model: Option<String>,
    /// Code of the last fault.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub why: Option<FaultCode>,
    /// Cool-down in milliseconds; then one call probes it.
    pub cool_down_ms: u64,
}

/// `llm.circuit_closed`: calls are allowed again.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct CircuitClosed {
    /// The provider.
    pub provider: String,
    /// The model; `None` for the whole provider.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub model: Option<String>,
}

/// The reason why a call is queued.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum WaitReason {
    /// A rate limit, announced or implied by a 429.
    RateLimit,
    /// An open circuit.
    Unavailable,
    /// The limit of concurrent calls.
    OtherCalls,
}

impl fmt::Display for WaitReason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::RateLimit => "rate limit",
            Self::Unavailable => "server unavailable",
            Self::OtherCalls => "other calls",
        })
    }
}

/// `llm.waiting`: a call is queued. For other calls, only after a tenth of a second.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Waiting {
    /// The attempt.
    pub attempt: Attempt,
    /// The model, as `provider/model`.
    pub model: String,
    /// The reason.
    pub reason: WaitReason,
    /// The expected end of the wait.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub until: Option<Timestamp>,
}

/// `llm.admitted`: a queued call was sent.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Admitted {
    /// The attempt.
    pub attempt: Attempt,
    /// Time waited, in milliseconds.
    pub waited_ms: u64,
}

/// `llm.rate_limited`: a 429 holds the model's calls.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct RateLimited {
    /// The model, as `provider/model`.
    pub model: String,
    /// Duration of the hold in milliseconds.
    pub hold_ms: u64,
    /// Concurrent calls allowed after that.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub concurrency: Option<u64>,
}

/// `llm.rate_limit_cleared`: no 429 for a minute.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct RateLimitCleared {
    /// The model, as `provider/model`.
    pub model: String,
}

facts! {
    /// `llm.*`
    LlmFact {
        /// See [`Retried`].
        Retried(Retried) = "llm.retried",
        /// See [`FailedOver`].
        FailedOver(FailedOver) = "llm.failed_over",
        /// See [`PrefixBroken`].
        PrefixBroken(PrefixBroken) = "llm.prefix_broken",
        /// See [`Failed`].
        Failed(Failed) = "llm.failed",
        /// See [`ModelUsage`].
        Estimated(ModelUsage) = "llm.estimated",
        /// See [`ModelUsage`].
        Used(ModelUsage) = "llm.used",
        /// See [`CircuitOpened`].
        CircuitOpened(CircuitOpened) = "llm.circuit_opened",
        /// See [`CircuitClosed`].
        CircuitClosed(CircuitClosed) = "llm.circuit_closed",
        /// See [`Waiting`].
        Waiting(Waiting) = "llm.waiting",
        /// See [`Admitted`].
        Admitted(Admitted) = "llm.admitted",
        /// See [`RateLimited`].
        RateLimited(RateLimited) = "llm.rate_limited",
        /// See [`RateLimitCleared`].
        RateLimitCleared(RateLimitCleared) = "llm.rate_limit_cleared",
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::record::{
        Record,
        codec::{Encoded, Encoder},
    };

    #[test]
    fn gateway_records_round_trip() {
        let opened = |model: Option<&str>| {
            LlmFact::CircuitOpened(CircuitOpened {
                provider: "openai".into(),
                model: model.map(str::to_owned),
                why: Some(FaultCode::ServerError),
                cool_down_ms: 5_000,
            })
        };
        let closed = LlmFact::CircuitClosed(CircuitClosed {
            provider: "openai".into(),
            model: None,
        });
        let model = || "openai/small".to_owned();
        let limited = LlmFact::RateLimited(RateLimited {
            model: model(),
            hold_ms: 1_000,
            concurrency: Some(25),
        });
        let cleared = LlmFact::RateLimitCleared(RateLimitCleared { model: model() });
        let waiting = LlmFact::Waiting(Waiting {
            attempt: Attempt(2),
            model: model(),
            reason: WaitReason::RateLimit,
            until: Some(Timestamp::from_millis(1_767_225_603_000)),
        });
        let admitted = LlmFact::Admitted(Admitted {
            attempt: Attempt(2),
            waited_ms: 3_000,
        });
        let told = [opened(None), opened(Some("openai/small")), closed];
        for fact in told
            .into_iter()
            .chain([limited, cleared, waiting, admitted])
        {
            let record = Record::new(Timestamp::from_millis(1_767_225_600_000), None, None, fact);
            let written = Encoder::default().encode(&record).unwrap();
            let encoded = Encoded::read(&written).unwrap();
            let read = encoded.decode(record.at, record.fact.kind(), None);
            assert_eq!(read.unwrap(), record, "{written}");
        }
    }
}
