//! Submitting messages to a session, and following their queries.

use std::{sync::Arc, time::Duration};

use super::{Answer, AskError, Detail, SessionHandle, Watch, watch::QueryStream};
use crate::{
    kernel::{Command, CommandReply, ReturnedResult},
    model::{AnswerOptions, QueryId, Seq, Submission, command::MAX_KEY},
};

/// An accepted message.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[doc(hidden)]
pub struct Submitted {
    /// Query that answers the message.
    pub query: QueryId,
    /// Record of its acceptance; `None` if it was accepted before, or steers a running query.
    pub seq: Option<Seq>,
}

impl SessionHandle {
    /// Submits a message. Returns once it is durable, before it is answered.
    ///
    /// # Errors
    /// See [`AskError`].
    pub async fn submit(&self, message: impl Into<Submission>) -> Result<QueryId, AskError> {
        Ok(self.accept(message.into()).await?.query)
    }

    /// Submits a message and follows its query, in the [`detail`](Self::detail) of this handle.
    ///
    /// # Errors
    /// See [`AskError`].
    pub async fn ask(&self, message: impl Into<Submission>) -> Result<Watch, AskError> {
        let query = self.begin_query(message.into(), self.detail).await?;
        Ok(Watch::new(query))
    }

    /// Submits a message and waits for the answer; cheaper than [`Self::ask`], which also reports
    /// progress.
    ///
    /// # Errors
    /// See [`AskError`].
    pub async fn answer(&self, message: impl Into<Submission>) -> Result<Answer, AskError> {
        let query = self.begin_query(message.into(), Detail::End).await?;
        query.answer().await
    }

    /// Submits the results of the calls in a [`HandedOver`](crate::model::record::HandedOver) record,
    /// one for each call, and follows the rest of the query. `options` replace those of the question,
    /// `instructions` those of the session; `None` keeps them.
    ///
    /// # Errors
    /// See [`AskError`]. All results are refused if one names a call that is not waiting, or if a
    /// waiting call has none.
    pub async fn return_results(
        &self,
        results: Vec<ReturnedResult>,
        options: Option<Arc<AnswerOptions>>,
        instructions: Option<String>,
    ) -> Result<Watch, AskError> {
        let stream = QueryStream::listen(self, self.detail);
        let command = Command::ReturnResults {
            results,
            options,
            instructions,
        };
        let Submitted { query, seq } = self.send_query(command).await?;
        let before = seq.map(|seq| Seq(seq.0.saturating_sub(1)));
        Ok(Watch::new(stream(query).after(before)))
    }

    /// Follows a query that was submitted before, from its beginning; it may have ended.
    ///
    /// # Errors
    /// See [`AskError`]; an unknown query counts as deleted.
    pub async fn watch(&self, query: QueryId) -> Result<Watch, AskError> {
        Ok(Watch::new(self.follow_query(query, self.detail).await?))
    }

    /// Follows a query from a record on that the journal has.
    #[doc(hidden)]
    pub async fn watch_from(&self, query: QueryId, record: Seq) -> Result<Watch, AskError> {
        let stream = QueryStream::listen(self, self.detail);
        let before = Seq(record.0.saturating_sub(1));
        let mut stream = stream(query).after(Some(before));
        stream.look().await?;
        Ok(Watch::new(stream))
    }

    #[doc(hidden)]
    pub async fn follow_query(
        &self,
        query: QueryId,
        detail: Detail,
    ) -> Result<QueryStream, AskError> {
        let stream = QueryStream::listen(self, detail);
        stream(query).with_earlier_records().await
    }

    /// Activates the session, and continues a query that was cut off with its process, as the
    /// session's next message would do. Text that its model writes before you [watch](Self::watch)
    /// the query arrives with the record of the reply.
    ///
    /// # Errors
    /// See [`AskError`].
    pub async fn recover(&self) -> Result<(), AskError> {
        self.router.recover(&self.key).await
    }

    /// Recovers the session and follows one of its queries. It subscribes first, so that no text of
    /// the recovered query is missed.
    #[doc(hidden)]
    pub async fn resume_query(&self, query: QueryId) -> Result<QueryStream, AskError> {
        let stream = QueryStream::listen(self, Detail::All);
        self.recover().await?;
        stream(query).with_earlier_records().await
    }

    #[doc(hidden)]
    pub async fn begin_query(
        &self,
        submission: Submission,
        detail: Detail,
    ) -> Result<QueryStream, AskError> {
        let stream = QueryStream::listen(self, detail);
        let maybe_repeated = submission.idempotency_key.is_some();
        let query = self.accept_or_retry(submission).await?.query;
        let stream = stream(query);
        match maybe_repeated {
            true => stream.with_earlier_records().await,
            false => Ok(stream),
        }
    }

    /// Submits a message, and returns where its acceptance was recorded.
    #[doc(hidden)]
    pub async fn accept(&self, submission: Submission) -> Result<Submitted, AskError> {
        // A running query may still need its sub-agents.
        if self.opening.parent.is_none() {
            self.router.check_accepting()?;
        }
        AskError::check_question(&submission.text)?;
        if let Some(bytes) = submission.idempotency_key.as_ref().map(String::len)
            && !(1..=MAX_KEY).contains(&bytes)
        {
            return Err(AskError::Key(bytes));
        }
        self.send_query(Command::Submit(submission)).await
    }

    /// Sends a command that begins a query or goes on with one.
    pub(super) async fn send_query(&self, command: Command) -> Result<Submitted, AskError> {
        match self.command(command).await? {
            CommandReply::Query { query, at: seq } => Ok(Submitted { query, seq }),
            CommandReply::Done => Err(AskError::Stopped),
        }
    }

    /// Retries if the outcome is unknown and the message's key makes a retry safe.
    async fn accept_or_retry(&self, submission: Submission) -> Result<Submitted, AskError> {
        const TRIES: u32 = 4;
        const PAUSE: Duration = Duration::from_millis(250);
        let mut tries = 1;
        loop {
            match self.accept(submission.clone()).await {
                Err(AskError::Stopped)
                    if submission.idempotency_key.is_some()
                        && tries < TRIES
                        && !self.router.is_draining() => {}
                accepted => return accepted,
            }
            tries += 1;
            tokio::time::sleep(PAUSE).await;
        }
    }
}
