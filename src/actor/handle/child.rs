//! A sub-agent: a session of its own, whose answer comes back as data.
//!
//! **Invariant:** both ways of following a child come to an end that can be recorded, and neither lets it
//! run on unseen. One that was taken back is waited for within a deadline; one that cannot be reached
//! counts with what its log says it used.

use std::time::Duration;

use super::{Answer, AskError, Detail, QueryAccount, Router, SessionHandle, Watch};
use crate::{
    actor::session::Opening,
    journal,
    kernel::{Command, Refusal},
    model::{
        By, Limits, Outcome, ProfileName, Seq, SessionKey, Submission, Usage,
        record::{ChildEnd, Parent},
    },
};

/// The delegated message is known by this key, however often the parent comes back to it.
const KEY: &str = "delegation";
/// How often it is handed in, where whether it was heard is not known.
const TRIES: u32 = 3;
/// Pause before something that may pass is tried again.
const PAUSE: Duration = Duration::from_secs(1);

/// A child, whether or not it was started.
pub(in crate::actor) struct Child {
    session: SessionHandle,
    /// How long its end is waited for once it was taken back.
    patience: Duration,
}

impl Router {
    /// A child of a session; it comes into being with the first thing that is asked of it.
    pub(in crate::actor) fn child(
        &self,
        key: SessionKey,
        profile: ProfileName,
        parent: Parent,
        patience: Duration,
    ) -> Child {
        let parent = Some(parent);
        let session = self.session(key, Opening { profile, parent });
        let session = session.acting(By::oracle());
        Child { session, patience }
    }
}

impl Child {
    /// Starts it, or finds it if it was started before, follows it to its end and reports that.
    pub(in crate::actor) async fn run(
        &self,
        scope: &str,
        limits: Limits,
        report: impl FnOnce(ChildEnd),
    ) {
        let submission = Submission {
            idempotency_key: Some(KEY.into()),
            limits: Some(limits),
            ..Submission::new(scope)
        };
        let mut tries = 1;
        let error = loop {
            match self.session.answer(submission.clone()).await {
                Ok(answer) => return report(self.ended(answer)),
                Err(error) if may_pass(&error) && tries < TRIES => {}
                Err(error) => break error,
            }
            tries += 1;
            tokio::time::sleep(PAUSE).await;
        };
        // It may run all the same.
        match self.take_back().await {
            Ok(Some(answer)) if answer.outcome != Outcome::Cancelled => report(self.ended(answer)),
            Ok(answer) => {
                let usage = answer.map_or_else(Usage::default, |answer| answer.usage);
                report(self.failed(error.to_string(), usage));
            }
            Err(_) => self.give_up(&error.to_string(), report).await,
        }
    }

    /// Takes it back, follows it to its end and reports that; at the latest when patience has an end.
    pub(in crate::actor) async fn end(&self, report: impl FnOnce(ChildEnd)) {
        match self.take_back().await {
            Ok(Some(answer)) => report(self.ended(answer)),
            Ok(None) => report(self.with(Outcome::Cancelled, String::new(), Usage::default())),
            Err(why) => self.give_up(&why, report).await,
        }
    }

    /// Reports that its end is not to be learnt. It is told all the same that nobody waits for it, when
    /// it can be reached again.
    async fn give_up(&self, why: &str, report: impl FnOnce(ChildEnd)) {
        report(self.lost(why).await);
        // How that ends makes no difference any more.
        let _ = self.keep_taking_back().await;
    }

    /// Its end once it was taken back, none if it never began; why there is none in time.
    async fn take_back(&self) -> Result<Option<Answer>, String> {
        match tokio::time::timeout(self.patience, self.keep_taking_back()).await {
            Ok(taken) => taken.map_err(|error| error.to_string()),
            Err(_) => {
                let patience = self.patience;
                Err(format!(
                    "it was taken back and did not end within {patience:?}"
                ))
            }
        }
    }

    async fn keep_taking_back(&self) -> Result<Option<Answer>, AskError> {
        loop {
            match self.try_to_take_back().await {
                Err(error) if may_pass(&error) => tokio::time::sleep(PAUSE).await,
                taken => return taken,
            }
        }
    }

    async fn try_to_take_back(&self) -> Result<Option<Answer>, AskError> {
        // Where it is not on record yet, or that cannot be read, it is whatever the child is at when it
        // hears of this.
        let query = match self.account().await {
            Ok(account) => account.map(|account| account.query),
            Err(AskError::Journal(journal::Error::Unreadable { .. })) => None,
            Err(error) => return Err(error),
        };
        let cancel = Command::Cancel { query };
        match self.session.command(cancel).await {
            // It is about to end, or has ended, or never began.
            Ok(_) | Err(AskError::Refused(Refusal::NothingRunning)) => {}
            Err(error) => return Err(error),
        }
        // What had been handed in before was heard before.
        let Some(QueryAccount { query, .. }) = self.account().await? else {
            return Ok(None);
        };
        let events = self.session.listen(Detail::End);
        let watch = Watch::from_the_journal(&self.session, query, Detail::End, events).await?;
        watch.answer().await.map(Some)
    }

    /// The delegated query, if it was accepted.
    async fn account(&self) -> Result<Option<QueryAccount>, AskError> {
        let page = match self.session.queries(Seq(0), usize::MAX).await {
            Err(AskError::NoSession { .. }) => return Ok(None),
            page => page?,
        };
        let is_it = |account: &QueryAccount| account.idempotency_key.as_deref() == Some(KEY);
        Ok(page.queries.into_iter().find(is_it))
    }

    fn ended(&self, answer: Answer) -> ChildEnd {
        self.with(answer.outcome, answer.text, answer.usage)
    }

    fn failed(&self, detail: String, usage: Usage) -> ChildEnd {
        let code = "child".into();
        self.with(Outcome::Failed { code, detail }, String::new(), usage)
    }

    /// An end with what its log says it used, if that can be read.
    async fn lost(&self, why: &str) -> ChildEnd {
        let account = tokio::time::timeout(self.session.router.acknowledge, self.account());
        match account.await {
            Ok(Ok(account)) => {
                let detail = format!("{why}; what it recorded of its use until then counts");
                let used = account.map(|account| account.usage);
                self.failed(detail, used.unwrap_or_default())
            }
            Ok(Err(_)) | Err(_) => {
                let detail = format!("{why}; what it used is not known and counts as nothing");
                self.failed(detail, Usage::default())
            }
        }
    }

    fn with(&self, outcome: Outcome, answer: String, usage: Usage) -> ChildEnd {
        ChildEnd {
            child: self.session.key.name.clone(),
            outcome,
            answer,
            usage,
        }
    }
}

/// Whether the same may be answered when it is asked again.
fn may_pass(error: &AskError) -> bool {
    matches!(
        error,
        AskError::Busy { .. }
            | AskError::Timeout(_)
            | AskError::Stopped
            | AskError::Refused(Refusal::Owned { .. })
            | AskError::Journal(
                journal::Error::Unavailable(_)
                    | journal::Error::Conflict { .. }
                    | journal::Error::Fenced { .. }
                    | journal::Error::Unknown { .. },
            )
    )
}

#[cfg(test)]
mod tests;
