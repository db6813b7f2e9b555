//! Performs effects as tasks and messages to shared actors, which report by message. The tasks end
//! with the actor.

use std::{sync::Arc, time::Duration};

use ractor::ActorRef;
use serde_json::Value;
use tokio_util::sync::{CancellationToken, DropGuard};
use tracing::Instrument as _;

use super::state::SessionShell;
use crate::{
    actor::{
        bus::{CallProgressed, Notice},
        handle::ChildSession,
        protocol::SessionMsg,
        task::Task,
    },
    kernel::{CallToken, Command, Effect, Report},
    model::{
        Fault, FaultCode, Limits, QueryId, SessionName, ToolCall, ToolResult, ToolStatus, Turn,
        record::{ChildEnd, ChildStart, Parent, TurnMode},
    },
    tool::{CallProgress, MAX_DATA, Registry, ToolContext, ToolError, ToolOutput},
};

/// Deadline for a cancelled sub-agent to end, per level of sub-agents that there may be.
const CHILD_DEADLINE: Duration = Duration::from_secs(60);

/// Work in flight for a query, cancelled on drop.
pub(super) enum Work {
    /// A call of a model.
    Call { _guard: DropGuard },
    /// A call that waits for the answer of the composer.
    Prompt { asked: u64, call: ModelCall },
    /// A back-off.
    Pause { _task: Task },
}

/// A call of a model for the running query.
pub(super) struct ModelCall {
    pub token: CallToken,
    pub model: Arc<str>,
    pub mode: TurnMode,
}

impl Work {
    pub(super) fn awaits(&self, token: u64) -> bool {
        matches!(self, Self::Prompt { asked, .. } if *asked == token)
    }
}

impl SessionShell {
    pub(super) fn perform(&mut self, me: &ActorRef<SessionMsg>, effect: Effect) {
        match effect {
            Effect::Prepare(begun) => self.prepare(me, begun, None),
            Effect::CallModel { token, model, mode } => {
                self.call(me, ModelCall { token, model, mode });
            }
            Effect::Compact {
                token,
                model,
                instruction,
                text,
                within,
            } => self.work = self.compact(me, token, model, (instruction, &text), within),
            Effect::AbortModel => self.work = None,
            Effect::RetryAt { token, at } => {
                let (me, pause) = (me.clone(), at.since(self.services.clock.now()));
                let _task = Task::spawn(async move {
                    tokio::time::sleep(pause).await;
                    let _ = me.cast(SessionMsg::Report(Report::RetryDue { token }));
                });
                self.work = Some(Work::Pause { _task });
            }
            Effect::RunTool { query, turn, call } => {
                let id = call.id.clone();
                let task = self.run_tool(me, query, turn, call);
                self.tools.insert(id, task);
            }
            Effect::AbortTools => self.tools.clear(),
            Effect::StartChild { query, start } => {
                // Turns are limited by the profile: a child's do not count for its parent
                // (docs/protocol.md, "Tools and sub-agents").
                let profiles = self.services.router.profiles.now();
                let own = match &start.profile {
                    Some(name) => profiles.get(name).policy.limits,
                    None => Limits::turns(self.profile.policy.limits.max_turns),
                };
                let limits = Limits {
                    max_turns: own.max_turns,
                    max_tokens: start.max_tokens.into_iter().chain(own.max_tokens).min(),
                    max_cost: start.max_cost.into_iter().chain(own.max_cost).min(),
                };
                self.sync_pause(query, &start);
                let session = self.child(query, &start.child, Some(&start));
                let child = start.child.clone();
                let before = self.children.remove(&child);
                let (by, reporter) = (self.session.payer(), me.clone());
                let report = child_ended(me.clone(), query);
                let run = async move {
                    if let Some(before) = before {
                        before.stop().await;
                    }
                    let progressed = |progress| {
                        let report = Report::ChildProgressed { query, progress };
                        let _ = reporter.cast(SessionMsg::Report(report));
                    };
                    let (scope, by) = (&start.scope, by);
                    session.run(scope, limits, by, progressed, report).await;
                };
                let run = self.trace_of(query, None).sub_agent(run);
                self.follow_child(child, Task::spawn(run));
            }
            Effect::SyncChildPause { query, start } => self.sync_pause(query, &start),
            Effect::CancelChild { query, child } => {
                let session = self.child(query, &child, None);
                let report = child_ended(me.clone(), query);
                self.pauses.remove(&child);
                let before = self.children.remove(&child);
                let task = Task::spawn(async move {
                    // Otherwise the start could reach the child after the cancellation.
                    if let Some(before) = before {
                        before.stop().await;
                    }
                    session.end(report).await;
                });
                self.follow_child(child, task);
            }
        }
    }

    /// Pauses or resumes a child as this session is. An earlier, unfinished attempt is stopped first.
    fn sync_pause(&mut self, query: QueryId, start: &ChildStart) {
        let session = self.child(query, &start.child, Some(start));
        let command = match self.session.is_paused() {
            true => Command::Pause,
            false => Command::Resume,
        };
        let before = self.pauses.remove(&start.child);
        let task = Task::spawn(async move {
            if let Some(before) = before {
                before.stop().await;
            }
            session.sync_pause(command).await;
        });
        self.pauses.insert(start.child.clone(), task);
    }

    fn follow_child(&mut self, child: SessionName, task: Task) {
        self.children.retain(|_, task| !task.is_over());
        self.children.insert(child, task);
    }

    /// Without `start`, the child can be cancelled only.
    fn child(
        &self,
        query: QueryId,
        name: &SessionName,
        start: Option<&ChildStart>,
    ) -> ChildSession {
        let above = self.opening.parent.as_ref();
        let depth = above.map_or(0, |parent| parent.depth);
        let parent = Parent {
            session: self.key.name.clone(),
            query,
            depth: depth + 1,
            tools: start.and_then(|start| start.tools.clone()),
        };
        let key = self.key.with_name(name.clone());
        // A cancelled child may have to wait for a child of its own.
        let deepest = self.profile.policy.delegation.max_depth;
        let patience = CHILD_DEADLINE.saturating_mul(deepest.saturating_sub(depth).max(1));
        let profile = start.and_then(|start| start.profile.as_ref());
        let profile = profile.unwrap_or(&self.opening.profile).clone();
        self.services.router.child(key, profile, parent, patience)
    }

    fn run_tool(
        &mut self,
        me: &ActorRef<SessionMsg>,
        query: QueryId,
        turn: Turn,
        call: Arc<ToolCall>,
    ) -> Task {
        let (me, session) = (me.clone(), self.key.clone());
        let tool_span = self.trace_of(query, None).tool(turn, &call);
        let span = tool_span.0.clone();
        let (tools, deadline) = (Arc::clone(&self.profile.tools), self.services.tool_deadline);
        let progress = self.progress_of(query, &call);
        let run = async move {
            let cancelled = CancellationToken::new();
            // Notifies the tool, even when this task is dropped.
            let _cancel = cancelled.clone().drop_guard();
            let context = ToolContext {
                cancelled,
                progress,
                ..ToolContext::for_call(call.id.clone(), session, query)
            };
            let result = called(&tools, &call, context, deadline).await;
            tool_span.end(&result);
            let (status, output) = match result {
                Ok(output) => (ToolStatus::Ok, output),
                Err(fault) => (ToolStatus::Failed, fault.detail.into()),
            };
            #[cfg(feature = "otel")]
            crate::actor::trace::of_tool(&tracing::Span::current(), &call, &output.text);
            let result = ToolResult {
                data: output.data.filter(is_small),
                images: output.images,
                ..ToolResult::new(call.id.clone(), status, output.text)
            };
            let _ = me.cast(SessionMsg::Report(Report::ToolEnded {
                query,
                turn,
                result,
            }));
        };
        Task::spawn(run.instrument(span))
    }

    /// Shows the steps of a call to those who follow the session.
    fn progress_of(&self, query: QueryId, call: &ToolCall) -> CallProgress {
        let (bus, session) = (self.services.router.bus.clone(), self.key.clone());
        let (id, name) = (call.id.clone(), call.name.clone());
        CallProgress::new(move |step| {
            if bus.has_subscribers(&session) {
                let progressed = CallProgressed {
                    session: session.clone(),
                    query,
                    call: id.clone(),
                    name: name.clone(),
                    step,
                };
                bus.show(&session, Notice::Call(Arc::new(progressed)));
            }
        })
    }
}

fn child_ended(me: ActorRef<SessionMsg>, query: QueryId) -> impl FnOnce(ChildEnd) {
    move |end| {
        let _ = me.cast(SessionMsg::Report(Report::ChildEnded { query, end }));
    }
}

#[cfg(feature = "mcp")]
impl crate::actor::Oracle {
    /// Calls a tool, with arguments in JSON, outside of any session. A call that is dropped is
    /// cancelled. The detail of a fault is for the caller.
    #[doc(hidden)]
    pub async fn call_tool(
        &self,
        tools: &Registry,
        tenant: &crate::model::TenantId,
        (name, arguments): (&str, String),
    ) -> Result<ToolOutput, Fault> {
        let cancelled = CancellationToken::new();
        let _cancel = cancelled.clone().drop_guard();
        let call = ToolCall {
            id: crate::model::CallId::new("mcp"),
            name: name.to_owned(),
            arguments,
        };
        let session = crate::model::SessionKey {
            tenant: tenant.clone(),
            name: SessionName::from_uuid(uuid::Uuid::now_v7()),
        };
        let context = ToolContext {
            cancelled,
            ..ToolContext::for_call(call.id.clone(), session, QueryId::default())
        };
        let mut output = called(tools, &call, context, self.services.tool_deadline).await?;
        output.data = output.data.filter(is_small);
        Ok(output)
    }
}

/// Returns the tool's output, or a fault whose detail is for the model.
async fn called(
    tools: &Registry,
    call: &ToolCall,
    context: ToolContext,
    deadline: Duration,
) -> Result<ToolOutput, Fault> {
    let name = &call.name;
    let (Some(tool), Ok(arguments)) = (tools.get(name), call.parsed()) else {
        let words = format!("The tool {name} is currently unavailable.");
        return Err(Fault::permanent(FaultCode::ToolUnavailable, words));
    };
    let deadline = tool.deadline().unwrap_or(deadline);
    // The call runs in its own task from its creation on, so that a panic affects the tool alone.
    let tool = Arc::clone(tool);
    let work = async move { tool.call(arguments, context).await };
    let work = Task::spawn(work.in_current_span());
    let (code, words) = match tokio::time::timeout(deadline, work.join()).await {
        Ok(Ok(Ok(output))) => return Ok(output),
        Ok(Ok(Err(ToolError::ForModel(words)))) => (FaultCode::ToolError, words),
        Ok(Ok(Err(ToolError::Internal(fault)))) => {
            tracing::warn!(tool = %name, code = %fault.code, detail = %fault.detail, "tool failed with an internal error");
            let code = fault.code;
            let words = format!("The tool {name} is broken ({code}). Continue without it.");
            (code, words)
        }
        Ok(Err(panic)) => {
            tracing::error!(tool = %name, %panic, "tool panicked");
            let words = format!("The tool {name} is broken. Continue without it.");
            (FaultCode::ToolPanicked, words)
        }
        Err(_) => {
            let words = format!(
                "The tool {name} did not answer within {deadline:?} and was stopped. Ask for less, \
                 or continue without it."
            );
            (FaultCode::ToolTimeout, words)
        }
    };
    Err(Fault::permanent(code, words))
}

fn is_small(data: &Value) -> bool {
    serde_json::to_vec(data).is_ok_and(|json| json.len() <= MAX_DATA)
}
