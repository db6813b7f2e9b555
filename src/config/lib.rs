//! Configuration: all keys, the sources of their values, and the problems of a start.
//!
//! [`load`] applies file, environment and command line over the defaults and reports all problems
//! at once. `config/oracle.toml` describes every key; a test compares it with the defaults.
//!
//! This crate reads no environment and no clock, and opens only the file that it is given. Secrets
//! have no keys here; the configuration names only their sources.

use std::ffi::{OsStr, OsString};

#[cfg(test)]
use crate as config;
use oracle_core::{kernel, model};
use oracle_llm as llm;
use oracle_ports::{access, tool};

mod catalogue;
mod check;
mod load;
mod models;
mod rule;
mod sections;

pub use catalogue::{Prices, PricesError};
pub use load::{
    ConfigFile, Loaded, Origin, Problem, Setting, Sources, load, may_be_secret, near_misses,
};
pub use models::{ChainReason, ModelChain, ModelChoice, NotAllowed, PRESETS, Preset, base_url};
#[doc(hidden)]
pub use rule::full_key;
pub use sections::{
    Actors, Budget, Cluster, Config, Data, Database, McpServer, Model, NoDataDirectory, Notes,
    Oracle, PriceTier, Profile, Prompt, Provider, ProviderModel, Query, Server, Session,
    StreamText, Supervisor, Tools, Turn, Web,
};

/// The environment variables, read once at the start and then passed as a value.
#[derive(Debug, Clone, Default)]
pub struct Environment(Vec<(OsString, OsString)>);

impl Environment {
    /// Creates an environment of these names and values.
    pub fn new(pairs: impl IntoIterator<Item = (OsString, OsString)>) -> Self {
        Self(pairs.into_iter().collect())
    }

    /// All names and values.
    pub fn pairs(&self) -> &[(OsString, OsString)] {
        &self.0
    }

    /// The value of a variable.
    pub fn get(&self, name: &str) -> Option<&OsStr> {
        let named = self.0.iter().find(|(known, _)| known == name);
        named.map(|(_, value)| value.as_os_str())
    }

    /// The value of a variable, such as a secret, without space around it; `None` if it is empty.
    #[doc(hidden)]
    pub fn text(&self, name: &str) -> Option<&str> {
        let value = self.get(name)?.to_str()?.trim();
        (!value.is_empty()).then_some(value)
    }
}

impl<const N: usize> From<[(&str, &str); N]> for Environment {
    fn from(pairs: [(&str, &str); N]) -> Self {
        Self::new(pairs.map(|(name, value)| (name.into(), value.into())))
    }
}
