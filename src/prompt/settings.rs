//! Settings of prompts.

use std::ops::RangeInclusive;

/// Settings of composition.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Settings {
    /// Most estimated tokens of a prompt, 1–1,000,000.
    pub token_budget: u64,
    /// Most prompts of a [`Cache`](super::Cache), 1–65,536.
    pub cache_entries: u64,
}

impl Default for Settings {
    /// 8,000 tokens; 256 built-in prompts take some 3 MB.
    fn default() -> Self {
        Self {
            token_budget: 8_000,
            cache_entries: 256,
        }
    }
}

impl Settings {
    const TOKEN_BUDGET: RangeInclusive<u64> = 1..=1_000_000;
    const CACHE_ENTRIES: RangeInclusive<u64> = 1..=65_536;

    /// Validates every value.
    ///
    /// # Errors
    /// All values out of range.
    pub fn validate(&self) -> Result<(), Vec<OutOfRange>> {
        let problems: Vec<_> = [
            ("token_budget", self.token_budget, Self::TOKEN_BUDGET),
            ("cache_entries", self.cache_entries, Self::CACHE_ENTRIES),
        ]
        .into_iter()
        .filter(|(_, value, range)| !range.contains(value))
        .map(|(key, value, range)| OutOfRange {
            key,
            value,
            least: *range.start(),
            most: *range.end(),
        })
        .collect();
        if problems.is_empty() {
            Ok(())
        } else {
            Err(problems)
        }
    }
}

/// A setting out of range.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{key}` is `{value}`: use {least} to {most}")]
pub struct OutOfRange {
    /// The setting.
    pub key: &'static str,
    /// The value.
    pub value: u64,
    /// The minimum.
    pub least: u64,
    /// The maximum.
    pub most: u64,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_out_of_range_are_reported_all_at_once() {
        let budget = |value| OutOfRange {
            key: "token_budget",
            value,
            least: 1,
            most: 1_000_000,
        };
        let entries = |value| OutOfRange {
            key: "cache_entries",
            value,
            least: 1,
            most: 65_536,
        };
        for (name, token_budget, cache_entries, expected) in [
            ("least", 1, 1, Ok(())),
            ("most", 1_000_000, 65_536, Ok(())),
            ("no budget", 0, 256, Err(vec![budget(0)])),
            (
                "both",
                1_000_001,
                65_537,
                Err(vec![budget(1_000_001), entries(65_537)]),
            ),
        ] {
            let settings = Settings {
                token_budget,
                cache_entries,
            };
            assert_eq!(settings.validate(), expected, "{name}");
        }
        assert_eq!(Settings::default().validate(), Ok(()), "the defaults");
        assert_eq!(
            Settings::default().token_budget,
            8_000,
            "T038: MAX_PROMPT_TOKENS"
        );
    }

    #[test]
    fn the_error_names_key_value_and_range() {
        let error = OutOfRange {
            key: "token_budget",
            value: 0,
            least: 1,
            most: 9,
        };
        assert_eq!(error.to_string(), "`token_budget` is `0`: use 1 to 9");
    }
}
