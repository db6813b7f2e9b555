//! The objects of OpenAI's chat interface, as this server writes them.

use serde::Serialize;
use utoipa::ToSchema;

use super::answering::End;
use crate::model::{
    CallId, Cut, Outcome, Record, SessionKey, ToolCall, Turn, Usage,
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

    pub(super) fn chunk(&self, choice: Option<ChunkChoice>) -> Chunk<'_> {
        Chunk {
            head: self,
            object: "chat.completion.chunk",
            choices: choice.into_iter().collect(),
            usage: None,
            oracle: None,
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
    /// The only choice.
    pub choices: [Choice; 1],
    /// The usage, over all turns since the request.
    pub usage: TokenUsage,
    /// Details that OpenAI's format lacks.
    pub oracle: AnswerDetails,
}

/// The choice of an answer.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = ChatChoice)]
pub(super) struct Choice {
    /// 0
    index: u32,
    /// The answer.
    message: Message,
    /// Always null.
    #[schema(value_type = Option<Object>)]
    logprobs: Option<()>,
    /// Why the answer ends.
    finish_reason: FinishReason,
}

/// The message of an answer.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = ChatAnswer)]
struct Message {
    /// `assistant`
    role: &'static str,
    /// The answer; null if the reply only calls tools.
    content: Option<String>,
    /// The calls of the request's tools.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    tool_calls: Vec<ChatMessageCall>,
    /// Always null.
    #[schema(value_type = Option<String>)]
    refusal: Option<()>,
    /// Always empty.
    #[schema(value_type = Vec<Object>)]
    annotations: [(); 0],
}

impl Choice {
    pub(super) fn new(
        content: Option<String>,
        tool_calls: Vec<ChatMessageCall>,
        finish_reason: FinishReason,
    ) -> Self {
        let message = Message {
            role: "assistant",
            content,
            tool_calls,
            refusal: None,
            annotations: [],
        };
        Self {
            index: 0,
            message,
            logprobs: None,
            finish_reason,
        }
    }
}

/// A call of one of the request's tools.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, ToSchema)]
#[schema(as = ChatMessageCall)]
pub(super) struct ChatMessageCall {
    /// Its position, in a stream.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub index: Option<usize>,
    /// The id, which its result repeats.
    id: CallId,
    /// `function`
    #[serde(rename = "type")]
    kind: &'static str,
    /// The tool and the arguments.
    function: CalledFunction,
}

/// A tool and the arguments of its call.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, ToSchema)]
#[schema(as = ChatMessageFunction)]
struct CalledFunction {
    /// The tool.
    name: String,
    /// The arguments, a JSON object as text.
    arguments: String,
}

impl From<ToolCall> for ChatMessageCall {
    fn from(call: ToolCall) -> Self {
        let ToolCall {
            id,
            name,
            arguments,
        } = call;
        Self {
            index: None,
            id,
            kind: "function",
            function: CalledFunction { name, arguments },
        }
    }
}

/// A chunk of a stream.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = ChatCompletionChunk)]
pub(super) struct Chunk<'a> {
    #[serde(flatten)]
    #[schema(value_type = Head)]
    head: &'a Head,
    /// `chat.completion.chunk`
    object: &'static str,
    /// One choice; none in the last chunk if that has the usage.
    choices: Vec<ChunkChoice>,
    /// The usage in the last chunk and null in the others, if requested.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<TokenUsage>)]
    pub usage: Option<Option<TokenUsage>>,
    /// Details that OpenAI's format lacks.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub oracle: Option<ChunkDetails>,
}

/// The choice of a chunk.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = ChatChunkChoice)]
pub(super) struct ChunkChoice {
    /// 0
    index: u32,
    /// The new part.
    delta: Delta,
    /// Always null.
    #[schema(value_type = Option<Object>)]
    logprobs: Option<()>,
    /// Why the answer ends, at its end.
    finish_reason: Option<FinishReason>,
}

impl ChunkChoice {
    pub(super) const fn new(delta: Delta, finish_reason: Option<FinishReason>) -> Self {
        Self {
            index: 0,
            delta,
            logprobs: None,
            finish_reason,
        }
    }
}

/// The new part of a chunk.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, ToSchema)]
#[schema(as = ChatDelta)]
pub(super) struct Delta {
    /// `assistant`, in the first chunk.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub role: Option<&'static str>,
    /// Further text of the answer.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub content: Option<String>,
    /// Progress, if requested.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reasoning_content: Option<String>,
    /// The calls of the request's tools, at the end.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub tool_calls: Vec<ChatMessageCall>,
}

/// Why an answer ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, ToSchema)]
#[schema(as = ChatFinishReason)]
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
        match end {
            End::Calls(_) => Self::ToolCalls,
            End::Answer(answer) => match answer.outcome {
                Outcome::Answered if answer.cut == Some(Cut::Length) => Self::Length,
                Outcome::Forced { .. } => Self::Length,
                _ => Self::Stop,
            },
        }
    }
}

/// Tokens used.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, ToSchema)]
#[schema(as = ChatUsage)]
pub(super) struct TokenUsage {
    /// Tokens sent to models, in all turns.
    prompt_tokens: u64,
    /// Tokens received from models.
    completion_tokens: u64,
    /// The sum of both.
    total_tokens: u64,
    /// Details of the tokens sent.
    prompt_tokens_details: PromptTokens,
}

/// Details of the tokens sent.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, ToSchema)]
#[schema(as = ChatPromptTokens)]
struct PromptTokens {
    /// Tokens that a provider had in its cache.
    cached_tokens: u64,
}

impl From<Usage> for TokenUsage {
    fn from(usage: Usage) -> Self {
        Self {
            prompt_tokens: usage.input_tokens,
            completion_tokens: usage.output_tokens,
            total_tokens: usage.total_tokens(),
            prompt_tokens_details: PromptTokens {
                cached_tokens: usage.cached_tokens,
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
        let (query, outcome, reason, turns) = match end {
            End::Answer(answer) => {
                let (name, reason) = (answer.outcome.name(), answer.outcome.reason());
                (answer.query, name, reason, answer.turns)
            }
            End::Calls(handover) => (handover.query, "tool_calls", None, handover.turn.0 + 1),
        };
        Self {
            session: session.name.to_string(),
            query: query.0,
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
            | Fact::Agent(AgentFact::DelegationStarted(_) | AgentFact::DelegationFinished(_)) => {
                (None, None)
            }
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

/// The list of models.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = ModelList)]
pub(super) struct Models {
    /// `list`
    pub object: &'static str,
    /// The models.
    pub data: Vec<Model>,
}

/// A model, which is a profile of this server.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = Model)]
pub(super) struct Model {
    /// Its name.
    pub id: String,
    /// `model`
    pub object: &'static str,
    /// Always 0: profiles have no date.
    pub created: u64,
    /// `oracle`
    pub owned_by: &'static str,
    /// Its purpose, if configured.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
}
