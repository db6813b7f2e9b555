//! Tool calls as tasks: with a deadline, and with words for the model whatever happens.

use std::{sync::Arc, time::Duration};

use ractor::ActorRef;
use serde_json::Value;
use tokio_util::sync::CancellationToken;

use super::{SessionMsg, state::SessionState};
use crate::{
    actor::task::Task,
    kernel::Report,
    model::{QueryId, SessionKey, ToolCall, ToolResult, ToolStatus, Turn},
    tool::{MAX_DATA, Registry, ToolContext, ToolError, ToolOutput},
};

/// One call and where it belongs.
pub(super) struct ToolRun {
    session: SessionKey,
    query: QueryId,
    turn: Turn,
    call: Arc<ToolCall>,
    tools: Arc<Registry>,
    deadline: Duration,
}

impl SessionState {
    pub(super) fn tool_run(&self, query: QueryId, turn: Turn, call: Arc<ToolCall>) -> ToolRun {
        let tools = Arc::clone(&self.profile.tools);
        let deadline = self.services.timeouts.tool;
        ToolRun {
            session: self.key.clone(),
            query,
            turn,
            call,
            tools,
            deadline,
        }
    }
}

/// Runs the call and reports its result, whatever it is.
pub(super) fn run(me: ActorRef<SessionMsg>, run: ToolRun) -> Task {
    Task::spawn(async move {
        let (query, turn) = (run.query, run.turn);
        let (status, output) = result(&run).await;
        let result = ToolResult {
            call: run.call.id.clone(),
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

async fn result(run: &ToolRun) -> (ToolStatus, ToolOutput) {
    let ToolRun {
        session,
        query,
        turn: _,
        call,
        tools,
        deadline,
    } = run;
    let name = &call.name;
    let (Some(tool), Ok(arguments)) = (tools.get(name), call.parsed()) else {
        return (
            ToolStatus::Failed,
            format!("The tool {name} is not available at the moment.").into(),
        );
    };
    let cancelled = CancellationToken::new();
    // Tells the tool, also when this task is dropped.
    let _cancel = cancelled.clone().drop_guard();
    let context = ToolContext {
        call: call.id.clone(),
        session: session.clone(),
        query: *query,
        cancelled,
    };
    // A task of its own, for the making of the call too: a tool that panics takes nobody with it.
    let tool = Arc::clone(tool);
    let work = Task::spawn(async move { tool.call(arguments, context).await });
    match tokio::time::timeout(*deadline, work.join()).await {
        Ok(Ok(Ok(output))) => (ToolStatus::Ok, output),
        Ok(Ok(Err(ToolError::Tell(words)))) => (ToolStatus::Failed, words.into()),
        Ok(Ok(Err(ToolError::Broken(fault)))) => {
            tracing::warn!(tool = %name, code = %fault.code, detail = %fault.detail, "tool is broken");
            (
                ToolStatus::Failed,
                format!(
                    "The tool {name} is broken ({}). Go on without it.",
                    fault.code
                )
                .into(),
            )
        }
        Ok(Err(panic)) => {
            tracing::error!(tool = %name, %panic, "tool panicked");
            (
                ToolStatus::Failed,
                format!("The tool {name} is broken. Go on without it.").into(),
            )
        }
        Err(_) => {
            let words = format!(
                "The tool {name} did not answer within {deadline:?} and was stopped. Ask for less, or go on without it."
            );
            (ToolStatus::Failed, words.into())
        }
    }
}

/// Whether data is small enough to be kept beside the text.
fn is_small(data: &Value) -> bool {
    serde_json::to_vec(data).is_ok_and(|json| json.len() <= MAX_DATA)
}
