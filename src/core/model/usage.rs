//! Tokens and cost of model calls.

use std::{fmt, iter::Sum, ops::AddAssign};

use serde::{Deserialize, Serialize};

use super::price::Price;

/// Billionths of a US dollar.
#[derive(
    Debug, Clone, Copy, Default, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize,
)]
#[serde(transparent)]
pub struct NanoUsd(pub u64);

impl fmt::Display for NanoUsd {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let micros = self.0 / 1_000;
        write!(f, "${}.{:06}", micros / 1_000_000, micros % 1_000_000)
    }
}

/// Tokens and cost of model calls.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema), schema(default))]
#[serde(from = "WrittenUsage", into = "WrittenUsage")]
pub struct Usage {
    /// Tokens sent, cached ones included.
    pub input_tokens: u64,
    /// Cached tokens sent.
    pub cached_tokens: u64,
    /// Tokens written to the cache; left out if there are none.
    #[cfg_attr(feature = "openapi", schema(required = false))]
    pub cache_write_tokens: u64,
    /// Tokens that the call before had sent, too, so that the provider's cache could have them; left out
    /// if there are none, or the cache is not known.
    #[cfg_attr(feature = "openapi", schema(required = false))]
    pub cacheable_tokens: u64,
    /// Of these, tokens that the cache did not have; left out if there are none.
    #[cfg_attr(feature = "openapi", schema(required = false))]
    pub missed_tokens: u64,
    /// Tokens received, reasoning included.
    pub output_tokens: u64,
    /// Tokens of reasoning received, as far as the provider counts them; left out if there are none.
    #[cfg_attr(feature = "openapi", schema(required = false))]
    pub reasoning_tokens: u64,
    /// Cost by the configured prices; null if a price is unknown. `known_cost` is then the cost of
    /// the calls whose price is known.
    #[cfg_attr(feature = "openapi", schema(value_type = Option<NanoUsd>))]
    pub cost: NanoUsd,
    /// Whether it includes a call whose price is unknown, so that `cost` is only a part.
    #[cfg_attr(feature = "openapi", schema(ignore))]
    pub unpriced: bool,
}

/// Usage in JSON: an unknown cost is null, never 0.
#[derive(Default, Serialize, Deserialize)]
#[serde(default)]
struct WrittenUsage {
    input_tokens: u64,
    cached_tokens: u64,
    #[serde(skip_serializing_if = "super::is_default")]
    cache_write_tokens: u64,
    #[serde(skip_serializing_if = "super::is_default")]
    cacheable_tokens: u64,
    #[serde(skip_serializing_if = "super::is_default")]
    missed_tokens: u64,
    output_tokens: u64,
    #[serde(skip_serializing_if = "super::is_default")]
    reasoning_tokens: u64,
    cost: Option<NanoUsd>,
    #[serde(skip_serializing_if = "Option::is_none")]
    known_cost: Option<NanoUsd>,
}

impl From<WrittenUsage> for Usage {
    fn from(written: WrittenUsage) -> Self {
        Self {
            input_tokens: written.input_tokens,
            cached_tokens: written.cached_tokens,
            cache_write_tokens: written.cache_write_tokens,
            cacheable_tokens: written.cacheable_tokens,
            missed_tokens: written.missed_tokens,
            output_tokens: written.output_tokens,
            reasoning_tokens: written.reasoning_tokens,
            cost: written.cost.or(written.known_cost).unwrap_or_default(),
            unpriced: written.known_cost.is_some(),
        }
    }
}

impl From<Usage> for WrittenUsage {
    fn from(usage: Usage) -> Self {
        Self {
            input_tokens: usage.input_tokens,
            cached_tokens: usage.cached_tokens,
            cache_write_tokens: usage.cache_write_tokens,
            cacheable_tokens: usage.cacheable_tokens,
            missed_tokens: usage.missed_tokens,
            output_tokens: usage.output_tokens,
            reasoning_tokens: usage.reasoning_tokens,
            cost: usage.known_cost(),
            known_cost: usage.unpriced.then_some(usage.cost),
        }
    }
}

impl Usage {
    /// Tokens sent and received, as token budgets count.
    pub const fn total_tokens(&self) -> u64 {
        self.input_tokens.saturating_add(self.output_tokens)
    }

    /// The share of cacheable tokens that were read from the provider's cache, from 0 to 1; `None` if
    /// there were none.
    pub fn cache_share(&self) -> Option<f64> {
        let missed = self.missed_tokens as f64 / self.cacheable_tokens.max(1) as f64;
        (self.cacheable_tokens > 0).then_some(1.0 - missed)
    }

    /// The cost, unless a part of it is unknown.
    pub fn known_cost(&self) -> Option<NanoUsd> {
        (!self.unpriced).then_some(self.cost)
    }

    /// This usage with its cost by the model's price, unless the provider reported it.
    #[must_use]
    pub fn priced(self, price: Option<&Price>) -> Self {
        match price {
            _ if self.cost.0 > 0 || self.total_tokens() == 0 => self,
            Some(price) => Self {
                cost: price.of(&self),
                ..self
            },
            None => Self {
                unpriced: true,
                ..self
            },
        }
    }

    /// Whether it is zero.
    pub fn is_none(&self) -> bool {
        *self == Self::default()
    }

    /// This usage without `part`, saturating at zero.
    #[must_use]
    pub fn less(self, part: Self) -> Self {
        self.combined(part, u64::saturating_sub)
    }

    fn combined(self, other: Self, each: fn(u64, u64) -> u64) -> Self {
        Self {
            input_tokens: each(self.input_tokens, other.input_tokens),
            cached_tokens: each(self.cached_tokens, other.cached_tokens),
            cache_write_tokens: each(self.cache_write_tokens, other.cache_write_tokens),
            cacheable_tokens: each(self.cacheable_tokens, other.cacheable_tokens),
            missed_tokens: each(self.missed_tokens, other.missed_tokens),
            output_tokens: each(self.output_tokens, other.output_tokens),
            reasoning_tokens: each(self.reasoning_tokens, other.reasoning_tokens),
            cost: NanoUsd(each(self.cost.0, other.cost.0)),
            unpriced: self.unpriced || other.unpriced,
        }
    }
}

impl AddAssign for Usage {
    fn add_assign(&mut self, other: Self) {
        *self = self.combined(other, u64::saturating_add);
    }
}

impl Sum for Usage {
    fn sum<I: Iterator<Item = Self>>(usages: I) -> Self {
        let add = |sum: Self, usage| sum.combined(usage, u64::saturating_add);
        usages.fold(Self::default(), add)
    }
}

/// Amounts of money as US dollars, exact to a millionth.
#[doc(hidden)]
pub mod usd {
    use serde::{Deserializer, Serialize as _, Serializer, de};

    use super::NanoUsd;
    use crate::model::decimal;

    /// Largest allowed amount, in millionths.
    const MOST: u64 = 1_000_000 * 1_000_000;

    pub fn parse(text: &str) -> Option<NanoUsd> {
        let micros = decimal::scaled(text, 6).filter(|micros| *micros <= MOST)?;
        Some(NanoUsd(micros * 1_000))
    }

    /// The nearest float. Its shortest decimal is the exact amount, which has at most 13 digits.
    #[expect(clippy::cast_precision_loss, reason = "a float holds 15 digits")]
    pub fn dollars(money: NanoUsd) -> f64 {
        (money.0 / 1_000) as f64 / 1_000_000.0
    }

    pub fn serialize<S: Serializer>(
        money: &Option<NanoUsd>,
        serializer: S,
    ) -> Result<S::Ok, S::Error> {
        money.map(dollars).serialize(serializer)
    }

    pub fn deserialize<'de, D: Deserializer<'de>>(
        deserializer: D,
    ) -> Result<Option<NanoUsd>, D::Error> {
        let allowed = "a price is US dollars from 0 to 1000000, with at most 6 decimals";
        let text = decimal::digits(deserializer)?;
        let price = parse(&text).ok_or_else(|| de::Error::custom(allowed));
        price.map(Some)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn unknown_cost_is_null_in_json_and_stays_unknown_in_sums() {
        let call = Usage {
            input_tokens: 10,
            output_tokens: 5,
            ..Usage::default()
        };
        let dear = Price {
            input: NanoUsd(1_000_000),
            ..Price::FREE
        };
        let (known, free) = (call.priced(Some(&dear)), call.priced(Some(&Price::FREE)));
        let unknown = call.priced(None);
        let reported = Usage {
            cost: NanoUsd(7),
            ..call
        };
        for (what, usage, cost) in [
            ("known", known, r#""cost":10"#),
            ("free", free, r#""cost":0"#),
            ("unknown", unknown, r#""cost":null,"known_cost":0"#),
            ("reported", reported.priced(None), r#""cost":7"#),
            ("nothing used", Usage::default().priced(None), r#""cost":0"#),
            (
                "a part is unknown",
                [known, unknown].into_iter().sum(),
                r#""cost":null,"known_cost":10"#,
            ),
        ] {
            let json = serde_json::to_string(&usage).unwrap();
            assert!(json.ends_with(&format!("{cost}}}")), "{what}: {json}");
            assert_eq!(
                serde_json::from_str::<Usage>(&json).unwrap(),
                usage,
                "{what}"
            );
        }
        let old = r#"{"input_tokens":3,"cached_tokens":0,"output_tokens":1,"cost":2}"#;
        let old: Usage = serde_json::from_str(old).unwrap();
        assert_eq!(old.known_cost(), Some(NanoUsd(2)));
    }
}
