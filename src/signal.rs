//! The self-reflection protocol: reading signals out of replies (spec 2, 3).
//!
//! A reply goes through a pipeline that never looks back: **scan** (text, signal tags and inline
//! reasoning outside code, fences), **sift** (tags matched like brackets, what is visible, which block counts),
//! **fields** and **schema** (the block as a typed signal or a reason why not). The [`Stripper`]
//! drives the same pipeline chunk by chunk, so what a stream shows and what [`read`] gives cannot
//! differ. No regexes, no clock, no I/O.
//!
//! **Invariant:** the cost is linear in the reply, whatever its content.

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
