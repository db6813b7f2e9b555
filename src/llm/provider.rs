//! What there is to know of a provider before it is called.

use std::{fmt, time::Duration};

use secrecy::SecretString;
use serde::{Deserialize, Serialize};

use super::http;

/// The protocol of a server's API.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Dialect {
    /// `POST {base}/chat/completions`, as OpenAI and very many others have it.
    OpenAi,
    /// `POST {base}/v1/messages`, as Anthropic has it.
    Anthropic,
}

impl Dialect {
    /// As it is written in the configuration.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::OpenAi => "openai",
            Self::Anthropic => "anthropic",
        }
    }
}

/// Whether replies are asked for as streams.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Streaming {
    /// Each reply.
    #[default]
    Always,
    /// None; for servers that cannot, and to compare like with like.
    Never,
}

/// A server of models. `Debug` shows neither a secret nor what of the address could be one.
#[derive(Clone)]
pub struct ProviderSettings {
    /// The provider's name, as in `provider/model`.
    pub name: String,
    /// How it is talked to.
    pub dialect: Dialect,
    /// Where its API begins: `https://api.openai.com/v1`, `https://api.anthropic.com`.
    pub base_url: String,
    /// The key; a local server may need none. Never shown, not even by `Debug`.
    pub key: Option<SecretString>,
    /// Headers that each call carries besides; values are as secret as the key.
    pub headers: Vec<(String, SecretString)>,
    /// Certificates in PEM: authorities that are trusted besides those of the machine.
    pub authorities: Option<Vec<u8>>,
    /// Whether replies are asked for as streams.
    pub streaming: Streaming,
    /// Models of which something is known; others are called all the same.
    pub models: Vec<ModelSettings>,
    /// Until there is a connection.
    pub connect: Duration,
    /// From there until the answer's headers.
    pub first_byte: Duration,
}

impl fmt::Debug for ProviderSettings {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // Each field by its name, so that a new one cannot be forgotten.
        let Self {
            name,
            dialect,
            base_url,
            key,
            headers,
            authorities,
            streaming,
            models,
            connect,
            first_byte,
        } = self;
        f.debug_struct("ProviderSettings")
            .field("name", name)
            .field("dialect", dialect)
            .field("base_url", &http::shown_text(base_url))
            .field("key", key)
            .field("headers", headers)
            .field("authorities", &authorities.as_ref().map(Vec::len))
            .field("streaming", streaming)
            .field("models", models)
            .field("connect", connect)
            .field("first_byte", first_byte)
            .finish()
    }
}

/// A model, as far as it is known.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ModelSettings {
    /// Its name, without its provider.
    pub name: String,
    /// How many tokens fit, sent and received.
    pub context_window: Option<u64>,
    /// Most tokens of one reply. Where a dialect demands the number and this says nothing, the dialect's
    /// own default goes.
    pub max_output: Option<u64>,
}
