//! Where servers of this dialect want to be asked in other words. By host: there is nothing else to
//! know them by before they are asked.

/// How a server wants to be asked.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::llm) struct Manners {
    /// Whether `system` may stand in mid-conversation. Templates of many open models refuse it there.
    pub(super) system_anywhere: bool,
    /// The name of the limit of a reply's tokens.
    pub(super) limit: Limit,
    /// Whether usage in streams has to be asked for.
    pub(super) stream_options: bool,
}

/// The parameter that limits a reply.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Limit {
    /// `max_completion_tokens`: the only one that OpenAI's reasoning models take.
    Completion,
    /// `max_tokens`: the one that all others know.
    Tokens,
}

impl Manners {
    /// Of the server at this host.
    pub(in crate::llm) fn of(host: &str) -> Self {
        let under = |domain: &str| {
            host.strip_suffix(domain)
                .is_some_and(|rest| rest.is_empty() || rest.ends_with('.'))
        };
        let own = under("openai.com") || under("openai.azure.com");
        Self {
            system_anywhere: own,
            limit: if own {
                Limit::Completion
            } else {
                Limit::Tokens
            },
            // Mistral tells usage anyway, and has refused bodies with fields that it does not know.
            stream_options: !under("mistral.ai"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn servers_are_known_by_their_host() {
        for (host, system_anywhere, limit, stream_options) in [
            ("api.openai.com", true, Limit::Completion, true),
            ("eu.api.openai.com", true, Limit::Completion, true),
            ("x.openai.azure.com", true, Limit::Completion, true),
            ("notopenai.com", false, Limit::Tokens, true),
            ("openai.com.example.org", false, Limit::Tokens, true),
            ("openrouter.ai", false, Limit::Tokens, true),
            ("api.mistral.ai", false, Limit::Tokens, false),
            ("localhost", false, Limit::Tokens, true),
        ] {
            let expected = Manners {
                system_anywhere,
                limit,
                stream_options,
            };
            assert_eq!(Manners::of(host), expected, "{host}");
        }
    }
}
