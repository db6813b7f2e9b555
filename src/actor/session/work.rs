//! Effects become tasks: preparation, back-off, sub-agents, tool calls and second opinions. What a task reports comes
//! back by message; a task ends with its actor.

use std::{sync::Arc, time::Duration};

use ractor::ActorRef;
use serde_json::Value;
use tokio::time::{Instant, timeout_at};
use tokio_util::sync::CancellationToken;

use super::{SessionMsg, call::Failed, state::SessionState};
use crate::{
    actor::{handle::Child, profile::Voice, services::Services, task::Task},
    kernel::{CallToken, Effect, Opinion, Report, named},
    model::{
        Fault, FaultClass, Limits, QueryClassification, QueryId, QueryType, Reply, SessionKey,
        SessionName, Timestamp, ToolCall, ToolResult, ToolStatus, Turn,
        record::{ChildEnd, Parent},
    },
    prompt::{ComposeInput, ComposedPrompt},
    tool::{MAX_DATA, Registry, ToolContext, ToolError, ToolOutput},
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
            } => self.work = self.compact(me, token, model, instruction, &text),
            Effect::AbortModel { .. } => self.work = None,
            Effect::RetryAt { token, at } => self.work = Some(self.wait_until(me, token, at)),
            Effect::RunTool { query, turn, call } => {
                let id = call.id.clone();
                let task = self.run_tool(me, query, turn, call);
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

/// Classification and prompt. Asks again where the actor that was asked is being replaced, or has no room.
async fn prepared(
    services: &Services,
    text: Arc<str>,
    previous: Option<Arc<str>>,
    voice: Voice,
) -> Result<(QueryClassification, Arc<ComposedPrompt>), Fault> {
    let until = Instant::now() + services.timeouts.prepare;
    let left = || until.saturating_duration_since(Instant::now());
    let once = || async {
        let (text, previous) = (text.clone(), previous.clone());
        let found = services.classifier.classify(text, previous, left()).await?;
        let kind = found.query_type;
        let prompt = SessionState::compose(services, voice.clone(), kind, left()).await?;
        Ok::<_, Fault>((found, prompt))
    };
    let mut tries = 1;
    loop {
        let fault = match once().await {
            Ok(prepared) => return Ok(prepared),
            Err(fault) => fault,
        };
        let pause = match fault.class {
            _ if left().is_zero() => return Err(fault),
            FaultClass::Retryable { .. } if tries < PREPARE_TRIES => {
                tries += 1;
                PREPARE_PAUSE
            }
            FaultClass::Overloaded { .. } => fault.class.after().unwrap_or(PREPARE_PAUSE),
            _ => return Err(fault),
        };
        tokio::time::sleep(pause).await;
    }
}

impl SessionState {
    /// Runs a tool call and reports its result, whatever it is.
    fn run_tool(
        &self,
        me: &ActorRef<SessionMsg>,
        query: QueryId,
        turn: Turn,
        call: Arc<ToolCall>,
    ) -> Task {
        let (me, session) = (me.clone(), self.key.clone());
        let (tools, deadline) = (Arc::clone(&self.profile.tools), self.services.timeouts.tool);
        Task::spawn(async move {
            let cancelled = CancellationToken::new();
            // Tells the tool, also when this task is dropped.
            let _cancel = cancelled.clone().drop_guard();
            let context = ToolContext {
                call: call.id.clone(),
                session,
                query,
                cancelled,
            };
            let (status, output) = match called(&tools, &call, context, deadline).await {
                Ok(output) => (ToolStatus::Ok, output),
                Err(words) => (ToolStatus::Failed, words.into()),
            };
            let result = ToolResult {
                call: call.id.clone(),
                status,
                content: output.text,
                data: output.data.filter(is_small),
            };
            let _ = me.cast(SessionMsg::Report(Report::ToolEnded {
                query,
                turn,
                result,
            }));
        })
    }
}

/// The tool's output; else words for the model.
async fn called(
    tools: &Registry,
    call: &ToolCall,
    context: ToolContext,
    deadline: Duration,
) -> Result<ToolOutput, String> {
    let name = &call.name;
    let (Some(tool), Ok(arguments)) = (tools.get(name), call.parsed()) else {
        return Err(format!("The tool {name} is not available at the moment."));
    };
    // A task of its own, for the making of the call too: a tool that panics fails alone.
    let tool = Arc::clone(tool);
    let work = Task::spawn(async move { tool.call(arguments, context).await });
    match tokio::time::timeout(deadline, work.join()).await {
        Ok(Ok(Ok(output))) => Ok(output),
        Ok(Ok(Err(ToolError::Tell(words)))) => Err(words),
        Ok(Ok(Err(ToolError::Broken(fault)))) => {
            tracing::warn!(tool = %name, code = %fault.code, detail = %fault.detail, "tool is broken");
            let code = &fault.code;
            Err(format!(
                "The tool {name} is broken ({code}). Go on without it."
            ))
        }
        Ok(Err(panic)) => {
            tracing::error!(tool = %name, %panic, "tool panicked");
            Err(format!("The tool {name} is broken. Go on without it."))
        }
        Err(_) => Err(format!(
            "The tool {name} did not answer within {deadline:?} and was stopped. Ask for less, or go on without it."
        )),
    }
}

/// Whether data is small enough to be kept beside the text.
fn is_small(data: &Value) -> bool {
    serde_json::to_vec(data).is_ok_and(|json| json.len() <= MAX_DATA)
}

/// An opinion, with the prompt where it names a type.
type Opined = (Opinion, Option<Arc<ComposedPrompt>>);

impl SessionState {
    /// Asks once. What has not come within the time is dropped with its call.
    fn ask_opinion(
        &mut self,
        me: &ActorRef<SessionMsg>,
        (token, model): (CallToken, Arc<str>),
        (instruction, text): (&'static str, Arc<str>),
        within: Duration,
    ) -> Option<Task> {
        let mut call = self.call_aside(me, token, model, instruction, &text)?;
        // It has a deadline of its own, and nobody is told that it waits.
        let ticket = &mut call.ticket;
        (ticket.patience, ticket.outage, ticket.session) = (within, within, None);
        let (me, services) = (me.clone(), self.services.clone());
        let voice = self.profile.voice();
        Some(Task::spawn(async move {
            let until = Instant::now() + within;
            let (opinion, prompt) = match timeout_at(until, call.answer(None, |_| {})).await {
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
