//! The objects of OpenAI's chat interface, as this server writes them.

use serde::Serialize;
use utoipa::ToSchema;

use crate::{
    actor::Answer,
    model::{Outcome, SessionKey, Usage},
};

/// What answers: the same for all that one version of the program says.
const FINGERPRINT: &str = concat!("oracle-", env!("CARGO_PKG_VERSION"));

/// What all pieces of one answer share.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, ToSchema)]
pub(super) struct Head {
    /// The answer's own id.
    pub id: String,
    /// In seconds since 1970.
    pub created: u64,
    /// The model that was asked for.
    pub model: String,
    /// The program.
    system_fingerprint: &'static str,
}

impl Head {
    /// For a new answer.
    pub(super) fn new(id: uuid::Uuid, model: String) -> Self {
        let created = id.get_timestamp().map_or(0, |time| time.to_unix().0);
        Self {
            id: format!("chatcmpl-{}", id.simple()),
            created,
            model,
            system_fingerprint: FINGERPRINT,
        }
    }

    /// A piece of a stream.
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

/// An answer in one piece.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = ChatCompletion)]
pub(super) struct Completion {
    #[serde(flatten)]
    pub head: Head,
    /// `chat.completion`
    pub object: &'static str,
    /// One.
    pub choices: [Choice; 1],
    /// What it took, over all its turns.
    pub usage: TokenUsage,
    /// What only Oracle knows of it.
    pub oracle: Told,
}

/// See [`Completion`].
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = ChatChoice)]
pub(super) struct Choice {
    /// 0
    index: u32,
    /// The answer.
    message: Message,
    /// Not known.
    #[schema(value_type = Option<Object>)]
    logprobs: Option<()>,
    /// Why it ends here.
    finish_reason: FinishReason,
}

/// See [`Choice`].
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = ChatAnswer)]
struct Message {
    /// `assistant`
    role: &'static str,
    /// The answer.
    content: String,
    /// Never there.
    #[schema(value_type = Option<String>)]
    refusal: Option<()>,
    /// Always empty.
    #[schema(value_type = Vec<Object>)]
    annotations: [(); 0],
}

impl Choice {
    pub(super) fn new(content: String, finish_reason: FinishReason) -> Self {
        let message = Message {
            role: "assistant",
            content,
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

/// A piece of a stream.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = ChatCompletionChunk)]
pub(super) struct Chunk<'a> {
    #[serde(flatten)]
    #[schema(value_type = Head)]
    head: &'a Head,
    /// `chat.completion.chunk`
    object: &'static str,
    /// One; none in the last piece where that is to say what was used.
    choices: Vec<ChunkChoice>,
    /// In the last piece, and null in the others, where it was asked for.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<TokenUsage>)]
    pub usage: Option<Option<TokenUsage>>,
    /// What only Oracle knows, where the answer ends.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub oracle: Option<Told>,
}

/// See [`Chunk`].
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = ChatChunkChoice)]
pub(super) struct ChunkChoice {
    /// 0
    index: u32,
    /// What is new.
    delta: Delta,
    /// Not known.
    #[schema(value_type = Option<Object>)]
    logprobs: Option<()>,
    /// Why the answer ends, where it does.
    finish_reason: Option<FinishReason>,
}

impl ChunkChoice {
    /// Something new, or the end.
    pub(super) const fn new(delta: Delta, finish_reason: Option<FinishReason>) -> Self {
        Self {
            index: 0,
            delta,
            logprobs: None,
            finish_reason,
        }
    }
}

/// What is new in a piece of a stream.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, ToSchema)]
#[schema(as = ChatDelta)]
pub(super) struct Delta {
    /// `assistant`, in the first piece.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub role: Option<&'static str>,
    /// More of the answer.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub content: Option<String>,
    /// What goes on meanwhile, where that was asked for.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reasoning_content: Option<String>,
}

/// Why an answer ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, ToSchema)]
#[schema(as = ChatFinishReason)]
#[serde(rename_all = "snake_case")]
pub(super) enum FinishReason {
    /// It is said.
    Stop,
    /// A limit, a loop or an operator ended it.
    Length,
}

impl FinishReason {
    /// How a query ended; none where there is no answer.
    pub(super) const fn of(outcome: &Outcome) -> Option<Self> {
        match outcome {
            Outcome::Answered
            | Outcome::Partial { .. }
            | Outcome::Stuck { .. }
            | Outcome::Escalated { .. } => Some(Self::Stop),
            Outcome::Forced { .. } => Some(Self::Length),
            Outcome::Cancelled | Outcome::Failed { .. } => None,
        }
    }
}

/// Tokens.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, ToSchema)]
#[schema(as = ChatUsage)]
pub(super) struct TokenUsage {
    /// Sent to models, in all turns.
    prompt_tokens: u64,
    /// Received from them.
    completion_tokens: u64,
    /// Both.
    total_tokens: u64,
    /// Of those sent.
    prompt_tokens_details: PromptTokens,
}

/// See [`TokenUsage`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, ToSchema)]
#[schema(as = ChatPromptTokens)]
struct PromptTokens {
    /// Those that a provider had in its cache.
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

/// What only Oracle knows of an answer. Clients of OpenAI's interface ignore it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, ToSchema)]
#[schema(as = ChatTold)]
pub(super) struct Told {
    /// The session that holds it; a short-lived one is gone by now.
    pub session: String,
    /// The query in it.
    pub query: u32,
    /// How it ended, such as `answered` or `partial`.
    pub outcome: &'static str,
    /// Why, where there is a why.
    pub reason: Option<String>,
    /// Turns that it took.
    pub turns: u32,
}

impl Told {
    /// Of an answer.
    pub(super) fn of(session: &SessionKey, answer: &Answer) -> Self {
        Self {
            session: session.name.to_string(),
            query: answer.query.0,
            outcome: answer.outcome.name(),
            reason: answer.outcome.reason().map(str::to_owned),
            turns: answer.turns,
        }
    }
}

/// The list of models.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = ModelList)]
pub(super) struct Models {
    /// `list`
    pub object: &'static str,
    /// All of them.
    pub data: Vec<Model>,
}

/// A model: a profile of this server's.
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
    /// What it is for, where that is configured.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
}
