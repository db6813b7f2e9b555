//! How far a tool call is, for those who follow its session.

use std::{fmt, sync::Arc};

/// How far a call is, as its tool says.
#[derive(Debug, Clone, PartialEq, serde::Serialize)]
pub struct CallStep {
    /// Amount done.
    pub done: f64,
    /// Total amount, if known.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub total: Option<f64>,
    /// What is being done.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub message: Option<String>,
}

/// Receives the steps of one call. The default discards them.
#[derive(Clone, Default)]
pub struct CallProgress(Option<Arc<dyn Fn(CallStep) + Send + Sync>>);

impl CallProgress {
    /// Passes each step on.
    pub fn new(report: impl Fn(CallStep) + Send + Sync + 'static) -> Self {
        Self(Some(Arc::new(report)))
    }

    /// Reports a step.
    pub fn report(&self, step: CallStep) {
        if let Some(report) = &self.0 {
            report(step);
        }
    }
}

impl fmt::Debug for CallProgress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("CallProgress")
            .field(&self.0.is_some())
            .finish()
    }
}
