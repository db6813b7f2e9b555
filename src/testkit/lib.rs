//! Systems in memory for tests, with models, tools, journals and policies that misbehave on demand.
//!
//! It is `oracle_agent::testkit`, with the feature of that name. With
//! `#[tokio::test(start_paused = true)]` the clock skips all waits.
//!
//! ```
//! # mod oracle_agent { pub use oracle_llm as llm; pub use oracle_testkit as testkit; }
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
#[doc(hidden)]
pub mod fuzz;
mod server;
#[cfg(feature = "web")]
mod web;

use oracle_control as control;
use oracle_core::{kernel, model, signal};
use oracle_http as http;
use oracle_llm as llm;
use oracle_ports::{access, journal};
use oracle_runtime::actor;
use oracle_tool as tool;

pub use oracle_http::described as router;
#[cfg(feature = "postgres")]
pub use oracle_journal::cluster as postgres;
pub use oracle_mock as mock;
pub use oracle_runtime::testkit::*;
pub use server::TestServer;
#[cfg(feature = "web")]
pub use web::local_web_fetch;
