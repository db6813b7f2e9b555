//! The objects of OpenAI's chat interface, as this server writes them.

use serde::Serialize;
use serde_json::{Value, json};
use utoipa::ToSchema;

use super::answering::End;
use crate::model::{
    Cut, Outcome, Record, SessionKey, ToolCall, Turn, Usage,
    record::{AgentFact, ApprovalFact, Fact, LlmFact, ToolFact, TurnFact},
};

/// The version of the program that answers.
const FINGERPRINT: &str = concat!("oracle-", env!("CARGO_PKG_VERSION"));

/// Fields that all chunks of an answer share.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, ToSchema)]
pub(super) struct Head {
    /// The answer's id.
    pub id: String,
    /// Creation time, in seconds since 1970.
    pub created: u64,
    /// The requested model.
    pub model: String,
    /// The program's version.
    system_fingerprint: &'static str,
}

impl Head {
    pub(super) fn new(id: uuid::Uuid, model: String) -> Self {
        let created = id.get_timestamp().map_or(0, |time| time.to_unix().0);
        Self {
            id: format!("chatcmpl-{}", id.simple()),
            created,
            model,
            system_fingerprint: FINGERPRINT,
        }
    }
}

/// A complete answer.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = ChatCompletion)]
pub(super) struct Completion {
    #[serde(flatten)]
    pub head: Head,
    /// `chat.completion`
    pub object: &'static str,
    /// The only choice: its `message` has the `content`, which is null if the reply only calls tools,
    /// and the `tool_calls`. The `finish_reason` is `stop`, `length` or `tool_calls`.
    #[schema(value_type = Vec<Object>)]
    pub choices: [Value; 1],
    /// The `prompt_tokens`, `completion_tokens` and `total_tokens` of all turns since the request.
    #[schema(value_type = Object)]
    pub usage: Value,
    /// Details that OpenAI's format lacks.
    pub oracle: AnswerDetails,
}

/// A choice, whose `part` is the `message` of an answer or the `delta` of a chunk.
pub(super) fn choice(part: &str, value: Value, finish_reason: Option<FinishReason>) -> Value {
    json!({ "index": 0, part: value, "logprobs": null, "finish_reason": finish_reason })
}

/// A call of one of the request's tools.
pub(super) fn tool_call(call: &ToolCall) -> Value {
    let function = json!({ "name": call.name, "arguments": call.json() });
    json!({ "id": call.id, "type": "function", "function": function })
}

pub(super) fn usage(usage: Usage) -> Value {
    json!({
        "prompt_tokens": usage.input_tokens,
        "completion_tokens": usage.output_tokens,
        "total_tokens": usage.total_tokens(),
        "prompt_tokens_details": { "cached_tokens": usage.cached_tokens },
    })
}

/// A chunk of a stream.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = ChatCompletionChunk)]
pub(super) struct Chunk<'a> {
    #[serde(flatten)]
    #[schema(value_type = Head)]
    pub head: &'a Head,
    /// `chat.completion.chunk`
    pub object: &'static str,
    /// One choice, whose `delta` has further `content` or `tool_calls`; none in
    /// the last chunk if that has the usage.
    #[schema(value_type = Vec<Object>)]
    pub choices: Vec<Value>,
    /// The usage in the last chunk and null in the others, if requested.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<Object>)]
    pub usage: Option<Option<Value>>,
    /// Details that OpenAI's format lacks.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub oracle: Option<ChunkDetails>,
}

/// Why an answer ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum FinishReason {
    /// The answer is complete, or ends at a stop sequence.
    Stop,
    /// A limit, a loop or an operator ended it.
    Length,
    /// The query waits for the results of the client's tools.
    ToolCalls,
}

impl FinishReason {
    pub(super) fn of(end: &End) -> Self {
        match &end.answer {
            None => Self::ToolCalls,
            Some(answer) => match answer.outcome {
                Outcome::Answered if answer.cut == Some(Cut::Length) => Self::Length,
                Outcome::Forced { .. } => Self::Length,
                _ => Self::Stop,
            },
        }
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

/// Details of a chunk that OpenAI's format lacks; its clients ignore them.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, ToSchema)]
#[schema(as = ChatChunkDetails)]
#[serde(untagged)]
pub(super) enum ChunkDetails {
    /// At the end of the answer.
    End(AnswerDetails),
    /// Before it.
    Turn(TurnDetails),
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
