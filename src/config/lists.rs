//! `[[profiles]]` and `[[providers]]`, the providers that are built in, and which models are asked.

use std::{collections::BTreeMap, ffi::OsString, fmt, path::PathBuf};

use serde::{Deserialize, Serialize};

use super::{Config, ModelChain, NotAllowed, text::URL, value::usd};
use crate::{
    kernel::{BasisPoints, OnMissingSignal, share},
    llm::{Dialect, Streaming},
    model::{NanoUsd, Price, ProfileName},
};

/// A kind of conversations: only what is different from the sections. What the command line sets wins over
/// both.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[expect(
    missing_docs,
    reason = "each key is as the one of the sections that `over` replaces"
)]
pub struct Profile {
    /// What clients choose it by.
    pub name: ProfileName,
    /// What it is for.
    pub description: Option<String>,
    pub instructions: Option<String>,
    pub prompt_dir: Option<PathBuf>,
    pub prompt_context: Option<PathBuf>,
    pub chain: Option<ModelChain>,
    pub max_turns: Option<u32>,
    pub max_tokens: Option<u64>,
    #[serde(default, with = "usd")]
    pub max_cost_usd: Option<NanoUsd>,
    pub session_max_tokens: Option<u64>,
    #[serde(default, with = "usd")]
    pub session_max_cost_usd: Option<NanoUsd>,
    pub silence_turns: Option<u32>,
    #[serde(default, with = "share::optional")]
    pub low_confidence: Option<BasisPoints>,
    pub on_missing_signal: Option<OnMissingSignal>,
    pub max_depth: Option<u32>,
    pub max_children: Option<u32>,
    pub tools: Option<Vec<String>>,
    pub attachable: Option<Vec<String>>,
}

impl Profile {
    /// The whole configuration as it is for this profile.
    #[must_use]
    pub fn over(&self, base: &Config) -> Config {
        fn set<T: Clone>(there: &mut T, here: &Option<T>) {
            if let Some(here) = here {
                there.clone_from(here);
            }
        }
        fn put<T: Clone>(there: &mut Option<T>, here: &Option<T>) {
            if here.is_some() {
                there.clone_from(here);
            }
        }
        let mut config = base.clone();
        put(&mut config.prompt.instructions, &self.instructions);
        put(&mut config.prompt.dir, &self.prompt_dir);
        put(&mut config.prompt.context, &self.prompt_context);
        put(&mut config.model.chain, &self.chain);
        set(&mut config.oracle.max_turns, &self.max_turns);
        let budget = &mut config.budget;
        put(&mut budget.max_tokens, &self.max_tokens);
        put(&mut budget.max_cost_usd, &self.max_cost_usd);
        put(&mut budget.session_max_tokens, &self.session_max_tokens);
        put(&mut budget.session_max_cost_usd, &self.session_max_cost_usd);
        set(&mut config.fallback.silence_turns, &self.silence_turns);
        set(&mut config.fallback.low_confidence, &self.low_confidence);
        set(&mut config.turn.on_missing_signal, &self.on_missing_signal);
        set(&mut config.delegation.max_depth, &self.max_depth);
        set(&mut config.delegation.max_children, &self.max_children);
        put(&mut config.tools.only, &self.tools);
        set(&mut config.tools.attachable, &self.attachable);
        config
    }
}

/// A server of models. Holds no secret, only where one is.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Provider {
    /// Its name, as in `provider/model`.
    pub name: String,
    /// The protocol of its API.
    pub dialect: Dialect,
    /// Where its API begins.
    pub base_url: String,
    /// The environment variable with the key.
    pub key_env: Option<String>,
    /// The file with the key, in the place of a variable.
    pub key_file: Option<PathBuf>,
    /// A file with the certificates of authorities that are trusted besides those of the machine.
    pub ca_file: Option<PathBuf>,
    /// Whether replies are asked for as streams.
    #[serde(default)]
    pub stream: Streaming,
    /// Most calls in a minute.
    pub requests_per_minute: Option<u64>,
    /// Most tokens in a minute, sent and received.
    pub tokens_per_minute: Option<u64>,
    /// Most calls at the same time; `actors.model_concurrency` where it is not set.
    pub concurrency: Option<usize>,
    /// Most queued calls; `actors.model_queue` where it is not set.
    pub queue: Option<usize>,
    /// Headers of each call, with values that anybody may see.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub headers: BTreeMap<String, String>,
    /// Headers whose values are secret: the environment variables that hold them.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub header_env: BTreeMap<String, String>,
    /// What is known of its models; others can be asked all the same.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub models: Vec<ProviderModel>,
}

/// `[[providers.models]]`: what is known of a model.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ProviderModel {
    /// Its name, without its provider.
    pub name: String,
    /// How many tokens fit, sent and received.
    pub context_window: Option<u64>,
    /// Most tokens of one reply.
    pub max_output_tokens: Option<u64>,
    /// Price of a million tokens sent.
    #[serde(default, with = "usd")]
    pub input: Option<NanoUsd>,
    /// Price of a million tokens that the provider had cached; `input` where it is not set.
    #[serde(default, with = "usd")]
    pub cached: Option<NanoUsd>,
    /// Price of a million tokens that the provider puts into its cache; `input` where it is not set.
    #[serde(default, with = "usd")]
    pub cache_write: Option<NanoUsd>,
    /// Price of a million tokens received.
    #[serde(default, with = "usd")]
    pub output: Option<NanoUsd>,
}

impl Provider {
    /// What is known of one of its models.
    #[must_use]
    pub fn model(&self, name: &str) -> Option<&ProviderModel> {
        self.models.iter().find(|model| model.name == name)
    }
}

impl ProviderModel {
    /// What it costs, if that was set.
    #[must_use]
    pub fn price(&self) -> Option<Price> {
        let (input, output) = (self.input?, self.output?);
        Some(Price {
            input,
            cached: self.cached.unwrap_or(input),
            cache_write: self.cache_write.unwrap_or(input),
            output,
        })
    }
}

/// A provider that is built in: a key in the environment, or a server on this machine, is enough. A
/// `[[providers]]` entry of the same name replaces it. Addresses and models were right when this was
/// written.
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
            name: self.name.to_owned(),
            dialect: self.dialect,
            base_url: self.base_url.to_owned(),
            key_env: self.key_variable.map(str::to_owned),
            key_file: None,
            ca_file: None,
            stream: Streaming::Always,
            requests_per_minute: None,
            tokens_per_minute: None,
            concurrency: None,
            queue: None,
            headers: BTreeMap::new(),
            header_env: BTreeMap::new(),
            models: Vec::new(),
        }
    }

    /// The variables whose keys choose a model, in their order.
    pub fn key_variables() -> impl Iterator<Item = &'static str> {
        let choosing = PRESETS.iter().filter(|one| one.default_model.is_some());
        choosing.filter_map(|preset| preset.key_variable)
    }
}

/// Takes an address of an API.
///
/// # Errors
/// What is allowed, if this is not.
pub fn base_url(address: String) -> Result<String, NotAllowed> {
    match (URL.allows)(&address) {
        true => Ok(address),
        false => Err(NotAllowed(URL.allowed.to_owned())),
    }
}

/// The chain of models that is used, and why.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Choice {
    /// The models.
    pub chain: ModelChain,
    /// The reason.
    pub because: Because,
}

/// Why a chain was chosen.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Because {
    /// The user set it.
    Set,
    /// This variable, with a key, is in the environment.
    Key(String),
    /// There is no key for anything else, and this provider, which needs none, answers.
    Running(String),
    /// There is no key for anything else.
    NoKey,
}

impl fmt::Display for Because {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let names = || Preset::key_variables().collect::<Vec<_>>().join(", ");
        match self {
            Self::Set => f.write_str("as set"),
            Self::Key(variable) => write!(f, "because {variable} is set"),
            Self::Running(provider) => {
                write!(
                    f,
                    "because {provider} answers, and none of {} is set",
                    names()
                )
            }
            Self::NoKey => write!(f, "because none of {} is set", names()),
        }
    }
}

impl Config {
    /// A provider: as configured, else the preset.
    #[must_use]
    pub fn provider(&self, name: &str) -> Option<Provider> {
        let configured = self.providers.iter().find(|known| known.name == name);
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
        let is_blank = |value: &OsString| value.to_str().is_some_and(|text| text.trim().is_empty());
        let has = |variable: &String| {
            let mut variables = environment.iter();
            variables.any(|(name, value)| *name == **variable && !is_blank(value))
        };
        let keyed = PRESETS.iter().find_map(|preset| {
            let model = format!("{}/{}", preset.name, preset.default_model?);
            let key = self.provider(preset.name)?.key_env.filter(has)?;
            Some(Choice {
                chain: ModelChain::new([model.as_str()]).ok()?,
                because: Because::Key(key),
            })
        });
        keyed.unwrap_or_else(|| Choice {
            chain: ModelChain::offline(),
            because: Because::NoKey,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn presets_have_the_form_of_what_stands_in_a_file() {
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
