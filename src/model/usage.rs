//! Tokens and cost of model calls.

use std::{fmt, iter::Sum, ops::AddAssign};

use serde::{Deserialize, Serialize};

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
#[cfg_attr(feature = "server", derive(utoipa::ToSchema))]
#[serde(default)]
pub struct Usage {
    /// Tokens sent, cached ones included.
    pub input_tokens: u64,
    /// Cached tokens sent.
    pub cached_tokens: u64,
    /// Tokens written to the cache.
    #[serde(skip_serializing_if = "super::is_default")]
    pub cache_write_tokens: u64,
    /// Tokens received, reasoning included.
    pub output_tokens: u64,
    /// Cost by the configured prices; 0 without prices.
    pub cost: NanoUsd,
}

impl Usage {
    /// Tokens sent and received, as token budgets count.
    pub const fn total_tokens(&self) -> u64 {
        self.input_tokens.saturating_add(self.output_tokens)
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
            output_tokens: each(self.output_tokens, other.output_tokens),
            cost: NanoUsd(each(self.cost.0, other.cost.0)),
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
pub(crate) mod usd {
    use serde::{Deserializer, Serializer, de};

    use super::NanoUsd;
    use crate::model::decimal;

    /// Largest allowed amount, in millionths.
    const MOST: u64 = 1_000_000 * 1_000_000;

    pub(crate) fn parse(text: &str) -> Option<NanoUsd> {
        let micros = decimal::scaled(text, 6).filter(|micros| *micros <= MOST)?;
        Some(NanoUsd(micros * 1_000))
    }

    /// The nearest float. Its shortest decimal is the exact amount, which has at most 13 digits.
    #[expect(clippy::cast_precision_loss, reason = "a float holds 15 digits")]
    pub(crate) fn dollars(money: NanoUsd) -> f64 {
        (money.0 / 1_000) as f64 / 1_000_000.0
    }

    pub(crate) fn serialize<S: Serializer>(
        money: &Option<NanoUsd>,
        serializer: S,
    ) -> Result<S::Ok, S::Error> {
        match money {
            Some(money) => serializer.serialize_some(&dollars(*money)),
            None => serializer.serialize_none(),
        }
    }

    pub(crate) fn deserialize<'de, D: Deserializer<'de>>(
        deserializer: D,
    ) -> Result<Option<NanoUsd>, D::Error> {
        let allowed = "a price is US dollars from 0 to 1000000, with at most 6 decimals";
        let text = decimal::digits(deserializer)?;
        let price = parse(&text).ok_or_else(|| de::Error::custom(allowed));
        price.map(Some)
    }
}
