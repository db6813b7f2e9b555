//! All integration tests in one binary, which links once.
#![expect(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "a test that fails should stop where it failed"
)]

mod actors;
mod classification;
mod cli;
mod config;
mod control;
mod embedding;
mod files;
mod fuzz;
mod http;
#[cfg(target_os = "linux")]
mod mcp;
mod mcp_server;
mod models;
mod paths;
mod prompts;
mod signals;
mod tidy;
mod tools;
mod turns;
mod weak;
