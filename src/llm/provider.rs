//! Settings of providers and their models.

use std::{fmt, time::Duration};

use secrecy::SecretString;
use serde::{Deserialize, Serialize};

use super::{
    anthropic,
    decode::{Context, Decode},
    http, openai,
};
use crate::model::{Capabilities, words};

words! {
    /// The protocol of a model server.
    pub enum Dialect {
        /// `POST {base}/chat/completions`, as at OpenAI and many others.
        OpenAi = "openai",
        /// `POST {base}/v1/messages`, as at Anthropic.
        Anthropic = "anthropic",
    }
}

impl Dialect {
    /// What the models behind this base URL take, as far as is known before the first call.
    pub fn capabilities(self, base_url: &str) -> Capabilities {
        let url = reqwest::Url::parse(base_url).ok();
        let host = url.as_ref().and_then(|url| url.host_str());
        match self {
            Self::OpenAi => openai::Host::of(host.unwrap_or_default()).capabilities(),
            Self::Anthropic => anthropic::CAPABILITIES,
        }
    }

    pub(super) fn decoder(self, context: Context) -> Box<dyn Decode> {
        match self {
            Self::OpenAi => Box::new(openai::OpenAiDecoder::new(context)),
            Self::Anthropic => Box::new(anthropic::AnthropicDecoder::new(context)),
        }
    }
}

/// Whether to request replies as streams.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Streaming {
    /// For every call.
    #[default]
    Always,
    /// For no call: for servers that cannot stream, and for comparisons.
    Never,
}

/// A model server. `Debug` shows no secrets, and no part of the URL that could hold one.
#[derive(Clone)]
pub struct ProviderSettings {
    /// Provider name, as in `provider/model`.
    pub name: String,
    /// Protocol of the server.
    pub dialect: Dialect,
    /// Base URL of the API: `https://api.openai.com/v1`, `https://api.anthropic.com`.
    pub base_url: String,
    /// API key; a local server may need none. `Debug` hides it.
    pub key: Option<SecretString>,
    /// Additional headers of every call; values are as secret as the key.
    pub headers: Vec<(String, SecretString)>,
    /// PEM certificates of authorities to trust besides the machine's.
    pub authorities: Option<Vec<u8>>,
    /// Whether to request replies as streams.
    pub streaming: Streaming,
    /// Whether the server enforces JSON schemas, if the host does not tell.
    pub structured_output: Option<bool>,
    /// Known models; others can be called too.
    pub models: Vec<ModelSettings>,
    /// Deadline for the connection.
    pub connect: Duration,
    /// Deadline for the response headers of a stream, after `connect`.
    pub first_byte: Duration,
}

impl fmt::Debug for ProviderSettings {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ProviderSettings")
            .field("name", &self.name)
            .field("base_url", &http::redact_text(&self.base_url))
            .field("models", &self.models)
            .finish_non_exhaustive()
    }
}

/// Known facts about a model.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ModelSettings {
    /// Model name, without the provider.
    pub name: String,
    /// Tokens that fit, sent and received.
    pub context_window: Option<u64>,
    /// Limit on the tokens of a reply. If the dialect requires one, its own default replaces
    /// `None`.
    pub max_output: Option<u64>,
    /// Whether it takes images, if the host does not tell.
    pub images: Option<bool>,
    /// Whether it takes tools at all.
    pub tools: Option<bool>,
    /// Whether it takes a choice of tools that forces a call.
    pub forced_tools: Option<bool>,
    /// Whether it takes a temperature and other parameters of sampling.
    pub sampling: Option<bool>,
    /// Whether it thinks before every reply.
    pub always_thinks: Option<bool>,
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::Parameter;

    #[test]
    fn capabilities_follow_from_dialect_and_host() {
        let others = "temperature top_p presence_penalty frequency_penalty seed logit_bias \
                      reasoning_effort";
        let all = format!("{others} verbosity");
        let (openai, anthropic) = (Dialect::OpenAi, Dialect::Anthropic);
        for (dialect, url, parameters, images, schemas) in [
            (openai, "https://api.openai.com/v1", &*all, true, true),
            (
                openai,
                "https://x.openai.azure.com/openai/v1?a=b",
                &all,
                true,
                true,
            ),
            (
                openai,
                "https://api.mistral.ai/v1",
                "temperature top_p presence_penalty frequency_penalty",
                false,
                true,
            ),
            (openai, "http://127.0.0.1:11434/v1", others, false, false),
            (
                openai,
                "https://openai.com.example.org",
                others,
                false,
                false,
            ),
            (
                anthropic,
                "https://api.anthropic.com",
                "temperature top_p",
                true,
                false,
            ),
            (
                anthropic,
                "http://localhost",
                "temperature top_p",
                true,
                false,
            ),
        ] {
            let takes = dialect.capabilities(url);
            let words: Vec<&str> = takes.parameters.iter().map(|one| one.as_str()).collect();
            let got = (&*words.join(" "), takes.images, takes.schemas);
            assert_eq!(got, (parameters, images, schemas), "{url}");
            let hot = takes.takes(Parameter::Temperature, &1.5.into());
            assert_eq!(hot, dialect == openai, "{url}");
        }
    }
}
