//! Providers that everybody knows: a key in the environment, or a server on this machine, is enough.
//!
//! A `[[providers]]` entry of the same name replaces one. They are called only where they are named, or
//! chosen because their key is there.

use std::{collections::BTreeMap, ffi::OsString};

use super::{
    Config, Dialect, Provider, Stream,
    value::{BaseUrl, ModelChain, ProviderName, VariableName},
};

/// A provider that everybody knows. Addresses and models as known when this was written: check before
/// you rely on them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Preset {
    /// Its name.
    pub name: &'static str,
    dialect: Dialect,
    base_url: &'static str,
    /// The environment variable that names another address.
    pub url_variable: Option<&'static str>,
    key_variable: Option<&'static str>,
    /// The model that is asked where only the key is there and nothing else is said.
    pub default_model: Option<&'static str>,
}

/// All presets. Those with a default model come first, in the order in which their keys are looked for.
pub const PRESETS: [Preset; 5] = [
    Preset {
        name: "anthropic",
        dialect: Dialect::Anthropic,
        base_url: "https://api.anthropic.com",
        url_variable: Some("ANTHROPIC_BASE_URL"),
        key_variable: Some("ANTHROPIC_API_KEY"),
        default_model: Some("claude-sonnet-4-5"),
    },
    Preset {
        name: "openai",
        dialect: Dialect::OpenAi,
        base_url: "https://api.openai.com/v1",
        url_variable: Some("OPENAI_BASE_URL"),
        key_variable: Some("OPENAI_API_KEY"),
        default_model: Some("gpt-4.1"),
    },
    Preset {
        name: "openrouter",
        dialect: Dialect::OpenAi,
        base_url: "https://openrouter.ai/api/v1",
        url_variable: None,
        key_variable: Some("OPENROUTER_API_KEY"),
        default_model: Some("anthropic/claude-sonnet-4.5"),
    },
    Preset {
        name: "gemini",
        dialect: Dialect::OpenAi,
        base_url: "https://generativelanguage.googleapis.com/v1beta/openai",
        url_variable: None,
        key_variable: Some("GEMINI_API_KEY"),
        default_model: Some("gemini-2.5-pro"),
    },
    Preset {
        name: "ollama",
        dialect: Dialect::OpenAi,
        base_url: "http://127.0.0.1:11434/v1",
        url_variable: Some("OLLAMA_HOST"),
        key_variable: None,
        default_model: None,
    },
];

impl Preset {
    /// One by its name.
    #[must_use]
    pub fn named(name: &str) -> Option<&'static Self> {
        PRESETS.iter().find(|preset| preset.name == name)
    }

    /// As if it stood in the file.
    #[must_use]
    pub fn provider(&self) -> Provider {
        Provider {
            name: ProviderName::trusted(self.name),
            dialect: self.dialect,
            base_url: BaseUrl::trusted(self.base_url),
            key_env: self.key_variable.map(VariableName::trusted),
            key_file: None,
            ca_file: None,
            stream: Stream::Always,
            requests_per_minute: None,
            tokens_per_minute: None,
            concurrency: None,
            queue: None,
            headers: BTreeMap::new(),
            header_env: BTreeMap::new(),
            models: Vec::new(),
        }
    }
}

/// The chain that is gone by, and why that one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Choice {
    /// The models.
    pub chain: ModelChain,
    /// Why they.
    pub because: Because,
}

/// Why a chain was chosen.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Because {
    /// Somebody set it.
    Set,
    /// This variable, with a key, is in the environment.
    Key(String),
    /// There is no key for anything else, and this provider, which needs none, answers.
    Running(String),
    /// There is no key for anything else.
    NoKey,
}

impl std::fmt::Display for Because {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Set => f.write_str("as set"),
            Self::Key(variable) => write!(f, "because {variable} is set"),
            Self::Running(provider) => {
                write!(f, "because {provider} answers, and ")?;
                write!(
                    f,
                    "{}",
                    Self::NoKey.to_string().trim_start_matches("because ")
                )
            }
            Self::NoKey => {
                let names = PRESETS
                    .iter()
                    .filter(|preset| preset.default_model.is_some());
                let names: Vec<&str> = names.filter_map(|preset| preset.key_variable).collect();
                write!(f, "because none of {} is set", names.join(", "))
            }
        }
    }
}

impl Config {
    /// A provider: as configured, else the preset.
    #[must_use]
    pub fn provider(&self, name: &str) -> Option<Provider> {
        let configured = self
            .providers
            .iter()
            .find(|known| known.name.as_str() == name);
        configured
            .cloned()
            .or_else(|| Preset::named(name).map(Preset::provider))
    }

    /// The chain that is set; else the default model of the first preset whose key is in this
    /// environment; else the offline model.
    #[must_use]
    pub fn choice(&self, environment: &[(OsString, OsString)]) -> Choice {
        if let Some(chain) = &self.model.chain {
            return Choice {
                chain: chain.clone(),
                because: Because::Set,
            };
        }
        let has = |variable: &VariableName| {
            let mut variables = environment.iter();
            variables.any(|(name, value)| name == variable.as_str() && !is_blank(value))
        };
        let keyed = PRESETS.iter().find_map(|preset| {
            let model = preset.default_model?;
            let key = self.provider(preset.name)?.key_env.filter(has)?;
            Some(Choice {
                chain: ModelChain::one(preset.name, model),
                because: Because::Key(key.to_string()),
            })
        });
        keyed.unwrap_or_else(|| Choice {
            chain: ModelChain::offline(),
            because: Because::NoKey,
        })
    }
}

/// A variable without anything in it is as good as none.
fn is_blank(value: &OsString) -> bool {
    value.to_str().is_some_and(|value| value.trim().is_empty())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn presets_have_the_form_of_what_stands_in_a_file() {
        for preset in PRESETS {
            let text = toml::to_string(&preset.provider()).unwrap();
            let read: Provider = toml::from_str(&text).unwrap();
            assert_eq!(read, preset.provider(), "{}", preset.name);
            if let Some(model) = preset.default_model {
                let chain = ModelChain::one(preset.name, model);
                let name = chain.models()[0].clone();
                assert_eq!(ModelChain::new([name.as_str()]), Ok(chain));
            }
        }
    }

    #[test]
    fn the_first_key_that_is_there_chooses_the_model() {
        let own = "[[providers]]\nname = 'openai'\ndialect = 'openai'\nbase_url = 'http://h'\n";
        let (own_key, no_key) = (format!("{own}key_env = 'MINE'"), own.to_owned());
        for (name, file, variables, model, because) in [
            ("none", "", &[][..], "offline/offline", "because none of"),
            (
                "empty",
                "",
                &[("OPENAI_API_KEY", " ")],
                "offline/offline",
                "because none of",
            ),
            (
                "one",
                "",
                &[("OPENAI_API_KEY", "k")],
                "openai/gpt-4.1",
                "because OPENAI_API_KEY",
            ),
            (
                "order",
                "",
                &[
                    ("OPENROUTER_API_KEY", "k"),
                    ("OPENAI_API_KEY", "k"),
                    ("ANTHROPIC_API_KEY", "k"),
                ],
                "anthropic/claude-sonnet-4-5",
                "because ANTHROPIC_API_KEY",
            ),
            (
                "the next one",
                "",
                &[("ANTHROPIC_API_KEY", ""), ("OPENROUTER_API_KEY", "k")],
                "openrouter/anthropic/claude-sonnet-4.5",
                "because OPENROUTER_API_KEY",
            ),
            (
                "the last one",
                "",
                &[("GEMINI_API_KEY", "k")],
                "gemini/gemini-2.5-pro",
                "because GEMINI_API_KEY",
            ),
            (
                "set",
                "model.chain = 'a/b'",
                &[("OPENAI_API_KEY", "k")],
                "a/b",
                "as set",
            ),
            (
                "replaced",
                &own_key,
                &[("MINE", "k")],
                "openai/gpt-4.1",
                "because MINE is set",
            ),
            (
                "not its key",
                &own_key,
                &[("OPENAI_API_KEY", "k")],
                "offline/offline",
                "because none",
            ),
            (
                "keyless",
                &no_key,
                &[("OPENAI_API_KEY", "k")],
                "offline/offline",
                "because none",
            ),
        ] {
            let config: Config = toml::from_str(file).unwrap();
            let pair = |(name, value): &(&str, &str)| (name.into(), value.into());
            let choice = config.choice(&variables.iter().map(pair).collect::<Vec<_>>());
            assert_eq!(choice.chain.models(), [model], "{name}");
            let why = choice.because.to_string();
            assert!(why.starts_with(because), "{name}: {why}");
        }
    }
}
