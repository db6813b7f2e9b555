//! Warnings of a composition; they never stop a query.

use std::fmt;

use serde::{Serialize, Serializer};

use super::segment::SegmentId;

/// An omission or cut; its text is for people and events.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Warning {
    /// The project context was cut.
    ContextCut {
        /// Its tokens.
        tokens: u64,
        /// The limit.
        cap: u64,
    },
    /// Tools for other query types were removed.
    ToolsCutToNeeds {
        /// Tools kept.
        kept: usize,
        /// Tools before.
        of: usize,
    },
    /// Descriptions of tools were removed.
    ToolsCutToNames {
        /// Names kept.
        kept: usize,
    },
    /// An optional segment did not fit.
    SegmentLeftOut {
        /// The segment.
        segment: SegmentId,
        /// Its tokens.
        tokens: u64,
        /// Tokens before it.
        used: u64,
        /// The budget in tokens.
        budget: u64,
    },
    /// An optional segment rendered blank.
    SegmentBlank {
        /// The segment.
        segment: SegmentId,
    },
}

impl fmt::Display for Warning {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::ContextCut { tokens, cap } => {
                write!(f, "project context cut from {tokens} to {cap} tokens")
            }
            Self::ToolsCutToNeeds { kept, of } => write!(
                f,
                "tool list cut to the {kept} of {of} tools that serve this type of query, to stay \
                 within the token budget"
            ),
            Self::ToolsCutToNames { kept } => write!(
                f,
                "tool list cut to the bare names of {kept} tools, to stay within the token budget"
            ),
            Self::SegmentLeftOut {
                segment,
                tokens,
                used,
                budget,
            } => write!(
                f,
                "segment `{segment}` left out: {tokens} tokens after {used} exceed the token \
                 budget of {budget}"
            ),
            Self::SegmentBlank { segment } => {
                write!(
                    f,
                    "segment `{segment}` left out: its file renders to nothing"
                )
            }
        }
    }
}

impl Serialize for Warning {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_warning_says_what_was_left_out_and_why() {
        for (warning, text) in [
            (
                Warning::ContextCut {
                    tokens: 2_500,
                    cap: 2_000,
                },
                "project context cut from 2500 to 2000 tokens",
            ),
            (
                Warning::ToolsCutToNeeds { kept: 2, of: 9 },
                "tool list cut to the 2 of 9 tools that serve this type of query, to stay within \
                 the token budget",
            ),
            (
                Warning::ToolsCutToNames { kept: 2 },
                "tool list cut to the bare names of 2 tools, to stay within the token budget",
            ),
            (
                Warning::SegmentLeftOut {
                    segment: SegmentId::Code,
                    tokens: 10_000,
                    used: 8,
                    budget: 100,
                },
                "segment `code` left out: 10000 tokens after 8 exceed the token budget of 100",
            ),
            (
                Warning::SegmentBlank {
                    segment: SegmentId::Docs,
                },
                "segment `docs` left out: its file renders to nothing",
            ),
        ] {
            assert_eq!(warning.to_string(), text);
            assert_eq!(
                serde_json::to_value(&warning).unwrap(),
                serde_json::json!(text)
            );
        }
    }
}
