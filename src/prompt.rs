//! Prompt composition: which system prompt a query gets (spec 5; T010, T035–T039).
//!
//! A prompt is put together from up to four of seven [`segment`]s: Markdown templates that are
//! compiled in and that a folder of the operator may overlay, file by file ([`Prompts`]). A
//! [`Composer`] is an immutable snapshot of them with a token budget; [`Cache`] remembers what it
//! composed. What goes in besides the files are the [`Variables`] of a session and the type of the
//! query.
//!
//! Deliberately not here: when a prompt is composed, the reload that publishes a new snapshot, and
//! the schemas of the tools, which go only into the API's tool list.
//!
//! **Invariants**
//! - Same inputs, same bytes. Nothing is read after the start: no clock, no file, no environment.
//! - `base`, `signals` and `tools` are in every prompt, or there is none (FR-012).
//! - Only files are templates. Values are data: never parsed, never an order, never a signal.
//! - What is stable for a profile stands first, so that a provider's cache of the prefix holds. The
//!   list of tools keeps the profile's order; which tools to try first follows the query type, and
//!   is therefore said by the last segment.

mod cache;
mod compose;
mod error;
mod files;
#[cfg(test)]
mod fixture;
pub mod segment;
mod settings;
mod template;
mod variables;
mod warning;

pub use cache::Cache;
pub use compose::{ComposeInput, ComposedPrompt, Composer, SEPARATOR};
pub use error::{Broken, Error, FileFault};
pub use files::{Origin, PromptFile};
pub use segment::{Included, Presence, REGISTRY, Segment, SegmentId, UnknownSegment};
pub use settings::{OutOfRange, Settings};
pub use template::Prompts;
pub use variables::{PROJECT_CONTEXT_TOKENS, Prepared, ToolLine, Variables};
pub use warning::Warning;

/// The estimate of spec 5: floor(characters / 4), a character being a Unicode scalar.
const fn tokens(characters: usize) -> u64 {
    (characters / 4) as u64
}
