//! `[[providers]]`: servers of models besides the built-in presets, or in the place of one (spec 12).

use std::collections::BTreeMap;

use serde::{
    Deserialize, Deserializer, Serialize,
    de::{self, DeserializeOwned},
};

use super::value::{
    BaseUrl, Count, FilePath, HeaderName, HeaderValue, ModelName, ProviderName, Rate, VariableName,
    choice,
};
use crate::model::Price;

/// How a server is talked to.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Dialect {
    /// Chat completions, as OpenAI and very many others have them.
    OpenAi,
    /// Messages, as Anthropic has them.
    Anthropic,
}

impl Dialect {
    /// As it is written.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::OpenAi => "openai",
            Self::Anthropic => "anthropic",
        }
    }
}

impl<'de> Deserialize<'de> for Dialect {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let names = [Self::OpenAi, Self::Anthropic].map(|dialect| (dialect.as_str(), dialect));
        choice(deserializer, &names, "\"openai\" or \"anthropic\"")
    }
}

/// Whether replies are asked for as streams.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Stream {
    /// Each reply.
    #[default]
    Always,
    /// None.
    Never,
}

impl<'de> Deserialize<'de> for Stream {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let names = [("always", Self::Always), ("never", Self::Never)];
        choice(deserializer, &names, "\"always\" or \"never\"")
    }
}

/// A server of models. Holds no secret, only where one is.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Provider {
    /// Its name, as in `provider/model`.
    pub name: ProviderName,
    /// How it is talked to.
    pub dialect: Dialect,
    /// Where its API begins.
    pub base_url: BaseUrl,
    /// The environment variable with the key.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub key_env: Option<VariableName>,
    /// The file with the key, in the place of a variable.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub key_file: Option<FilePath>,
    /// A file with the certificates of authorities that are trusted besides those of the machine.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ca_file: Option<FilePath>,
    /// Whether replies are asked for as streams.
    #[serde(default)]
    pub stream: Stream,
    /// Most calls in a minute.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub requests_per_minute: Option<Count<1, 10_000_000>>,
    /// Most tokens in a minute, sent and received.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tokens_per_minute: Option<Count<1, 4_000_000_000>>,
    /// Most calls at the same time; `actors.model_concurrency` where it is not set.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub concurrency: Option<Count<1, 10_000>>,
    /// Most calls that wait; `actors.model_queue` where it is not set.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub queue: Option<Count<0, 1_000_000>>,
    /// Headers that each call carries besides, with values that anybody may see.
    #[serde(
        default,
        deserialize_with = "table",
        skip_serializing_if = "BTreeMap::is_empty"
    )]
    pub headers: BTreeMap<HeaderName, HeaderValue>,
    /// Headers whose values are secret: the environment variables that hold them.
    #[serde(
        default,
        deserialize_with = "table",
        skip_serializing_if = "BTreeMap::is_empty"
    )]
    pub header_env: BTreeMap<HeaderName, VariableName>,
    /// What is known of its models; one that is not here can be asked all the same.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub models: Vec<ProviderModel>,
}

/// `[[providers.models]]`: what is known of a model.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ProviderModel {
    /// Its name, without its provider.
    pub name: ModelName,
    /// How many tokens fit, sent and received.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub context_window: Option<Count<256, 100_000_000>>,
    /// Most tokens of one reply.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_output_tokens: Option<Count<1, 10_000_000>>,
    /// What a million tokens sent cost.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub input: Option<Rate>,
    /// The same for those that the provider had cached; `input` where it is not set.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cached: Option<Rate>,
    /// The same for those that the provider puts into its cache; `input` where it is not set.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cache_write: Option<Rate>,
    /// What a million tokens received cost.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub output: Option<Rate>,
}

/// Headers. What is no table is refused in our own words: serde's would repeat the value.
fn table<'de, D: Deserializer<'de>, T: DeserializeOwned>(
    deserializer: D,
) -> Result<BTreeMap<HeaderName, T>, D::Error> {
    match toml::Value::deserialize(deserializer)? {
        toml::Value::Table(table) => table
            .try_into()
            .map_err(|error| de::Error::custom(error.message())),
        _ => Err(de::Error::custom("their names and what they are set to")),
    }
}

impl Provider {
    /// What is known of one of its models.
    #[must_use]
    pub fn model(&self, name: &str) -> Option<&ProviderModel> {
        self.models.iter().find(|model| model.name.as_str() == name)
    }
}

impl ProviderModel {
    /// What it costs, if that was set.
    #[must_use]
    pub fn price(&self) -> Option<Price> {
        let (input, output) = (self.input?, self.output?);
        Some(Price {
            input: input.nanos(),
            cached: self.cached.unwrap_or(input).nanos(),
            cache_write: self.cache_write.unwrap_or(input).nanos(),
            output: output.nanos(),
        })
    }
}
