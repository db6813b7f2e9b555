//! Sections that govern one query: turns, budgets, doubt and delegation (spec 6, 7, 8, 11).

use serde::{Deserialize, Deserializer, Serialize, de};

use super::value::{Count, FilePath, NotAllowed, Share, Usd};

/// `[oracle]`: turns, and when to warn (T031). These four have environment variables of their own.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Oracle {
    /// Most turns of a query.
    pub max_turns: Count<1, 100>,
    /// Share of the turns at which a query is warned of.
    pub iteration_warning_threshold: Share,
    /// Share of a token or cost budget at which a query is warned of.
    pub token_warning_threshold: Share,
    /// Share of the context window at which a query is warned of.
    pub context_warning_threshold: Share,
}

impl Default for Oracle {
    fn default() -> Self {
        Self {
            max_turns: Count::of::<30>(),
            iteration_warning_threshold: Share::of::<7_000>(),
            token_warning_threshold: Share::of::<8_000>(),
            context_warning_threshold: Share::of::<7_000>(),
        }
    }
}

/// `[budget]`: what a query may use besides turns, and what a session may; nothing is limited unless it
/// is set.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Budget {
    /// Most tokens of a query, sent and received.
    pub max_tokens: Option<Count<1, 4_000_000_000>>,
    /// Most money of a query, in US dollars.
    pub max_cost_usd: Option<Usd>,
    /// Most tokens of all queries of a session together.
    pub session_max_tokens: Option<Count<1, 4_000_000_000>>,
    /// Most money of all queries of a session together, in US dollars.
    pub session_max_cost_usd: Option<Usd>,
    /// A price list whose entries come before the built-in ones.
    pub prices: Option<FilePath>,
}

/// `[fallback]`: when to doubt the model (spec 7).
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Fallback {
    /// Turns without a signal that call the fallback.
    pub silence_turns: Count<1, 100>,
    /// Signals with less confidence than this call the fallback.
    pub low_confidence: Share,
}

impl Default for Fallback {
    fn default() -> Self {
        Self {
            silence_turns: Count::of::<3>(),
            low_confidence: Share::of::<3_000>(),
        }
    }
}

/// `[turn]`: what follows a turn (spec 8).
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Turn {
    /// What a reply without a signal leads to.
    pub on_missing_signal: OnMissingSignal,
}

impl Default for Turn {
    fn default() -> Self {
        Self {
            on_missing_signal: OnMissingSignal::Auto,
        }
    }
}

/// What a reply without a signal leads to (spec 8, row 18).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum OnMissingSignal {
    /// The reply is kept, and a short turn asks for the signal alone.
    Auto,
    /// The next turn, with a reminder of the protocol.
    Remind,
    /// The end: the reply is the answer.
    Finish,
}

impl<'de> Deserialize<'de> for OnMissingSignal {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        match String::deserialize(deserializer)
            .unwrap_or_default()
            .as_str()
        {
            "auto" => Ok(Self::Auto),
            "remind" => Ok(Self::Remind),
            "finish" => Ok(Self::Finish),
            _ => Err(de::Error::custom(NotAllowed(
                "\"auto\", \"remind\" or \"finish\"".to_owned(),
            ))),
        }
    }
}

/// `[delegation]`: handing work to sub-agents (spec 11).
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Delegation {
    /// How deep sub-agents may nest; 0 forbids them.
    pub max_depth: Count<0, 3>,
    /// Most sub-agents that one query may start.
    pub max_children: Count<1, 100>,
    /// Token budget of a sub-agent for which the model named none; capped by what the parent has
    /// left.
    pub default_tokens: Count<100, 100_000>,
}

impl Default for Delegation {
    fn default() -> Self {
        Self {
            max_depth: Count::of::<1>(),
            max_children: Count::of::<8>(),
            default_tokens: Count::of::<20_000>(),
        }
    }
}
