//! Prices of tokens.

use super::usage::{NanoUsd, Usage};

/// Prices of a model per million tokens.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Price {
    /// Tokens sent.
    pub input: NanoUsd,
    /// Cached tokens sent.
    pub cached: NanoUsd,
    /// Tokens sent that were written to the cache.
    pub cache_write: NanoUsd,
    /// Tokens received, reasoning included.
    pub output: NanoUsd,
}

impl Price {
    /// The cost of a call, rounded up to a billionth of a dollar, so that rounding overdraws no
    /// budget.
    pub fn of(&self, usage: &Usage) -> NanoUsd {
        const MILLION: u128 = 1_000_000;
        let cached = usage.cached_tokens.min(usage.input_tokens);
        let uncached = usage.input_tokens - cached;
        let kept = usage.cache_write_tokens.min(uncached);
        let parts = [
            (uncached - kept, self.input),
            (cached, self.cached),
            (kept, self.cache_write),
            (usage.output_tokens, self.output),
        ];
        let parts = parts.map(|(tokens, price)| u128::from(tokens) * u128::from(price.0));
        let sum = parts.into_iter().fold(0, u128::saturating_add);
        NanoUsd(u64::try_from(sum.div_ceil(MILLION)).unwrap_or(u64::MAX))
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
        };
        let one = Usage {
            input_tokens: 1,
            ..Usage::default()
        };
        assert_eq!(cheap.of(&one).0, 1, "never less than it was");
    }
}
