//! The table of the seven segments.
//!
//! **Invariant:** [`REGISTRY`] is in prompt order, by priority and then by id. Required segments
//! come first, so optional ones cannot crowd them out.

use std::str::FromStr;

use crate::model::{QueryType, words};

words! {
    /// The id of a segment.
    #[derive(PartialOrd, Ord)]
    pub enum SegmentId {
        /// Identity, constraints and the project.
        Base = "base",
        /// The signal protocol.
        Signals = "signals",
        /// The session's tools.
        Tools = "tools",
        /// Questions about code.
        Code = "code",
        /// Small talk.
        Conversation = "conversation",
        /// Answers from notes, and changes to them.
        Docs = "docs",
        /// Answers from the web.
        Research = "research",
    }
}

/// The queries that include a segment.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Inclusion {
    /// All queries.
    Always,
    /// Queries of these types.
    For(&'static [QueryType]),
}

/// Whether a prompt can do without a segment.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Presence {
    /// Composition fails without it.
    Required,
    /// It may be omitted, with a warning.
    Optional,
}

/// An entry of [`REGISTRY`].
#[derive(Debug, PartialEq, Eq)]
pub struct Segment {
    /// Segment id.
    pub id: SegmentId,
    /// File name, built in and in an overlay.
    pub file: &'static str,
    /// Built-in text.
    pub builtin: &'static str,
    /// Lower comes earlier.
    pub priority: u8,
    /// Queries that include the segment.
    pub included: Inclusion,
    /// Whether the segment is required.
    pub presence: Presence,
}

macro_rules! builtin {
    ($file:literal) => {
        include_str!(concat!(
            env!("CARGO_MANIFEST_DIR"),
            "/prompts/oracle/",
            $file
        ))
    };
}

/// All segments, in prompt order.
pub static REGISTRY: [Segment; 7] = [
    Segment {
        id: SegmentId::Base,
        file: "base.md",
        builtin: builtin!("base.md"),
        priority: 0,
        included: Inclusion::Always,
        presence: Presence::Required,
    },
    Segment {
        id: SegmentId::Signals,
        file: "signals.md",
        builtin: builtin!("signals.md"),
        priority: 1,
        included: Inclusion::Always,
        presence: Presence::Required,
    },
    Segment {
        id: SegmentId::Tools,
        file: "tools-reference.md",
        builtin: builtin!("tools-reference.md"),
        priority: 2,
        included: Inclusion::Always,
        presence: Presence::Required,
    },
    Segment {
        id: SegmentId::Code,
        file: "code-analysis.md",
        builtin: builtin!("code-analysis.md"),
        priority: 10,
        included: Inclusion::For(&[QueryType::Code]),
        presence: Presence::Optional,
    },
    Segment {
        id: SegmentId::Conversation,
        file: "conversation.md",
        builtin: builtin!("conversation.md"),
        priority: 10,
        included: Inclusion::For(&[QueryType::Conversational]),
        presence: Presence::Optional,
    },
    Segment {
        id: SegmentId::Docs,
        file: "documentation.md",
        builtin: builtin!("documentation.md"),
        priority: 10,
        included: Inclusion::For(&[QueryType::Documentation, QueryType::Action]),
        presence: Presence::Optional,
    },
    Segment {
        id: SegmentId::Research,
        file: "research.md",
        builtin: builtin!("research.md"),
        priority: 10,
        included: Inclusion::For(&[QueryType::Research]),
        presence: Presence::Optional,
    },
];

impl Segment {
    /// Whether queries of this type include the segment.
    #[must_use]
    pub fn is_included_for(&self, query_type: QueryType) -> bool {
        match self.included {
            Inclusion::Always => true,
            Inclusion::For(types) => types.contains(&query_type),
        }
    }
}

/// An unknown segment id.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("unknown segment `{0}`: use base, signals, tools, code, docs, research or conversation")]
pub struct UnknownSegment(pub String);

impl FromStr for SegmentId {
    type Err = UnknownSegment;
    fn from_str(name: &str) -> Result<Self, UnknownSegment> {
        let found = Self::ALL.into_iter().find(|id| id.as_str() == name);
        found.ok_or_else(|| UnknownSegment(name.to_owned()))
    }
}
