//! Deviations in requests, by host, which is all that is known before the first call.

use crate::{
    llm::wire::Ids,
    model::{
        Capabilities,
        Parameter::{
            self, FrequencyPenalty, LogitBias, PresencePenalty, ReasoningEffort, Seed, Temperature,
            TopP,
        },
    },
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

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Host {
    OpenAi,
    Mistral,
    Other,
}

impl Host {
    fn of(host: &str) -> Self {
        let under = |domain: &str| {
            host.strip_suffix(domain)
                .is_some_and(|rest| rest.is_empty() || rest.ends_with('.'))
        };
        if under("openai.com") || under("openai.azure.com") {
            Self::OpenAi
        } else if under("mistral.ai") {
            Self::Mistral
        } else {
            Self::Other
        }
    }
}

pub(in crate::llm) fn capabilities(host: &str) -> Capabilities {
    let host = Host::of(host);
    Capabilities {
        parameters: match host {
            Host::OpenAi => ALL,
            Host::Mistral => MISTRAL,
            Host::Other => USUAL,
        },
        images: host == Host::OpenAi,
        schemas: host != Host::Other,
        ..Capabilities::NONE
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::llm) struct RequestQuirks {
    /// Whether `system` messages may follow others.
    pub(super) system_anywhere: bool,
    pub(super) limit: Limit,
    pub(super) stream_options: bool,
    pub(super) ids: Ids,
    /// Whether to send the format of the answer.
    pub(in crate::llm) schemas: bool,
    /// Whether to send images of tool results.
    pub(in crate::llm) images: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Limit {
    /// `max_completion_tokens`, which OpenAI's reasoning models require.
    Completion,
    /// `max_tokens`, which all other servers accept.
    Tokens,
}

impl RequestQuirks {
    pub(in crate::llm) fn of(host: &str) -> Self {
        let Capabilities {
            schemas, images, ..
        } = capabilities(host);
        let host = Host::of(host);
        Self {
            system_anywhere: host == Host::OpenAi,
            limit: match host {
                Host::OpenAi => Limit::Completion,
                Host::Mistral | Host::Other => Limit::Tokens,
            },
            // Mistral always reports usage, and has rejected unknown fields.
            stream_options: host != Host::Mistral,
            ids: match host {
                Host::OpenAi => Ids::Short,
                Host::Mistral => Ids::Nine,
                Host::Other => Ids::Any,
            },
            schemas,
            images,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn server_quirks_follow_from_the_host() {
        for (host, system_anywhere, limit, stream_options, ids) in [
            ("api.openai.com", true, Limit::Completion, true, Ids::Short),
            (
                "eu.api.openai.com",
                true,
                Limit::Completion,
                true,
                Ids::Short,
            ),
            (
                "x.openai.azure.com",
                true,
                Limit::Completion,
                true,
                Ids::Short,
            ),
            ("notopenai.com", false, Limit::Tokens, true, Ids::Any),
            (
                "openai.com.example.org",
                false,
                Limit::Tokens,
                true,
                Ids::Any,
            ),
            ("openrouter.ai", false, Limit::Tokens, true, Ids::Any),
            ("api.mistral.ai", false, Limit::Tokens, false, Ids::Nine),
            ("localhost", false, Limit::Tokens, true, Ids::Any),
        ] {
            let schemas = limit == Limit::Completion || ids == Ids::Nine;
            let expected = RequestQuirks {
                schemas,
                images: system_anywhere,
                system_anywhere,
                limit,
                stream_options,
                ids,
            };
            assert_eq!(RequestQuirks::of(host), expected, "{host}");
        }
    }
}
