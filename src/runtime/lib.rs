//! The runtime of Oracle: actors around the pure core, and the builder that starts them.
//!
//! | module | contains |
//! |---|---|
//! | [`actor`] | scheduling, ownership and failure; the handles of a host |
//! | [`app`] | the composition root: a configuration and a project become a running system |
//! | `testkit` | whole systems in memory, for tests |

pub mod actor;
pub mod app;
#[cfg(any(test, feature = "testkit"))]
pub mod testkit;

use oracle_config as config;
use oracle_core::{kernel, model, prompt, query, signal};
use oracle_llm as llm;
use oracle_ports::{access, journal};
use oracle_tool as tool;
