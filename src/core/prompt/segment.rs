//! The table of the seven segments.
//!
//! **Invariant:** [`REGISTRY`] is in prompt order, by priority and then by id. Required segments
//! come first, so optional ones cannot crowd them out.

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
use Inclusion::{Always, For};

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

macro_rules! registry {
    ($($id:ident $file:literal $builtin:ident $priority:literal $presence:ident $included:expr;)+) => {
        /// All segments, in prompt order.
        pub static REGISTRY: [Segment; SegmentId::ALL.len()] = [$(Segment {
            id: SegmentId::$id,
            file: $file,
            builtin: oracle_prompts::$builtin,
            priority: $priority,
            included: $included,
            presence: Presence::$presence,
        },)+];
    };
}

registry! {
    Base "base.md" BASE 0 Required Always;
    Signals "signals.md" SIGNALS 1 Required Always;
    Tools "tools-reference.md" TOOLS 2 Required Always;
    Code "code-analysis.md" CODE 10 Optional For(&[QueryType::Code]);
    Conversation "conversation.md" CONVERSATION 10 Optional For(&[QueryType::Conversational]);
    Docs "documentation.md" DOCS 10 Optional For(&[QueryType::Documentation, QueryType::Action]);
    Research "research.md" RESEARCH 10 Optional For(&[QueryType::Research]);
}

/// Whether queries of both types include the same segments.
pub fn is_same_for(one: QueryType, other: QueryType) -> bool {
    let mut all = REGISTRY.iter();
    all.all(|segment| segment.is_included_for(one) == segment.is_included_for(other))
}

impl Segment {
    /// Whether queries of this type include the segment.
    pub fn is_included_for(&self, query_type: QueryType) -> bool {
        match self.included {
            Inclusion::Always => true,
            Inclusion::For(types) => types.contains(&query_type),
        }
    }
}
