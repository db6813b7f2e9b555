//! Submitting messages to a session, and following their queries.

use std::time::Duration;

use super::{Answer, AskError, Detail, SessionHandle, Submitted, Watch};
use crate::{
    kernel::{Command, Reply},
    model::{
        QueryId, Submission,
        command::{MAX_KEY, MAX_QUESTION},
    },
};

impl SessionHandle {
    /// Submits a message. Returns once it is durable, before it is answered.
    ///
    /// # Errors
    /// See [`AskError`].
    pub async fn submit(&self, submission: Submission) -> Result<QueryId, AskError> {
        Ok(self.submit_and_tell(submission).await?.query)
    }

    /// Submits a message, and returns where its acceptance was recorded.
    ///
    /// # Errors
    /// See [`AskError`].
    pub async fn submit_and_tell(&self, submission: Submission) -> Result<Submitted, AskError> {
        // A running query may still need its sub-agents.
        if self.opening.parent.is_none() {
            self.router.takes_new()?;
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
        match self.command(Command::Submit(submission)).await? {
            Reply::Query { query, at: seq } => Ok(Submitted { query, seq }),
            Reply::Done => Err(AskError::Stopped),
        }
    }

    /// Submits a message and follows its query.
    ///
    /// # Errors
    /// See [`AskError`].
    pub async fn ask(&self, submission: Submission) -> Result<Watch, AskError> {
        self.ask_for(submission, Detail::All).await
    }

    /// Follows a query that was submitted before, from its beginning; it may have ended.
    ///
    /// # Errors
    /// See [`AskError`]; an unknown query counts as deleted.
    pub async fn watch(&self, query: QueryId) -> Result<Watch, AskError> {
        self.watch_for(query, Detail::All).await
    }

    /// Submits a message and follows its query in this detail: the less, the cheaper.
    ///
    /// # Errors
    /// See [`AskError`].
    pub async fn ask_for(&self, submission: Submission, detail: Detail) -> Result<Watch, AskError> {
        let events = self.listen(detail);
        let maybe_repeated = submission.idempotency_key.is_some();
        let Submitted { query, .. } = self.hand_in(submission).await?;
        if maybe_repeated {
            return Watch::from_the_journal(self, query, detail, events).await;
        }
        Ok(Watch::new(self, query, detail, events))
    }

    /// Follows a query in this detail, from its beginning; it may have ended.
    ///
    /// # Errors
    /// See [`AskError`]; an unknown query counts as deleted.
    pub async fn watch_for(&self, query: QueryId, detail: Detail) -> Result<Watch, AskError> {
        let events = self.listen(detail);
        Watch::from_the_journal(self, query, detail, events).await
    }

    /// Follows an unfinished query. One that was cut off with its process is recovered first, as
    /// the session's next message would do.
    ///
    /// # Errors
    /// See [`AskError`].
    pub async fn go_on(&self, query: QueryId) -> Result<Watch, AskError> {
        let events = self.listen(Detail::All);
        self.router.recover(&self.key).await?;
        Watch::from_the_journal(self, query, Detail::All, events).await
    }

    /// Submits a message and waits for the answer; cheaper than [`Self::ask`], which also reports
    /// progress.
    ///
    /// # Errors
    /// See [`AskError`].
    pub async fn answer(&self, submission: Submission) -> Result<Answer, AskError> {
        let watch = self.ask_for(submission, Detail::End).await?;
        watch.answer().await
    }

    /// Submits a message, and retries if the outcome is unknown and its key makes a retry safe.
    async fn hand_in(&self, submission: Submission) -> Result<Submitted, AskError> {
        const TRIES: u32 = 4;
        const PAUSE: Duration = Duration::from_millis(250);
        let mut tries = 1;
        loop {
            match self.submit_and_tell(submission.clone()).await {
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
}
