//! The dialect of OpenAI's chat completions and compatible servers. docs/models.md lists the
//! deviations that the decoder accepts.

use super::{Dialect, dialect::Protocol};
use crate::model::{
    Capabilities,
    Parameter::{
        self, FrequencyPenalty, LogitBias, PresencePenalty, ReasoningEffort, Seed, Temperature,
        TopP,
    },
};

mod calls;
mod decode;
mod request;
mod thoughts;

pub(super) use calls::received;
pub(super) use decode::{InputDetails, OutputDetails};
pub(super) use request::{Tags, conversation, format, head};

/// `POST {base}/chat/completions`.
pub(super) const CHAT: Protocol = Protocol {
    endpoint: |connection| connection.url(&["chat", "completions"]),
    listing: |connection| connection.url(&["models"]),
    headers: &[],
    key: ("authorization", "Bearer "),
    has_formats: true,
    capabilities: Host::capabilities,
    other: Some(Dialect::Responses),
    body: request::body,
    decoder: |draft| Box::new(decode::OpenAiDecoder::new(draft)),
};

/// Parameters that OpenAI takes.
const ALL: &[Parameter] = &Parameter::ALL;
/// Parameters that most servers take.
const USUAL: &[Parameter] = &[
    Temperature,
    TopP,
    PresencePenalty,
    FrequencyPenalty,
    Seed,
    LogitBias,
    ReasoningEffort,
];
/// Parameters that Mistral takes. It rejects unknown fields, and its seed is `random_seed`.
const MISTRAL: &[Parameter] = &[Temperature, TopP, PresencePenalty, FrequencyPenalty];

/// A server, as far as its requests differ: its host is all that is known before the first call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Host {
    OpenAi,
    Mistral,
    Other,
}

impl Host {
    pub(super) fn of(host: &str) -> Self {
        let under = |domain: &str| {
            host.strip_suffix(domain)
                .is_some_and(|rest| rest.is_empty() || rest.ends_with('.'))
        };
        let azure = ["openai", "services.ai", "cognitiveservices"];
        let azure = azure.map(|service| format!("{service}.azure.com"));
        if under("openai.com") || azure.iter().any(|domain| under(domain)) {
            Self::OpenAi
        } else if under("mistral.ai") {
            Self::Mistral
        } else {
            Self::Other
        }
    }

    pub(super) fn capabilities(self) -> Capabilities {
        Capabilities {
            parameters: match self {
                Self::OpenAi => ALL,
                Self::Mistral => MISTRAL,
                Self::Other => USUAL,
            },
            images: self == Self::OpenAi,
            schemas: self != Self::Other,
            ..Capabilities::NONE
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn server_is_known_by_its_host() {
        for (name, host) in [
            ("api.openai.com", Host::OpenAi),
            ("eu.api.openai.com", Host::OpenAi),
            ("x.openai.azure.com", Host::OpenAi),
            ("x.services.ai.azure.com", Host::OpenAi),
            ("x.cognitiveservices.azure.com", Host::OpenAi),
            ("x.azure.com", Host::Other),
            ("notopenai.com", Host::Other),
            ("openai.com.example.org", Host::Other),
            ("openrouter.ai", Host::Other),
            ("api.mistral.ai", Host::Mistral),
            ("localhost", Host::Other),
        ] {
            assert_eq!(Host::of(name), host, "{name}");
        }
    }
}
