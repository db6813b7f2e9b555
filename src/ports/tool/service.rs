//! The services that can search the web: known to every build, so that each reads the same
//! configuration.

use serde::{Deserialize, Serialize};

/// A search service.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum SearchService {
    /// <https://tavily.com>
    Tavily,
    /// <https://brave.com/search/api>
    Brave,
    /// <https://docs.searxng.org>, which has no usual address and needs no key.
    Searxng,
}

impl SearchService {
    /// Its usual base URL, and the environment variable that usually has its key.
    pub const fn usual(self) -> Option<(&'static str, &'static str)> {
        match self {
            Self::Tavily => Some(("https://api.tavily.com", "TAVILY_API_KEY")),
            Self::Brave => Some(("https://api.search.brave.com", "BRAVE_API_KEY")),
            Self::Searxng => None,
        }
    }
}
