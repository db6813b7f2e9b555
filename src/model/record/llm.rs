//! What was done about faults on the way to a model: by a session, and by a gateway for all of them.

use std::fmt;

use serde::{Deserialize, Serialize};

use super::facts;
use crate::model::{
    fault::Fault,
    id::{Attempt, QueryId, SessionKey, Turn},
    time::Timestamp,
    usage::Usage,
};

/// `llm.retried`: the same model is asked again, after a pause.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Retried {
    /// The try that failed.
    pub attempt: Attempt,
    /// The model, as `provider/model`; empty in old records.
    #[serde(default)]
    pub model: String,
    /// How.
    pub fault: Fault,
    /// Not before this.
    pub not_before: Timestamp,
    /// What the failed try cost all the same, as far as that is known.
    #[serde(default, skip_serializing_if = "Usage::is_none")]
    pub usage: Usage,
}

/// `llm.failed_over`: the next model of the chain is asked.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct FailedOver {
    /// The try that failed.
    pub attempt: Attempt,
    /// How.
    pub fault: Fault,
    /// The model given up, as `provider/model`.
    pub from: String,
    /// The model asked instead.
    pub to: String,
    /// What the failed try cost all the same, as far as that is known.
    #[serde(default, skip_serializing_if = "Usage::is_none")]
    pub usage: Usage,
}

/// `llm.failed`: a call ended without a reply, and no later record says what it used: it was cut off, or a summary
/// takes the place of what was too long. The usage may be an estimate.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Failed {
    /// The try.
    pub attempt: Attempt,
    /// The model, as `provider/model`.
    pub model: String,
    /// How.
    pub fault: Fault,
    /// What it cost.
    pub usage: Usage,
}

/// `llm.estimated` and `llm.used`: what a call of an ephemeral session uses, before it is made and after it. Of a call
/// that was cut off there is the estimate alone.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ModelUsage {
    /// Whose call.
    pub session: SessionKey,
    /// In answer to which query.
    pub query: QueryId,
    /// In which turn.
    pub turn: Turn,
    /// The try.
    pub attempt: Attempt,
    /// The model, as `provider/model`.
    pub model: String,
    /// What it uses.
    pub usage: Usage,
}

/// `llm.circuit_opened`: a provider, or one of its models, is not asked for a while.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct CircuitOpened {
    /// The provider.
    pub provider: String,
    /// The model; none for the provider as a whole.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub model: Option<String>,
    /// The code of the last fault that counted.
    pub why: String,
    /// For how long, in milliseconds; then one call is let through.
    pub cool_down_ms: u64,
}

/// `llm.circuit_closed`: it answered, and is asked again.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct CircuitClosed {
    /// The provider.
    pub provider: String,
    /// The model; none for the provider as a whole.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub model: Option<String>,
}

/// What a call waits for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum WaitReason {
    /// A rate limit of the provider, stated or shown by a 429.
    RateLimit,
    /// The server is away, and its circuit is open.
    Unavailable,
    /// As many calls run as may.
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

/// `llm.waiting`: a call has waited for more than a second, and nothing of it was sent.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Waiting {
    /// The attempt.
    pub attempt: Attempt,
    /// The model, as `provider/model`.
    pub model: String,
    /// What for.
    pub reason: WaitReason,
    /// When the wait may end, where that is known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub until: Option<Timestamp>,
}

/// `llm.admitted`: a call that was recorded as waiting is sent.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Admitted {
    /// The attempt.
    pub attempt: Attempt,
    /// How long it waited, in milliseconds.
    pub waited_ms: u64,
}

/// `llm.rate_limited`: a provider has answered 429, and the model is held.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct RateLimited {
    /// The model, as `provider/model`.
    pub model: String,
    /// For how long no call starts, in milliseconds.
    pub hold_ms: u64,
    /// How many of its calls may run at a time after that.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub concurrency: Option<u64>,
}

/// `llm.rate_limit_cleared`: no 429 has come for a minute, and the model's calls are not limited any more.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct RateLimitCleared {
    /// The model, as `provider/model`.
    pub model: String,
}

facts! {
    /// `llm.*`
    LlmFact in Llm {
        /// See [`Retried`].
        Retried(Retried) = "llm.retried",
        /// See [`FailedOver`].
        FailedOver(FailedOver) = "llm.failed_over",
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
    use crate::model::record::{Record, codec};

    #[test]
    fn what_a_gateway_tells_reads_back_as_it_was() {
        let opened = |model: Option<&str>| {
            LlmFact::CircuitOpened(CircuitOpened {
                provider: "openai".into(),
                model: model.map(str::to_owned),
                why: "server_error".into(),
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
            let record = Record {
                at: Timestamp::from_millis(1_767_225_600_000),
                query: None,
                turn: None,
                fact: fact.into(),
            };
            let written = codec::encode(&record).unwrap();
            assert_eq!(codec::decode(&written).unwrap(), record, "{written}");
        }
    }
}
