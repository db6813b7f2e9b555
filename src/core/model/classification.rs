//! Query types, and the context and prompt that they need.

use serde::{Deserialize, Serialize};

words! {
    /// The type of a query.
    #[derive(PartialOrd, Ord)]
    pub enum QueryType {
        /// About the implementation.
        Code = "code",
        /// About decisions, architecture, specifications, process.
        Documentation = "documentation",
        /// About the world outside: comparisons, practices, news.
        Research = "research",
        /// Thanks, follow-ups, small talk.
        Conversational = "conversational",
        /// To write or change something.
        Action = "action",
    }
}

/// The sources of information that a query needs.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct Needs {
    /// The code.
    pub needs_code: bool,
    /// Notes and documents.
    pub needs_vault: bool,
    /// The web.
    pub needs_web: bool,
}

impl QueryType {
    /// The sources of the type.
    pub const fn needs(self) -> Needs {
        let (needs_code, needs_vault, needs_web) = match self {
            Self::Code => (true, false, false),
            Self::Documentation | Self::Action => (false, true, false),
            Self::Research => (false, false, true),
            Self::Conversational => (false, false, false),
        };
        Needs {
            needs_code,
            needs_vault,
            needs_web,
        }
    }

    /// The prompt segment of the type.
    pub const fn segment(self) -> &'static str {
        match self {
            Self::Code => "code",
            Self::Documentation | Self::Action => "docs",
            Self::Research => "research",
            Self::Conversational => "conversation",
        }
    }
}

/// The classification of a query.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct QueryClassification {
    /// The type.
    pub query_type: QueryType,
    /// The sources of the type.
    #[serde(flatten)]
    pub needs: Needs,
    /// The confidence, from 0 to 1.
    pub confidence: f64,
    /// The evidence, sorted and without duplicates.
    pub keywords_matched: Vec<String>,
}

impl QueryClassification {
    /// Creates a classification; sorts and deduplicates the keywords.
    pub fn new(query_type: QueryType, confidence: f64, mut keywords_matched: Vec<String>) -> Self {
        keywords_matched.sort_unstable();
        keywords_matched.dedup();
        Self {
            query_type,
            needs: query_type.needs(),
            confidence,
            keywords_matched,
        }
    }
}
