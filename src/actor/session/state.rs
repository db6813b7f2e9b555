//! What the shell keeps, and its one step.

use std::{collections::HashMap, sync::Arc, time::Duration};

use futures_util::TryFutureExt;
use ractor::{ActorProcessingErr, ActorRef, RpcReplyPort};

use super::{Acknowledged, Opening, SessionArgs, SessionMsg, standing};
use crate::{
    access::Inbox,
    actor::{
        mailbox::Mailbox,
        meter::Alive,
        profile::{Profile, Profiles},
        pulse::{Expected, Pulse, Stage},
        replay::Replayed,
        services::Services,
        shard::ShardMsg,
        task::Task,
    },
    journal::{self, Append, Claim, Entry},
    kernel::{Decision, Moment, Order, Refusal, Report, Session, Step},
    model::{CallId, Fault, QueryClassification, QueryId, Record, Seq, SessionKey, SessionName},
    prompt::ComposedPrompt,
};

/// See the module.
pub(in crate::actor) struct SessionState {
    pub(super) key: SessionKey,
    pub(super) opening: Opening,
    pub(super) shard: Mailbox<ShardMsg>,
    pub(super) pulse: Arc<Pulse>,
    pub(super) services: Services,
    pub(super) profile: Profile,
    /// Where it is from: others may hold by now.
    pub(super) profiles: Arc<Profiles>,
    pub(super) session: Session,
    /// The right to append; none before activation.
    pub(super) claim: Option<Claim>,
    pub(super) last: Seq,
    /// Where its log ended when it was brought to life for the same before.
    pub(super) tried_at: Option<Seq>,
    /// The record of the newest snapshot.
    pub(super) kept: Seq,
    /// The task that keeps one.
    pub(super) keeping: Option<Task>,
    /// The running query's prompt; composed anew after a restart.
    pub(super) prompt: Option<Arc<ComposedPrompt>>,
    /// What the session waits for besides tools and children: preparation, a model call, a back-off.
    pub(super) work: Option<Task>,
    pub(super) tools: HashMap<CallId, Task>,
    /// Followed to their ends, which may be after that of the query.
    pub(super) children: HashMap<SessionName, Task>,
    /// What whoever asks hears where another process has the session.
    pub(super) away: Option<Refusal>,
    /// Whether it has told that calls wait for a person.
    approvals_told: bool,
    /// What the shard was last told that runs.
    told: Option<Running>,
    /// How many appends the journal has taken of this actor.
    taken: u64,
    /// When the running turn began, in monotonic microseconds; none of one that is no measure of others.
    pub(super) turn_began: Option<u64>,
    /// Counts it among those that live.
    alive: Alive,
    /// What its tenant has on its account; none where that has no limits.
    pub(super) inbox: Option<Inbox>,
}

/// The journal took an append of this actor and then refused what its query had to record.
#[derive(Debug, thiserror::Error)]
#[error("query {query}, after {turns} turns: {why}")]
pub(in crate::actor) struct Unwritten {
    pub query: QueryId,
    pub turns: u32,
    why: journal::Error,
}

/// The running query and its turns, if one runs.
type Running = Option<(QueryId, u32)>;

impl SessionState {
    pub(super) fn new(args: SessionArgs) -> Self {
        let SessionArgs {
            key,
            opening,
            tried_at,
            shard,
            pulse,
            services,
        } = args;
        let alive = services.meter.enter();
        let inbox = services.tenants.account(&key.tenant).map(Inbox::new);
        let profiles = services.profiles.now();
        let Replayed {
            session,
            opening,
            profile,
            last,
        } = Replayed::new(opening, &profiles);
        Self {
            key,
            opening,
            shard,
            pulse,
            services,
            profile,
            profiles,
            session,
            claim: None,
            last,
            tried_at,
            kept: Seq(0),
            keeping: None,
            prompt: None,
            work: None,
            tools: HashMap::new(),
            children: HashMap::new(),
            away: None,
            approvals_told: false,
            told: None,
            taken: 0,
            turn_began: None,
            alive,
            inbox,
        }
    }

    /// Now, and how far the call is that runs.
    pub(super) fn moment(&self) -> Moment {
        Moment {
            call: self.pulse.flight().read(),
            unsignalled: self.services.habits.is_unsignalled(&self.profile.policy),
            ..self.services.clock.moment()
        }
    }

    /// A command: answered when it is durable, or refused.
    pub(super) async fn command(
        &mut self,
        me: &ActorRef<SessionMsg>,
        order: Order,
        reply: RpcReplyPort<Acknowledged>,
    ) -> Result<(), ActorProcessingErr> {
        if let Some(away) = &self.away {
            // The caller may have given up; that is its right.
            let _ = reply.send(Err(away.clone()));
            return Ok(());
        }
        self.renew();
        let answer = match self.session.decide(order, self.moment()) {
            Ok(decision) => {
                let answer = decision.reply_after(self.last);
                self.step(me, decision).await?;
                Ok(answer)
            }
            Err(refusal) => Err(refusal),
        };
        // The caller may have given up; that is its right, and the command stands.
        let _ = reply.send(answer);
        Ok(())
    }

    /// A report of a task.
    pub(super) async fn report(
        &mut self,
        me: &ActorRef<SessionMsg>,
        report: Report,
    ) -> Result<(), ActorProcessingErr> {
        if let Report::ToolEnded { result, .. } = &report {
            self.tools.remove(&result.call);
        }
        self.count_call(&report);
        let decision = self.session.observe(report, self.moment());
        self.own_step(me, decision).await
    }

    /// Classification and prompt; the text of the prompt stays here, its summary is recorded.
    pub(super) async fn prepared(
        &mut self,
        me: &ActorRef<SessionMsg>,
        query: QueryId,
        result: Result<(QueryClassification, Arc<ComposedPrompt>), Fault>,
    ) -> Result<(), ActorProcessingErr> {
        let result = result.map(|(classification, prompt)| {
            let summary = prompt.summary();
            self.prompt = Some(prompt);
            (classification, summary)
        });
        self.report(me, Report::Prepared { query, result }).await
    }

    /// A step that follows from the query itself and not from a command: one that the journal refuses
    /// comes up again, however often the session is brought back.
    pub(super) fn own_step<'a>(
        &'a mut self,
        me: &'a ActorRef<SessionMsg>,
        decision: Decision,
    ) -> impl Future<Output = Result<(), ActorProcessingErr>> + Send + use<'a> {
        let taken = self.taken;
        let at = self
            .session
            .query()
            .map(|query| (query.id(), query.turns()));
        let refused = move |error: ActorProcessingErr| -> ActorProcessingErr {
            let Some((query, turns)) = at.filter(|_| taken > 0) else {
                return error;
            };
            match error.downcast_ref() {
                Some(why @ journal::Error::Unavailable(_)) => {
                    let why = why.clone();
                    Unwritten { query, turns, why }.into()
                }
                Some(_) | None => error,
            }
        };
        // Not another `async fn`: that would hold the decision a second time.
        self.step(me, decision).map_err(refused)
    }

    /// Append, evolve, publish, perform.
    pub(super) async fn step(
        &mut self,
        me: &ActorRef<SessionMsg>,
        decision: Decision,
    ) -> Result<(), ActorProcessingErr> {
        let Decision {
            records, effects, ..
        } = decision;
        let before = self.at();
        if records.is_empty() {
            self.tell_approvals(0);
        } else {
            let began = self.services.clock.monotonic_micros();
            let records: Vec<_> = records.into_iter().map(Arc::new).collect();
            let taken = self.append(records.clone(), began).await?;
            self.taken += 1;
            self.learn_habits(&records);
            for record in &records {
                self.session.evolve(record);
            }
            self.count(&records, began, taken);
            // Who hears of a call that waits finds it among those.
            self.tell_approvals(records.len());
            self.publish(records);
            self.keep();
        }
        if !effects.is_empty() || self.at() != before {
            self.pulse.beat(self.services.clock.monotonic_millis());
        }
        // Before the effects: the supervisor must know of a query before its call passes through.
        self.sign_of_life(me);
        for effect in effects {
            self.perform(me, effect);
        }
        Ok(())
    }

    /// Before so many records are published. Also what it told stays true when it leaves memory: its last
    /// record is known with it.
    fn tell_approvals(&mut self, unpublished: usize) {
        let waits = self.session.waiting_calls().next().is_some();
        let approvals = &self.services.router.approvals;
        if waits {
            let last = (0..unpublished).fold(self.last, |last, _| last.next());
            approvals.tell(&self.key, &self.session, last);
        } else if self.approvals_told {
            approvals.forget(&self.key);
        }
        self.approvals_told = waits;
    }

    /// Where the running query is: what leaves that as it was, and has no effect, is no progress. A client
    /// that says the same every minute is not to hide a stall.
    fn at(&self) -> Option<(QueryId, Step)> {
        let query = self.session.query()?;
        Some((query.id(), query.step().clone()))
    }

    /// The one deliberate await of a handler: bounded, and the actor's end if it fails.
    /// Times are monotonic microseconds; gives that of its end.
    async fn append(
        &mut self,
        records: Vec<Arc<Record>>,
        began: u64,
    ) -> Result<u64, ActorProcessingErr> {
        let claim = self
            .claim
            .ok_or("the session was used before it was activated")?;
        let Claim { sid, epoch, .. } = claim;
        let leaves = standing::left(&self.session, &records);
        let append = Append {
            sid,
            epoch,
            after: self.last,
            records,
            leaves,
        };
        let durable = self.services.journal.append(append);
        let _waits = self.services.meter.append();
        match tokio::time::timeout(self.services.timeouts.append, durable).await {
            Ok(appended) => {
                if let Err(journal::Error::Unavailable(_) | journal::Error::Broken(_)) = appended {
                    self.services.meter.not_committed();
                }
                appended?;
                let now = self.services.clock.monotonic_micros();
                let took = Duration::from_micros(now.saturating_sub(began));
                self.services.meter.committed(took);
                Ok(now)
            }
            Err(_) => {
                self.services.meter.not_committed();
                let within = self.services.timeouts.append;
                let late = format!("it did not answer within {within:?}");
                Err(journal::Error::Unavailable(late).into())
            }
        }
    }

    fn publish(&mut self, records: Vec<Arc<Record>>) {
        let entries = records.into_iter().map(|record| {
            self.last = self.last.next();
            Entry {
                seq: self.last,
                record,
            }
        });
        let entries: Vec<_> = entries.collect();
        self.services.bus.publish(&self.key, entries);
    }

    /// Tells the shard what runs, and whether it should be getting on.
    fn sign_of_life(&mut self, me: &ActorRef<SessionMsg>) {
        if let Some(inbox) = &mut self.inbox {
            inbox.runs(self.session.query().is_some());
            inbox.holds(self.session.waiting());
        }
        let now = self.services.clock.monotonic_millis();
        let running = self
            .session
            .query()
            .map(|query| (query.id(), query.limits().max_turns));
        self.pulse.live(if running.is_some() {
            Stage::Busy
        } else {
            Stage::Idle
        });
        self.pulse.expect(self.expected(), now);
        let activity = self.activity();
        self.alive.now_at(activity);
        self.alive.holds(self.session.waiting());
        if running.is_none() {
            (self.work, self.prompt) = (None, None);
            self.tools.clear();
        }
        if let Some(Claim { sid, .. }) = self.claim
            && self.told != Some(running)
        {
            self.told = Some(running);
            match running {
                Some((query, _)) => tracing::info!(session = %self.key, %query, "a query runs"),
                None => tracing::info!(session = %self.key, "no query runs"),
            }
            let _ = self.shard.cast(ShardMsg::Running {
                sid,
                key: self.key.clone(),
                actor: me.get_id(),
                running,
            });
        }
    }

    fn expected(&self) -> Expected {
        if self.session.may_rest() {
            return Expected::Nothing;
        }
        let Some(query) = self.session.query() else {
            return Expected::Nothing;
        };
        if self.session.is_paused() {
            return Expected::Patience;
        }
        match query.step() {
            Step::Ready
            | Step::BackingOff { .. }
            | Step::Delegating { .. }
            | Step::Ending { .. } => Expected::Patience,
            Step::Compacting { pause: Some(_), .. } => Expected::Patience,
            Step::Preparing
            | Step::Doubting { .. }
            | Step::Calling { .. }
            | Step::Compacting { pause: None, .. }
            | Step::Tools { .. } => Expected::Progress,
        }
    }
}
