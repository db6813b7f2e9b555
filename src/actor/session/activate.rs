//! Coming to life: claim, replay, and then whatever is owed. And leaving memory again.

use ractor::{ActorProcessingErr, ActorRef};

use super::{Activation, SessionMsg, state::SessionState};
use crate::{
    actor::{
        meter::Activity,
        replay::{Replayed, within},
        shard::ShardMsg,
    },
    journal::{self, Claim},
    kernel::{Decision, Effect, Moment, Refusal, Report},
    model::{
        Owner, Seq,
        record::{Opened, Quarantined, Record, SessionFact},
    },
};

impl SessionState {
    /// Claims the session, replays its records and goes on. A new one is claimed when it gets its first records.
    pub(super) async fn activate(
        &mut self,
        me: &ActorRef<SessionMsg>,
        activation: Activation,
    ) -> Result<(), ActorProcessingErr> {
        let deadline = self.services.timeouts.append;
        let (journal, key) = (&self.services.router.journal, &self.key);
        let is_new = match activation {
            Activation::OnDemand => {
                let found = within(deadline, journal.find(key.clone())).await?;
                found.is_none_or(|known| known.last == Seq(0))
            }
            // What was appended before may land yet. A claim comes after it.
            _ => false,
        };
        if !is_new {
            match within(deadline, journal.claim(key.clone())).await {
                Err(journal::Error::Owned { by, .. }) => {
                    self.is_owned(by);
                    return Ok(());
                }
                claim => self.replay(claim?).await?,
            }
        }
        let now = self.moment();
        // What was to be recorded first stands there, only the answer was lost.
        let stands = self.tried_at.is_some_and(|before| before < self.last);
        let activation = if stands {
            Activation::Again
        } else {
            activation
        };
        // Durable before anything is owed: what is owed may be what it dies of.
        let seen = match activation {
            Activation::Quarantine { reason } => self.opening(self.set_aside(reason, now)),
            // Nothing of it is on record.
            _ if self.last == Seq(0) => Decision::nothing(),
            Activation::OnDemand => self.session.awake(now),
            // Also shows whether the journal takes anything, before a model is called for it.
            Activation::Again => self.session.revived(now),
            Activation::Restart { cause, detail } => self
                .session
                .observe(Report::Restarted { cause, detail }, now),
            Activation::BudgetViolated { query, detail } => {
                let violated = Report::BudgetViolated { query, detail };
                self.session.observe(violated, now)
            }
        };
        self.step(me, seen).await?;
        let owed = self.session.resume(self.moment());
        self.step(me, owed).await
    }

    /// Leaves memory if nothing is in flight; else the shard hears that it stays.
    pub(super) async fn passivate(
        &mut self,
        me: &ActorRef<SessionMsg>,
    ) -> Result<(), ActorProcessingErr> {
        if self.owned.is_some() {
            me.stop(None);
            return Ok(());
        }
        // One that was taken back and not heard of may still have to be told.
        self.children.retain(|_, task| !task.is_over());
        if self.session.may_rest() && self.children.is_empty() {
            return self.leave(me).await;
        }
        let _ = self.shard.cast(ShardMsg::Stays {
            key: self.key.clone(),
            actor: me.get_id(),
        });
        Ok(())
    }

    /// The system ends: what runs is recorded as left in order.
    pub(super) async fn park(
        &mut self,
        me: &ActorRef<SessionMsg>,
    ) -> Result<(), ActorProcessingErr> {
        if self.session.query().is_some() {
            return self.leave(me).await;
        }
        self.release().await;
        me.stop(None);
        Ok(())
    }

    /// From now on another process may claim it. One that cannot be released is when this process ends.
    async fn release(&mut self) {
        let Some(Claim { sid, epoch, .. }) = self.claim.take() else {
            return;
        };
        for _ in 0..2 {
            let released = self.services.router.journal.release(sid, epoch);
            match within(self.services.timeouts.append, released).await {
                Err(error @ journal::Error::Unavailable(_)) => {
                    tracing::warn!(session = %self.key, %error, "it still belongs to this process");
                }
                _ => return,
            }
        }
    }

    /// Leaves memory, whatever is in flight: it is owed when the session comes back.
    async fn leave(&mut self, me: &ActorRef<SessionMsg>) -> Result<(), ActorProcessingErr> {
        (self.work, self.prompt) = (None, None);
        self.tools.clear();
        self.children.clear();
        if self.last > Seq(0) {
            let decision = self.session.leave(self.moment());
            self.step(me, decision).await?;
        }
        if let Some(keeping) = self.keeping.take() {
            // A snapshot is a short cut: without it, coming back takes longer.
            let _ = tokio::time::timeout(self.services.timeouts.append, keeping.join()).await;
        }
        self.release().await;
        me.stop(None);
        Ok(())
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

    /// Another process owns it: that is what callers hear until the shard lets this actor go.
    fn is_owned(&mut self, by: Owner) {
        let session = self.key.name.clone();
        self.owned = Some(Refusal::Owned { session, by });
        let now = self.services.clock.monotonic_millis();
        self.pulse.at(Activity::Waking, true, now);
        let key = self.key.clone();
        let (anyway, gone) = (false, None);
        let _ = self.shard.cast(ShardMsg::Leave { key, anyway, gone });
    }

    async fn replay(&mut self, claim: Claim) -> Result<(), ActorProcessingErr> {
        self.claim = Some(claim);
        self.pulse.claimed(claim.last);
        let deadline = self.services.timeouts.append;
        let (journal, all) = (
            &*self.services.router.journal,
            self.services.router.profiles.now(),
        );
        let profiles = &*all;
        let to = (claim.sid, claim.last);
        let opening = self.opening.clone();
        let replayed = Replayed::begin(opening, journal, profiles, to, deadline).await?;
        self.kept = replayed.last;
        let replayed = replayed.read(journal, profiles, to, deadline).await?;
        let Replayed {
            session,
            opening,
            profile,
            last,
        } = replayed;
        (self.session, self.last) = (session, last);
        (self.opening, self.profile) = (opening, profile);
        self.profiles = all;
        Ok(())
    }

    /// A decision about a session without records opens it.
    pub(super) fn opening(&self, decision: Decision) -> Decision {
        if self.last > Seq(0) || decision.records.is_empty() {
            return decision;
        }
        let opened = Opened {
            key: self.key.clone(),
            profile: self.opening.profile.clone(),
            parent: self.opening.parent.clone(),
        };
        let now = self.services.clock.moment();
        self.session.opening(opened, decision, now)
    }
}
