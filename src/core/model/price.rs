//! Prices of tokens, and the end of a model's life.

use std::sync::Arc;

use super::{
    budget::Day,
    usage::{NanoUsd, Usage},
};

/// Prices of a model per million tokens.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Price {
    /// Tokens sent.
    pub input: NanoUsd,
    /// Cached tokens sent.
    pub cached: NanoUsd,
    /// Tokens sent that were written to the cache.
    pub cache_write: NanoUsd,
    /// Tokens received, reasoning included.
    pub output: NanoUsd,
    /// Prices of all tokens of a call that sends more than these many.
    pub tiers: Vec<(u64, Price)>,
}

impl Price {
    /// The price of a model that costs nothing.
    pub const FREE: Self = Self {
        input: NanoUsd(0),
        cached: NanoUsd(0),
        cache_write: NanoUsd(0),
        output: NanoUsd(0),
        tiers: Vec::new(),
    };

    /// The cost of a call, rounded up to a billionth of a dollar, so that rounding overdraws no
    /// budget.
    pub fn of(&self, usage: &Usage) -> NanoUsd {
        const MILLION: u128 = 1_000_000;
        let reached = |(above, _): &&(u64, Self)| usage.input_tokens > *above;
        let tiers = self.tiers.iter().filter(reached);
        let tier = tiers.max_by_key(|(above, _)| *above);
        let price = tier.map_or(self, |(_, price)| price);
        let cached = usage.cached_tokens.min(usage.input_tokens);
        let uncached = usage.input_tokens - cached;
        let kept = usage.cache_write_tokens.min(uncached);
        let parts = [
            (uncached - kept, price.input),
            (cached, price.cached),
            (kept, price.cache_write),
            (usage.output_tokens, price.output),
        ];
        let parts = parts.map(|(tokens, price)| u128::from(tokens) * u128::from(price.0));
        let sum = parts.into_iter().fold(0, u128::saturating_add);
        NanoUsd(u64::try_from(sum.div_ceil(MILLION)).unwrap_or(u64::MAX))
    }
}

/// When the provider of a model switches it off.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Retirement {
    /// The first day without it.
    pub day: Day,
    /// The model that its provider recommends instead, as `provider/model`.
    pub successor: Option<Arc<str>>,
}

impl Retirement {
    /// How many days before it users are warned.
    const NOTICE: i64 = 60;

    /// A warning and its remedy, if the day is near or past.
    pub fn warning(&self, model: &str, today: Day) -> Option<[String; 2]> {
        let verb = match self.day.0 - today.0 {
            Self::NOTICE.. => return None,
            1.. => "retires",
            _ => "retired",
        };
        let instead = match &self.successor {
            Some(successor) => format!("use `{successor}`"),
            None => "choose another model".to_owned(),
        };
        let what = format!("the model `{model}` {verb} on {}", self.day);
        Some([what, instead])
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const DOLLAR: u64 = 1_000_000_000;

    #[test]
    fn call_cost_is_the_price_of_its_tokens() {
        let price = Price {
            input: NanoUsd(3 * DOLLAR),
            cached: NanoUsd(DOLLAR * 3 / 10),
            cache_write: NanoUsd(DOLLAR * 15 / 4),
            output: NanoUsd(15 * DOLLAR),
            tiers: Vec::new(),
        };
        for (name, input_tokens, cached_tokens, cache_write_tokens, output_tokens, nanos) in [
            ("nothing", 0, 0, 0, 0, 0),
            ("a million sent", 1_000_000, 0, 0, 0, 3 * DOLLAR),
            (
                "a million cached",
                1_000_000,
                1_000_000,
                0,
                0,
                DOLLAR * 3 / 10,
            ),
            (
                "a million kept",
                1_000_000,
                0,
                1_000_000,
                0,
                DOLLAR * 15 / 4,
            ),
            ("a million received", 0, 0, 0, 1_000_000, 15 * DOLLAR),
            (
                "a usual call",
                1_200,
                200,
                400,
                300,
                1_800_000 + 60_000 + 1_500_000 + 4_500_000,
            ),
            ("more cached than sent", 10, 99, 99, 0, 3_000),
            ("more kept than sent", 10, 4, 99, 0, 1_200 + 22_500),
            ("more than there is", u64::MAX, 0, 0, u64::MAX, u64::MAX),
        ] {
            let usage = Usage {
                input_tokens,
                cached_tokens,
                cache_write_tokens,
                output_tokens,
                ..Usage::default()
            };
            assert_eq!(price.of(&usage).0, nanos, "{name}");
        }
        let cheap = Price {
            input: NanoUsd(1),
            cached: NanoUsd(1),
            cache_write: NanoUsd(1),
            output: NanoUsd(1),
            tiers: Vec::new(),
        };
        let one = Usage {
            input_tokens: 1,
            ..Usage::default()
        };
        assert_eq!(cheap.of(&one).0, 1, "never less than it was");
    }

    #[test]
    fn retirements_are_warned_of_sixty_days_before() {
        let day = |date| Day::parse(date).unwrap();
        let end = |successor: Option<&str>| Retirement {
            day: day("2026-11-30"),
            successor: successor.map(Into::into),
        };
        let next = end(Some("a/new"));
        for (today, end, expected) in [
            ("2026-10-01", &next, None),
            (
                "2026-10-02",
                &next,
                Some("the model `a/b` retires on 2026-11-30: use `a/new`"),
            ),
            (
                "2026-11-29",
                &next,
                Some("the model `a/b` retires on 2026-11-30: use `a/new`"),
            ),
            (
                "2026-11-30",
                &next,
                Some("the model `a/b` retired on 2026-11-30: use `a/new`"),
            ),
            (
                "2028-01-01",
                &end(None),
                Some("the model `a/b` retired on 2026-11-30: choose another model"),
            ),
        ] {
            let warning = end.warning("a/b", day(today));
            let warning = warning.map(|warning| warning.join(": "));
            assert_eq!(warning.as_deref(), expected, "{today}");
        }
        assert_eq!(Day::parse("2026-02-30"), None);
    }
}
