//! What the shell keeps, and its one step.

use std::{collections::HashMap, sync::Arc};

use ractor::{ActorProcessingErr, ActorRef, RpcReplyPort};

use super::{Acknowledged, Opening, SessionArgs, SessionMsg, SessionView};
use crate::{
    actor::{
        mailbox::Mailbox,
        profile::Profile,
        pulse::{Expected, Pulse, Stage},
        services::Services,
        shard::ShardMsg,
        task::Task,
    },
    journal::{self, Append, Claim, Entry},
    kernel::{Command, Decision, Phase, Refusal, Report, Session, Step},
    model::{CallId, Fault, QueryClassification, QueryId, Record, Seq, SessionKey},
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
    pub(super) session: Session,
    /// The right to append; none before activation.
    pub(super) claim: Option<Claim>,
    pub(super) last: Seq,
    /// The running query's prompt; composed anew after a restart.
    pub(super) prompt: Option<Arc<ComposedPrompt>>,
    /// What the session waits for besides tools: preparation, a model call, a back-off or a child.
    pub(super) work: Option<Task>,
    pub(super) tools: HashMap<CallId, Task>,
    /// What the shard was last told that runs.
    told: Option<Running>,
}

/// The running query and its turns, if one runs.
type Running = Option<(QueryId, u32)>;

impl SessionState {
    pub(super) fn new(args: SessionArgs) -> Self {
        let SessionArgs {
            key,
            opening,
            shard,
            pulse,
            services,
        } = args;
        let profile = services.profiles.get(&opening.profile).clone();
        let session = Session::new(Arc::clone(&profile.policy));
        Self {
            key,
            opening,
            shard,
            pulse,
            services,
            profile,
            session,
            claim: None,
            last: Seq(0),
            prompt: None,
            work: None,
            tools: HashMap::new(),
            told: None,
        }
    }

    /// A command: answered when it is durable, or refused.
    pub(super) async fn command(
        &mut self,
        me: &ActorRef<SessionMsg>,
        command: Command,
        reply: RpcReplyPort<Acknowledged>,
    ) -> Result<(), ActorProcessingErr> {
        let answer = match self.session.decide(command, self.services.clock.moment()) {
            Ok(decision) => {
                let answer = decision.reply;
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
        let decision = self.session.observe(report, self.services.clock.moment());
        self.step(me, decision).await
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

    /// Append, evolve, publish, perform.
    pub(super) async fn step(
        &mut self,
        me: &ActorRef<SessionMsg>,
        decision: Decision,
    ) -> Result<(), ActorProcessingErr> {
        let Decision {
            records, effects, ..
        } = decision;
        if !records.is_empty() {
            let records: Vec<_> = records.into_iter().map(Arc::new).collect();
            self.append(records.clone()).await?;
            for record in &records {
                self.session.evolve(record);
            }
            self.publish(records);
        }
        // Before the effects: the supervisor must know of a query before its call passes through.
        self.sign_of_life();
        for effect in effects {
            self.perform(me, effect);
        }
        Ok(())
    }

    /// The one deliberate await of a handler: bounded, and a crash if it fails.
    async fn append(&mut self, records: Vec<Arc<Record>>) -> Result<(), ActorProcessingErr> {
        let claim = self
            .claim
            .ok_or("the session was used before it was activated")?;
        let Claim { sid, epoch, .. } = claim;
        let append = Append {
            sid,
            epoch,
            after: self.last,
            records,
        };
        let durable = self.services.journal.append(append);
        match tokio::time::timeout(self.services.timeouts.append, durable).await {
            Ok(appended) => {
                appended?;
                Ok(())
            }
            Err(_) => {
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
    pub(super) fn sign_of_life(&mut self) {
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
                running,
            });
        }
    }

    fn expected(&self) -> Expected {
        let Some(query) = self.session.query() else {
            return Expected::Patience;
        };
        if self.session.is_paused() {
            return Expected::Patience;
        }
        match query.step() {
            Step::Ready | Step::BackingOff { .. } | Step::Delegating { .. } => Expected::Patience,
            Step::Preparing | Step::Calling { .. } => Expected::Progress,
            // Approvals are waited for without limit.
            step @ Step::Tools { .. } if step.name() == "approval" => Expected::Patience,
            Step::Tools { .. } => Expected::Progress,
        }
    }

    /// How it stands.
    pub(super) fn view(&self, reply: RpcReplyPort<Result<SessionView, Refusal>>) {
        let query = self.session.query();
        let (state, quarantine) = match self.session.phase() {
            Phase::Idle => ("idle", None),
            Phase::Running(query) => (query.step().name(), None),
            Phase::Quarantined(why) => ("quarantined", Some(why.reason.clone())),
        };
        let view = SessionView {
            key: self.key.clone(),
            state: state.to_owned(),
            paused: self.session.is_paused(),
            last: self.last,
            query: query.map(|query| query.id()),
            turns: query.map_or(0, |query| query.turns()),
            limits: query.map(|query| query.limits()),
            usage: query.map_or(self.session.usage_before(), |query| query.usage()),
            waiting: self.session.waiting(),
            quarantine,
        };
        // The caller may have given up; that is its right.
        let _ = reply.send(Ok(view));
    }
}
