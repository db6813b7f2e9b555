//! A sub-agent: a session whose answer the parent takes as data.
//!
//! **Invariant:** following a child always leads to an end that can be recorded, and never leaves
//! it running unobserved. A cancelled child is awaited within a deadline; an unreachable one is
//! charged the usage that its log shows.

use std::time::Duration;

use super::{Answer, AskError, Detail, Progress, QueryAccount, SessionHandle};
use crate::{
    actor::{deadline::REPLY_DEADLINE, profile::Opening, router::SessionRouter},
    journal,
    kernel::{Command, Refusal},
    model::{
        By, FaultCode, Limits, LimitsRequest, Outcome, PartialLimits, ProfileName, Record, Seq,
        SessionKey, Submission, Usage,
        record::{
            AgentFact, ChildEnd, ChildProgress, Fact, Parent, QueryFact, SignalFact,
            SignalPresence, TurnFact,
        },
    },
};

/// Idempotency key of the delegated message, so that a parent that restarts finds the same query.
const KEY: &str = "delegation";
/// Most attempts to submit the message when the outcome is unknown.
const TRIES: u32 = 3;
const PAUSE: Duration = Duration::from_secs(1);

pub(in crate::actor) struct ChildSession {
    session: SessionHandle,
    /// How long to wait for the end of a cancelled child.
    patience: Duration,
}

impl SessionRouter {
    /// Returns a child of a session; its first command creates it.
    pub(in crate::actor) fn child(
        &self,
        key: SessionKey,
        profile: ProfileName,
        parent: Parent,
        patience: Duration,
    ) -> ChildSession {
        let parent = Some(parent);
        let session = self.session(key, Opening { profile, parent });
        let session = session.acting(By::oracle());
        ChildSession { session, patience }
    }
}

impl ChildSession {
    /// Starts the child on behalf of the parent's caller, or finds it if it was started before,
    /// follows it to its end and reports that, and its complete turns until then.
    pub(in crate::actor) async fn run(
        &self,
        scope: &str,
        limits: Limits,
        by: By,
        progressed: impl Fn(ChildProgress),
        report: impl FnOnce(ChildEnd),
    ) {
        let session = self.session.clone().acting(by);
        let submission = Submission {
            idempotency_key: Some(KEY.into()),
            limits: Some(limits.into()),
            ..Submission::new(scope)
        };
        let mut tries = 1;
        let error = loop {
            match self
                .follow(&session, submission.clone(), limits, &progressed)
                .await
            {
                Ok(answer) => return report(self.ended(answer)),
                Err(error) if is_transient(&error) && tries < TRIES => {}
                Err(error) => break error,
            }
            tries += 1;
            tokio::time::sleep(PAUSE).await;
        };
        // The child may be running despite the error.
        match self.cancel_within_patience().await {
            Ok(Some(answer)) if answer.outcome != Outcome::Cancelled => report(self.ended(answer)),
            Ok(answer) => {
                let usage = answer.map_or_else(Usage::default, |answer| answer.usage);
                report(self.failed(error.to_string(), usage));
            }
            Err(_) => self.give_up(&error.to_string(), report).await,
        }
    }

    /// Follows the query to its end and reports each complete turn. Lowers the budgets of one that was
    /// started with others.
    async fn follow(
        &self,
        session: &SessionHandle,
        submission: Submission,
        limits: Limits,
        progressed: &impl Fn(ChildProgress),
    ) -> Result<Answer, AskError> {
        let mut query = session.begin_query(submission, Detail::Events).await?;
        let mut so_far = ChildProgress {
            child: session.key.name.clone(),
            turns: 0,
            tokens: 0,
            signal: None,
            reason: None,
        };
        while let Some(progress) = query.next().await? {
            let Progress::Record(record) = progress else {
                continue;
            };
            if let Fact::Query(QueryFact::Accepted(accepted)) = &record.fact
                && accepted.limits != limits
            {
                self.lower(limits).await?;
            }
            if is_progress(&mut so_far, &record) {
                progressed(so_far.clone());
            }
        }
        query.answer().await
    }

    async fn lower(&self, limits: Limits) -> Result<(), AskError> {
        let limits = PartialLimits {
            max_turns: None,
            ..limits.into()
        };
        let command = Command::SetBudget(LimitsRequest::User(limits));
        match self.session.command(command).await {
            // It has ended, is closed or quarantined: its records say so.
            Ok(_) | Err(AskError::Refused(_)) => Ok(()),
            Err(error) => Err(error),
        }
    }

    /// Cancels the child, follows it to its end within `patience` and reports that.
    pub(in crate::actor) async fn end(&self, report: impl FnOnce(ChildEnd)) {
        match self.cancel_within_patience().await {
            Ok(Some(answer)) => report(self.ended(answer)),
            Ok(None) => report(self.with(Outcome::Cancelled, String::new(), Usage::default())),
            Err(why) => self.give_up(&why, report).await,
        }
    }

    /// Pauses or resumes the child; only a pause that Oracle began is ended.
    pub(in crate::actor) async fn sync_pause(&self, command: Command) {
        while let Err(error) = self.try_sync(&command).await {
            if !is_transient(&error) {
                return;
            }
            tokio::time::sleep(PAUSE).await;
        }
    }

    async fn try_sync(&self, command: &Command) -> Result<(), AskError> {
        if *command == Command::Resume && self.session.paused_by().await? != Some(By::oracle()) {
            return Ok(());
        }
        self.session.command(command.clone()).await.map(drop)
    }

    /// Reports that the end is unknown, and keeps trying to cancel the child until it can be
    /// reached.
    async fn give_up(&self, why: &str, report: impl FnOnce(ChildEnd)) {
        report(self.lost(why).await);
        // The result no longer matters.
        let _ = self.retry_cancel().await;
    }

    /// Cancels the child and returns its end: `None` if it never began, an error if it did not end
    /// in time.
    async fn cancel_within_patience(&self) -> Result<Option<Answer>, String> {
        let patience = self.patience;
        let taken = tokio::time::timeout(patience, self.retry_cancel()).await;
        let late = |_| format!("it was cancelled but did not end within {patience:?}");
        taken.map_err(late)?.map_err(|error| error.to_string())
    }

    async fn retry_cancel(&self) -> Result<Option<Answer>, AskError> {
        loop {
            match self.try_cancel().await {
                Err(error) if is_transient(&error) => tokio::time::sleep(PAUSE).await,
                taken => return taken,
            }
        }
    }

    async fn try_cancel(&self) -> Result<Option<Answer>, AskError> {
        // If the log has no query yet, or cannot be read, cancel the one that runs when the command
        // arrives.
        let query = match self.account().await {
            Ok(account) => account.map(|account| account.query),
            Err(AskError::Journal(journal::Error::Unreadable { .. })) => None,
            Err(error) => return Err(error),
        };
        match self.session.command(Command::Cancel { query }).await {
            // The child is about to end, has ended, or never began.
            Ok(_) | Err(AskError::Refused(Refusal::NothingRunning)) => {}
            // The session is not the child's.
            Err(AskError::Refused(Refusal::AlreadyOpen)) => return Ok(None),
            Err(error) => return Err(error),
        }
        // Commands are handled in order, so an earlier submission is on record now.
        let Some(QueryAccount { query, .. }) = self.account().await? else {
            return Ok(None);
        };
        let query = self.session.follow_query(query, Detail::End).await?;
        query.answer().await.map(Some)
    }

    async fn account(&self) -> Result<Option<QueryAccount>, AskError> {
        let page = match self.session.queries(Seq(0), usize::MAX).await {
            Err(AskError::NoSession(_)) => return Ok(None),
            page => page?,
        };
        let is_it = |account: &QueryAccount| account.idempotency_key.as_deref() == Some(KEY);
        Ok(page.queries.into_iter().find(is_it))
    }

    fn ended(&self, answer: Answer) -> ChildEnd {
        self.with(answer.outcome, answer.text, answer.usage)
    }

    fn failed(&self, detail: String, usage: Usage) -> ChildEnd {
        let code = FaultCode::Child;
        self.with(Outcome::Failed { code, detail }, String::new(), usage)
    }

    /// Reports the usage that the log shows, if it can be read.
    async fn lost(&self, why: &str) -> ChildEnd {
        let account = tokio::time::timeout(REPLY_DEADLINE, self.account());
        let (account, note) = match account.await {
            Ok(Ok(account)) => (account, "the usage that it recorded until then is counted"),
            Ok(Err(_)) | Err(_) => (None, "its usage is unknown and not counted"),
        };
        let usage = account.map(|account| account.usage).unwrap_or_default();
        self.failed(format!("{why}; {note}"), usage)
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

/// Adds a record, and returns whether it completes a turn: the signal follows its reply.
fn is_progress(so_far: &mut ChildProgress, record: &Record) -> bool {
    so_far.tokens += record.usage().total_tokens();
    match &record.fact {
        Fact::Turn(TurnFact::Replied(replied)) => {
            so_far.turns += 1;
            (so_far.signal, so_far.reason) = (None, None);
            replied.signal != SignalPresence::Valid
        }
        Fact::Signal(SignalFact::Emitted(signal)) => {
            so_far.signal = Some(signal.kind());
            so_far.reason = signal.fields.reason().map(str::to_owned);
            true
        }
        Fact::Agent(AgentFact::DelegationFinished(end)) => {
            so_far.tokens += end.usage.total_tokens();
            false
        }
        _ => false,
    }
}

/// Whether a retry may succeed.
fn is_transient(error: &AskError) -> bool {
    matches!(
        error,
        AskError::Busy { .. }
            | AskError::Timeout(_)
            | AskError::Stopped
            | AskError::Refused(Refusal::Owned { .. })
            | AskError::Journal(
                journal::Error::Unavailable(_)
                    | journal::Error::Full
                    | journal::Error::Conflict { .. }
                    | journal::Error::Fenced { .. }
                    | journal::Error::Unknown { .. },
            )
    )
}

#[cfg(test)]
mod tests;
