//! What the session did about faults on the way to the model.

use serde::{Deserialize, Serialize};

use super::facts;
use crate::model::{fault::Fault, id::Attempt, time::Timestamp, usage::Usage};

/// `llm.retried`: the same model is asked again, after a pause.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Retried {
    /// The try that failed.
    pub attempt: Attempt,
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

facts! {
    /// `llm.*`
    LlmFact in Llm {
        /// See [`Retried`].
        Retried(Retried) = "llm.retried",
        /// See [`FailedOver`].
        FailedOver(FailedOver) = "llm.failed_over",
    }
}
