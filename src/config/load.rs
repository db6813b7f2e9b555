//! Lays the sources over the defaults, one key at a time, and collects all that is wrong.
//!
//! **Invariant:** what has been laid always makes a whole configuration: a value is kept only if it
//! does, so each problem belongs to the one value that was refused.

use std::{
    collections::{BTreeMap, BTreeSet},
    ffi::OsString,
};

use serde::Deserialize;
use toml::{
    Spanned, Table, Value,
    de::{DeValue, ValueDeserializer},
};

use super::{
    Because, Choice, Config, File, Profile, Provider, check, environment, keys,
    list::{self, Checked, Item},
    problem::{Origin, Problem, shown, shown_unless_secret},
};

/// Where values may come from; a later field wins over an earlier one.
#[derive(Debug, Clone, Default)]
pub struct Sources {
    /// The configuration file, if there is one.
    pub file: Option<File>,
    /// The environment; variables that are not ours may be in it.
    pub environment: Vec<(OsString, OsString)>,
    /// What the command line sets; of two for one key the later wins.
    pub options: Vec<Setting>,
}

/// A value from the command line.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Setting {
    /// The option as people write it: `--max-turns`.
    pub option: String,
    /// The key it sets, with its section: `oracle.max_turns`.
    pub key: String,
    /// The value as written.
    pub value: String,
}

/// A configuration, and where each value of it came from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Loaded {
    /// The configuration.
    pub config: Config,
    /// The models that are asked with it in this environment, and why they.
    pub choice: Choice,
    /// By key with section, of providers with their number; a key that is not here has its default.
    pub(super) origins: BTreeMap<String, Origin>,
}

impl Loaded {
    /// Why the models are asked that are asked.
    #[must_use]
    pub fn why_these_models(&self) -> String {
        match &self.choice.because {
            Because::Set => format!("by {}", self.origin("model.chain")),
            because @ (Because::Key(_) | Because::Running(_) | Because::NoKey) => {
                because.to_string()
            }
        }
    }

    /// Where the value of a key such as `oracle.max_turns` came from.
    #[must_use]
    pub fn origin(&self, key: &str) -> Origin {
        self.origins.get(key).cloned().unwrap_or(Origin::Default)
    }
}

/// A piece of what a source says.
pub(super) enum Said {
    /// A value of a key of a section.
    Value(Entry),
    /// A table of a list.
    Item(&'static str, Item),
    /// Something that is wrong.
    Wrong(Problem),
}

impl From<Result<Entry, Problem>> for Said {
    fn from(entry: Result<Entry, Problem>) -> Self {
        entry.map_or_else(Self::Wrong, Self::Value)
    }
}

/// One value before it is checked.
pub(super) struct Entry {
    pub(super) section: String,
    pub(super) key: String,
    /// As written.
    pub(super) shown: String,
    pub(super) given: Given,
    pub(super) origin: Origin,
}

/// A value, as far as it is known what was meant.
pub(super) enum Given {
    /// Text that may stand for a value of any kind.
    Text(String),
    /// A value of a certain kind.
    Value(Value),
    /// A number with its digits, which say more than the float that is nearest to them.
    Decimal { float: f64, digits: String },
}

impl Given {
    pub(super) fn from_toml(value: Spanned<DeValue<'_>>) -> Self {
        let digits = value
            .get_ref()
            .as_float()
            .map(|float| float.as_str().to_owned());
        match (Value::deserialize(ValueDeserializer::from(value)), digits) {
            (Ok(Value::Float(float)), Some(digits)) => Self::Decimal { float, digits },
            (Ok(value), _) => Self::Value(value),
            // An integer beyond all bounds; like an empty list it is no value of any key.
            (Err(_), _) => Self::Value(Value::Array(Vec::new())),
        }
    }

    /// Hands in the value in the forms that may be meant, until one is taken; else what is allowed
    /// instead.
    pub(super) fn fit<T>(self, take: &dyn Fn(Value) -> Result<T, String>) -> Result<T, String> {
        match self {
            Self::Value(value) => take(value),
            Self::Decimal { float, digits } => {
                take(Value::Float(float)).and_then(|_| take(Value::String(digits)))
            }
            Self::Text(text) => {
                let trimmed = text.trim().to_owned();
                let parsed = DeValue::parse(&trimmed).map(Self::from_toml);
                take(Value::String(text)).or_else(|allowed| {
                    take(Value::String(trimmed.clone())).or_else(|_| match parsed {
                        Ok(given) => given.fit(take),
                        Err(_) => Err(allowed),
                    })
                })
            }
        }
    }
}

/// Makes the configuration.
///
/// # Errors
/// All problems of all sources: of the file by line, of the environment by name, of the command
/// line in its order, and then what does not go together.
pub fn load(sources: &Sources) -> Result<Loaded, Vec<Problem>> {
    let file = sources.file.iter().flat_map(File::said);
    let environment = environment::entries(&sources.environment);
    let options = sources.options.iter().map(|setting| Ok(setting.entry()));
    let others = environment.into_iter().chain(options).map(Said::from);
    let mut draft = Draft::default();
    for said in file.chain(others) {
        match said {
            Said::Value(entry) => draft.lay(entry),
            Said::Item(keys::PROFILES, item) => draft.add_profile(item),
            Said::Item(_, item) => draft.add_provider(item),
            Said::Wrong(problem) => draft.problems.push(problem),
        }
    }
    draft.finish(&sources.environment)
}

impl Setting {
    fn entry(&self) -> Entry {
        let (section, key) = self.key.split_once('.').unwrap_or(("", &self.key));
        Entry {
            section: section.to_owned(),
            key: key.to_owned(),
            shown: self.value.clone(),
            given: Given::Text(self.value.clone()),
            origin: Origin::Option(self.option.clone()),
        }
    }
}

#[derive(Default)]
struct Draft {
    /// What has been laid, and nothing else.
    table: Table,
    /// The defaults with that.
    config: Config,
    /// As far as they are in order.
    profiles: Vec<Profile>,
    /// As far as they are in order.
    providers: Vec<Provider>,
    origins: BTreeMap<String, Origin>,
    problems: Vec<Problem>,
    /// Keys with a problem: what else follows from their value is not worth telling.
    bad: BTreeSet<String>,
}

impl Draft {
    fn lay(&mut self, entry: Entry) {
        let Entry {
            section,
            key,
            shown: value,
            given,
            origin,
        } = entry;
        let name = format!("{section}.{key}")
            .trim_start_matches('.')
            .to_owned();
        let known = keys::section(&section).is_some_and(|known| known.keys.contains(&key.as_str()));
        if !known {
            let remedy = keys::key_remedy(&section, &key);
            let (value, key) = (shown_unless_secret(&name, &value), shown(&name));
            return self.problems.push(Problem::UnknownKey {
                origin,
                key,
                value,
                remedy,
            });
        }
        let with = |value| self.with_value(&section, &key, value);
        match given.fit(&with) {
            Ok((table, config)) => {
                (self.table, self.config) = (table, config);
                self.origins.insert(name, origin);
            }
            Err(allowed) => {
                self.bad.insert(name.clone());
                let value = shown(&value);
                self.problems.push(Problem::NotAllowed {
                    origin,
                    key: name,
                    value,
                    allowed,
                });
            }
        }
    }

    fn with_value(
        &self,
        section: &str,
        key: &str,
        value: Value,
    ) -> Result<(Table, Config), String> {
        let mut table = self.table.clone();
        let keys = table
            .entry(section)
            .or_insert_with(|| Value::Table(Table::new()));
        if let Value::Table(keys) = keys {
            keys.insert(key.to_owned(), value);
        }
        let config = table.clone().try_into::<Config>();
        config
            .map(|config| (table, config))
            .map_err(|error| error.message().to_owned())
    }

    fn add_profile(&mut self, item: Item) {
        let at = self.profiles.len();
        let profile = self.add(keys::PROFILES, at, list::profile(item));
        self.profiles.extend(profile);
    }

    fn add_provider(&mut self, item: Item) {
        let at = self.providers.len();
        let provider = self.add(keys::PROVIDERS, at, list::provider(item));
        self.providers.extend(provider);
    }

    /// Tables of lists are beside the table that the values make: they have no keys in common.
    fn add<T>(&mut self, list: &str, at: usize, checked: Checked<T>) -> Option<T> {
        self.problems.extend(checked.problems);
        let table = checked.table?;
        let place = |key| format!("{list}.{at}.{key}");
        let origins = checked.origins.into_iter();
        let origins = origins.map(|(key, origin)| (place(key), origin));
        self.origins.extend(origins);
        self.bad.extend(checked.bad.into_iter().map(place));
        Some(table)
    }

    fn finish(mut self, environment: &[(OsString, OsString)]) -> Result<Loaded, Vec<Problem>> {
        self.config.providers = std::mem::take(&mut self.providers);
        self.config.profiles = std::mem::take(&mut self.profiles);
        for profile in &mut self.config.profiles {
            profile.give_way(|key| matches!(self.origins.get(key), Some(Origin::Option(_))));
        }
        let origin = |key: &str| {
            let origin = self.origins.get(key).cloned().unwrap_or(Origin::Default);
            (!self.bad.contains(key)).then_some(origin)
        };
        self.problems.extend(check::clashes(&self.config, origin));
        if self.problems.is_empty() {
            return Ok(Loaded {
                choice: self.config.choice(environment),
                config: self.config,
                origins: self.origins,
            });
        }
        Err(self.problems)
    }
}
