//! Oracle: an actor-based orchestrator for many concurrent conversations with LLM agents.
//!
//! A program embeds it like this:
//!
//! ```
//! use oracle_agent::prelude::*;
//!
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() -> Result<(), Box<dyn std::error::Error>> {
//! // By default: the built-in offline model (no key, no network) and a journal in memory.
//! let system = Oracle::builder().project(".").start().await?;
//!
//! // A session is a conversation. Its first message opens it; its name identifies it.
//! let session = system.oracle().session("example")?;
//! let answer = session.answer("Where is the turn policy defined?").await?;
//! assert_eq!(answer.outcome, Outcome::Answered);
//!
//! system.shut_down(std::time::Duration::from_secs(1)).await;
//! # Ok(())
//! # }
//! ```
//!
//! | for | see |
//! |---|---|
//! | own models, tools, journals, policies | [`Builder`], from [`Oracle::builder`] |
//! | conversations: ask, follow, cancel, fork, import | [`Session`] |
//! | an answer as it is written | [`Watch`] |
//! | tools from closures | [`tool::tool_fn`] |
//! | records of one session or of all | [`actor::EventStream`], [`actor::Subscription`] |
//! | operators: pause, steer, approve | [`control`], as calls or as an actor: [`control::port`] |
//! | a system supervised by your own actor | [`Builder::start_under`] |
//! | conversations as children of your own actors | [`actor::port`] |
//! | metrics | [`Oracle::metrics`] |
//! | an HTTP server, or routes for your own | [`Server`], [`http::router`] |
//! | settings | [`config`] |
//! | tests of your own program | `testkit`, a feature |
//!
//! See also `docs/embedding.md` and `examples/`. Systems in one process share no state and no
//! global names.
//!
//! # How it works
//!
//! A **session actor** per conversation is a thin shell around a pure **kernel**. Everything that
//! reaches it becomes an input. The kernel *decides* which records become durable and which effects
//! follow; the shell *appends* the records to the journal, the kernel *evolves* by them, and only
//! then does the shell *perform* the effects. Replay after a crash is `evolve` over the journal.
//!
//! Each module is a crate below `src`, or one of its modules; this crate only joins them:
//!
//! | crate | modules |
//! |---|---|
//! | `oracle-core` | [`model`], the shared vocabulary; [`signal`], [`query`], [`prompt`]; [`kernel`], the decisions. No clock, no network, no runtime |
//! | `oracle-ports` | [`access`], and the ports to models, tools and journals |
//! | `oracle-llm`, `oracle-tool`, `oracle-journal` | [`llm`], [`tool`], [`journal`]: what implements the ports |
//! | `oracle-config` | [`config`]: all settings; most sections are the settings type of one module |
//! | `oracle-runtime` | [`actor`]: scheduling, ownership and failure; `app`: the composition root |
//! | `oracle-control` | [`control`]: commands of operators, in process and over a local socket |
//! | `oracle-mcp` | `mcp`: the tools and conversations for other agents, over the Model Context Protocol |
//! | `oracle-http`, `oracle-cli` | [`http`], `cli`, `telemetry`: the server, the command line, the log |
//! | `oracle-mock`, `oracle-testkit` | `mock`: a model server for tests; `testkit`: whole systems for tests |
//!
//! Depend on this crate alone: the others are its parts, released together with it, and what only they
//! show may change in any release.
//!
//! The feature `cluster` is for hosts that use ractor's feature of that name.

pub mod prelude;

#[doc(inline)]
pub use oracle_config as config;
#[doc(inline)]
pub use oracle_control as control;
#[doc(inline)]
pub use oracle_core::{kernel, model, prompt, query, signal};
#[cfg(feature = "server")]
#[doc(inline)]
pub use oracle_http as http;
#[doc(inline)]
pub use oracle_journal as journal;
#[doc(inline)]
pub use oracle_llm as llm;
#[cfg(feature = "mcp")]
#[doc(inline)]
pub use oracle_mcp as mcp;
#[cfg(feature = "mock")]
#[doc(inline)]
pub use oracle_mock as mock;
#[doc(inline)]
pub use oracle_ports::access;
#[doc(inline)]
pub use oracle_runtime::actor;
#[cfg(feature = "testkit")]
#[doc(inline)]
pub use oracle_testkit as testkit;
#[doc(inline)]
pub use oracle_tool as tool;

#[cfg(feature = "cli")]
#[doc(hidden)]
pub use oracle_cli::{self as cli, telemetry};
#[doc(hidden)]
pub use oracle_runtime::app;

#[doc(inline)]
pub use actor::{
    Answer, AskError, Oracle, Progress, SessionHandle as Session, StartError, System, Watch,
};
#[doc(inline)]
pub use app::{BuildError, Builder};
#[cfg(feature = "server")]
#[doc(inline)]
pub use http::Server;
