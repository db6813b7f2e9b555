//! What people did to a running session.

use serde::{Deserialize, Serialize};

use super::facts;
use crate::model::{command::Author, limits::Limits};

/// `control.steered`: words that go into the running query before its next call.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Steered {
    /// The words.
    pub text: String,
    /// Whose.
    pub author: Author,
    /// Makes a repeated submission one message.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub idempotency_key: Option<String>,
}

/// `control.budget_set`
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct BudgetSet {
    /// The new limits of the running query.
    pub limits: Limits,
}

/// Nothing to add.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Noted {}

facts! {
    /// `control.*`
    ControlFact in Control {
        /// No new call or tool starts.
        Paused(Noted) = "control.paused",
        /// It goes on.
        Resumed(Noted) = "control.resumed",
        /// The query was taken back.
        Cancelled(Noted) = "control.cancelled",
        /// The query is to end with what there is.
        Finished(Noted) = "control.finished",
        /// See [`Steered`].
        Steered(Steered) = "control.steered",
        /// See [`BudgetSet`].
        BudgetSet(BudgetSet) = "control.budget_set",
    }
}
