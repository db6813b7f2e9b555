//! Effects become tasks and messages.

use std::{sync::Arc, time::Duration};

use ractor::ActorRef;

use super::{SessionMsg, state::SessionState, tools};
use crate::{
    actor::{handle::Child, services::Services, task::Task},
    kernel::{CallToken, Effect, Report},
    model::{
        Fault, Outcome, QueryClassification, QueryId, QueryType, SessionName, Timestamp, Usage,
        record::{ChildEnd, Parent},
    },
    prompt::{ComposeInput, ComposedPrompt, Prepared},
};

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
            } => {
                let child = Child {
                    name: child,
                    scope,
                    max_tokens,
                };
                self.work = Some(self.start_child(me, query, child));
            }
            Effect::CancelChild { child } => self.cancel_child(child),
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
        let prompt = Arc::clone(&self.profile.prompt);
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

    fn start_child(&self, me: &ActorRef<SessionMsg>, query: QueryId, child: Child) -> Task {
        let depth = self
            .opening
            .parent
            .as_ref()
            .map_or(0, |parent| parent.depth)
            + 1;
        let parent = Parent {
            session: self.key.name.clone(),
            query,
            depth,
        };
        let (me, router) = (me.clone(), self.services.router.clone());
        let (tenant, profile) = (self.key.tenant.clone(), self.opening.profile.clone());
        Task::spawn(async move {
            let name = child.name.clone();
            let end = router.run_child(tenant, profile, parent, child).await;
            let end = end.unwrap_or_else(|error| ChildEnd {
                child: name,
                outcome: Outcome::Failed {
                    code: "child".into(),
                    detail: error.to_string(),
                },
                answer: String::new(),
                usage: Usage::default(),
            });
            let _ = me.cast(SessionMsg::Report(Report::ChildEnded { query, end }));
        })
    }

    fn cancel_child(&mut self, child: SessionName) {
        let router = self.services.router.clone();
        let tenant = self.key.tenant.clone();
        // Ends with the next piece of work or with the actor; the child's own end does not hang on it.
        self.work = Some(Task::spawn(async move {
            router.cancel_child(tenant, child).await
        }));
    }

    /// The prompt of a query type, from a composer.
    pub(super) async fn compose(
        services: &Services,
        prompt: Arc<Prepared>,
        query_type: QueryType,
    ) -> Result<Arc<ComposedPrompt>, Fault> {
        let input = ComposeInput::new(prompt, query_type);
        services
            .composer
            .compose(input, services.timeouts.prepare)
            .await
    }
}

async fn prepared(
    services: &Services,
    text: Arc<str>,
    previous: Option<Arc<str>>,
    prompt: Arc<Prepared>,
) -> Result<(QueryClassification, Arc<ComposedPrompt>), Fault> {
    let within = services.timeouts.prepare;
    let classification = services.classifier.classify(text, previous, within).await?;
    let prompt = SessionState::compose(services, prompt, classification.query_type).await?;
    Ok((classification, prompt))
}
