//! Tool calls and the people who approve them.

use std::sync::Arc;

use serde::{Deserialize, Serialize};

use super::facts;
use crate::model::{
    id::CallId,
    tool::{ToolCall, ToolResult},
};

/// `tool.requested`: the model asked for it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Requested {
    /// What it asked.
    #[serde(flatten)]
    pub call: Arc<ToolCall>,
}

/// `tool.started`: it is about to run; without a result after this, its outcome is unknown.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct CallStarted {
    /// Which call.
    pub call: CallId,
    /// Which tool.
    pub name: String,
}

/// `tool.finished`
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Finished {
    /// Which tool.
    pub name: String,
    /// How it ended, and what the model reads.
    #[serde(flatten)]
    pub result: Arc<ToolResult>,
}

/// Why a call was not run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum RefusedWhy {
    /// There is no such tool here.
    UnknownTool,
    /// The arguments are not a JSON object.
    BrokenArguments,
    /// No tools were offered: a last or final turn.
    NotOffered,
    /// The output limit cut the reply that asked for it.
    ReplyCut,
    /// The query ended before it could start.
    QueryEnded,
}

/// `tool.refused`: it will not be run; the model reads why.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Refused {
    /// What was asked.
    #[serde(flatten)]
    pub call: Arc<ToolCall>,
    /// Why not.
    pub why: RefusedWhy,
    /// What the model reads.
    pub content: String,
}

facts! {
    /// `tool.*`
    ToolFact in Tool {
        /// See [`Requested`].
        Requested(Requested) = "tool.requested",
        /// See [`CallStarted`].
        Started(CallStarted) = "tool.started",
        /// See [`Finished`].
        Finished(Finished) = "tool.finished",
        /// See [`Refused`].
        Refused(Refused) = "tool.refused",
    }
}

/// What a person said.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ApprovalVerdict {
    /// Yes.
    Approved,
    /// No.
    Denied,
    /// No, for nobody is there who could be asked.
    Unattended,
    /// Nobody answered: the query ended first.
    Withdrawn,
}

/// `approval.answered`
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ApprovalAnswered {
    /// Which call.
    pub call: CallId,
    /// Yes, no, or no longer.
    pub verdict: ApprovalVerdict,
}

facts! {
    /// `approval.*`
    ApprovalFact in Approval {
        /// A call waits for a person.
        Requested(CallStarted) = "approval.requested",
        /// See [`ApprovalAnswered`].
        Answered(ApprovalAnswered) = "approval.answered",
    }
}
