//! Oracle: an actor-based orchestrator for very many concurrent conversations with LLM agents.
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
//! | 2 | [`query`], [`prompt`], [`kernel`], [`llm`], [`tool`], [`journal`], [`config`], [`access`] |
//! | 3 | [`actor`]: scheduling, ownership and failure around them; [`mock`]: a model server for tests |
//! | 4 | [`control`]: what an operator can do, in process and on a local socket |
//! | 5 | [`cli`], [`http`]: translation of the outside to commands and back |
//! | 6 | [`app`]: puts a system together; [`telemetry`]: the log |
//!
//! `testkit` (feature of that name) puts whole systems together for tests.

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
pub mod mock;

pub mod control;

pub mod cli;
pub mod http;

pub mod app;
pub mod telemetry;

#[cfg(any(test, feature = "testkit"))]
pub mod testkit;
