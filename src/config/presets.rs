//! Providers: presets, and the choice of a chain by the available keys.

use std::{ffi::OsString, fmt};

use super::{
    Config, Provider, ProviderModel,
    models::{ModelChain, NotAllowed},
    rule::URL,
};
use crate::llm::Dialect;

impl Provider {
    /// The protocol of its API.
    pub fn dialect(&self) -> Dialect {
        self.dialect.unwrap_or_else(|| Dialect::of(&self.base_url))
    }

    /// The configured facts about one of its models.
    pub fn model(&self, name: &str) -> Option<&ProviderModel> {
        self.models.iter().find(|model| model.name == name)
    }
}

/// A built-in provider: it needs only a key in the environment, or a server on this machine. A
/// `[[providers]]` entry of the same name replaces it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Preset {
    /// Name of the provider.
    pub name: &'static str,
    /// By the address, if `None`.
    dialect: Option<Dialect>,
    base_url: &'static str,
    /// The environment variable that sets another address.
    pub url_variable: Option<&'static str>,
    key_variable: Option<&'static str>,
    /// The page that gives keys.
    pub keys_url: Option<&'static str>,
    /// The model that is used if the provider's key is the only setting.
    pub default_model: Option<&'static str>,
}

/// All presets; those with a default model first, by the precedence of their keys.
pub const PRESETS: [Preset; 5] = [
    Preset {
        name: "anthropic",
        dialect: Some(Dialect::Anthropic),
        base_url: "https://api.anthropic.com",
        url_variable: Some("ANTHROPIC_BASE_URL"),
        key_variable: Some("ANTHROPIC_API_KEY"),
        keys_url: Some("https://console.anthropic.com/settings/keys"),
        default_model: Some("claude-sonnet-5-5"),
    },
    Preset {
        name: "openai",
        dialect: None,
        base_url: "https://api.openai.com/v1",
        url_variable: Some("OPENAI_BASE_URL"),
        key_variable: Some("OPENAI_API_KEY"),
        keys_url: Some("https://platform.openai.com/api-keys"),
        default_model: Some("gpt-6.1-terra"),
    },
    Preset {
        name: "openrouter",
        dialect: None,
        base_url: "https://openrouter.ai/api/v1",
        url_variable: None,
        key_variable: Some("OPENROUTER_API_KEY"),
        keys_url: Some("https://openrouter.ai/settings/keys"),
        default_model: Some("anthropic/claude-sonnet-5.5"),
    },
    Preset {
        name: "gemini",
        dialect: None,
        base_url: "https://generativelanguage.googleapis.com/v1beta/openai",
        url_variable: None,
        key_variable: Some("GEMINI_API_KEY"),
        keys_url: Some("https://aistudio.google.com/apikey"),
        default_model: Some("gemini-3.8-flash"),
    },
    Preset {
        name: "ollama",
        dialect: None,
        base_url: "http://127.0.0.1:11434/v1",
        url_variable: Some("OLLAMA_HOST"),
        key_variable: None,
        keys_url: None,
        default_model: None,
    },
];

impl Preset {
    /// The preset of this name.
    pub fn named(name: &str) -> Option<&'static Self> {
        PRESETS.iter().find(|preset| preset.name == name)
    }

    /// The preset as a `[[providers]]` entry.
    pub fn provider(&self) -> Provider {
        Provider {
            name: self.name.to_owned(),
            dialect: self.dialect,
            base_url: self.base_url.to_owned(),
            key_env: self.key_variable.map(str::to_owned),
            ..Provider::default()
        }
    }

    /// The variables whose keys select a model, in their order of precedence.
    pub fn key_variables() -> impl Iterator<Item = &'static str> {
        let choosing = PRESETS.iter().filter(|one| one.default_model.is_some());
        choosing.filter_map(|preset| preset.key_variable)
    }
}

/// Checks the address of an API.
///
/// # Errors
/// [`NotAllowed`] with the allowed form.
pub fn base_url(address: String) -> Result<String, NotAllowed> {
    match (URL.allows)(&address) {
        true => Ok(address),
        false => Err(NotAllowed(URL.allowed.to_owned())),
    }
}

/// The selected chain of models, and the reason.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ModelChoice {
    /// The selected models.
    pub chain: ModelChain,
    /// The reason for selecting them.
    pub because: ChainReason,
}

/// The reason for a chain.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ChainReason {
    /// The user set it.
    Set,
    /// This environment variable contains a key.
    Key(String),
    /// There is no key, and the server of this provider, which needs none, responds.
    Running(String),
    /// There is no key.
    NoKey,
}

impl fmt::Display for ChainReason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let names = Preset::key_variables().collect::<Vec<_>>().join(", ");
        let no_key = format!("none of {names} is set");
        match self {
            Self::Set => f.write_str("as configured"),
            Self::Key(variable) => write!(f, "because {variable} is set"),
            Self::Running(provider) => write!(f, "because {provider} is running and {no_key}"),
            Self::NoKey => write!(f, "because {no_key}"),
        }
    }
}

impl Config {
    /// The configured provider of this name, else the preset.
    pub fn provider(&self, name: &str) -> Option<Provider> {
        let configured = self.providers.iter().find(|known| known.name == name);
        let preset = || Preset::named(name).map(Preset::provider);
        configured.cloned().or_else(preset)
    }

    /// The configured chain; else the default model of the first preset whose key is in this
    /// environment; else the offline model.
    pub fn choice(&self, environment: &[(OsString, OsString)]) -> ModelChoice {
        let choice = |chain, because| ModelChoice { chain, because };
        if let Some(chain) = &self.model.chain {
            return choice(chain.clone(), ChainReason::Set);
        }
        let is_blank = |value: &OsString| value.to_str().is_some_and(|text| text.trim().is_empty());
        let has = |variable: &String| {
            let mut variables = environment.iter();
            variables.any(|(name, value)| *name == **variable && !is_blank(value))
        };
        let keyed = PRESETS.iter().find_map(|preset| {
            let model = format!("{}/{}", preset.name, preset.default_model?);
            let key = self.provider(preset.name)?.key_env.filter(has)?;
            let chain = ModelChain::new([model.as_str()]).ok()?;
            Some(choice(chain, ChainReason::Key(key)))
        });
        keyed.unwrap_or_else(|| choice(ModelChain::offline(), ChainReason::NoKey))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn presets_are_valid_provider_configurations() {
        for preset in PRESETS {
            let config = Config {
                providers: vec![preset.provider()],
                ..Config::default()
            };
            assert_eq!(config.validate(), Ok(()), "{}", preset.name);
            if let Some(model) = preset.default_model {
                let name = format!("{}/{model}", preset.name);
                assert!(ModelChain::new([name.as_str()]).is_ok(), "{name}");
            }
        }
    }

    #[test]
    fn first_available_key_chooses_the_default_model() {
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
                "openai/gpt-6.1-terra",
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
                "anthropic/claude-sonnet-5-5",
                "because ANTHROPIC_API_KEY",
            ),
            (
                "the next one",
                "",
                &[("ANTHROPIC_API_KEY", ""), ("OPENROUTER_API_KEY", "k")],
                "openrouter/anthropic/claude-sonnet-5.5",
                "because OPENROUTER_API_KEY",
            ),
            (
                "the last one",
                "",
                &[("GEMINI_API_KEY", "k")],
                "gemini/gemini-3.8-flash",
                "because GEMINI_API_KEY",
            ),
            (
                "set",
                "model.chain = ['a/b']",
                &[("OPENAI_API_KEY", "k")],
                "a/b",
                "as configured",
            ),
            (
                "replaced",
                &own_key,
                &[("MINE", "k")],
                "openai/gpt-6.1-terra",
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
