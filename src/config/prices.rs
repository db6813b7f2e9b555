//! The price list: what models cost, for cost budgets (spec 6), and how much fits into them.

use serde::Deserialize;

use super::value::usd;
use crate::model::{NanoUsd, Price};

/// The list that is compiled in.
const BUILTIN: &str = include_str!("../../config/prices.toml");

/// Who costs what. The first entry that fits a model counts.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Prices(Vec<Entry>);

#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
struct Entry {
    model: String,
    #[serde(deserialize_with = "usd::required")]
    input: NanoUsd,
    #[serde(default, deserialize_with = "usd::deserialize")]
    cached: Option<NanoUsd>,
    #[serde(default, deserialize_with = "usd::deserialize")]
    cache_write: Option<NanoUsd>,
    #[serde(deserialize_with = "usd::required")]
    output: NanoUsd,
    context_window: Option<u64>,
    max_output_tokens: Option<u64>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct File {
    #[serde(default)]
    price: Vec<Entry>,
}

/// A price list that is not in order.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum PricesError {
    /// It is not the TOML of one.
    #[error("the price list `{name}` is not in order: {what}")]
    Toml {
        /// Which file.
        name: String,
        /// What is wrong, with its line.
        what: String,
    },
    /// No model has such a name.
    #[error(
        "the price list `{name}` names `{model}`: write provider/model, with `*` only at the end"
    )]
    Model {
        /// Which file.
        name: String,
        /// What it names.
        model: String,
    },
}

impl Prices {
    /// The list that is compiled in.
    ///
    /// # Errors
    /// If that is not in order, which a test rules out.
    pub fn builtin() -> Result<Self, PricesError> {
        Self::parse(BUILTIN, "config/prices.toml")
    }

    /// A list from a file of this name.
    ///
    /// # Errors
    /// See [`PricesError`].
    pub fn parse(text: &str, name: &str) -> Result<Self, PricesError> {
        let named = || name.to_owned();
        let File { price } = toml::from_str(text).map_err(|error| PricesError::Toml {
            name: named(),
            what: error.to_string().trim_end().to_owned(),
        })?;
        match price.iter().find(|entry| !entry.is_named_well()) {
            None => Ok(Self(price)),
            Some(entry) => Err(PricesError::Model {
                name: named(),
                model: entry.model.clone(),
            }),
        }
    }

    /// These, and where they say nothing, those.
    #[must_use]
    pub fn or(self, others: Self) -> Self {
        Self([self.0, others.0].concat())
    }

    /// What `provider/model` costs, if the list says so.
    #[must_use]
    pub fn of(&self, model: &str) -> Option<Price> {
        let entry = self.0.iter().find(|entry| entry.fits(model))?;
        Some(Price {
            input: entry.input,
            cached: entry.cached.unwrap_or(entry.input),
            cache_write: entry.cache_write.unwrap_or(entry.input),
            output: entry.output,
        })
    }
}

impl Prices {
    /// How many tokens fit into `provider/model`, sent and received, if the list says so.
    #[must_use]
    pub fn context_window(&self, model: &str) -> Option<u64> {
        self.first(model, |entry| entry.context_window)
    }

    /// Most tokens of one reply of `provider/model`, if the list says so.
    #[must_use]
    pub fn max_output_tokens(&self, model: &str) -> Option<u64> {
        self.first(model, |entry| entry.max_output_tokens)
    }

    /// What the first entry says that fits and says it.
    fn first(&self, model: &str, said: impl Fn(&Entry) -> Option<u64>) -> Option<u64> {
        let mut entries = self.0.iter();
        entries.find_map(|entry| said(entry).filter(|_| entry.fits(model)))
    }
}

impl Entry {
    fn is_named_well(&self) -> bool {
        let stem = self.model.strip_suffix('*').unwrap_or(&self.model);
        let parts = stem.split_once('/');
        !stem.contains('*') && parts.is_some_and(|(provider, _)| !provider.is_empty())
    }

    fn fits(&self, model: &str) -> bool {
        match self.model.strip_suffix('*') {
            Some(stem) => model.starts_with(stem),
            None => self.model == model,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(prices: &Prices, model: &str) -> Option<[u64; 4]> {
        let price = prices.of(model)?;
        Some(
            [price.input, price.cached, price.cache_write, price.output]
                .map(|part| part.0 / 1_000_000),
        )
    }

    #[test]
    fn the_built_in_list_is_in_order() {
        let prices = Prices::builtin().unwrap();
        let sonnet = of(&prices, "anthropic/claude-sonnet-4-5-20250929");
        assert_eq!(sonnet, Some([3_000, 300, 3_750, 15_000]));
        assert_eq!(of(&prices, "offline/offline"), None);
    }

    #[test]
    fn the_first_entry_that_fits_counts() {
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
        // An entry that says nothing of sizes does not hide one that does.
        for (model, window, reply) in [
            ("a/b-large", Some(2_000), Some(100)),
            ("a/c", Some(1_000), Some(100)),
            ("b/b", None, None),
        ] {
            let got = (
                prices.context_window(model),
                prices.max_output_tokens(model),
            );
            assert_eq!(got, (window, reply), "{model}");
        }
    }

    #[test]
    fn what_is_not_in_order_is_named() {
        for (text, said) in [
            ("price = 3", "is not in order"),
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
                "names `gpt`: write provider/model",
            ),
            (
                "[[price]]\nmodel = \"a/*b\"\ninput = 1\noutput = 1",
                "names `a/*b`",
            ),
        ] {
            let error = Prices::parse(text, "own.toml").unwrap_err().to_string();
            assert!(error.starts_with("the price list `own.toml`"), "{error}");
            assert!(error.contains(said), "{text}: {error}");
        }
    }
}
