//! Composition of system prompts.
//!
//! A prompt has up to four of seven [`segment`]s: built-in Markdown templates that a folder may
//! overlay, file by file ([`Prompts`]). A [`Composer`] is an immutable snapshot of them with a
//! token budget; [`Cache`] keeps composed prompts. Further inputs are the [`Variables`] of a
//! session and the type of the query. Tool schemas are not in prompts.
//!
//! **Invariants**
//! - Equal inputs give equal bytes: no clock, file or environment is read after the start.
//! - `base`, `signals` and `tools` are in every prompt.
//! - Only files are templates. Values are data: never parsed, never a signal.
//! - What is stable for a profile comes first, for the provider's prefix cache. The tool list keeps
//!   the profile's order; the last segment says which tools suit the query type.

mod cache;
mod compose;
mod error;
mod files;
#[cfg(test)]
mod fixture;
pub mod segment;
mod template;
mod variables;

pub use cache::Cache;
pub use compose::{ComposeInput, ComposedPrompt, Composer, SEPARATOR, TOKEN_BUDGET};
pub use error::{Broken, Error, FileFault};
pub use files::{Origin, PromptFile};
pub use segment::{Included, Presence, REGISTRY, Segment, SegmentId, UnknownSegment};
pub use template::Prompts;
pub use variables::{PROJECT_CONTEXT_TOKENS, Prepared, ToolLine, Variables};

/// Estimated tokens: floor(characters / 4).
const fn tokens(characters: usize) -> u64 {
    (characters / 4) as u64
}
