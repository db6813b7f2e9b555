//! What a caller asks of an answer, besides its budgets: tools of its own, a format, limits of the
//! text, parameters of the model, images.

use std::{collections::BTreeMap, sync::Arc};

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::{command::ImportedMessage, tool::ToolSpec};

words! {
    /// A parameter of the model, with the name and range that OpenAI gives it.
    #[derive(PartialOrd, Ord)]
    pub enum Parameter {
        /// A number from 0 to 2.
        Temperature = "temperature",
        /// A number from 0 to 1.
        TopP = "top_p",
        /// A number from -2 to 2.
        PresencePenalty = "presence_penalty",
        /// A number from -2 to 2.
        FrequencyPenalty = "frequency_penalty",
        /// An integer.
        Seed = "seed",
        /// Token ids with numbers from -100 to 100.
        LogitBias = "logit_bias",
        /// A word, such as `low`.
        ReasoningEffort = "reasoning_effort",
        /// `low`, `medium` or `high`.
        Verbosity = "verbosity",
    }
}

words! {
    /// Why the visible text of a reply ends early.
    pub enum Cut {
        /// A stop sequence.
        Stop = "stop",
        /// The caller's limit of tokens, applied by Oracle or by the provider.
        Length = "length",
    }
}

/// What a model takes besides text and tools.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Capabilities {
    /// The parameters.
    pub parameters: &'static [Parameter],
    /// The highest temperature.
    pub max_temperature: u8,
    /// Whether it takes images.
    pub images: bool,
    /// Whether its provider takes `response_format` and enforces it. Such a reply has no signal.
    pub schemas: bool,
    /// Whether it takes those of the parameters that control sampling.
    pub sampling: bool,
    /// Whether it takes a choice of tools that forces a call.
    pub forced_tools: bool,
    /// Whether its provider caches a conversation for each choice of tools apart.
    pub choice_is_cached: bool,
}

impl Capabilities {
    /// Text and tools alone.
    pub const NONE: Self = Self {
        parameters: &[],
        max_temperature: 2,
        images: false,
        schemas: false,
        sampling: true,
        forced_tools: true,
        choice_is_cached: false,
    };

    /// Whether the model takes this parameter with this value, which must be in OpenAI's range.
    pub fn takes(&self, parameter: Parameter, value: &Value) -> bool {
        use Parameter::{ReasoningEffort, Seed, Temperature, Verbosity};
        let samples = !matches!(parameter, Seed | ReasoningEffort | Verbosity);
        let is_too_high = |value: f64| value > f64::from(self.max_temperature);
        self.parameters.contains(&parameter)
            && (self.sampling || !samples)
            && (parameter != Temperature || !value.as_f64().is_some_and(is_too_high))
    }
}

/// Options of a question, besides its budgets.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct AnswerOptions {
    /// Tools that the caller runs itself. One that has the name of a tool of the session hides it.
    #[serde(skip_serializing_if = "<[ToolSpec]>::is_empty")]
    pub tools: Arc<[ToolSpec]>,
    /// The choice among the caller's tools.
    #[serde(skip_serializing_if = "super::is_default")]
    pub tool_choice: ClientToolChoice,
    /// Whether a reply may make at most one call of the caller's tools.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub single_call: bool,
    /// The format of the answer.
    #[serde(skip_serializing_if = "AnswerFormat::is_text")]
    pub format: AnswerFormat,
    /// Texts that end a reply and are not part of it.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub stop: Vec<String>,
    /// Limit on the visible text of a reply, in tokens of four characters.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_tokens: Option<u64>,
    /// Parameters of the model.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub parameters: BTreeMap<Parameter, Value>,
    /// Images that belong to the question.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub images: Vec<Image>,
    /// Calls of the caller's tools, and their results, that follow the question.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub exchanged: Vec<ImportedMessage>,
    /// Whether this is a chat UI's own request, such as for a title: one model call, without the
    /// prompt, tools and signals.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub is_task: bool,
    /// Whether a summary replaces the earlier messages before the first turn, if that shortens them
    /// noticeably, even if they fit the context window.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub compact: bool,
}

impl AnswerOptions {
    /// About how many bytes they take.
    #[doc(hidden)]
    pub fn bytes(&self) -> usize {
        serde_json::to_vec(self).map_or(0, |json| json.len())
    }

    /// The caller's tool of this name.
    pub fn tool(&self, name: &str) -> Option<&ToolSpec> {
        self.tools.iter().find(|tool| tool.name == name)
    }
}

/// The choice among the caller's own tools.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ClientToolChoice {
    /// The model decides.
    #[default]
    Auto,
    /// The model must call one of the caller's tools.
    Required,
    /// The model must call this tool.
    Named(String),
}

/// The format of an answer.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum AnswerFormat {
    /// Text.
    #[default]
    Text,
    /// A JSON object.
    Json,
    /// JSON that a schema describes.
    Schema {
        /// The schema's name.
        name: String,
        /// Its purpose, for the model.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        description: Option<String>,
        /// The schema.
        schema: Value,
        /// OpenAI's `strict`, passed on to the provider. The answer is checked in any case.
        #[serde(default)]
        strict: bool,
    },
}

impl AnswerFormat {
    /// Whether the answer is plain text.
    pub const fn is_text(&self) -> bool {
        matches!(self, Self::Text)
    }
}

/// An image.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Image {
    /// Its address, or the image itself as a `data:` URL.
    pub url: String,
    /// The resolution in which the model sees it: `low`, `high` or `auto`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub detail: Option<String>,
}

impl Image {
    /// The media type and the base64 text of a `data:` URL.
    pub fn data(&self) -> Option<(&str, &str)> {
        self.url.strip_prefix("data:")?.split_once(";base64,")
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn capabilities_bound_the_temperature() {
        let takes = Capabilities {
            parameters: &[Parameter::Temperature],
            max_temperature: 1,
            ..Capabilities::NONE
        };
        for (parameter, value, expected) in [
            (Parameter::Temperature, json!(0), true),
            (Parameter::Temperature, json!(1.0), true),
            (Parameter::Temperature, json!(1.1), false),
            (Parameter::Temperature, json!(2), false),
            (Parameter::Seed, json!(0), false),
        ] {
            assert_eq!(
                takes.takes(parameter, &value),
                expected,
                "{parameter} {value}"
            );
        }
    }
}
