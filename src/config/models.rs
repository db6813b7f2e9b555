//! Models: chains, provider presets, the choice of a chain by the available keys, amounts of money,
//! price lists.

use std::{ffi::OsString, fmt};

use serde::{Deserialize, Serialize};

use super::{Config, Provider, ProviderModel, rule::URL};
use crate::{llm::Dialect, model::Price};

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

/// The known model that a name most likely means: `openai/gpt-4.1` for `gpt-4.1`.
pub(crate) fn near_model(name: &str) -> Option<String> {
    let default = |preset: &Preset| Some(format!("{}/{}", preset.name, preset.default_model?));
    let mut known = vec!["offline".to_owned()];
    known.extend(PRESETS.iter().filter_map(default));
    let listed = Prices::builtin().ok()?.0;
    known.extend(listed.into_iter().map(|entry| entry.name));
    let near = known.iter().map(|known| {
        let full = known.trim_end_matches('*');
        let model = full.split_once('/').map_or(full, |(_, model)| model);
        (strsim::osa_distance(name, model), full.to_owned())
    });
    let (edits, near) = near.min_by_key(|(edits, _)| *edits)?;
    (edits <= 1.max(name.len() / 5)).then_some(near)
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

impl ProviderModel {
    /// The price; `None` unless both `input` and `output` are set.
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
        default_model: Some("claude-sonnet-4-5"),
    },
    Preset {
        name: "openai",
        dialect: None,
        base_url: "https://api.openai.com/v1",
        url_variable: Some("OPENAI_BASE_URL"),
        key_variable: Some("OPENAI_API_KEY"),
        keys_url: Some("https://platform.openai.com/api-keys"),
        default_model: Some("gpt-4.1"),
    },
    Preset {
        name: "openrouter",
        dialect: None,
        base_url: "https://openrouter.ai/api/v1",
        url_variable: None,
        key_variable: Some("OPENROUTER_API_KEY"),
        keys_url: Some("https://openrouter.ai/settings/keys"),
        default_model: Some("anthropic/claude-sonnet-4.5"),
    },
    Preset {
        name: "gemini",
        dialect: None,
        base_url: "https://generativelanguage.googleapis.com/v1beta/openai",
        url_variable: None,
        key_variable: Some("GEMINI_API_KEY"),
        keys_url: Some("https://aistudio.google.com/apikey"),
        default_model: Some("gemini-2.5-pro"),
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
        match self {
            Self::Set => f.write_str("as configured"),
            Self::Key(variable) => write!(f, "because {variable} is set"),
            Self::Running(provider) => {
                write!(
                    f,
                    "because {provider} is running and none of {names} is set"
                )
            }
            Self::NoKey => write!(f, "because none of {names} is set"),
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

const BUILTIN: &str = include_str!("../../config/prices.toml");

/// Prices and sizes of models. For each fact, the first matching entry that has it counts.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Prices(Vec<ProviderModel>);

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct PriceFile {
    #[serde(default)]
    price: Vec<ProviderModel>,
}

/// A price list is invalid.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("price list `{name}` {what}")]
pub struct PricesError {
    name: String,
    what: String,
}

impl Prices {
    /// The list that is compiled in.
    ///
    /// # Errors
    /// None in practice: a test parses the list.
    pub fn builtin() -> Result<Self, PricesError> {
        Self::parse(BUILTIN, "config/prices.toml")
    }

    /// Parses a list; `name` identifies it in errors.
    ///
    /// # Errors
    /// See [`PricesError`].
    pub fn parse(text: &str, name: &str) -> Result<Self, PricesError> {
        let refused = |what: String| PricesError {
            name: name.to_owned(),
            what,
        };
        let not_in_order = |why: &str| refused(format!("is invalid: {}", why.trim_end()));
        let PriceFile { price } =
            toml::from_str(text).map_err(|error| not_in_order(&error.to_string()))?;
        for entry in &price {
            let name = &entry.name;
            let stem = name.strip_suffix('*').unwrap_or(name);
            let parts = stem.split_once('/');
            if stem.contains('*') || parts.is_none_or(|(provider, _)| provider.is_empty()) {
                return Err(refused(format!(
                    "has the invalid name `{name}`: write provider/model, with `*` only at the \
                     end"
                )));
            }
            for (rate, set) in [("input", entry.input), ("output", entry.output)] {
                let missing = || not_in_order(&format!("`{name}`: missing field `{rate}`"));
                set.ok_or_else(missing)?;
            }
        }
        Ok(Self(price))
    }

    /// This list, followed by `others`.
    #[must_use]
    pub fn or(self, others: Self) -> Self {
        Self([self.0, others.0].concat())
    }

    /// A fact about `provider/model`, such as its [price](ProviderModel::price), if listed.
    pub fn first<T>(&self, model: &str, fact: impl Fn(&ProviderModel) -> Option<T>) -> Option<T> {
        let fits = |name: &str| match name.strip_suffix('*') {
            Some(stem) => model.starts_with(stem),
            None => name == model,
        };
        let mut entries = self.0.iter().filter(|entry| fits(&entry.name));
        entries.find_map(fact)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::{NanoUsd, usage::usd};

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

    #[test]
    fn prices_parse_exactly() {
        for (text, nanos) in [
            ("0.000001", Some(1_000)),
            ("2.5", Some(2_500_000_000)),
            ("1000000", Some(1_000_000_000_000_000)),
            ("999999.999999", Some(999_999_999_999_000)),
            ("0", Some(0)),
            ("1000000.000001", None),
            ("0.0000001", None),
            ("$5", None),
        ] {
            let money = usd::parse(text);
            assert_eq!(money, nanos.map(NanoUsd), "{text}");
            if let Some(money) = money {
                assert_eq!(usd::parse(&usd::dollars(money).to_string()), Some(money));
            }
        }
    }

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
                "model.chain = ['a/b']",
                &[("OPENAI_API_KEY", "k")],
                "a/b",
                "as configured",
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

    fn of(prices: &Prices, model: &str) -> Option<[u64; 4]> {
        let price = prices.first(model, ProviderModel::price)?;
        Some(
            [price.input, price.cached, price.cache_write, price.output]
                .map(|part| part.0 / 1_000_000),
        )
    }

    #[test]
    fn built_in_price_list_parses() {
        let prices = Prices::builtin().unwrap();
        let sonnet = of(&prices, "anthropic/claude-sonnet-4-5-20250929");
        assert_eq!(sonnet, Some([3_000, 300, 3_750, 15_000]));
        assert_eq!(of(&prices, "offline/offline"), None);
    }

    #[test]
    fn first_matching_price_entry_wins() {
        let own = r#"
            [[price]]
            model = "a/b-large"
            input = 2
            output = "3.5"
            [[price]]
            model = "a/b*"
            input = 1.0
            cached = 0
            cache_write = 1.25
            output = 1.0
            context_window = 2000
        "#;
        let others = r#"
            [[price]]
            model = "a/*"
            input = 9
            output = 9
            context_window = 1000
            max_output_tokens = 100
        "#;
        let parse = |text| Prices::parse(text, "own.toml").unwrap();
        let prices = parse(own).or(parse(others));
        for (model, expected) in [
            ("a/b-large", Some([2_000, 2_000, 2_000, 3_500])),
            ("a/b-larger", Some([1_000, 0, 1_250, 1_000])),
            ("a/c", Some([9_000, 9_000, 9_000, 9_000])),
            ("b/b", None),
        ] {
            assert_eq!(of(&prices, model), expected, "{model}");
        }
        // An entry without sizes does not hide one that has them.
        for (model, window, reply) in [
            ("a/b-large", Some(2_000), Some(100)),
            ("a/c", Some(1_000), Some(100)),
            ("b/b", None, None),
        ] {
            let got = (
                prices.first(model, |entry| entry.context_window),
                prices.first(model, |entry| entry.max_output_tokens),
            );
            assert_eq!(got, (window, reply), "{model}");
        }
    }

    #[test]
    fn invalid_price_list_names_the_problem() {
        for (text, said) in [
            ("price = 3", "is invalid"),
            ("[[prices]]", "unknown field `prices`"),
            (
                "[[price]]\nmodel = \"a/b\"\ninput = 1",
                "missing field `output`",
            ),
            (
                "[[price]]\nmodel = \"a/b\"\ninput = -1\noutput = 1",
                "a price is US dollars from 0 to 1000000",
            ),
            (
                "[[price]]\nmodel = \"gpt\"\ninput = 1\noutput = 1",
                "has the invalid name `gpt`: write provider/model",
            ),
            (
                "[[price]]\nmodel = \"a/*b\"\ninput = 1\noutput = 1",
                "has the invalid name `a/*b`",
            ),
        ] {
            let error = Prices::parse(text, "own.toml").unwrap_err().to_string();
            assert!(error.starts_with("price list `own.toml`"), "{error}");
            assert!(error.contains(said), "{text}: {error}");
        }
    }
}
