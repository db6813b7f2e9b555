//! Coming to life: claim, replay, and then whatever is owed.

use std::time::Duration;

use ractor::{ActorProcessingErr, ActorRef};

use super::{Activation, SessionMsg, state::SessionState};
use crate::{
    journal::{Claim, Error as JournalError},
    kernel::{Command, Decision, Effect, Moment, Report},
    model::record::{Fact, Opened, Quarantined, Record, SessionFact},
};

/// Records read at a time.
const PAGE: usize = 512;

impl SessionState {
    /// Claims the session, replays its records, opens it if it has none, and goes on.
    pub(super) async fn activate(
        &mut self,
        me: &ActorRef<SessionMsg>,
        activation: Activation,
    ) -> Result<(), ActorProcessingErr> {
        let claim = self.services.journal.claim(self.key.clone());
        let claim = within(self.services.timeouts.append, claim).await?;
        self.claim = Some(claim);
        self.replay(claim).await?;
        if self.last.0 == 0 {
            self.open(me).await?;
        }
        let now = self.services.clock.moment();
        let decision = match activation {
            Activation::OnDemand => self.session.resume(now),
            // The last thing it did before it ended was to record the query's end.
            Activation::Restart { .. } if self.session.query().is_none() => Decision::nothing(),
            Activation::Restart { cause, detail } => self
                .session
                .observe(Report::Restarted { cause, detail }, now),
            Activation::Quarantine { reason } => self.set_aside(reason, now),
            Activation::BudgetViolated { query, detail } => self
                .session
                .observe(Report::BudgetViolated { query, detail }, now),
        };
        self.step(me, decision).await
    }

    /// Not the kernel's decision: it may be what crashes. Nobody will wait for a sub-agent any more.
    fn set_aside(&self, reason: String, now: Moment) -> Decision {
        let orphan = self.session.query().and_then(|query| {
            let (query, child) = (query.id(), query.step().child()?.clone());
            Some(Effect::CancelChild { query, child })
        });
        let record = Record {
            at: now.at,
            query: None,
            turn: None,
            fact: SessionFact::Quarantined(Quarantined { reason }).into(),
        };
        Decision {
            records: vec![record],
            effects: orphan.into_iter().collect(),
            ..Decision::nothing()
        }
    }

    async fn replay(&mut self, claim: Claim) -> Result<(), JournalError> {
        while self.last < claim.last {
            let page = self.services.journal.read(claim.sid, self.last, PAGE);
            let page = within(self.services.timeouts.append, page).await?;
            if page.is_empty() {
                let (sid, expected, last) = (claim.sid, claim.last, self.last);
                return Err(JournalError::Conflict {
                    sid,
                    expected,
                    last,
                });
            }
            for entry in page {
                self.adopt(&entry.record);
                self.session.evolve(&entry.record);
                self.last = entry.seq;
            }
        }
        Ok(())
    }

    /// The first record says by which profile the session lives.
    fn adopt(&mut self, record: &Record) {
        if let Fact::Session(SessionFact::Opened(Opened {
            profile, parent, ..
        })) = &record.fact
        {
            self.opening.profile = profile.clone();
            self.opening.parent = parent.clone();
            self.live_by_the_opening();
        }
    }

    async fn open(&mut self, me: &ActorRef<SessionMsg>) -> Result<(), ActorProcessingErr> {
        self.live_by_the_opening();
        let opened = Opened {
            key: self.key.clone(),
            profile: self.opening.profile.clone(),
            parent: self.opening.parent.clone(),
        };
        let decision = self
            .session
            .decide(Command::Open(opened), self.services.clock.moment())?;
        self.step(me, decision).await
    }

    fn live_by_the_opening(&mut self) {
        let profile = self.services.profiles.get(&self.opening.profile);
        self.profile = match &self.opening.parent {
            Some(parent) => profile.for_child(parent),
            None => profile.clone(),
        };
        self.session = crate::kernel::Session::new(self.profile.policy.clone());
    }
}

/// A journal that does not answer in time is one that is not available.
async fn within<T>(
    deadline: Duration,
    asked: impl Future<Output = Result<T, JournalError>>,
) -> Result<T, JournalError> {
    let silent = || JournalError::Unavailable(format!("no answer within {deadline:?}"));
    tokio::time::timeout(deadline, asked)
        .await
        .unwrap_or_else(|_| Err(silent()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn a_journal_that_does_not_answer_is_not_available() {
        let silent = std::future::pending::<Result<(), JournalError>>();
        let answer = within(Duration::from_secs(10), silent).await;
        let why = "no answer within 10s".to_owned();
        assert_eq!(answer, Err(JournalError::Unavailable(why)));
        let prompt = async { Ok::<_, JournalError>(7) };
        assert_eq!(within(Duration::from_secs(10), prompt).await, Ok(7));
    }
}
