//! Configuration: what can be set, by whom, and what is wrong with it.
//!
//! A [`Config`] is plain data, one struct a section; where a section is about one room, it is that room's own
//! settings. [`load`] lays file, environment and command line over the defaults and reports all problems at
//! once. `config/oracle.toml` says in words what each key does and is tested to be the default.
//!
//! This room reads no environment and no clock, and opens no file but the one it is told to. Secrets have no
//! key here, only the places where they are found.

mod check;
mod environment;
mod lists;
mod load;
mod prices;
mod problem;
mod schema;
mod sections;
mod text;
mod value;

use serde::{Deserialize, Serialize};

pub use environment::Environment;
pub use lists::{Because, Choice, PRESETS, Preset, Profile, Provider, ProviderModel, base_url};
pub use load::{File, Loaded, Setting, Sources, load};
pub use prices::{Prices, PricesError};
pub use problem::{Origin, Problem, may_be_secret};
pub use sections::{
    Actors, Budget, Data, Model, NoDataDirectory, Notes, Oracle, Prompt, Query, Server, Session,
    Supervisor, Tools, Turn,
};
pub use value::{ModelChain, NotAllowed};

use crate::{
    access::TenantLimits,
    kernel::{DelegationPolicy, FallbackPolicy},
};

/// All that can be set, by section.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Config {
    /// Turns, and when to warn.
    pub oracle: Oracle,
    /// Tokens and money of a query and of a session.
    pub budget: Budget,
    /// When to doubt the model.
    pub fallback: FallbackPolicy,
    /// What follows a turn.
    pub turn: Turn,
    /// Sub-agents.
    pub delegation: DelegationPolicy,
    /// What the model is told.
    pub prompt: Prompt,
    /// How queries are classified.
    pub query: Query,
    /// What tools may use.
    pub tools: Tools,
    /// Notes.
    pub notes: Notes,
    /// Models, retries and deadlines.
    pub model: Model,
    /// One conversation.
    pub session: Session,
    /// Stalls, restarts and recovery.
    pub supervisor: Supervisor,
    /// Shared actors.
    pub actors: Actors,
    /// The HTTP server.
    pub server: Server,
    /// What tenants may use.
    pub tenants: TenantLimits,
    /// Where things are kept.
    pub data: Data,
    /// Kinds of conversations besides the one that the sections describe.
    pub profiles: Vec<Profile>,
    /// Servers of models besides the built-in presets.
    pub providers: Vec<Provider>,
}

impl Config {
    /// Checks a configuration that was made in code; [`load`] does it by itself.
    ///
    /// # Errors
    /// All values that are not allowed, or do not go together.
    pub fn validate(&self) -> Result<(), Vec<Problem>> {
        let mut problems = check::values(self);
        problems.extend(check::clashes(self, &|_| Some(Origin::Code)));
        match problems.is_empty() {
            true => Ok(()),
            false => Err(problems),
        }
    }
}
