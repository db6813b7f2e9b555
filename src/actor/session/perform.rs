//! Effects become tasks and messages.

use std::{sync::Arc, time::Duration};

use ractor::ActorRef;
use tokio::time::Instant;

use super::{SessionMsg, state::SessionState, tools};
use crate::{
    actor::{handle::Child, profile::Voice, services::Services, task::Task},
    kernel::{CallToken, Effect, Report},
    model::{
        Fault, FaultClass, Limits, QueryClassification, QueryId, QueryType, SessionKey,
        SessionName, Timestamp,
        record::{ChildEnd, Parent},
    },
    prompt::{ComposeInput, ComposedPrompt},
};

/// How often classification and composition are asked for.
const PREPARE_TRIES: u32 = 4;
/// Pause between the tries: replacing an actor takes less.
const PREPARE_PAUSE: Duration = Duration::from_millis(50);

impl SessionState {
    /// Starts what an effect asks for. Returns at once.
    pub(super) fn perform(&mut self, me: &ActorRef<SessionMsg>, effect: Effect) {
        match effect {
            Effect::Prepare {
                query,
                text,
                previous,
            } => {
                self.prompt = None;
                self.work = Some(self.prepare(me, query, text, previous));
            }
            Effect::CallModel { token, model, mode } => {
                self.work = self.call_model(me, token, model, mode);
            }
            Effect::SecondOpinion {
                token,
                model,
                instruction,
                text,
                within,
            } => self.work = self.ask_opinion(me, (token, model), (instruction, text), within),
            Effect::Compact {
                token,
                model,
                instruction,
                text,
            } => self.work = self.compact(me, token, model, (instruction, text)),
            Effect::AbortModel { .. } => self.work = None,
            Effect::RetryAt { token, at } => self.work = Some(self.wait_until(me, token, at)),
            Effect::RunTool { query, turn, call } => {
                let id = call.id.clone();
                let task = tools::run(me.clone(), self.tool_run(query, turn, call));
                self.tools.insert(id, task);
            }
            Effect::AbortTools { .. } => self.tools.clear(),
            Effect::StartChild {
                query,
                child,
                scope,
                max_tokens,
                max_cost,
            } => {
                // The turns of the profile: a child's do not count in the parent (spec 11).
                let limits = Limits {
                    max_tokens,
                    max_cost,
                    ..self.profile.policy.limits
                };
                let session = self.child(query, &child);
                let report = child_ended(me.clone(), query);
                let task = Task::spawn(async move { session.run(&scope, limits, report).await });
                self.follow_child(child, task);
            }
            Effect::CancelChild { query, child } => {
                let session = self.child(query, &child);
                let report = child_ended(me.clone(), query);
                let before = self.children.remove(&child);
                let task = Task::spawn(async move {
                    // So that what starts it does not come after what cancels it.
                    if let Some(before) = before {
                        before.stop().await;
                    }
                    session.end(report).await;
                });
                self.follow_child(child, task);
            }
        }
    }

    fn prepare(
        &self,
        me: &ActorRef<SessionMsg>,
        query: QueryId,
        text: Arc<str>,
        previous: Option<Arc<str>>,
    ) -> Task {
        let (me, services) = (me.clone(), self.services.clone());
        let prompt = self.profile.voice();
        Task::spawn(async move {
            let result = prepared(&services, text, previous, prompt).await;
            let _ = me.cast(SessionMsg::Prepared { query, result });
        })
    }

    fn wait_until(&self, me: &ActorRef<SessionMsg>, token: CallToken, at: Timestamp) -> Task {
        let me = me.clone();
        let pause: Duration = at.since(self.services.clock.now());
        Task::spawn(async move {
            tokio::time::sleep(pause).await;
            let _ = me.cast(SessionMsg::Report(Report::RetryDue { token }));
        })
    }

    /// Of those that have ended nothing is kept.
    fn follow_child(&mut self, child: SessionName, task: Task) {
        self.children.retain(|_, task| !task.is_over());
        self.children.insert(child, task);
    }

    /// A sub-agent of this session.
    fn child(&self, query: QueryId, name: &SessionName) -> Child {
        let above = self.opening.parent.as_ref();
        let depth = above.map_or(0, |parent| parent.depth);
        let parent = Parent {
            session: self.key.name.clone(),
            query,
            depth: depth + 1,
        };
        let key = SessionKey {
            tenant: self.key.tenant.clone(),
            name: name.clone(),
        };
        // One that is taken back may have to wait for one of its own.
        let deepest = self.profile.policy.delegation.max_depth;
        let below = deepest.saturating_sub(depth).max(1);
        let patience = self.services.timeouts.child.saturating_mul(below);
        let profile = self.opening.profile.clone();
        self.services.router.child(key, profile, parent, patience)
    }

    /// The prompt of a query type, from a composer.
    pub(super) async fn compose(
        services: &Services,
        prompt: Voice,
        query_type: QueryType,
        within: Duration,
    ) -> Result<Arc<ComposedPrompt>, Fault> {
        let Voice { values, composer } = prompt;
        let input = ComposeInput::new(values, query_type);
        services.composer.compose(input, composer, within).await
    }
}

fn child_ended(me: ActorRef<SessionMsg>, query: QueryId) -> impl FnOnce(ChildEnd) {
    move |end| {
        let _ = me.cast(SessionMsg::Report(Report::ChildEnded { query, end }));
    }
}

/// Asks again where the actor that was asked is being replaced, or has no room at the moment: that is
/// no try, and worth waiting for as long as an answer would be.
async fn prepared(
    services: &Services,
    text: Arc<str>,
    previous: Option<Arc<str>>,
    prompt: Voice,
) -> Result<(QueryClassification, Arc<ComposedPrompt>), Fault> {
    let patience = Instant::now() + services.timeouts.prepare;
    let mut tries = 1;
    loop {
        let (text, previous, prompt) = (text.clone(), previous.clone(), prompt.clone());
        let fault = match prepared_once(services, text, previous, prompt, patience).await {
            Ok(prepared) => return Ok(prepared),
            Err(fault) => fault,
        };
        let pause = match fault.class {
            FaultClass::Retryable { .. } if tries < PREPARE_TRIES && Instant::now() < patience => {
                tries += 1;
                PREPARE_PAUSE
            }
            FaultClass::Overloaded { .. } if Instant::now() < patience => {
                fault.class.after().unwrap_or(PREPARE_PAUSE)
            }
            _ => return Err(fault),
        };
        tokio::time::sleep(pause).await;
    }
}

async fn prepared_once(
    services: &Services,
    text: Arc<str>,
    previous: Option<Arc<str>>,
    prompt: Voice,
    until: Instant,
) -> Result<(QueryClassification, Arc<ComposedPrompt>), Fault> {
    let left = || until.saturating_duration_since(Instant::now());
    let classifier = &services.classifier;
    let classification = classifier.classify(text, previous, left()).await?;
    let kind = classification.query_type;
    let prompt = SessionState::compose(services, prompt, kind, left()).await?;
    Ok((classification, prompt))
}
