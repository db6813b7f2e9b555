//! Tool calls and approvals.

use std::sync::Arc;

use serde::{Deserialize, Serialize};

use super::facts;
use crate::model::{
    access::By,
    id::CallId,
    options::AnswerOptions,
    tool::{ApprovalToken, ToolCall, ToolResult},
};

/// `tool.requested`
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Requested {
    /// The call.
    #[serde(flatten)]
    pub call: Arc<ToolCall>,
}

/// `tool.started`: without a result after this, the outcome is unknown.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct CallStarted {
    /// The call.
    pub call: CallId,
    /// The tool.
    pub name: String,
}

/// `tool.finished`
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ToolFinished {
    /// The tool.
    pub name: String,
    /// The result.
    #[serde(flatten)]
    pub result: Arc<ToolResult>,
}

/// The reason why a call was refused.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum RefusedWhy {
    /// The tool is unknown.
    UnknownTool,
    /// The arguments are not a JSON object.
    BrokenArguments,
    /// The arguments do not fit the schema of a tool whose calls need approval.
    InvalidArguments,
    /// The caller allows one call of its tools at a time.
    OneAtATime,
    /// The turn offered no tools.
    NotOffered,
    /// The output limit cut the reply.
    ReplyCut,
    /// The query ended first.
    QueryEnded,
}

/// `tool.refused`: the call is not run.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Refused {
    /// The call.
    #[serde(flatten)]
    pub call: Arc<ToolCall>,
    /// The reason.
    pub why: RefusedWhy,
    /// Text for the model.
    pub content: String,
}

/// `tool.handed_over`: the query waits for the results of the caller's own tools.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct HandedOver {
    /// The calls, under the ids that the caller answers with.
    pub calls: Vec<ToolCall>,
}

/// `tool.returned`: the caller returned the results, which follow.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Returned {
    /// The caller.
    pub by: By,
    /// What the caller asks of the answer from here on.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub options: Option<Arc<AnswerOptions>>,
}

facts! {
    /// `tool.*`
    ToolFact {
        /// See [`Requested`].
        Requested(Requested) = "tool.requested",
        /// See [`CallStarted`].
        Started(CallStarted) = "tool.started",
        /// See [`ToolFinished`].
        Finished(ToolFinished) = "tool.finished",
        /// See [`Refused`].
        Refused(Refused) = "tool.refused",
        /// See [`HandedOver`].
        HandedOver(HandedOver) = "tool.handed_over",
        /// See [`Returned`].
        Returned(Returned) = "tool.returned",
    }
}

/// `approval.requested`
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ApprovalRequested {
    /// The call.
    pub call: CallId,
    /// The tool.
    pub name: String,
    /// The token that an answer repeats; older records have none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub token: Option<ApprovalToken>,
}

/// The answer to a request for approval.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ApprovalVerdict {
    /// Approved.
    Approved,
    /// Denied.
    Denied,
    /// Denied, because no approver is available.
    Unattended,
    /// Unanswered when the query ended.
    Withdrawn,
}

/// `approval.answered`
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ApprovalAnswered {
    /// The call.
    pub call: CallId,
    /// The answer.
    pub verdict: ApprovalVerdict,
    /// Why it was denied, in the words of the person who denied it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
}

facts! {
    /// `approval.*`
    ApprovalFact {
        /// A call waits for approval.
        Requested(ApprovalRequested) = "approval.requested",
        /// See [`ApprovalAnswered`].
        Answered(ApprovalAnswered) = "approval.answered",
    }
}
