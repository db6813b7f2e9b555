//! The ports of Oracle to models, tools and journals, and what needs no more than them.
//!
//! | module | contains |
//! |---|---|
//! | [`llm`] | the port to models |
//! | [`tool`] | the port to tools; tools from closures, the registry, the search in conversations |
//! | [`journal`] | the port to the journal, and the journal in memory |
//! | [`access`] | keys, tenants and their limits |
//! | `testkit` | conformance suites of the ports, and models, tools and journals that misbehave |

pub mod access;
#[doc(hidden)]
pub mod disk;
pub mod journal;
pub mod llm;
#[cfg(any(test, feature = "testkit"))]
pub mod testkit;
pub mod tool;

#[cfg(any(test, feature = "testkit"))]
use oracle_core::kernel;
use oracle_core::model;
