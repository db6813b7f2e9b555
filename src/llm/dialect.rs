//! Dialects: the protocols of model servers.
//!
//! Each dialect is a folder with a [`Protocol`] and a row in [`Dialect::protocol`]. Nothing else
//! tells one dialect from another.

use reqwest::Url;

use super::{
    Request, anthropic,
    decode::{Decode, Draft},
    forms::Forms,
    http::Connection,
    json_cache::JsonCache,
    openai::{self, Host},
    responses,
};
use crate::model::{Capabilities, words};

words! {
    /// The protocol of a model server.
    pub enum Dialect {
        /// `POST {base}/chat/completions`, as at OpenAI and many others.
        OpenAi = "openai",
        /// `POST {base}/responses`, as at OpenAI, Azure and xAI.
        Responses = "responses",
        /// `POST {base}/v1/messages`, as at Anthropic.
        Anthropic = "anthropic",
    }
}

impl Dialect {
    pub(super) fn protocol(self) -> &'static Protocol {
        match self {
            Self::OpenAi => &openai::CHAT,
            Self::Responses => &responses::RESPONSES,
            Self::Anthropic => &anthropic::MESSAGES,
        }
    }

    /// The dialect of the server at this base URL, unless the configuration says otherwise:
    /// [`Dialect::Responses`] at OpenAI and Azure, whose current models take tools over no other
    /// route, else [`Dialect::OpenAi`].
    pub fn of(base_url: &str) -> Self {
        match host(base_url) {
            Host::OpenAi => Self::Responses,
            Host::Mistral | Host::Other => Self::OpenAi,
        }
    }

    /// Whether its servers can enforce JSON schemas.
    pub fn has_formats(self) -> bool {
        self.protocol().has_formats
    }

    /// What the models behind this base URL take, as far as is known before the first call.
    pub fn capabilities(self, base_url: &str) -> Capabilities {
        (self.protocol().capabilities)(host(base_url))
    }
}

fn host(base_url: &str) -> Host {
    let url = Url::parse(base_url).ok();
    let host = url.as_ref().and_then(Url::host_str);
    Host::of(host.unwrap_or_default())
}

/// What one dialect does its own way.
pub(super) struct Protocol {
    /// The URL that takes calls.
    pub(super) endpoint: fn(&Connection) -> Url,
    /// The URL of the list of models.
    pub(super) listing: fn(&Connection) -> Url,
    /// Headers of every request, with public values.
    pub(super) headers: &'static [(&'static str, &'static str)],
    /// The header that carries the key, and what is before the key.
    pub(super) key: (&'static str, &'static str),
    /// Whether a server can enforce a format of the answer.
    pub(super) has_formats: bool,
    /// What models at a host take, as far as is known before the first call.
    pub(super) capabilities: fn(Host) -> Capabilities,
    /// The dialect that the same server may speak instead.
    pub(super) other: Option<Dialect>,
    /// Serializes a call.
    pub(super) body: fn(&Outgoing<'_>) -> serde_json::Result<Vec<u8>>,
    /// Makes the decoder of one reply.
    pub(super) decoder: fn(Draft) -> Box<dyn Decode>,
}

/// A call to be serialized, and all that its form depends on.
#[derive(Clone, Copy)]
pub(super) struct Outgoing<'a> {
    pub(super) request: &'a Request,
    pub(super) provider: &'a str,
    pub(super) host: Host,
    pub(super) takes: Capabilities,
    /// Output limit of the model.
    pub(super) max_output: Option<u64>,
    /// Context window of the model.
    pub(super) window: Option<u64>,
    pub(super) stream: bool,
    pub(super) forms: Forms,
    pub(super) cache: &'a JsonCache,
}

/// The body of a call of a provider with this base URL.
///
/// # Errors
/// If it cannot be serialized.
#[cfg(any(test, feature = "testkit"))]
#[doc(hidden)]
pub fn encode(
    (dialect, base_url): (Dialect, &str),
    provider: &str,
    request: &Request,
) -> serde_json::Result<Vec<u8>> {
    let cache = JsonCache::default();
    let call = Outgoing {
        provider,
        host: host(base_url),
        takes: dialect.capabilities(base_url),
        ..Outgoing::at("", request, &cache)
    };
    (dialect.protocol().body)(&call)
}

#[cfg(any(test, feature = "testkit"))]
impl<'a> Outgoing<'a> {
    /// A streamed call of the provider `p` at this host.
    pub(super) fn at(host: &str, request: &'a Request, cache: &'a JsonCache) -> Self {
        let host = Host::of(host);
        Self {
            request,
            provider: "p",
            host,
            takes: host.capabilities(),
            max_output: None,
            window: None,
            stream: true,
            forms: Forms::default(),
            cache,
        }
    }
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
        let responses = "temperature top_p reasoning_effort verbosity";
        let [openai, items, anthropic] = [Dialect::OpenAi, Dialect::Responses, Dialect::Anthropic];
        let azure = "https://x.openai.azure.com/openai/v1?a=b";
        for (dialect, url, parameters, images, schemas) in [
            (openai, "https://api.openai.com/v1", &*all, true, true),
            (openai, azure, &all, true, true),
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
            (items, "https://api.openai.com/v1", responses, true, true),
            (items, "https://api.x.ai/v1", responses, false, false),
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
            assert_eq!(got, (parameters, images, schemas), "{dialect:?} {url}");
            let hot = takes.takes(Parameter::Temperature, &1.5.into());
            assert_eq!(hot, dialect != anthropic, "{url}");
        }
    }

    #[test]
    fn default_dialect_follows_from_the_host() {
        for (url, dialect) in [
            ("https://api.openai.com/v1", Dialect::Responses),
            ("https://eu.api.openai.com/v1", Dialect::Responses),
            ("https://x.openai.azure.com/openai/v1", Dialect::Responses),
            ("https://openai.com.example.org/v1", Dialect::OpenAi),
            ("https://api.mistral.ai/v1", Dialect::OpenAi),
            ("http://127.0.0.1:8080/v1", Dialect::OpenAi),
            ("no address", Dialect::OpenAi),
        ] {
            assert_eq!(Dialect::of(url), dialect, "{url}");
        }
    }
}
