//! Settings of providers and their models.

use std::{fmt, net::IpAddr, time::Duration};

use reqwest::Url;
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

/// Whether a provider is Ollama, or has an address on this machine or in a private network.
pub fn is_local(name: &str, base_url: &str) -> bool {
    let url = Url::parse(base_url).ok();
    let host = url.as_ref().and_then(Url::host_str).unwrap_or(".");
    let address = host
        .trim_matches(['[', ']'])
        .parse()
        .map(|ip: IpAddr| ip.to_canonical());
    name == "ollama"
        || match address {
            Ok(IpAddr::V4(ip)) => {
                ip.is_loopback() || ip.is_private() || ip.is_link_local() || ip.is_unspecified()
            }
            Ok(IpAddr::V6(ip)) => {
                ip.is_loopback() || ip.is_unique_local() || ip.is_unicast_link_local()
            }
            // A name without a domain is of this machine, or of a network of containers.
            Err(_) => {
                let domains = [
                    ".localhost",
                    ".local",
                    ".lan",
                    ".home.arpa",
                    ".docker.internal",
                ];
                !host.contains('.') || domains.iter().any(|domain| host.ends_with(domain))
            }
        }
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
    /// Whether it takes a choice of tools that forces a call.
    pub forced_tools: Option<bool>,
    /// Whether it takes a temperature and other parameters of sampling.
    pub sampling: Option<bool>,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn servers_on_this_machine_or_network_are_local() {
        for (url, local) in [
            ("http://127.0.0.1:8080/v1", true),
            ("http://localhost:1234/v1", true),
            ("http://[::1]:8080", true),
            ("http://[::ffff:192.168.1.7]:8080", true),
            ("http://[fd12::7]/v1", true),
            ("http://[fe80::7]/v1", true),
            ("http://0.0.0.0:11434", true),
            ("http://10.1.2.3/v1", true),
            ("http://172.16.0.1/v1", true),
            ("http://172.31.255.1/v1", true),
            ("http://192.168.1.20:1234/v1", true),
            ("http://169.254.7.7/v1", true),
            ("http://gpu.local:8000/v1", true),
            ("http://host.docker.internal:11434/v1", true),
            ("http://vllm:8000/v1", true),
            ("https://api.openai.com/v1", false),
            ("https://localhost.example.com/v1", false),
            ("http://172.32.0.1/v1", false),
            ("http://11.0.0.1/v1", false),
            ("http://[2001:db8::1]/v1", false),
            ("no address", false),
        ] {
            assert_eq!(is_local("some", url), local, "{url}");
        }
        assert!(is_local("ollama", "https://ollama.example.com"));
    }
}
