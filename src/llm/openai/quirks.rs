//! Deviations in requests, by host, which is all that is known before the first call.

use crate::llm::wire::Ids;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::llm) struct RequestQuirks {
    /// Whether `system` messages may follow others.
    pub(super) system_anywhere: bool,
    pub(super) limit: Limit,
    pub(super) stream_options: bool,
    pub(super) ids: Ids,
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
        let under = |domain: &str| {
            host.strip_suffix(domain)
                .is_some_and(|rest| rest.is_empty() || rest.ends_with('.'))
        };
        let own = under("openai.com") || under("openai.azure.com");
        let mistral = under("mistral.ai");
        Self {
            system_anywhere: own,
            limit: if own {
                Limit::Completion
            } else {
                Limit::Tokens
            },
            // Mistral always reports usage, and has rejected unknown fields.
            stream_options: !mistral,
            ids: match (own, mistral) {
                (true, _) => Ids::Short,
                (false, true) => Ids::Nine,
                (false, false) => Ids::Any,
            },
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
            let expected = RequestQuirks {
                system_anywhere,
                limit,
                stream_options,
                ids,
            };
            assert_eq!(RequestQuirks::of(host), expected, "{host}");
        }
    }
}
