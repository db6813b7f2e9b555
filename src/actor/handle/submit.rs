//! Handing in a message, and following what comes of it.

use std::time::Duration;

use super::{Answer, AskError, SessionHandle, Watch, watch::Detail};
use crate::{
    actor::letters::Where,
    kernel::{Command, Reply},
    model::{
        QueryId, Submission,
        command::{MAX_KEY, MAX_QUESTION},
    },
};

impl SessionHandle {
    /// Hands in a message. Returns once it is durable, not once it is answered.
    ///
    /// # Errors
    /// See [`AskError`].
    pub async fn submit(&self, submission: Submission) -> Result<QueryId, AskError> {
        let (query, _) = self.submit_anywhere(submission).await?;
        Ok(query)
    }

    async fn submit_anywhere(&self, submission: Submission) -> Result<(QueryId, Where), AskError> {
        // What runs may still need its sub-agents.
        if self.opening.parent.is_none() && self.router.is_draining() {
            return Err(AskError::Stopped);
        }
        if submission.text.trim().is_empty() {
            return Err(AskError::EmptyQuestion);
        }
        if submission.text.len() > MAX_QUESTION {
            return Err(AskError::QuestionTooLong {
                bytes: submission.text.len(),
            });
        }
        if let Some(bytes) = submission.idempotency_key.as_ref().map(String::len)
            && !(1..=MAX_KEY).contains(&bytes)
        {
            return Err(AskError::Key { bytes });
        }
        match self.command_anywhere(Command::Submit(submission)).await? {
            (Reply::Query { query }, at) => Ok((query, at)),
            (Reply::Done, _) => Err(AskError::Stopped),
        }
    }

    /// Hands in a message and follows it to its end.
    ///
    /// # Errors
    /// See [`AskError`].
    pub async fn ask(&self, submission: Submission) -> Result<Watch, AskError> {
        self.follow_query(submission, Detail::All).await
    }

    /// Follows a query that was handed in before, from its beginning; it may have ended.
    ///
    /// # Errors
    /// See [`AskError`]; a query that there never was counts as deleted.
    pub async fn watch(&self, query: QueryId) -> Result<Watch, AskError> {
        let filter = Detail::All.filter(self.key.clone());
        let events = self.subscribe_to(filter.clone());
        Watch::from_the_journal(self.clone(), (query, Where::Here), filter, events).await
    }

    /// Hands in a message and waits for its end: cheaper than [`Self::ask`], which tells what happens
    /// on the way.
    ///
    /// # Errors
    /// See [`AskError`].
    pub async fn answer(&self, submission: Submission) -> Result<Answer, AskError> {
        self.follow_query(submission, Detail::End)
            .await?
            .answer()
            .await
    }

    /// Hands in a message, again where whether it was heard is not known and its key makes that safe.
    async fn hand_in(&self, submission: Submission) -> Result<(QueryId, Where), AskError> {
        const TRIES: u32 = 4;
        const PAUSE: Duration = Duration::from_millis(250);
        let mut tries = 1;
        loop {
            match self.submit_anywhere(submission.clone()).await {
                Err(AskError::Stopped)
                    if submission.idempotency_key.is_some()
                        && tries < TRIES
                        && !self.router.is_draining() => {}
                handed_in => return handed_in,
            }
            tries += 1;
            tokio::time::sleep(PAUSE).await;
        }
    }

    async fn follow_query(
        &self,
        submission: Submission,
        detail: Detail,
    ) -> Result<Watch, AskError> {
        let filter = detail.filter(self.key.clone());
        let events = self.subscribe_to(filter.clone());
        let maybe_repeated = submission.idempotency_key.is_some();
        let (query, at) = self.hand_in(submission).await?;
        if maybe_repeated || at == Where::Elsewhere {
            return Watch::from_the_journal(self.clone(), (query, at), filter, events).await;
        }
        Ok(Watch::new(self.clone(), query, filter, events))
    }
}
