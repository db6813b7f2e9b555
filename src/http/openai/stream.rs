//! What both of OpenAI's formats share of a response: how it is streamed, and the details that the
//! formats lack.
//!
//! The connection pulls the stream: an event is built when its reader has taken the previous one, so
//! a slow reader costs the memory of one turn's text. Records missed meanwhile are read from the
//! journal; the record of a reply has the text of missed frames.

use std::{collections::VecDeque, ops::ControlFlow};

use axum::response::sse::Event;
use futures_util::{Stream, stream};
use serde::Serialize;
use utoipa::ToSchema;

use super::answering::{Begun, End};
use crate::{
    actor::Progress,
    http::Problem,
    model::{
        Record, SessionKey, Turn,
        record::{AgentFact, ApprovalFact, Fact, LlmFact, ToolFact, TurnFact},
    },
};

/// Writes a response as events.
pub(super) trait Writer: Sized {
    /// The events that are not sent yet.
    fn ready(&mut self) -> &mut VecDeque<Event>;

    fn progress(&mut self, progress: &Progress) -> Result<(), Problem>;

    fn end(&mut self, end: &End) -> Result<(), Problem>;

    /// Ends the stream without an answer.
    fn fail(&mut self, problem: &Problem);

    /// Follows the query while the stream is read.
    fn events(self, begun: Begun) -> impl Stream<Item = Event> {
        stream::unfold((self, Some(begun)), |(mut writer, mut following)| async {
            loop {
                if let Some(event) = writer.ready().pop_front() {
                    return Some((event, (writer, following)));
                }
                let written = match following.take()?.next().await {
                    Ok(ControlFlow::Continue((begun, progress))) => {
                        let written = writer.progress(&progress);
                        following = written.is_ok().then_some(begun);
                        written
                    }
                    Ok(ControlFlow::Break(end)) => writer.end(&end),
                    Err(problem) => Err(problem),
                };
                if let Err(problem) = written {
                    writer.fail(&problem);
                }
            }
        })
    }
}

/// Details of an answer that OpenAI's format lacks; its clients ignore them.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, ToSchema)]
#[schema(as = ChatAnswerDetails)]
pub(super) struct AnswerDetails {
    /// The session that answered; one in memory no longer exists.
    pub session: String,
    /// The query.
    pub query: u32,
    /// The outcome, such as `answered` or `partial`; `tool_calls` while the query waits.
    pub outcome: &'static str,
    /// The reason for the outcome, if there is one.
    pub reason: Option<String>,
    /// Number of turns.
    pub turns: u32,
    /// In a stream, the turn from which the text is the answer.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub answer_from: Option<Turn>,
}

impl AnswerDetails {
    pub(super) fn of(session: &SessionKey, end: &End) -> Self {
        let (outcome, reason, turns) = match &end.answer {
            Some(answer) => {
                let outcome = &answer.outcome;
                (outcome.name(), outcome.reason(), answer.turns)
            }
            None => ("tool_calls", None, end.turn.0 + 1),
        };
        Self {
            session: session.name.to_string(),
            query: end.query.0,
            outcome,
            reason: reason.map(str::to_owned),
            turns,
            answer_from: None,
        }
    }
}

/// The turn of a chunk's text, or an event.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, ToSchema)]
#[schema(as = ChatTurnDetails)]
pub(super) struct TurnDetails {
    /// The turn, as in the session's events.
    turn: Turn,
    /// The type of an event that happened in it, such as `tool.started`.
    #[serde(skip_serializing_if = "Option::is_none")]
    event: Option<&'static str>,
    /// The tool that the event concerns.
    #[serde(skip_serializing_if = "Option::is_none")]
    tool: Option<String>,
    /// The reason of a wait or of another attempt.
    #[serde(skip_serializing_if = "Option::is_none")]
    reason: Option<String>,
}

impl TurnDetails {
    pub(super) const fn text(turn: Turn) -> Self {
        Self {
            turn,
            event: None,
            tool: None,
            reason: None,
        }
    }

    /// Describes a record, if it has a meaning for a reader.
    pub(super) fn of(record: &Record) -> Option<Self> {
        let (tool, reason) = match &record.fact {
            Fact::Turn(TurnFact::Started(_) | TurnFact::Restarted(_))
            | Fact::Llm(LlmFact::Admitted(_))
            | Fact::Agent(
                AgentFact::DelegationStarted(_)
                | AgentFact::DelegationProgressed(_)
                | AgentFact::DelegationFinished(_),
            ) => (None, None),
            Fact::Tool(ToolFact::Started(call)) => (Some(&call.name), None),
            Fact::Approval(ApprovalFact::Requested(call)) => (Some(&call.name), None),
            Fact::Tool(ToolFact::Finished(finished)) => (Some(&finished.name), None),
            Fact::Llm(LlmFact::Waiting(waiting)) => (None, Some(waiting.reason.to_string())),
            Fact::Llm(LlmFact::Retried(retried)) => (None, Some(retried.fault.code.to_string())),
            Fact::Llm(LlmFact::FailedOver(failed)) => (None, Some(failed.fault.code.to_string())),
            _ => return None,
        };
        Some(Self {
            turn: record.turn?,
            event: Some(record.fact.kind()),
            tool: tool.cloned(),
            reason,
        })
    }
}
