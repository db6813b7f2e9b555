//! Budgets of a query.

use serde::{Deserialize, Serialize};

use super::usage::NanoUsd;

/// Budgets, recorded when the query is accepted, so that a later configuration does not change
/// them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(deny_unknown_fields)]
pub struct Limits {
    /// Maximum number of turns, 1–100.
    #[cfg_attr(feature = "openapi", schema(minimum = 1, maximum = 100))]
    pub max_turns: u32,
    /// Maximum tokens, sent and received; unlimited if omitted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "openapi", schema(minimum = 1))]
    pub max_tokens: Option<u64>,
    /// Maximum cost, in billionths of a US dollar, at least 1; unlimited if omitted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "openapi", schema(value_type = Option<u64>, minimum = 1))]
    pub max_cost: Option<NanoUsd>,
}

impl Limits {
    /// Limits the turns only.
    pub const fn turns(max_turns: u32) -> Self {
        Self {
            max_turns,
            max_tokens: None,
            max_cost: None,
        }
    }
}

impl Default for Limits {
    /// 30 turns.
    fn default() -> Self {
        Self::turns(30)
    }
}

/// Some budgets of a query.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[cfg_attr(feature = "cli", derive(clap::Args))]
#[serde(deny_unknown_fields)]
pub struct PartialLimits {
    /// Maximum number of turns, 1–100; the profile's if omitted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "openapi", schema(minimum = 1, maximum = 100))]
    #[cfg_attr(
        feature = "cli",
        arg(id = "turns", long = "turns"),
        arg(value_name = "N", help = "Maximum number of turns")
    )]
    pub max_turns: Option<u32>,
    /// Maximum tokens, sent and received; the profile's if omitted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "openapi", schema(minimum = 1))]
    #[cfg_attr(
        feature = "cli",
        arg(id = "tokens", long = "tokens"),
        arg(value_name = "N", help = "Maximum number of tokens")
    )]
    pub max_tokens: Option<u64>,
    /// Maximum cost, in billionths of a US dollar, at least 1; the profile's if omitted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "openapi", schema(value_type = Option<u64>, minimum = 1))]
    #[cfg_attr(
        feature = "cli",
        arg(id = "cost", long = "cost"),
        arg(value_name = "USD", help = "Maximum cost in US dollars")
    )]
    pub max_cost: Option<NanoUsd>,
}

impl From<Limits> for PartialLimits {
    fn from(limits: Limits) -> Self {
        Self {
            max_turns: Some(limits.max_turns),
            max_tokens: limits.max_tokens,
            max_cost: limits.max_cost,
        }
    }
}

/// Budgets that a caller requests for a query.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum LimitsRequest {
    /// All of them, from the host: an omitted one is unlimited.
    Exact(Limits),
    /// Some, from an operator: they replace the profile's.
    Operator(PartialLimits),
    /// Some, from a user: they apply where they are stricter than the profile's.
    User(PartialLimits),
}

impl LimitsRequest {
    /// The budgets under a profile with these limits.
    pub fn resolve(self, profile: Limits) -> Limits {
        let (wanted, is_user) = match self {
            Self::Exact(limits) => return limits,
            Self::Operator(wanted) => (wanted, false),
            Self::User(wanted) => (wanted, true),
        };
        Limits {
            max_turns: match wanted.max_turns.unwrap_or(profile.max_turns) {
                turns if is_user => turns.min(profile.max_turns),
                turns => turns,
            },
            max_tokens: chosen(wanted.max_tokens, profile.max_tokens, is_user),
            max_cost: chosen(wanted.max_cost, profile.max_cost, is_user),
        }
    }
}

fn chosen<T: Ord>(wanted: Option<T>, profile: Option<T>, is_user: bool) -> Option<T> {
    match (wanted, profile) {
        (Some(wanted), Some(profile)) if is_user => Some(wanted.min(profile)),
        (wanted, profile) => wanted.or(profile),
    }
}

impl From<Limits> for LimitsRequest {
    fn from(limits: Limits) -> Self {
        Self::Exact(limits)
    }
}

impl From<LimitsRequest> for PartialLimits {
    fn from(request: LimitsRequest) -> Self {
        match request {
            LimitsRequest::Exact(limits) => limits.into(),
            LimitsRequest::Operator(wanted) | LimitsRequest::User(wanted) => wanted,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_user_s_limits_are_bounded_by_the_profile() {
        let of = |max_turns, max_tokens, max_cost: Option<u64>| Limits {
            max_turns,
            max_tokens,
            max_cost: max_cost.map(NanoUsd),
        };
        let some = |max_turns, max_tokens, max_cost: Option<u64>| PartialLimits {
            max_turns,
            max_tokens,
            max_cost: max_cost.map(NanoUsd),
        };
        let profile = of(3, Some(1_000), None);
        for (wanted, user, operator) in [
            (some(None, None, None), profile, profile),
            (
                some(Some(100), None, None),
                profile,
                of(100, Some(1_000), None),
            ),
            (
                some(Some(2), Some(2_000), Some(7)),
                of(2, Some(1_000), Some(7)),
                of(2, Some(2_000), Some(7)),
            ),
            (
                some(None, Some(10), None),
                of(3, Some(10), None),
                of(3, Some(10), None),
            ),
        ] {
            assert_eq!(LimitsRequest::User(wanted).resolve(profile), user);
            assert_eq!(LimitsRequest::Operator(wanted).resolve(profile), operator);
        }
        let exact = Limits::turns(50);
        assert_eq!(LimitsRequest::from(exact).resolve(profile), exact);
    }
}
