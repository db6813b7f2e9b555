//! A second opinion on what a query is (spec 4): a model call like any other, and the prompt of what it names.

use std::{sync::Arc, time::Duration};

use ractor::{ActorProcessingErr, ActorRef};
use tokio::time::{Instant, timeout_at};

use super::{
    SessionMsg,
    call::{Failed, aside_tokens},
    state::SessionState,
};
use crate::{
    actor::{profile::Voice, services::Services, task::Task},
    kernel::{CallToken, Opinion, Report, named},
    model::Reply,
    prompt::ComposedPrompt,
};

/// An opinion, with the prompt where it names a type.
type Opined = (Opinion, Option<Arc<ComposedPrompt>>);

impl SessionState {
    /// Asks once. What has not come within the time is dropped with its call.
    pub(super) fn ask_opinion(
        &mut self,
        me: &ActorRef<SessionMsg>,
        (token, model): (CallToken, Arc<str>),
        (instruction, text): (&'static str, Arc<str>),
        within: Duration,
    ) -> Option<Task> {
        let mut call = self.call(me, token, model, aside_tokens(instruction, &text))?;
        // It has a deadline of its own, and nobody is told that it waits.
        (call.patience, call.outage, call.session) = (within, within, None);
        let (me, services) = (me.clone(), self.services.clone());
        let voice = self.profile.voice();
        Some(Task::spawn(async move {
            let until = Instant::now() + within;
            let (opinion, prompt) = match timeout_at(until, call.aside(instruction, &text)).await {
                Ok(Ok(reply)) => opined(&services, voice, reply, until).await,
                Ok(Err(Failed { fault, usage })) => (Opinion::Failed { fault, usage }, None),
                Err(_) => (Opinion::Late, None),
            };
            let _ = me.cast(SessionMsg::Opined {
                token,
                opinion,
                prompt,
            });
        }))
    }

    /// What came of asking; the text of the prompt stays here, its summary is recorded.
    pub(super) async fn opined(
        &mut self,
        me: &ActorRef<SessionMsg>,
        token: CallToken,
        opinion: Opinion,
        prompt: Option<Arc<ComposedPrompt>>,
    ) -> Result<(), ActorProcessingErr> {
        if prompt.is_some() {
            self.prompt = prompt;
        }
        let report = Report::SecondOpinion { token, opinion };
        self.report(me, report).await
    }
}

async fn opined(services: &Services, voice: Voice, reply: Reply, until: Instant) -> Opined {
    let usage = reply.usage;
    let query_type = match named(&reply) {
        Ok(query_type) => query_type,
        Err(said) => return (Opinion::NotUnderstood { said, usage }, None),
    };
    let left = until.saturating_duration_since(Instant::now());
    let within = services.timeouts.prepare.min(left);
    match SessionState::compose(services, voice, query_type, within).await {
        Ok(prompt) => {
            let summary = prompt.summary();
            let opinion = Opinion::Named {
                query_type,
                prompt: summary,
                usage,
            };
            (opinion, Some(prompt))
        }
        Err(fault) => (Opinion::Failed { fault, usage }, None),
    }
}
