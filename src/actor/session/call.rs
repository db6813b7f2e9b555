//! A model call as the session sees it: out through the shard, back piece by piece.

use std::sync::Arc;

use ractor::ActorRef;
use tokio::sync::mpsc;

use super::{SessionMsg, state::SessionState};
use crate::{
    actor::{
        bus::{BusHandle, Frame},
        gateway::{DELTA_BUFFER, Ticket},
        mailbox::Mailbox,
        pulse::{Place, Pulse},
        services::Services,
        shard::ShardMsg,
        task::Task,
    },
    kernel::{CallToken, Report, Trial},
    llm::{Delta, Request, ToolChoice},
    model::{Fault, Message, QueryType, Reply, SessionKey, Sid, ToolSpec, record::TurnMode},
    prompt::{ComposedPrompt, Prepared},
    signal::Stripper,
};

/// Everything that the call's task needs.
struct Call {
    sid: Sid,
    key: SessionKey,
    token: CallToken,
    trial: Trial,
    model: Arc<str>,
    mode: TurnMode,
    messages: Arc<Vec<Arc<Message>>>,
    tools: Arc<[ToolSpec]>,
    prompt: Prompt,
    shard: Mailbox<ShardMsg>,
    pulse: Arc<Pulse>,
    services: Services,
}

/// The query's prompt, or what it takes to compose it again after a restart.
enum Prompt {
    Ready(Arc<ComposedPrompt>),
    Again(Arc<Prepared>, QueryType),
}

impl SessionState {
    pub(super) fn call_model(
        &self,
        me: &ActorRef<SessionMsg>,
        (token, trial): (CallToken, Trial),
        model: Arc<str>,
        mode: TurnMode,
    ) -> Option<Task> {
        let sid = self.claim?.sid;
        let query_type = self
            .session
            .query()?
            .query_type()
            .unwrap_or(QueryType::Conversational);
        let prompt = match &self.prompt {
            Some(prompt) => Prompt::Ready(Arc::clone(prompt)),
            None => Prompt::Again(Arc::clone(&self.profile.prompt), query_type),
        };
        let call = Call {
            sid,
            key: self.key.clone(),
            token,
            trial,
            model,
            mode,
            messages: Arc::clone(self.session.transcript().messages()),
            tools: Arc::clone(&self.profile.policy.tools),
            prompt,
            shard: self.shard.clone(),
            pulse: Arc::clone(&self.pulse),
            services: self.services.clone(),
        };
        // Whatever an earlier call of this session waits for, this one does not.
        let now = self.services.clock.monotonic_millis();
        self.pulse.queue(Place::Left, now);
        let me = me.clone();
        Some(Task::spawn(async move {
            let report = match call.run().await {
                Ok(reply) => Report::ModelReplied { token, reply },
                Err(fault) => Report::ModelFailed { token, fault },
            };
            let _ = me.cast(SessionMsg::Report(report));
        }))
    }
}

impl Call {
    async fn run(self) -> Result<Reply, Fault> {
        let system = match self.prompt {
            Prompt::Ready(prompt) => prompt,
            Prompt::Again(prepared, query_type) => {
                SessionState::compose(&self.services, prepared, query_type).await?
            }
        };
        let name = self
            .model
            .split_once('/')
            .map_or(&*self.model, |(_, name)| name);
        let request = Request {
            model: name.into(),
            system: Arc::clone(&system.content),
            messages: self.messages,
            tools: self.tools,
            tool_choice: match self.mode {
                TurnMode::Normal => ToolChoice::Auto,
                TurnMode::Last | TurnMode::Final => ToolChoice::None,
            },
        };
        let (deltas, pieces) = mpsc::channel(DELTA_BUFFER);
        let (sid, token, model, pulse) = (self.sid, self.token, self.model, self.pulse);
        let key = self.key.clone();
        let ticket = Ticket {
            sid,
            key,
            token,
            trial: self.trial,
            model,
            request,
            deltas,
            pulse,
        };
        let lost = || Fault::retryable("gateway", "the call was lost on its way; it is made anew");
        self.shard
            .cast(ShardMsg::Call(Box::new(ticket)))
            .map_err(|_| lost())?;
        follow(pieces, self.key, token, &self.services.bus)
            .await
            .unwrap_or_else(|| Err(lost()))
    }
}

/// Shows the visible text as it arrives; none if the channel closes without an end.
async fn follow(
    mut pieces: mpsc::Receiver<Result<Delta, Fault>>,
    key: SessionKey,
    token: CallToken,
    bus: &BusHandle,
) -> Option<Result<Reply, Fault>> {
    let mut stripper = Stripper::default();
    let mut offset = 0;
    let mut show = |text: String| {
        if text.is_empty() {
            return;
        }
        let CallToken {
            query,
            turn,
            attempt,
        } = token;
        let frame = Frame {
            session: key.clone(),
            query,
            turn,
            attempt,
            offset,
            text,
        };
        offset += frame.text.len();
        bus.show(frame);
    };
    while let Some(piece) = pieces.recv().await {
        match piece {
            Ok(Delta::Text(text)) => show(stripper.push(&text)),
            // Reasoning is kept apart from the answer.
            Ok(Delta::Reasoning(_) | Delta::Alive | Delta::Limits(_)) => {}
            Ok(Delta::Done(reply)) => {
                show(stripper.finish());
                return Some(Ok(reply));
            }
            Err(fault) => return Some(Err(fault)),
        }
    }
    None
}
