//! Oracle: an actor-based orchestrator for very many concurrent conversations with LLM agents.
//!
//! Put one into a program of yours:
//!
//! ```
//! use std::time::Duration;
//!
//! use oracle_agent::{
//!     actor::Oracle,
//!     model::{Outcome, SessionName, Submission},
//! };
//!
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() -> Result<(), Box<dyn std::error::Error>> {
//! // Over a folder, by the built-in offline model: no key, no network, the journal in memory.
//! let system = Oracle::builder().project(".").start().await?;
//!
//! // A session is a conversation. It opens with its first message, and is found by its name.
//! let session = system.oracle().session(SessionName::new("example")?);
//! let question = Submission::new("Where is the turn policy defined?");
//! let answer = session.answer(question).await?;
//! assert_eq!(answer.outcome, Outcome::Answered);
//!
//! system.shut_down(Duration::from_secs(1)).await;
//! # Ok(())
//! # }
//! ```
//!
//! What to go on with:
//!
//! | for | see |
//! |---|---|
//! | models, tools, journals and policies of your own | [`app::Builder`], begun by [`actor::Oracle::builder`] |
//! | conversations: ask, follow, cancel, fork, import | [`actor::SessionHandle`] |
//! | what happens, of one session or of all, live or from the log | [`actor::EventStream`], [`actor::Subscription`] |
//! | looking after them: pause, steer, budgets, approvals | [`control`], as calls or as an actor: [`control::port`] |
//! | a system below an actor of your own | [`app::Builder::start_under`] |
//! | conversations among the children of your actors | [`actor::port`] |
//! | figures | [`actor::Oracle::figures`] |
//! | an HTTP server around it | [`http::Server`] |
//! | settings | [`config`] |
//! | tests of what you build | `testkit`, a feature |
//!
//! `docs/embedding.md` in the repository goes through them, and `examples/` has whole programs. Systems in one
//! process do not meet: there are no global names, and no state that they share.
//!
//! # How it works
//!
//! A **session actor** per conversation is a thin shell around a pure **kernel**. Whatever reaches
//! it becomes an input; the kernel *decides* which records become durable and which effects
//! follow; the shell *appends* the records to the journal, lets the kernel *evolve* by them, and
//! only then *performs* the effects. Replay after a crash is `evolve` over the journal.
//!
//! The rooms, from the ground up; a room imports only rooms below it:
//!
//! | floor | rooms |
//! |---|---|
//! | 0 | [`model`]: the shared vocabulary, plain data |
//! | 1 | [`signal`]: the protocol by which a model says how it stands |
//! | 2 | [`query`], [`prompt`], [`kernel`], [`llm`], [`tool`], [`journal`], [`access`] |
//! | 3 | [`config`]: what can be set; a section that is about one room is that room's settings |
//! | 4 | [`actor`]: scheduling, ownership and failure around them; [`mock`]: a model server for tests |
//! | 5 | [`control`]: what an operator can do, in process and on a local socket |
//! | 6 | [`cli`], [`http`]: translation of the outside to commands and back; [`telemetry`]: the log |
//! | 7 | [`app`]: puts a system together |
//!
//! `testkit` (feature of that name) puts whole systems together for tests; the feature `cluster` is for hosts that
//! use ractor's.

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
        reason = "helpers of rooms that are left out"
    )
)]

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

#[cfg(feature = "cli")]
pub mod cli;
#[cfg(feature = "server")]
pub mod http;

pub mod app;
#[cfg(feature = "cli")]
pub mod telemetry;

#[cfg(any(test, feature = "testkit"))]
pub mod testkit;
