//! Names and chains of models, their providers with the presets, and the choice of a chain by the
//! available keys.

use std::{ffi::OsString, fmt};

use serde::{Deserialize, Serialize};

use super::{Config, Provider, ProviderModel, catalogue::Prices, rule::URL};
use crate::llm::Dialect;

/// A value is not allowed; the text describes the allowed ones.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct NotAllowed(pub(super) String);

const MOST: usize = 8;

/// One to eight different models as `provider/model`, the first choice first. The configuration
/// also takes them as text with commas between them. `offline` is short for `offline/offline`; a
/// model of `scripted` is a path, which may contain white space.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "Vec<String>")]
pub struct ModelChain(Vec<String>);

impl ModelChain {
    /// The offline model alone, which needs no key and no network.
    pub fn offline() -> Self {
        Self(vec!["offline/offline".to_owned()])
    }

    /// Creates a chain.
    ///
    /// # Errors
    /// When it has no models, more than eight or duplicates, or a name does not have the form
    /// `provider/model`.
    pub fn new<'a>(models: impl IntoIterator<Item = &'a str>) -> Result<Self, NotAllowed> {
        let names: Vec<&str> = models.into_iter().collect();
        let models: Option<Vec<String>> = names.iter().map(|name| full_name(name)).collect();
        let fits = |models: &Vec<String>| {
            let double = |at: usize| models[..at].contains(&models[at]);
            (1..=MOST).contains(&models.len()) && !(0..models.len()).any(double)
        };
        models.filter(fits).map(Self).ok_or_else(|| {
            let mut wrong = names.iter().filter(|name| full_name(name).is_none());
            let near = wrong.find_map(|name| near_model(name));
            let near = near.map_or_else(String::new, |near| format!("; did you mean `{near}`?"));
            let form = "each written provider/model, such as ollama/qwen3";
            NotAllowed(format!("1 to {MOST} different models, {form}{near}"))
        })
    }

    /// The providers of its models, without duplicates, in order.
    pub fn providers(&self) -> Vec<&str> {
        let mut names: Vec<&str> = Vec::new();
        for model in &self.0 {
            let name = model.split_once('/').map_or(&**model, |(name, _)| name);
            if !names.contains(&name) {
                names.push(name);
            }
        }
        names
    }

    /// The models as `provider/model`, the first choice first; never empty.
    pub fn models(&self) -> &[String] {
        &self.0
    }
}

impl TryFrom<Vec<String>> for ModelChain {
    type Error = NotAllowed;

    fn try_from(models: Vec<String>) -> Result<Self, NotAllowed> {
        Self::new(models.iter().map(String::as_str))
    }
}

/// `None` if the name does not have the form `provider/model`.
pub(super) fn full_name(name: &str) -> Option<String> {
    let name = name.trim();
    if name == "offline" {
        return Some("offline/offline".to_owned());
    }
    let (provider, model) = name.split_once('/')?;
    let model_char = |c: char| match provider {
        "scripted" => !c.is_control() && c != ',',
        _ => c.is_ascii_graphic() && !"\"'`,".contains(c),
    };
    let good = is_provider(provider) && !model.is_empty() && model.chars().all(model_char);
    good.then(|| name.to_owned())
}

/// The known model that a name most likely means: `openai/gpt-6.1-terra` for `gpt-6.1-terra`.
pub(crate) fn near_model(name: &str) -> Option<String> {
    let default = |preset: &Preset| Some(format!("{}/{}", preset.name, preset.default_model?));
    let mut known = vec!["offline".to_owned()];
    known.extend(PRESETS.iter().filter_map(default));
    let builtin = Prices::builtin();
    let names = builtin.names().filter(|name| !name.ends_with('*'));
    known.extend(names.map(str::to_owned));
    let near = known.iter().map(|full| {
        let (provider, model) = full.split_once('/').unwrap_or(("", full));
        let is_built_in = provider.is_empty() || Preset::named(provider).is_some();
        ((strsim::osa_distance(name, model), !is_built_in), full)
    });
    let ((edits, _), near) = near.min_by_key(|(rank, _)| *rank)?;
    (edits <= 1.max(name.len() / 5)).then(|| near.clone())
}

pub(super) fn is_provider(name: &str) -> bool {
    let good = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || "-_".contains(c);
    !name.is_empty() && name.chars().all(good)
}

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

    #[test]
    fn model_chains_are_parsed_from_text() {
        for (text, models) in [
            ("offline", Some(vec!["offline/offline"])),
            ("openai/gpt-x", Some(vec!["openai/gpt-x"])),
            ("local-1/meta/llama:8b", Some(vec!["local-1/meta/llama:8b"])),
            ("a/b, c/d", Some(vec!["a/b", "c/d"])),
            (
                "scripted/my scripts/größe.json",
                Some(vec!["scripted/my scripts/größe.json"]),
            ),
            (
                "scripted//tmp/it's.json",
                Some(vec!["scripted//tmp/it's.json"]),
            ),
            ("scripted/a\nb", None),
            ("", None),
            ("gpt-x", None),
            ("/x", None),
            ("x/", None),
            ("Open AI/x", None),
            ("a/b c", None),
            ("a/b,", None),
            ("a/b,a/b", None),
            ("a/1,a/2,a/3,a/4,a/5,a/6,a/7,a/8,a/9", None),
        ] {
            let chain = ModelChain::new(text.split(',')).ok();
            let got = chain
                .as_ref()
                .map(|c| c.models().iter().map(String::as_str).collect());
            assert_eq!(got, models, "{text}");
        }
    }
}
