//! Models: chains, provider presets, the choice of a chain by the available keys, amounts of money,
//! price lists.

use std::{borrow::Cow, ffi::OsString, fmt};

use serde::{Deserialize, Serialize};
use toml::de::ValueDeserializer;

use super::{Config, Provider, ProviderModel, rule::URL};
use crate::{
    llm::Dialect,
    model::{Day, NanoUsd, Price, Retirement},
};

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

impl ProviderModel {
    /// The price; `None` unless both `input` and `output` are set.
    pub fn price(&self) -> Option<Price> {
        type Rate = Option<NanoUsd>;
        let price = |input: Rate, cached: Rate, cache_write: Rate, output: Rate| {
            Some(Price {
                input: input?,
                cached: cached.or(input)?,
                cache_write: cache_write.or(input)?,
                output: output?,
                tiers: Vec::new(),
            })
        };
        let tiers = self.tiers.iter().map(|tier| {
            let price = price(tier.input, tier.cached, tier.cache_write, tier.output)?;
            Some((tier.above, price))
        });
        Some(Price {
            tiers: tiers.collect::<Option<_>>()?,
            ..price(self.input, self.cached, self.cache_write, self.output)?
        })
    }

    /// When its provider switches it off, if known.
    pub fn retirement(&self) -> Option<Retirement> {
        Some(Retirement {
            day: Day::parse(self.retires.as_deref()?)?,
            successor: self.successor.as_deref().map(Into::into),
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

/// What is known about models. For each fact, the first matching entry that has it counts.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Prices {
    /// The operator's, before the tables.
    own: Vec<ProviderModel>,
    /// Texts in the form of `config/models.toml`. Only lines of models in use are parsed, because a
    /// whole table would delay every start.
    tables: Vec<Cow<'static, str>>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct PriceFile {
    #[serde(default)]
    price: Vec<ProviderModel>,
    #[serde(default, rename = "date")]
    _date: String,
    #[serde(default, rename = "source")]
    _source: String,
}

/// A price list is invalid.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("price list `{name}` {what}")]
pub struct PricesError {
    name: String,
    what: String,
}

impl PricesError {
    fn new(name: &str, what: &str) -> Self {
        let [name, what] = [name, what].map(str::to_owned);
        Self { name, what }
    }
}

impl Prices {
    /// The table that is compiled in.
    pub fn builtin() -> Self {
        Self {
            own: Vec::new(),
            tables: vec![include_str!("../../config/models.toml").into()],
        }
    }

    /// Parses a list; `name` identifies it in errors.
    ///
    /// # Errors
    /// See [`PricesError`].
    pub fn parse(text: &str, name: &str) -> Result<Self, PricesError> {
        let refused = |what: String| PricesError::new(name, &what);
        let not_in_order = |why: &str| refused(format!("is invalid: {}", why.trim_end()));
        let PriceFile { price, .. } =
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
            let rates = [entry.input, entry.cached, entry.cache_write, entry.output];
            if entry.price().is_none()
                && (rates.iter().any(Option::is_some) || !entry.tiers.is_empty())
            {
                let missing = if entry.input.is_some() {
                    "output"
                } else {
                    "input"
                };
                return Err(not_in_order(&format!(
                    "`{name}`: missing field `{missing}`"
                )));
            }
            if let Some(day) = entry
                .retires
                .as_deref()
                .filter(|day| Day::parse(day).is_none())
            {
                return Err(not_in_order(&format!("`{name}`: `{day}` is not a date")));
            }
        }
        let (own, tables) = (price, Vec::new());
        Ok(Self { own, tables })
    }

    /// Checks a table in the form of `config/models.toml` that is to come before the built-in one.
    ///
    /// # Errors
    /// See [`PricesError`]; also when it is not newer.
    pub fn check_table(text: &str, name: &str) -> Result<(), PricesError> {
        if text.trim_start().starts_with('{') {
            let what =
                "is JSON: turn litellm's table into ours with config/update_models.py --from";
            return Err(PricesError::new(name, what));
        }
        let entries = Self::parse(text, name)?.own.len();
        let (date, own) = (head(text, "date"), Self::builtin().date().to_owned());
        if Day::parse(date).is_none()
            || entries == 0
            || lines(text).filter_map(|(_, line)| parsed(line)).count() != entries
        {
            let what = "is no table of models: it needs a `date`, and one model a line, as in \
                        config/models.toml; for prices of your own, set `budget.prices`";
            return Err(PricesError::new(name, what));
        }
        if *date <= *own {
            let what = format!("is of {date}, and this program has one of {own}");
            return Err(PricesError::new(name, &what));
        }
        Ok(())
    }

    /// This list, with a table before the built-in one if it is newer.
    #[must_use]
    pub fn updated(mut self, table: String) -> Self {
        if head(&table, "date") > self.date() {
            self.tables.insert(0, table.into());
        }
        self
    }

    /// This list, followed by `others`.
    #[must_use]
    pub fn or(self, others: Self) -> Self {
        Self {
            own: [self.own, others.own].concat(),
            tables: [self.tables, others.tables].concat(),
        }
    }

    /// The date of the newest table.
    pub fn date(&self) -> &str {
        self.tables.first().map_or("", |table| head(table, "date"))
    }

    /// The source of the newest table.
    pub fn source(&self) -> &str {
        self.tables
            .first()
            .map_or("", |table| head(table, "source"))
    }

    /// The entries for `provider/model`, by precedence: in each list those of its name, those that
    /// end in `*`, and that of its name without a date.
    pub fn entries(&self, model: &str) -> Vec<ProviderModel> {
        let undated = undated(model);
        let rank = |name: &str| match name.strip_suffix('*') {
            _ if name == model => Some(0),
            Some(stem) => model.starts_with(stem).then_some(1),
            None => (Some(name) == undated).then_some(2),
        };
        let own = self.own.iter();
        let own = own.filter_map(|entry| Some((0, rank(&entry.name)?, entry.clone())));
        let tables = self.tables.iter().zip(1..).flat_map(|(table, at)| {
            let entry = move |(name, line)| Some((at, rank(name)?, parsed(line)?));
            lines(table).filter_map(entry)
        });
        let mut found: Vec<_> = own.chain(tables).collect();
        found.sort_by_key(|(list, rank, _)| (*list, *rank));
        found.into_iter().map(|(_, _, entry)| entry).collect()
    }

    fn names(&self) -> impl Iterator<Item = &str> {
        let own = self.own.iter().map(|entry| &*entry.name);
        let tables = self.tables.iter().flat_map(|table| lines(table));
        own.chain(tables.map(|(name, _)| name))
    }
}

/// A text at the head of a table.
fn head<'t>(table: &'t str, key: &str) -> &'t str {
    let heads = table.lines().take_while(|line| !line.starts_with(' '));
    let mut heads = heads.filter_map(|line| line.strip_prefix(key)?.strip_prefix(" = \""));
    heads.next().map_or("", |value| value.trim_end_matches('"'))
}

/// The lines of a table that describe models, by name.
fn lines(table: &str) -> impl Iterator<Item = (&str, &str)> {
    table.lines().filter_map(|line| {
        let (name, _) = line.strip_prefix("  { model = \"")?.split_once('"')?;
        Some((name, line))
    })
}

fn parsed(line: &str) -> Option<ProviderModel> {
    let entry = ValueDeserializer::parse(line.trim().trim_end_matches(',')).ok()?;
    ProviderModel::deserialize(entry).ok()
}

/// The name of a model without the date at its end.
fn undated(model: &str) -> Option<&str> {
    ["dddd-dd-dd", "dddddddd", "dd-dddd", "dddd"]
        .iter()
        .find_map(|shape| {
            let (stem, date) = model.split_at_checked(model.len().checked_sub(shape.len())?)?;
            let fits = |(d, c): (u8, u8)| {
                if d == b'd' {
                    c.is_ascii_digit()
                } else {
                    c == d
                }
            };
            let fits = shape.bytes().zip(date.bytes()).all(fits);
            stem.strip_suffix(['-', '@']).filter(|_| fits)
        })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::{NanoUsd, Usage, usage::usd};

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

    fn first<T>(
        prices: &Prices,
        model: &str,
        fact: impl Fn(&ProviderModel) -> Option<T>,
    ) -> Option<T> {
        prices.entries(model).iter().find_map(fact)
    }

    fn of(prices: &Prices, model: &str) -> Option<[u64; 4]> {
        let price = first(prices, model, ProviderModel::price)?;
        Some(
            [price.input, price.cached, price.cache_write, price.output]
                .map(|part| part.0 / 1_000_000),
        )
    }

    const TABLE: &str = include_str!("../../config/models.toml");

    #[test]
    fn built_in_table_is_valid_and_read_by_line() {
        let whole = Prices::parse(TABLE, "config/models.toml").unwrap().own;
        let builtin = Prices::builtin();
        assert!(whole.len() > 500, "{}", whole.len());
        let listed: Vec<&str> = builtin.names().collect();
        assert!(listed.is_sorted(), "the names are sorted");
        for entry in &whole {
            assert_eq!(builtin.entries(&entry.name).first(), Some(entry));
        }
        assert!(Day::parse(builtin.date()).is_some());
        assert!(builtin.source().starts_with("litellm "));
    }

    #[test]
    fn default_models_are_priced_and_outlive_a_year() {
        let prices = Prices::builtin();
        let written = Day::parse(prices.date()).unwrap();
        for preset in PRESETS {
            let Some(model) = preset.default_model else {
                continue;
            };
            let name = format!("{}/{model}", preset.name);
            assert!(
                first(&prices, &name, ProviderModel::price).is_some(),
                "{name}"
            );
            let end = first(&prices, &name, ProviderModel::retirement);
            assert!(end.is_none_or(|end| end.day.0 > written.0 + 365), "{name}");
        }
    }

    /// The figures are those of the vendors' pages on prices.
    #[test]
    fn calls_cost_what_the_vendors_pages_say() {
        const M: u64 = 1_000_000;
        for (what, model, sent, cached, written, received, millionths) in [
            ("plain", "anthropic/claude-sonnet-5-5", M, 0, 0, M, 12 * M),
            ("cached", "anthropic/claude-sonnet-5-5", M, M, 0, 0, M / 10),
            (
                "written for 5 min",
                "anthropic/claude-sonnet-5-5",
                M,
                0,
                M,
                0,
                5 * M / 2,
            ),
            (
                "written for 5 min",
                "anthropic/claude-opus-4-6",
                M,
                0,
                M,
                0,
                25 * M / 4,
            ),
            ("not 15/75", "anthropic/claude-opus-4-7", M, 0, 0, M, 30 * M),
            (
                "at 100k",
                "anthropic/claude-haiku-5-5",
                100_000,
                0,
                0,
                0,
                10_000,
            ),
            (
                "above 100k",
                "anthropic/claude-haiku-5-5",
                200_000,
                0,
                100_000,
                100_000,
                362_500,
            ),
            (
                "at 272k",
                "openai/gpt-6.1-terra",
                272_000,
                0,
                0,
                M,
                5_272_000,
            ),
            (
                "above 272k",
                "openai/gpt-6.1-terra",
                300_000,
                100_000,
                100_000,
                M,
                7_960_000,
            ),
            ("written", "openai/gpt-5.6", 100_000, 0, 100_000, 0, 500_000),
            (
                "at 200k",
                "gemini/gemini-2.5-pro",
                200_000,
                0,
                0,
                M,
                10_250_000,
            ),
            (
                "above 200k",
                "gemini/gemini-2.5-pro",
                400_000,
                0,
                0,
                M,
                16_000_000,
            ),
            (
                "above 200k, cached",
                "gemini/gemini-3.1-pro-preview",
                400_000,
                400_000,
                0,
                0,
                160_000,
            ),
            (
                "third tier",
                "dashscope/qwen3-max",
                130_000,
                0,
                0,
                0,
                390_000,
            ),
            (
                "as its vendor",
                "openrouter/anthropic/claude-sonnet-5.5",
                M,
                0,
                0,
                M,
                12 * M,
            ),
            ("free", "ollama/anything:7b", M, 0, 0, M, 0),
        ] {
            let price = first(&Prices::builtin(), model, ProviderModel::price).unwrap();
            let usage = Usage {
                input_tokens: sent,
                cached_tokens: cached,
                cache_write_tokens: written,
                output_tokens: received,
                ..Usage::default()
            };
            assert_eq!(price.of(&usage).0, millionths * 1_000, "{model} {what}");
        }
    }

    #[test]
    fn facts_of_known_models_are_listed() {
        let prices = Prices::builtin();
        let facts = |model: &str| {
            let sampling = first(&prices, model, |one| one.sampling);
            let forced = first(&prices, model, |one| one.forced_tools);
            (
                sampling,
                forced,
                first(&prices, model, |one| one.always_thinks),
            )
        };
        for (model, expected) in [
            (
                "anthropic/claude-opus-5-5",
                (Some(false), Some(false), Some(true)),
            ),
            (
                "anthropic/claude-haiku-5-5",
                (Some(false), Some(true), None),
            ),
            ("anthropic/claude-haiku-4-5", (None, None, None)),
            ("openai/gpt-6.1-sol", (Some(false), None, None)),
            ("openai/gpt-5.4", (None, None, None)),
            ("unknown/x", (None, None, None)),
        ] {
            assert_eq!(facts(model), expected, "{model}");
        }
        let end = first(
            &prices,
            "anthropic/claude-sonnet-4-5",
            ProviderModel::retirement,
        );
        let end = end.unwrap();
        assert_eq!(end.day.to_string(), "2026-11-30");
        assert_eq!(
            end.successor.as_deref(),
            Some("anthropic/claude-sonnet-5-5")
        );
    }

    #[test]
    fn names_match_exactly_then_by_star_then_without_date() {
        let list = "[[price]]\nmodel = 'a/b*'\ninput = 2\noutput = 2\n\
                    [[price]]\nmodel = 'a/b-1'\ninput = 1\noutput = 1\n\
                    [[price]]\nmodel = 'a/c-5'\ninput = 3\noutput = 3\n";
        let prices = Prices::parse(list, "own.toml").unwrap();
        for (model, price) in [
            ("a/b-1", Some(1_000)),
            ("a/b-2", Some(2_000)),
            ("a/b-1-20260901", Some(2_000)),
            ("a/c-5", Some(3_000)),
            ("a/c-5-20260901", Some(3_000)),
            ("a/c-5-2026-09-01", Some(3_000)),
            ("a/c-5@20260901", Some(3_000)),
            ("a/c-5-09-2026", Some(3_000)),
            ("a/c-5-0901", Some(3_000)),
            ("a/c-5-1", None),
            ("a/c-5-preview", None),
            ("a/c-520260901", None),
            ("a/c-6-20260901", None),
            ("a/é5-0901", None),
            ("5", None),
        ] {
            assert_eq!(of(&prices, model).map(|rates| rates[0]), price, "{model}");
        }
        let builtin = Prices::builtin();
        let new = "anthropic/claude-sonnet-5-5-20260901";
        assert_eq!(
            of(&builtin, new),
            of(&builtin, "anthropic/claude-sonnet-5-5")
        );
    }

    #[test]
    fn newer_table_comes_before_the_built_in_one() {
        let line = "  { model = \"openai/gpt-6.1-terra\", input = 7, output = 8 },\n";
        let table = |date: &str, lines: &str| format!("date = \"{date}\"\nprice = [\n{lines}]\n");
        let newer = table("2999-01-01", line);
        Prices::check_table(&newer, "new.toml").unwrap();
        let prices = Prices::builtin().updated(newer);
        assert_eq!(prices.date(), "2999-01-01");
        let rates = of(&prices, "openai/gpt-6.1-terra");
        assert_eq!(rates, Some([7_000, 7_000, 7_000, 8_000]));
        // Facts and models that it lacks are those of the built-in one.
        let window = first(&prices, "openai/gpt-6.1-terra", |one| one.context_window);
        assert_eq!(window, Some(1_050_000));
        assert!(of(&prices, "anthropic/claude-sonnet-5-5").is_some());
        let older = Prices::builtin().updated(table("2025-01-01", line));
        assert_eq!(older, Prices::builtin());
        let many_lines = "  { model = \"a/b\", input = 7,\n    output = 8 },\n";
        for (text, said) in [
            (
                "{\"gpt-4o\": {}}".to_owned(),
                "is JSON: turn litellm's table into ours",
            ),
            ("not toml".to_owned(), "is invalid: "),
            (
                table("2025-01-01", line),
                "is of 2025-01-01, and this program has one of",
            ),
            (table("2999-01-01", ""), "is no table of models"),
            (table("soon", line), "is no table of models"),
            (table("2999-01-01", many_lines), "is "),
            (
                "[[price]]\nmodel = 'a/b'\ninput = 1\noutput = 1\n".to_owned(),
                "is no table",
            ),
            (
                table("2999-01-01", "  { model = \"a/b\", input = 7 },\n"),
                "missing field `output`",
            ),
            (
                table("2999-01-01", "  { model = \"a/b\", retires = \"soon\" },\n"),
                "`a/b`: `soon` is not a date",
            ),
        ] {
            let error = Prices::check_table(&text, "new.toml")
                .unwrap_err()
                .to_string();
            assert!(error.starts_with("price list `new.toml` "), "{error}");
            assert!(error.contains(said), "{text}: {error}");
        }
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
                first(&prices, model, |entry| entry.context_window),
                first(&prices, model, |entry| entry.max_output_tokens),
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
