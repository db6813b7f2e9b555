//! Settings of providers and their models.

use std::{fmt, time::Duration};

use secrecy::SecretString;
use serde::{Deserialize, Serialize};

use super::{Dialect, http};

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
}
