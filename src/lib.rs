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
//! The modules; each imports only modules of lower layers:
//!
//! | layer | modules |
//! |---|---|
//! | 0 | [`model`]: the shared vocabulary, plain data |
//! | 1 | [`signal`]: the protocol by which a model reports its state; `disk`: private files |
//! | 2 | [`query`], [`prompt`], [`kernel`], [`llm`], [`tool`], [`journal`], [`access`] |
//! | 3 | [`config`]: all settings; most sections are the settings type of one module |
//! | 4 | [`actor`]: scheduling, ownership and failure; [`mock`]: a model server for tests |
//! | 5 | [`control`]: commands of operators, in process and over a local socket |
//! | 6 | [`mcp`]: the tools and conversations for other agents, over the Model Context Protocol |
//! | 7 | `app`: builds a system from a configuration; [`http`]: the server; `telemetry`: the log |
//! | 8 | `cli`: the command line |
//! | 9 | [`prelude`]: what most programs import |
//!
//! The feature `testkit` builds whole systems for tests; `cluster` is for hosts that use ractor's
//! feature of that name.

#![cfg_attr(
    not(all(
        feature = "cli",
        feature = "server",
        feature = "project",
        feature = "sqlite"
    )),
    allow(
        dead_code,
        unused_imports,
        reason = "helpers of modules that are left out"
    )
)]

mod disk;
pub mod model;
pub mod signal;

pub mod access;
pub mod config;
pub mod journal;
pub mod kernel;
pub mod llm;
pub mod prompt;
pub mod query;
pub mod tool;

pub mod actor;
#[cfg(feature = "mock")]
pub mod mock;

pub mod control;
#[cfg(all(feature = "mcp", any(feature = "cli", feature = "server")))]
pub mod mcp;

#[cfg(feature = "cli")]
#[doc(hidden)]
pub mod cli;
#[cfg(feature = "server")]
pub mod http;

#[doc(hidden)]
pub mod app;
pub mod prelude;
#[cfg(feature = "cli")]
#[doc(hidden)]
pub mod telemetry;

#[doc(inline)]
pub use actor::{
    Answer, AskError, Oracle, Progress, SessionHandle as Session, StartError, System, Watch,
};
#[doc(inline)]
pub use app::{BuildError, Builder};
#[cfg(feature = "server")]
#[doc(inline)]
pub use http::Server;

#[cfg(any(test, feature = "testkit"))]
pub mod testkit;
