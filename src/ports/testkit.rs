//! Models, tools, journals and policies that misbehave on demand, and the conformance suites of
//! the ports.

mod backend;
mod crashing;
mod events;
pub mod faulty;
mod intercept;
mod journal;
pub mod journal_conformance;
pub mod llm_conformance;
mod panics;
mod require;
mod tool;
pub mod tool_conformance;

pub use backend::{Probe, SilentBackend};
pub use crashing::{
    AppendPoint, AppendedKinds, Countdown, CrashPoint, CrashPointError, CrashTarget,
    CrashingJournal, Side,
};
pub use events::{line, lines};
pub use intercept::{InterceptedCall, InterceptedJournal, Operation};
pub use journal::{Obstacle, ObstructedJournal};
pub use panics::{PanickingPolicy, Panics};
pub use require::require;
pub use tool::{TestTool, tool_context};
