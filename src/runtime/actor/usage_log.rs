//! The durable usage of model calls of ephemeral sessions.

use std::sync::Arc;

use super::{system_log::SystemLog, task::Task};
use crate::{
    kernel::CallToken,
    model::{
        By, Charge, DayUsage, Fault, FaultCode, Price, SessionKey, Timestamp, Usage,
        record::{LlmFact, ModelUsage},
    },
};

pub(super) struct UsageLog {
    pub log: SystemLog,
    /// Held so that the writer ends with the services of the system.
    pub _writer: Task,
}

impl UsageLog {
    /// Makes the estimated usage of a call durable before the call is made.
    pub(super) async fn begin(&self, call: &MeteredCall) -> Result<(), Fault> {
        let estimate = call.estimate();
        let charges = call.charges(&estimate.usage, &Usage::default());
        let noted = self.log.record(LlmFact::Estimated(estimate), charges);
        noted.await.map(drop).map_err(|error| {
            let detail = format!("cannot record the usage of the call: {error}");
            Fault::retryable(FaultCode::Journal, detail)
        })
    }

    pub(super) async fn end(&self, call: MeteredCall, usage: Usage) {
        let used = call.usage(usage);
        let charges = call.charges(&used.usage, &call.estimate().usage);
        if !call.is_limited {
            self.log.send(LlmFact::Used(used), charges).await;
        } else if let Err(error) = self.log.record(LlmFact::Used(used), charges).await {
            tracing::warn!(%error, "cannot record the usage of a call: its estimate counts");
        }
    }
}

pub(super) struct MeteredCall {
    pub session: SessionKey,
    /// Who pays for the call.
    pub by: By,
    /// The time that it counts for.
    pub at: Timestamp,
    pub token: CallToken,
    pub model: Arc<str>,
    pub tokens: u64,
    pub price: Option<Price>,
    /// Whether a budget of the tenant or key applies, so that the usage has to be counted before the
    /// next turn.
    pub is_limited: bool,
}

impl MeteredCall {
    fn estimate(&self) -> ModelUsage {
        self.usage(Usage {
            input_tokens: self.tokens,
            ..Usage::default()
        })
    }

    fn charges(&self, usage: &Usage, counted: &Usage) -> Vec<Charge> {
        let usage = DayUsage::new(self.at, usage, counted);
        Charge::of(&self.session.tenant, &self.by, usage)
    }

    fn usage(&self, usage: Usage) -> ModelUsage {
        ModelUsage {
            session: self.session.clone(),
            query: self.token.query,
            turn: self.token.turn,
            attempt: self.token.attempt,
            model: self.model.to_string(),
            usage: usage.priced(self.price.as_ref()),
        }
    }
}
