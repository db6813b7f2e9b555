//! The self-reflection protocol: reads signals from replies.
//!
//! A pipeline without backtracking: **scan** splits a reply into text, signal tags and inline
//! reasoning outside code, marks of chat templates, calls that are written as text, and fences;
//! **filter** matches tags, and decides what is visible and which
//! block counts; **fields** and **schema** make that block a typed signal or a rejection. The
//! [`Stripper`] drives the same pipeline chunk by chunk, so a stream and [`read`] cannot differ. No
//! regexes, no clock, no I/O.
//!
//! **Invariant:** the cost is linear in the reply's length.

mod block;
mod escape;
mod fence;
mod fields;
mod filter;
mod limit;
mod mark;
mod read;
mod report;
mod scan;
mod schema;
mod state;
mod strip;
mod tag;
mod ticks;
mod tidy;
mod view;
mod written;

pub use escape::escape;
pub(crate) use escape::escape_where;
pub use limit::TextLimit;
pub use mark::begins_token;
pub use read::{Finding, Reading, ReplyReading, read, read_reply};
pub use report::{read_report, report_tool};
pub use state::{LOOP_THRESHOLD, SignalState};
pub use strip::Stripper;
pub use written::meant;
