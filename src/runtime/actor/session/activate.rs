//! Activation (claim, replay, resume) and passivation.

use ractor::{ActorProcessingErr, ActorRef};

use super::state::{SessionShell, is_full};
use crate::{
    actor::{
        deadline::{APPEND_DEADLINE, within},
        error::AskError,
        profile::Opening,
        protocol::{Activation, SessionMsg, ShardMsg},
        replay::Replayed,
    },
    journal::{self, Claim},
    kernel::{Command, Decision, DecisionContext, Effect, IssuedCommand, Report},
    model::{
        By, Seq,
        record::{Opened, Quarantined, Record, SessionFact},
    },
};

impl SessionShell {
    /// Claims the session, unless it is new, replays its records and resumes.
    pub(super) async fn activate(
        &mut self,
        me: &ActorRef<SessionMsg>,
        activation: Activation,
    ) -> Result<(), ActorProcessingErr> {
        let (journal, key) = (&self.services.router.journal, &self.key);
        let is_new = match activation {
            Activation::OnDemand => {
                let found = within(APPEND_DEADLINE, journal.find(key.clone())).await?;
                found.is_none_or(|known| known.last == Seq(0))
            }
            // An append of the previous actor may still be in progress; a claim is ordered after
            // it.
            _ => false,
        };
        if !is_new {
            let claim = within(APPEND_DEADLINE, journal.claim(key.clone())).await;
            let replayed = match claim {
                Ok(claim) => self.replay(claim).await,
                Err(error) => Err(error),
            };
            match replayed {
                Ok(()) => {}
                Err(error @ journal::Error::Owned { .. }) => {
                    // Refuses callers until the shard ends this actor.
                    self.unclaimed = Some(error);
                    let now = self.services.clock.monotonic_millis();
                    self.live.set_unclaimed(now);
                    let (key, anyway, gone) = (self.key.clone(), false, None);
                    self.shard.cast(ShardMsg::Leave { key, anyway, gone });
                    return Ok(());
                }
                Err(error @ (journal::Error::Full | journal::Error::Unreadable { .. })) => {
                    if let journal::Error::Unreadable { .. } = error {
                        // Before a caller learns of it: its next request must not meet this actor.
                        let ledger = &self.services.router.ledger;
                        ledger.quarantine(&self.key, error.to_string());
                    }
                    self.unclaimed = Some(error.clone());
                    // After the messages that wait, so that their callers learn why.
                    me.cast(SessionMsg::Fail(error))?;
                    return Ok(());
                }
                Err(error) => return Err(error.into()),
            }
        }
        if self.last == Seq(0) && !matches!(activation, Activation::Quarantine { .. }) {
            // Nothing is recorded.
            self.show(self.services.clock.monotonic_millis());
            return Ok(());
        }
        let now = self.moment();
        // The earlier start was recorded; only the journal's answer was lost.
        let activation = match self.last_attempt_seq {
            Some(before) if before < self.last => Activation::Again,
            _ => activation,
        };
        // Durable before work resumes, because that work may be the cause of a crash.
        let seen = match activation {
            Activation::Quarantine { reason } => self.opening(self.quarantine(reason, now)),
            Activation::OnDemand => self.session.awake(now),
            // Also tests whether the journal accepts appends, before a model is called.
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
        if self.is_orphan().await {
            let order = IssuedCommand {
                by: By::oracle(),
                command: Command::Cancel { query: None },
            };
            let now = self.moment();
            if let Ok(cancelled) = self.session.decide(order, now) {
                self.step(me, cancelled).await?;
            }
        }
        let now = match self.session.query() {
            Some(_) => self.moment_with_budgets(&self.session.payer()).await?,
            None => self.moment(),
        };
        self.step(me, self.session.resume(now)).await
    }

    /// Whether the query runs for a parent that no longer waits for it: one whose query has ended,
    /// that gave up on this child, that is quarantined, or that was deleted.
    async fn is_orphan(&self) -> bool {
        let (Some(parent), Some(_)) = (&self.opening.parent, self.session.query()) else {
            return false;
        };
        let key = self.key.with_name(parent.session.clone());
        let above = self.services.router.session(key, Opening::default());
        let awaited = above.awaits_child(parent.query, &self.key.name).await;
        // If the journal cannot be read, assume that it is awaited.
        matches!(awaited, Ok(false) | Err(AskError::NoSession(_)))
    }

    /// Leaves memory if nothing is in flight; otherwise informs the shard that the session stays.
    pub(super) async fn passivate(
        &mut self,
        me: &ActorRef<SessionMsg>,
    ) -> Result<(), ActorProcessingErr> {
        if self.unclaimed.is_some() {
            me.stop(None);
            return Ok(());
        }
        // A child that was cancelled may still have to learn of it.
        self.children.retain(|_, task| !task.is_over());
        if self.may_passivate() && self.children.is_empty() {
            return self.leave(me).await;
        }
        self.shard.cast(ShardMsg::Stays {
            key: self.key.clone(),
            actor: me.get_id(),
        });
        Ok(())
    }

    /// Leaves memory at the end of the system: what it holds is recorded, and a running query as
    /// passivated.
    pub(super) async fn park(
        &mut self,
        me: &ActorRef<SessionMsg>,
    ) -> Result<(), ActorProcessingErr> {
        // A held message whose caller has left gives way to the next one.
        while self.holds() {
            self.hurry(me).await?;
            self.handle_backlog(me).await?;
        }
        if self.session.query().is_some() {
            return self.leave(me).await;
        }
        self.release().await;
        me.stop(None);
        Ok(())
    }

    /// Releases the claim, so that another process may take it; should this fail, the end of this
    /// process releases it.
    async fn release(&mut self) {
        let Some(Claim { sid, epoch, .. }) = self.claim.take() else {
            return;
        };
        for _ in 0..2 {
            let released = self.services.router.journal.release(sid, epoch);
            match within(APPEND_DEADLINE, released).await {
                Err(error @ (journal::Error::Unavailable(_) | journal::Error::Full)) => {
                    self.services.router.ledger.warn(|more| {
                        tracing::warn!(session = %self.key, %error, more, "cannot release the ownership of a session");
                    });
                }
                _ => return,
            }
        }
    }

    async fn leave(&mut self, me: &ActorRef<SessionMsg>) -> Result<(), ActorProcessingErr> {
        (self.work, self.preparation) = (None, None);
        self.tools.clear();
        self.children.clear();
        if self.last > Seq(0) {
            let now = self.moment();
            match self.step(me, self.session.leave(now)).await {
                // Only a running query needs the record.
                Err(error) if is_full(&error) && self.session.query().is_none() => {}
                left => left?,
            }
        }
        if let Some(keeping) = self.keeping.take() {
            // Only a short cut: without the snapshot, the next activation takes longer.
            let _ = tokio::time::timeout(APPEND_DEADLINE, keeping.join()).await;
        }
        self.release().await;
        me.stop(None);
        Ok(())
    }

    /// Quarantines the session and cancels its sub-agents, without the kernel, which may be the part
    /// that crashes.
    fn quarantine(&self, reason: String, now: DecisionContext) -> Decision {
        let orphans = self.session.query().into_iter().flat_map(|query| {
            let (id, running) = (query.id, query.step.running_children());
            running.map(move |start| Effect::CancelChild {
                query: id,
                child: start.child.clone(),
            })
        });
        let fact = SessionFact::Quarantined(Quarantined { reason });
        Decision {
            records: vec![Record::new(now.at, None, None, fact)],
            effects: orphans.collect(),
            ..Decision::nothing()
        }
    }

    async fn replay(&mut self, claim: Claim) -> Result<(), journal::Error> {
        self.claim = Some(claim);
        self.live.set_claimed(claim.last);
        let (journal, opening) = (&*self.services.router.journal, self.opening.clone());
        self.profiles = self.services.router.profiles.now();
        let (profiles, to) = (&self.profiles, (claim.sid, claim.last));
        let loaded = Replayed::load(opening, journal, profiles, to, APPEND_DEADLINE);
        let (replayed, kept) = loaded.await?;
        (self.session, self.last) = (replayed.session, replayed.last);
        (self.opening, self.profile) = (replayed.opening, replayed.profile);
        self.kept = kept;
        Ok(())
    }

    /// Adds the opening record to the first decision of a session.
    pub(super) fn opening(&self, decision: Decision) -> Decision {
        if self.last > Seq(0) || decision.records.is_empty() {
            return decision;
        }
        let opened = Opened {
            key: self.key.clone(),
            profile: self.opening.profile.clone(),
            project: self.services.project.clone(),
            parent: self.opening.parent.clone(),
        };
        let now = self.services.clock.moment();
        self.session.opening(opened, decision, now)
    }
}
