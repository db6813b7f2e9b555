//! The tools of Oracle: over a project, on the web, and of MCP servers. The port that they
//! implement is re-exported here.
//!
//! | module | what it is |
//! |---|---|
//! | `guard` | what keeps a tool inside its bounds |
//! | `code` | `code_search` |
//! | `files` | `file_read` |
//! | `history` | `history_search` |
//! | `map` | `repo_map` |
//! | `outline` | the symbols of a source file |
//! | `notes` | `note_search`, `note_read`, `note_write` |
//! | `mcp` | tools of MCP servers |
//! | `web` | `web_search`, `web_fetch` |

#![cfg_attr(
    not(all(feature = "mcp", feature = "project", feature = "web")),
    allow(
        dead_code,
        unused_imports,
        reason = "helpers of modules that are left out"
    )
)]

// `for_model!` and `refuse!`.
#[macro_use]
extern crate oracle_ports;

use crate as tool;
use oracle_core::model;
use oracle_ports::disk;
#[cfg(test)]
use oracle_ports::testkit;

#[cfg(feature = "project")]
mod blocking;
#[cfg(feature = "project")]
mod citations;
#[cfg(feature = "project")]
pub mod code;
#[cfg(feature = "project")]
pub mod files;
#[cfg(feature = "project")]
pub mod guard;
#[cfg(feature = "project")]
pub mod history;
#[cfg(feature = "project")]
pub mod map;
#[cfg(feature = "mcp")]
pub mod mcp;
#[cfg(feature = "project")]
pub mod notes;
#[cfg(feature = "project")]
pub mod outline;
#[cfg(feature = "project")]
mod walk;
#[cfg(feature = "web")]
pub mod web;

pub use oracle_ports::tool::*;
#[cfg(feature = "project")]
pub use {
    citations::{Citation, citations},
    code::{CodeSearchSettings, code_search},
    files::file_read,
    guard::{ProjectRoot, RootError},
    history::history_search,
    map::{RepoMapSettings, repo_map},
    notes::{Notes, NotesSettings, note_read, note_search, note_write},
};
