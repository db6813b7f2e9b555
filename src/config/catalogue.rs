//! The catalogue of models: facts and prices, from the table that is compiled in, a newer one in the
//! data directory, and the operator's list.

use std::{borrow::Cow, fmt};

use serde::Deserialize;
use toml::de::ValueDeserializer;

use super::ProviderModel;
use crate::model::{Day, NanoUsd, Price, Retirement};

impl ProviderModel {
    /// The price; `None` unless both `input` and `output` are set, here and in each tier.
    pub fn price(&self) -> Option<Price> {
        let price = |[input, cached, cache_write, output]: [Option<NanoUsd>; 4]| {
            Some(Price {
                input: input?,
                cached: cached.or(input)?,
                cache_write: cache_write.or(input)?,
                output: output?,
                tiers: Vec::new(),
            })
        };
        let tiers = self.tiers.iter().map(|tier| {
            let rates = [tier.input, tier.cached, tier.cache_write, tier.output];
            Some((tier.above, price(rates)?))
        });
        Some(Price {
            tiers: tiers.collect::<Option<_>>()?,
            ..price([self.input, self.cached, self.cache_write, self.output])?
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
#[error("price list {0}")]
pub struct PricesError(String);

fn refused(name: &str, what: impl fmt::Display) -> PricesError {
    PricesError(format!("`{name}` {what}"))
}

impl Prices {
    /// The table that is compiled in.
    pub fn builtin() -> Self {
        Self {
            own: Vec::new(),
            tables: vec![oracle_defaults::MODELS.into()],
        }
    }

    /// Parses a list; `name` identifies it in errors.
    ///
    /// # Errors
    /// See [`PricesError`].
    pub fn parse(text: &str, name: &str) -> Result<Self, PricesError> {
        let PriceFile { price, .. } = toml::from_str(text)
            .map_err(|error| format!("is invalid: {}", error.to_string().trim_end()))
            .map_err(|what| refused(name, what))?;
        let checked = price.iter().try_for_each(check);
        checked.map_err(|what| refused(name, what))?;
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
            return Err(refused(name, what));
        }
        let entries = Self::parse(text, name)?.own.len();
        let (date, own) = (head(text, "date"), Self::builtin().date().to_owned());
        if Day::parse(date).is_none()
            || entries == 0
            || lines(text).filter_map(|(_, line)| parsed(line)).count() != entries
        {
            let what = "is no table of models: it needs a `date`, and one model a line, as in \
                        config/models.toml; for prices of your own, set `budget.prices`";
            return Err(refused(name, what));
        }
        if *date <= *own {
            let what = format!("is of {date}, and this program has one of {own}");
            return Err(refused(name, what));
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
        // 0: exactly this name; 1: by `*`; 2: the undated name.
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

    /// The names of all entries, some of which end in `*`.
    pub(super) fn names(&self) -> impl Iterator<Item = &str> {
        let own = self.own.iter().map(|entry| &*entry.name);
        let tables = self.tables.iter().flat_map(|table| lines(table));
        own.chain(tables.map(|(name, _)| name))
    }
}

/// Says what is wrong with an entry.
fn check(entry: &ProviderModel) -> Result<(), String> {
    let name = &entry.name;
    let stem = name.strip_suffix('*').unwrap_or(name);
    let parts = stem.split_once('/');
    if stem.contains('*') || parts.is_none_or(|(provider, _)| provider.is_empty()) {
        return Err(format!(
            "has the invalid name `{name}`: write provider/model, with `*` only at the end"
        ));
    }
    let rates = [entry.input, entry.cached, entry.cache_write, entry.output];
    let is_priced = rates.iter().any(Option::is_some) || !entry.tiers.is_empty();
    if is_priced && entry.price().is_none() {
        let missing = match (entry.input, entry.output) {
            (None, _) => "`input`",
            (_, None) => "`output`",
            _ => "`input` or `output` of a tier",
        };
        return Err(format!("is invalid: `{name}`: missing field {missing}"));
    }
    match &entry.retires {
        Some(day) if Day::parse(day).is_none() => {
            Err(format!("is invalid: `{name}`: `{day}` is not a date"))
        }
        _ => Ok(()),
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
    let mut shapes = ["0000-00-00", "00000000", "00-0000", "0000"].iter();
    shapes.find_map(|shape| {
        let (stem, date) = model.split_at_checked(model.len().checked_sub(shape.len())?)?;
        let figures = date.replace(|c: char| c.is_ascii_digit(), "0");
        stem.strip_suffix(['-', '@']).filter(|_| figures == *shape)
    })
}

#[cfg(test)]
mod tests;
