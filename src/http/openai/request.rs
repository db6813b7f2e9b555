//! The body of `POST /v1/chat/completions`: validation and interpretation.
//!
//! Nothing is ignored in silence: a field that is unknown or not supported is refused by name.

use std::collections::BTreeMap;

use serde::{Deserialize, de::IgnoredAny};
use serde_json::{Map, Value};
use utoipa::ToSchema;

use super::{
    asked::{Asked, Conversation},
    fields::{self, TextOr, ToolChoice, Verbosity},
};
use crate::http::{Problem, StreamText, extract};

mod messages;
mod options;

use messages::ChatMessage;
use options::{NamedTool, ResponseFormat, Tool};

/// A chat request in OpenAI's format.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[expect(dead_code, reason = "some fields have no effect")]
pub(super) struct ChatRequest {
    /// The model: a name from `/v1/models`.
    #[schema(example = "oracle")]
    model: String,
    /// The conversation so far, ending with the question or with results of tools.
    #[schema(min_items = 1)]
    messages: Vec<ChatMessage>,
    /// Whether the answer is streamed in chunks.
    stream: Option<bool>,
    /// Options of a stream.
    stream_options: Option<StreamOptions>,
    /// Whether the session is kept.
    store: Option<bool>,
    /// Tools that the client runs itself.
    #[schema(max_items = 128)]
    tools: Option<Vec<Tool>>,
    /// The choice among the tools.
    tool_choice: Option<ToolChoice<NamedTool>>,
    /// Whether a reply may call several of the tools.
    parallel_tool_calls: Option<bool>,
    /// The format of the answer.
    response_format: Option<ResponseFormat>,
    /// Texts that end the answer, up to four, none of them empty.
    stop: Option<TextOr<String>>,
    /// Limit of the answer's text, in tokens.
    #[schema(value_type = Option<u64>, minimum = 1)]
    max_tokens: Option<f64>,
    /// Limit of the answer's text, in tokens.
    #[schema(value_type = Option<u64>, minimum = 1)]
    max_completion_tokens: Option<f64>,
    /// Passed on to the model.
    #[schema(minimum = 0, maximum = 2)]
    temperature: Option<f64>,
    /// Passed on to the model.
    #[schema(minimum = 0, maximum = 1)]
    top_p: Option<f64>,
    /// Passed on to the model.
    #[schema(minimum = -2, maximum = 2)]
    presence_penalty: Option<f64>,
    /// Passed on to the model.
    #[schema(minimum = -2, maximum = 2)]
    frequency_penalty: Option<f64>,
    /// Passed on to the model.
    seed: Option<i64>,
    /// Token ids with numbers from -100 to 100, passed on to the model.
    logit_bias: Option<BTreeMap<String, f64>>,
    /// Passed on to the model.
    #[schema(pattern = "^[a-z]+$", example = "low")]
    reasoning_effort: Option<String>,
    /// Passed on to the model.
    verbosity: Option<Verbosity>,
    /// Number of answers; only 1.
    #[schema(value_type = Option<u32>, minimum = 1, maximum = 1)]
    n: Option<f64>,
    /// Only `["text"]`.
    #[schema(value_type = Option<Vec<ChatModality>>)]
    modalities: Option<Vec<String>>,
    /// Only false.
    logprobs: Option<bool>,
    /// Without effect.
    user: Option<String>,
    /// Without effect.
    safety_identifier: Option<String>,
    /// Without effect.
    #[schema(value_type = Option<Object>)]
    metadata: Option<Map<String, Value>>,
    /// Without effect.
    prompt_cache_key: Option<String>,
    /// Without effect.
    prompt_cache_retention: Option<String>,
    /// Without effect.
    service_tier: Option<String>,
    #[schema(ignore)]
    functions: Option<IgnoredAny>,
    #[schema(ignore)]
    function_call: Option<IgnoredAny>,
    #[schema(ignore)]
    top_logprobs: Option<IgnoredAny>,
    #[schema(ignore)]
    audio: Option<IgnoredAny>,
    #[schema(ignore)]
    prediction: Option<IgnoredAny>,
    #[schema(ignore)]
    web_search_options: Option<IgnoredAny>,
}

/// The only supported modality.
#[derive(ToSchema)]
#[schema(rename_all = "snake_case")]
#[expect(dead_code, reason = "only described")]
enum ChatModality {
    Text,
}

/// Options of a stream.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields, expecting = "an object")]
struct StreamOptions {
    /// Whether a last chunk has the usage.
    include_usage: Option<bool>,
    /// Oracle's own: the text of all `turns` as the model writes it, or that of the `answer` at its
    /// end. The default is a setting of the server.
    oracle: Option<StreamText>,
}

impl Asked {
    /// Reads a chat request.
    pub(super) fn of_chat(body: &[u8]) -> Result<Self, Problem> {
        let mut request: ChatRequest = extract::read(body)?;
        request.check()?;
        let options = request.options()?;
        let stream = request.stream_options.as_ref();
        let include_usage = stream.is_some_and(|of| of.include_usage == Some(true));
        let stream_text = stream.and_then(|of| of.oracle);
        if request.messages.is_empty() {
            let what = "must be a list with at least one message";
            return Err(Problem::bad("messages", what));
        }
        let (instructions, said) = messages::read(request.messages)?;
        let conversation = Conversation::of(said)?;
        Ok(Self {
            model: request.model,
            store: request.store == Some(true),
            stream: request.stream == Some(true),
            stream_text,
            include_usage,
            ..Self::new(&instructions, conversation, options)
        })
    }
}

impl ChatRequest {
    fn check(&self) -> Result<(), Problem> {
        let is_text = |kinds: &Vec<String>| kinds.iter().all(|kind| kind == "text");
        fields::check_unsupported(&[
            ("functions", self.functions.is_some()),
            ("function_call", self.function_call.is_some()),
            ("n", self.n.is_some_and(|n| n != 1.0)),
            ("modalities", !self.modalities.as_ref().is_none_or(is_text)),
            ("audio", self.audio.is_some()),
            ("logprobs", self.logprobs == Some(true)),
            ("top_logprobs", self.top_logprobs.is_some()),
            ("prediction", self.prediction.is_some()),
            ("web_search_options", self.web_search_options.is_some()),
        ])
    }
}

#[cfg(test)]
mod tests;
