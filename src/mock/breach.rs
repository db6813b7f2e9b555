//! The rules that a request has to keep, and where one was broken.

use std::fmt;

/// A rule that a request has to keep.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Rule {
    /// The body has the form that the dialect demands.
    Form,
    /// A model is named.
    Model,
    /// The key is there where one is demanded.
    Key,
    /// Roles come in the order that the dialect demands.
    Roles,
    /// The conversation does not end with the assistant.
    Ending,
    /// Every tool call has its result.
    Unanswered,
    /// Every result answers a call.
    Unasked,
    /// Tools are listed where the history has calls.
    Tools,
    /// No message is empty.
    Empty,
    /// Arguments of calls are JSON.
    Arguments,
    /// Ids of calls are as short, or have the characters, that the dialect's own servers demand.
    Ids,
    /// So have names of tools.
    Names,
    /// Not more parts are marked for the cache than may be.
    Cache,
    /// Requests, tokens and calls at a time stay within the limits.
    Limits,
}

impl Rule {
    /// Its name in figures and messages.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Form => "form",
            Self::Model => "model",
            Self::Key => "key",
            Self::Roles => "roles",
            Self::Ending => "ending",
            Self::Unanswered => "unanswered",
            Self::Unasked => "unasked",
            Self::Tools => "tools",
            Self::Empty => "empty",
            Self::Arguments => "arguments",
            Self::Ids => "ids",
            Self::Names => "names",
            Self::Cache => "cache",
            Self::Limits => "limits",
        }
    }

    pub(super) fn broken(self, what: impl Into<String>) -> Breach {
        Breach {
            rule: self,
            what: what.into(),
        }
    }
}

/// A rule that a request broke. What it says holds names, places and ids, never contents.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Breach {
    /// Which.
    pub rule: Rule,
    /// Where, and how.
    pub what: String,
}

impl fmt::Display for Breach {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.rule.name(), self.what)
    }
}
