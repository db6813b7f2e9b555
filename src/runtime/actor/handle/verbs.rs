//! What an operator does to a session, under the names of the control channel (docs/control.md).
//!
//! Each verb returns once it is durable, or with the reason why the session refuses it. A verb that a
//! new session takes opens it, as a message does.

use super::{AskError, SessionHandle};
use crate::{
    actor::approvals::Approval,
    kernel::Command,
    model::{Limits, LimitsRequest, QueryId, command::Author, record::ApprovalVerdict},
};

impl SessionHandle {
    /// Holds back new calls of models and tools.
    ///
    /// # Errors
    /// See [`AskError`].
    pub async fn pause(&self) -> Result<(), AskError> {
        self.command(Command::Pause).await.map(drop)
    }

    /// Ends a pause.
    ///
    /// # Errors
    /// See [`AskError`].
    pub async fn resume(&self) -> Result<(), AskError> {
        self.command(Command::Resume).await.map(drop)
    }

    /// Adds a text to the running query, or begins one with it. Returns that query.
    ///
    /// # Errors
    /// See [`AskError`]; refused when the text is empty or too long.
    pub async fn steer(
        &self,
        text: impl Into<String>,
        author: Author,
    ) -> Result<QueryId, AskError> {
        let text = text.into();
        AskError::check_question(&text)?;
        let begun = self.send_query(Command::Steer { text, author }).await?;
        Ok(begun.query)
    }

    /// Ends the running query with the text that it has.
    ///
    /// # Errors
    /// See [`AskError`]; refused when no query runs.
    pub async fn finish_now(&self) -> Result<(), AskError> {
        self.command(Command::FinishNow).await.map(drop)
    }

    /// Replaces the budgets of the running query.
    ///
    /// # Errors
    /// See [`AskError`]; refused when no query runs.
    pub async fn set_budget(&self, limits: Limits) -> Result<(), AskError> {
        let command = Command::SetBudget(LimitsRequest::Exact(limits));
        self.command(command).await.map(drop)
    }

    /// Continues the last query, which was forced to end, with these budgets for both parts together.
    /// Returns the new query.
    ///
    /// # Errors
    /// See [`AskError`]; refused when the last query was not forced.
    pub async fn continue_query(&self, limits: Limits) -> Result<QueryId, AskError> {
        let command = Command::Continue(LimitsRequest::Exact(limits));
        Ok(self.send_query(command).await?.query)
    }

    /// Allows a tool call that waits for approval.
    ///
    /// # Errors
    /// See [`AskError`]; refused when the call does not wait any more.
    pub async fn approve(&self, approval: &Approval) -> Result<(), AskError> {
        self.decide(approval, ApprovalVerdict::Approved, None).await
    }

    /// Refuses a tool call that waits for approval; the model reads the reason, of at most 500
    /// characters ([`MAX_REASON`](crate::model::command::MAX_REASON)).
    ///
    /// # Errors
    /// See [`AskError`]; refused when the call does not wait any more, or the reason is too long.
    pub async fn deny(&self, approval: &Approval, reason: Option<String>) -> Result<(), AskError> {
        self.decide(approval, ApprovalVerdict::Denied, reason).await
    }

    /// Attaches one of the tools that the host keeps ready.
    ///
    /// # Errors
    /// See [`AskError`]; refused when there is no such tool.
    pub async fn attach_tool(&self, tool: impl Into<String>) -> Result<(), AskError> {
        let tool = tool.into();
        self.command(Command::AttachTool { tool }).await.map(drop)
    }

    /// Releases a quarantined session.
    ///
    /// # Errors
    /// See [`AskError`]; refused when it is not quarantined.
    pub async fn release(&self) -> Result<(), AskError> {
        self.command(Command::Release).await.map(drop)
    }

    /// Closes the session for good: its queries are cancelled, and messages are refused.
    ///
    /// # Errors
    /// See [`AskError`].
    pub async fn close(&self) -> Result<(), AskError> {
        self.command(Command::Close).await.map(drop)
    }

    async fn decide(
        &self,
        approval: &Approval,
        verdict: ApprovalVerdict,
        reason: Option<String>,
    ) -> Result<(), AskError> {
        let (call, token) = (approval.call.id.clone(), approval.token.clone());
        let command = Command::AnswerApproval {
            call,
            token,
            verdict,
            reason: AskError::check_reason(reason)?,
        };
        self.command(command).await.map(drop)
    }
}
