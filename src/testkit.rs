//! Systems in memory for tests, with models, tools, journals and policies that misbehave on demand.
//!
//! Behind the feature `testkit`. With `#[tokio::test(start_paused = true)]` the clock skips all
//! waits.
//!
//! ```
//! use oracle_agent::{
//!     llm::Scripted,
//!     testkit::{TestError, TestOracle},
//! };
//!
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() -> Result<(), TestError> {
//! let oracle = TestOracle::new(Scripted::new().reply("Hello.")).start().await?;
//! let session = oracle.session("s")?;
//! let answer = session.ask("hello").await?;
//! assert_eq!(answer.text, "Hello.");
//! assert_eq!(session.kinds().await?.last().map(String::as_str), Some("query.finished"));
//! # Ok(())
//! # }
//! ```

mod backend;
mod crashing;
mod events;
pub mod faulty;
#[doc(hidden)]
pub mod fuzz;
mod intercept;
mod journal;
pub mod journal_conformance;
pub mod llm_conformance;
mod oracle;
mod panics;
#[cfg(feature = "postgres")]
pub mod postgres;
mod require;
mod server;
mod session;
mod tool;
pub mod tool_conformance;

pub use crate::{http::described as router, mock};
pub use backend::{Probe, SilentBackend};
pub use crashing::{
    AppendPoint, AppendedKinds, Countdown, CrashPoint, CrashPointError, CrashTarget,
    CrashingJournal, Side,
};
pub use events::{line, lines};
pub use intercept::{InterceptedCall, InterceptedJournal, Operation};
pub use journal::{Obstacle, ObstructedJournal};
pub use oracle::{TestError, TestOracle, TestSystem, advance_time};
pub use panics::{PanickingPolicy, Panics};
pub use require::require;
pub use server::TestServer;
pub use session::TestSession;
#[cfg(feature = "web")]
pub use tool::local_web_fetch;
pub use tool::{TestTool, tool_context};
