//! Composition of system prompts; see docs/protocol.md, "Prompt composition".
//!
//! A prompt joins up to four of seven [`segment`]s: built-in Markdown templates that a folder may
//! overlay file by file ([`Prompts`]). A [`Composer`] is an immutable snapshot of them with a token
//! budget; [`Cache`] keeps composed prompts.
//!
//! **Invariants**
//! - Equal inputs give equal bytes: nothing reads a clock, file or environment after the start.
//! - `base`, `signals` and `tools` are in every prompt. Tool schemas are in none.
//! - Only files are templates. Values are data: never parsed, never a signal.
//! - Parts that are stable for a profile come first, for the provider's prefix cache. The tool list
//!   keeps the profile's order; the last segment says which tools suit the query type.

mod cache;
mod compose;
mod error;
mod files;
pub mod segment;
mod template;
#[cfg(test)]
mod tests;
mod variables;

pub use cache::Cache;
pub use compose::{ComposeInput, ComposedPrompt, Composer, SEPARATOR, TOKEN_BUDGET};
pub use error::{BrokenFile, Error, FileFault};
pub use files::{Origin, PromptFile};
pub use segment::{Inclusion, Presence, REGISTRY, Segment, SegmentId};
pub use template::Prompts;
pub use variables::{PROJECT_CONTEXT_TOKENS, PreparedVariables, ToolLine, Variables};

/// Estimated as a quarter of the characters, rounded down.
const fn tokens(characters: usize) -> u64 {
    (characters / 4) as u64
}
