//! The self-reflection protocol: reads signals out of replies.
//!
//! A pipeline without backtracking: **scan** (text, signal tags and inline reasoning outside code,
//! fences), **sift** (matches tags, decides what is visible and which block counts), **fields** and
//! **schema** (a typed signal, or the reason why not). The [`Stripper`] drives the same pipeline
//! chunk by chunk, so a stream and [`read`] cannot differ. No regexes, no clock, no I/O.
//!
//! **Invariant:** the cost is linear in the reply.

mod block;
mod escape;
mod fence;
mod fields;
mod lone;
mod read;
mod scan;
mod schema;
mod sift;
mod state;
mod strip;
mod tag;
mod thought;
mod ticks;
mod tidy;
mod view;

pub use escape::escape;
pub use read::{Finding, Reading, read};
pub use state::{LOOP_THRESHOLD, SignalState};
pub use strip::Stripper;
