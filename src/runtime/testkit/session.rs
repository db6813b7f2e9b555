//! A session handle for tests.

use std::{ops::Deref, time::Duration};

use futures_util::StreamExt as _;

use super::{TestError, lines};
use crate::{
    actor::{Answer, AskError, SessionHandle},
    model::{Event, Seq, Submission},
};

/// Longest wait, by the runtime's clock.
const PATIENCE: Duration = Duration::from_secs(6 * 60 * 60);

impl SessionHandle {
    /// Returns the events after a record as JSON; all of them for 0.
    ///
    /// # Errors
    /// See [`AskError`].
    pub async fn events(&self, after: Seq) -> Result<Vec<Event>, AskError> {
        let name = &self.key().name;
        let records = self.records(after).await?;
        Ok(records.iter().map(|entry| entry.event(name)).collect())
    }
}

/// A [`SessionHandle`] with helpers for tests. No wait exceeds six hours.
#[derive(Clone)]
pub struct TestSession(#[doc(hidden)] pub SessionHandle);

impl Deref for TestSession {
    type Target = SessionHandle;
    fn deref(&self) -> &SessionHandle {
        &self.0
    }
}

impl TestSession {
    /// Asks a question and waits for the answer.
    ///
    /// # Errors
    /// If the session refuses, or no answer comes.
    pub async fn ask(&self, question: &str) -> Result<Answer, TestError> {
        let answer = self.0.answer(Submission::new(question));
        match tokio::time::timeout(PATIENCE, answer).await {
            Ok(answer) => Ok(answer?),
            Err(_) => Err(self.missing_event("query.finished").await?),
        }
    }

    /// Waits for the first event of this type.
    ///
    /// # Errors
    /// If it does not come.
    pub async fn wait_for(&self, kind: &str) -> Result<Event, TestError> {
        self.wait_for_after(Seq(0), kind).await
    }

    /// Waits for the first event of this type after a sequence number.
    ///
    /// # Errors
    /// If it does not come.
    pub async fn wait_for_after(&self, after: Seq, kind: &str) -> Result<Event, TestError> {
        let seen = async {
            loop {
                let mut news = self.subscribe();
                let found = self.events(after).await?;
                if let Some(event) = found.into_iter().find(|event| event.kind == kind) {
                    return Ok::<_, TestError>(event);
                }
                let _ = news.next().await;
            }
        };
        match tokio::time::timeout(PATIENCE, seen).await {
            Ok(seen) => seen,
            Err(_) => Err(self.missing_event(kind).await?),
        }
    }

    /// All events as [`lines`].
    ///
    /// # Errors
    /// If the journal cannot be read.
    pub async fn lines(&self) -> Result<String, TestError> {
        Ok(lines(&self.events(Seq(0)).await?))
    }

    /// The types of all events.
    ///
    /// # Errors
    /// If the journal cannot be read.
    pub async fn kinds(&self) -> Result<Vec<String>, TestError> {
        let events = self.events(Seq(0)).await?;
        Ok(events.into_iter().map(|event| event.kind).collect())
    }

    async fn missing_event(&self, kind: &str) -> Result<TestError, TestError> {
        let seen = self.lines().await?;
        Ok(format!("`{kind}` did not come within {PATIENCE:?}; there is\n{seen}").into())
    }
}
